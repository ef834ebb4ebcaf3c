// The packed client, against a Skein with the agent "echo", which answers in ten pieces.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Skein, SkeinError } from "@skein-threads/client";
import WebSocket from "ws";

const url = process.env.SKEIN_URL;
const skein = new Skein({ url });
const item = (text) => ({ type: "message", role: "user", content: [{ type: "input_text", text }] });

/** A thread of the agent "echo". */
async function thread(client = skein) {
  const { threadId } = await client.send("thread.create", { agentId: "echo" });
  return client.thread(threadId);
}

/** A fetch whose first streams break off after some bytes. */
const breaking = (bytes, times) => async (input, init) => {
  const answer = await fetch(input, init);
  if (!answer.headers.get("Content-Type")?.startsWith("text/event-stream") || times-- <= 0) return answer;
  let left = bytes;
  const cut = new TransformStream({
    transform(chunk, out) {
      out.enqueue(chunk.subarray(0, left));
      left -= chunk.length;
      if (left <= 0) out.error(new TypeError("cut"));
    },
  });
  return new Response(answer.body.pipeThrough(cut), { status: answer.status, headers: answer.headers });
};

test("queries show what the client wrote", async () => {
  const t = await thread();
  const reply = await t.send("item.create", { item: item("one") });
  await t.send("item.create", { item: item("two") });
  const { items } = await t.query("item.list", { order: "asc" });
  assert.deepEqual(items.map((i) => i.content[0].text), ["one", "two"]);
  assert.equal(reply.result.itemId, items[0].id);
});

test("a command that was not answered is repeated, and executed once", async () => {
  let lost = 0;
  const t = await thread(new Skein({
    url,
    fetch: async (input, init) => {
      const answer = await fetch(input, init);
      if (String(input).endsWith("item.create") && lost++ === 0) throw new TypeError("the answer is lost");
      return answer;
    },
  }));
  await t.send("item.create", { item: item("once") });
  assert.equal((await t.query("item.list")).items.length, 1);
  assert.equal(lost, 2);
});

test("events resume where a stream broke off", async () => {
  const t = await thread(new Skein({ url, fetch: breaking(1500, 5) }));
  for (let n = 0; n < 10; n++) await t.send("item.create", { item: item(String(n)) });
  const seen = [];
  for await (const e of t.events({ types: ["item.*"] })) {
    seen.push(e.data.content[0].text);
    if (seen.length === 10) break;
  }
  assert.deepEqual(seen, [..."0123456789"]);
  const from = [];
  for await (const e of t.events({ after: 5 })) {
    from.push(e.threadversion);
    if (from.length === 3) break;
  }
  assert.deepEqual(from, [6, 7, 8]);
});

test("events of a deleted thread end, those of a tenant go on", async () => {
  const t = await thread();
  const stop = new AbortController();
  const types = [];
  const tenant = (async () => {
    for await (const { event, position } of skein.events({ after: "0", types: ["lifecycle.deleted"], signal: stop.signal })) {
      assert.match(position, /^\d+\.\d+\./);
      if (event.threadid === t.ref) return event.type;
    }
  })();
  for await (const e of t.events()) {
    types.push(e.type);
    if (types.length === 1) await t.send("thread.delete", {});
  }
  assert.equal(types.at(-1), "lifecycle.deleted");
  assert.equal(await tenant, "lifecycle.deleted");
  stop.abort();
});

test("a run is followed to its end, also where its stream breaks off", async () => {
  for (const client of [skein, new Skein({ url, fetch: breaking(900, 5) })]) {
    const t = await thread(client);
    const kinds = [];
    let text = "";
    const indexes = [];
    for await (const e of t.run({ text: "hello" })) {
      kinds.push(e.type);
      if (e.type === "chunk") {
        indexes.push(e.chunk.index);
        if (e.chunk.type === "text-delta") text += e.chunk.data.delta;
      }
      if (e.type === "done") assert.equal(e.execution.status, "completed");
    }
    assert.deepEqual([kinds[0], kinds.at(-1)], ["started", "done"]);
    assert.equal(kinds.filter((k) => k === "started").length, 1);
    assert.deepEqual(indexes, indexes.map((_, n) => n));
    assert.equal(text, "0123456789");
    const again = [];
    const { executions } = await t.query("execution.list");
    for await (const e of t.chunks({ execution: executions[0].id })) again.push(e.chunk.index);
    assert.deepEqual(again, indexes);
    assert.equal((await t.query("item.list")).items.filter((i) => i.role === "assistant").length, 1);
  }
});

test("refusals are typed", async () => {
  await assert.rejects(skein.thread("key:nothing").query("thread.get"), (e) => e instanceof SkeinError && e.code === "not_found" && e.status === 404 && !e.retry);
  const t = await thread();
  await assert.rejects(t.send("thread.update", { title: "x" }, { expectedVersion: 9 }), (e) => e.code === "version_conflict" && e.details.currentVersion === 2);
  await assert.rejects(new Skein({ url: "http://127.0.0.1:1", timeout: 300 }).query("thread.list", {}), (e) => e.code === "unavailable" && e.retry && e.details.outcome === "unknown");
  const stop = new AbortController();
  stop.abort(new Error("enough"));
  await assert.rejects(skein.query("thread.list", {}, { signal: stop.signal }), /enough/);
});

test("files are written, read and removed", async () => {
  const t = await thread();
  await t.writeFile("notes/läse mich.txt", "Hello.", { contentType: "text/plain" });
  const file = await t.readFile("/notes/läse mich.txt", { headers: { Range: "bytes=0-3" } });
  assert.deepEqual([file.status, await file.text()], [206, "Hell"]);
  await t.writeFile("stream.bin", new Blob(["abc"]).stream());
  assert.equal(await (await t.readFile("stream.bin")).text(), "abc");
  await t.removeFile("stream.bin");
  await assert.rejects(t.readFile("stream.bin"), (e) => e.code === "not_found");
});

test("a socket brings events, live events and the thread, and opens again", async () => {
  const sockets = [];
  class Watched extends WebSocket {
    constructor(address) {
      super(address);
      sockets.push(this);
    }
  }
  const t = await thread(new Skein({ url, key: process.env.SKEIN_KEY, WebSocket: Watched }));
  const socket = t.socket({ what: ["events", "live", "thread"] });
  socket.emit("typing", { by: "me" });
  const versions = [];
  const seen = new Set();
  for await (const frame of socket) {
    seen.add(frame.type);
    if (frame.type === "event") {
      versions.push(frame.event.threadversion);
      if (versions.length === 2) {
        await t.send("item.create", { item: item("one") });
        sockets[0].terminate();
        await t.send("item.create", { item: item("two") });
      }
    }
    if (versions.at(-1) === 4 && seen.size === 3) break;
  }
  assert.deepEqual(versions, [1, 2, 3, 4]);
  assert.deepEqual([...seen].sort(), ["event", "live", "thread"]);
  assert.equal(sockets.length, 2);
  const missing = skein.thread("T-00000000-0000-4000-8000-000000000000");
  await assert.rejects(async () => {
    for await (const _ of new Skein({ url, WebSocket }).thread(missing.ref).socket({ what: ["events"] }));
  }, (e) => e.code === "not_found");
});
