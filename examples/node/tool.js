import { connect } from "nats";

const nc = await connect({ servers: process.env.NATS_URL ?? "nats://127.0.0.1:4222" });
const requests = nc.subscribe("skein.tool.add", { queue: "skein" });
await nc.flush();
console.log("ready");
for await (const m of requests) {
  const { a, b } = m.json().arguments;
  m.respond(JSON.stringify(Number.isFinite(a + b)
    ? { kind: "result", status: "success", result: a + b }
    : { kind: "result", status: "error", error: "a and b are numbers" }));
}
