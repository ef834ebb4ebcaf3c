import { connect } from "nats";

const nc = await connect({ servers: process.env.NATS_URL ?? "nats://127.0.0.1:4222" });

async function react(m) {
  const { items, itemId, protocol } = m.json();
  const send = (message) => m.respond(JSON.stringify(message));
  const beat = setInterval(send, protocol.heartbeatMs, { kind: "heartbeat" });
  const stop = new AbortController();
  const cancel = nc.subscribe(protocol.cancel, { max: 1, callback: () => stop.abort() });
  try {
    const said = items.findLast((i) => i.role === "user").content.map((p) => p.text ?? "").join("");
    const text = said.toUpperCase() + "!"; // the model's call, with stop.signal, goes here
    send({ kind: "chunk", type: "text-delta", data: { id: itemId, delta: text } });
    send({ kind: "result", assistantEvent: { content: [{ type: "output_text", text }] } });
  } catch (err) {
    send({ kind: "error", message: err.message, retry: false });
  } finally {
    clearInterval(beat);
    cancel.unsubscribe();
  }
}

const requests = nc.subscribe("skein.reactor.shout", { queue: "skein" });
await nc.flush();
console.log("ready");
for await (const m of requests) react(m);
