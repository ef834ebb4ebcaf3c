// The packed saver, by LangGraph's own suite for checkpointers, and what that does not ask.
import { uuid6 } from "@langchain/langgraph-checkpoint";
import { validate } from "@langchain/langgraph-checkpoint-validation";
import { Skein } from "@skein-threads/client";
import { SkeinSaver } from "@skein-threads/langgraph";
import { expect, it } from "vitest";

const url = process.env.SKEIN_URL;
const open = () => new SkeinSaver({ url, bucket: `suite-${crypto.randomUUID()}` });

validate({ checkpointerName: "@skein-threads/langgraph", createCheckpointer: open });

const checkpoint = (values = {}, versions = {}) => ({ v: 4, id: uuid6(0), ts: new Date().toISOString(), channel_values: values, channel_versions: versions, versions_seen: {} });
const metadata = { source: "loop", step: 0, parents: {} };
const at = (thread_id, checkpoint_id) => ({ configurable: { thread_id, checkpoint_ns: "", ...(checkpoint_id && { checkpoint_id }) } });

it("of one task's writes by several processes the first count, and special ones are replaced", async () => {
  const bucket = `race-${crypto.randomUUID()}`;
  const savers = Array.from({ length: 8 }, () => new SkeinSaver({ url, bucket }));
  const config = await savers[0].put(at("t"), checkpoint(), metadata, {});
  await Promise.all(savers.map((s, n) => s.putWrites(config, [["a", n], ["b", n]], "task")));
  const { pendingWrites } = await savers[0].getTuple(config);
  expect(pendingWrites.map(([task, channel]) => [task, channel])).toEqual([["task", "a"], ["task", "b"]]);
  const won = pendingWrites.map(([, , value]) => value);
  await Promise.all(savers.map((s, n) => s.putWrites(config, [["a", 100 + n], ["b", 100 + n]], "task")));
  for (const value of ["one", "two"]) await savers[1].putWrites(config, [["__interrupt__", value]], "task");
  const after = (await savers[2].getTuple(config)).pendingWrites;
  expect(after).toEqual([["task", "__interrupt__", "two"], ["task", "a", won[0]], ["task", "b", won[1]]]);
});

it("forks with equal versions keep their own values, and unchanged ones are stored once", async () => {
  const bucket = `fork-${crypto.randomUUID()}`;
  const [a, b] = [new SkeinSaver({ url, bucket }), new SkeinSaver({ url, bucket })];
  const root = await a.put(at("t"), checkpoint({ x: "root", y: "same" }, { x: 1, y: 1 }), metadata, { x: 1, y: 1 });
  const forks = await Promise.all([[a, "left"], [b, "right"]].map(([saver, x]) =>
    saver.put(root, checkpoint({ x, y: "same" }, { x: 2, y: 1 }), metadata, { x: 2 })));
  const read = await Promise.all(forks.map((f) => new SkeinSaver({ url, bucket }).getTuple(f)));
  expect(read.map((t) => t.checkpoint.channel_values)).toEqual([{ x: "left", y: "same" }, { x: "right", y: "same" }]);
  expect((await new Skein({ url }).query("kv.list", { bucket: `${bucket}/t/values` })).keys.filter((k) => k.endsWith("/y"))).toHaveLength(1);
});

it("a save that is broken off at any request leaves the thread as it was", async () => {
  const bucket = `broken-${crypto.randomUUID()}`;
  const saver = new SkeinSaver({ url, bucket });
  const before = await saver.put(at("t"), checkpoint({ x: 1 }, { x: 1 }), metadata, { x: 1 });
  for (let most = 0; ; most++) {
    let sent = 0;
    const dying = async (input, init) => {
      if (sent++ >= most) return new Response(JSON.stringify({ error: { type: "x", code: "invalid_request", message: "gone" } }), { status: 400 });
      return fetch(input, init);
    };
    const next = checkpoint({ x: 2, y: 2 }, { x: 2, y: 2 });
    const done = await new SkeinSaver({ url, bucket, fetch: dying }).put(before, next, metadata, { x: 2, y: 2 }).catch(() => undefined);
    const newest = await new SkeinSaver({ url, bucket }).getTuple(at("t"));
    if (done) {
      expect(newest.checkpoint.channel_values).toEqual({ x: 2, y: 2 });
      expect(most).toBe(5); // the parent, the thread, two values, the checkpoint
      return;
    }
    expect(newest.checkpoint.channel_values).toEqual({ x: 1 });
  }
});

it("threads whose ids begin alike are apart, and an id that is too long is refused", async () => {
  const bucket = `apart-${crypto.randomUUID()}`;
  const saver = new SkeinSaver({ url, bucket });
  const ids = ["a", "a/values", "a%2Fvalues"];
  for (const id of ids) await saver.put(at(id), checkpoint({ x: id }, { x: 1 }), metadata, { x: 1 });
  for (const [deleted, id] of ids.entries()) {
    const read = await Promise.all(ids.map((other) => new SkeinSaver({ url, bucket }).getTuple(at(other))));
    expect(read.map((t) => t?.checkpoint.channel_values.x)).toEqual(ids.map((other, n) => (n >= deleted ? other : undefined)));
    await saver.deleteThread(id);
  }
  await expect(saver.put(at("x".repeat(200)), checkpoint(), metadata, {})).rejects.toThrow(/thread_id is \d+ bytes too long/);
});

it("a checkpoint and its metadata fit into a pair", async () => {
  const saver = open();
  const large = "x".repeat(370_000);
  const config = await saver.put(at("t"), { ...checkpoint(), versions_seen: { n: { large } } }, { ...metadata, large }, {});
  const tuple = await saver.getTuple(config);
  expect([tuple.checkpoint.versions_seen.n.large, tuple.metadata.large]).toEqual([large, large]);
});

it("values of megabytes and of bytes come back, and nothing of a deleted thread stays", async () => {
  const bucket = `large-${crypto.randomUUID()}`;
  const saver = new SkeinSaver({ url, bucket });
  const values = { text: "ü\u0000".repeat(400_000), bytes: new Uint8Array(1_000_000).fill(7), nothing: null };
  const config = await saver.put(at("t"), checkpoint(values, { text: 1, bytes: 1, nothing: 1 }), metadata, { text: 1, bytes: 1, nothing: 1 });
  await saver.putWrites(config, [["big", "y".repeat(900_000)]], "task");
  const tuple = await new SkeinSaver({ url, bucket }).getTuple(config);
  expect(tuple.checkpoint.channel_values.text).toBe(values.text);
  expect(tuple.checkpoint.channel_values.bytes).toEqual(values.bytes);
  expect(tuple.checkpoint.channel_values.nothing).toBe(null);
  expect(tuple.pendingWrites[0][2]).toHaveLength(900_000);
  await saver.deleteThread("t");
  for (const name of [bucket, `${bucket}/t`, `${bucket}/t/values`]) expect((await new Skein({ url }).query("kv.list", { bucket: name })).keys).toEqual([]);
});
