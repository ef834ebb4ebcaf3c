import { connect } from "nats";

const nc = await connect({ servers: process.env.NATS_URL }); // default nats://127.0.0.1:4222
for await (const m of nc.subscribe("skein.reactor.shout", { queue: "skein" })) {
  const said = m.json().items.findLast((i) => i.role === "user").content.map((p) => p.text).join("");
  m.respond(JSON.stringify({ kind: "result", assistantEvent: { content: [{ type: "output_text", text: said.toUpperCase() }] } }));
}
