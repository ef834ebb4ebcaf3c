// What the types of the packed client know: compiled, not run.
import { Skein, type Item, type SkeinEvent } from "@skein-threads/client";
import { natsTransport } from "@skein-threads/client/nats";
import type { NatsConnection } from "@nats-io/transport-node";

const skein = new Skein({ url: "http://127.0.0.1:8420" });
const thread = skein.thread("key:support/42");

export async function known(): Promise<string[]> {
  const reply = await thread.send("item.create", { item: { type: "message", role: "user" } });
  const version: number = reply.version;
  const { items, nextCursor } = await thread.query("item.list", { limit: 10 });
  const first: Item | undefined = items[0];
  for await (const e of thread.events()) {
    if (e.type === "item.created") return [e.data.contextId, e.data.type];
  }
  for await (const e of thread.run({ text: "hello" })) {
    if (e.type === "done") return [e.execution.status];
  }
  const status = (e: SkeinEvent<"step.status.changed">) => e.data.to;
  return [String(version), first?.id ?? "", nextCursor ?? "", String(status)];
}

export const overNATS = (nc: NatsConnection): Skein => new Skein(natsTransport(nc, { tenant: "acme" }));

// @ts-expect-error: no such command
void (() => thread.send("item.make", {}));
// @ts-expect-error: an item needs a type
void (() => thread.send("item.create", { item: { role: "user" } }));
// @ts-expect-error: limit is a number
void (() => thread.query("item.list", { limit: "ten" }));
// @ts-expect-error: no such state
void (() => thread.send("item.status", { itemId: "a", to: "done" }));
// @ts-expect-error: a tenant is required
void ((nc: NatsConnection) => natsTransport(nc, {}));
