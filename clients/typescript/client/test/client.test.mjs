// The packed client, against a Skein with the agent "echo", which answers in ten pieces.
import assert from "node:assert/strict";
import { connect, createServer } from "node:net";
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

/** A proxy that breaks off each of its first connections after some bytes of the answers. */
async function cutting(cuts, bytes) {
  const { host, hostname, port } = new URL(url);
  const proxy = { made: 0 };
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    let left = proxy.made++ < cuts ? bytes : Infinity;
    const end = () => (client.destroy(), upstream.destroy());
    client.on("data", (some) => upstream.write(some.toString("latin1").replaceAll(new URL(proxy.url).host, host), "latin1"));
    upstream.on("data", (some) => {
      if (left <= 0) return;
      client.write(some.subarray(0, left), (left -= some.length) <= 0 ? end : undefined);
    });
    for (const one of [client, upstream]) one.on("error", end).on("close", end);
  });
  await new Promise((listens) => server.listen(0, "127.0.0.1", listens));
  server.unref();
  proxy.url = `http://127.0.0.1:${server.address().port}`;
  return proxy;
}

test("queries show what the client wrote", async () => {
  const t = await thread();
  const reply = await t.send("item.create", { item: item("one") });
  await t.send("item.create", { item: item("two") });
  const { items } = await t.query("item.list", { order: "asc" });
  assert.deepEqual(items.map((i) => i.content[0].text), ["one", "two"]);
  assert.equal(reply.result.itemId, items[0].id);
});

test("a command that was not answered, or not wholly, is repeated, and executed once", async () => {
  const lost = new TypeError("the answer is lost");
  const cut = () => new ReadableStream({ start: (out) => out.enqueue(new TextEncoder().encode('{"threadId": "T-')), pull: (out) => out.error(lost) });
  for (const lose of [() => Promise.reject(lost), () => new Response(cut(), { headers: { "Content-Type": "application/json" } })]) {
    let sent = 0;
    const t = await thread(new Skein({
      url,
      fetch: async (input, init) => {
        const answer = await fetch(input, init);
        return String(input).endsWith("item.create") && sent++ === 0 ? lose() : answer;
      },
    }));
    await t.send("item.create", { item: item("once") });
    assert.equal((await t.query("item.list")).items.length, 1);
    assert.equal(sent, 2);
  }
});

test("what can never be answered fails at once", async () => {
  for (const wrong of ["127.0.0.1:8420", "localhost:8420", "ftp://example.com"]) assert.throws(() => new Skein({ url: wrong }), /is not one of HTTP/);
  for (const given of [{ key: "a\nb" }, { key: () => "ключ" }, { tenant: "a\nb" }]) {
    const client = new Skein({ url, ...given });
    await assert.rejects(client.query("thread.list", {}), (e) => e.code === "invalid_request");
    await assert.rejects(client.events().next(), (e) => e.code === "invalid_request");
  }
  const lost = new Skein({ url, fetch: async () => new Response("<h1>lost</h1>", { status: 404 }) });
  await assert.rejects(lost.query("thread.list", {}), (e) => e.code === "not_found" && /not an answer of Skein.*lost/.test(e.message));
  await new Skein({ url, key: "anything\n" }).query("thread.list", {});
});

test("events resume where a stream broke off", async () => {
  const { ref } = await thread();
  for (let n = 0; n < 10; n++) await skein.thread(ref).send("item.create", { item: item(String(n)) });
  const proxy = await cutting(5, 2500);
  const t = new Skein({ url: proxy.url }).thread(ref);
  const seen = [];
  const order = [];
  for await (const e of t.events({ types: ["item.*"], opened: () => order.push("opened") })) {
    order.push(seen.push(e.data.content[0].text));
    if (seen.length === 10) break;
  }
  assert.deepEqual(seen, [..."0123456789"]);
  assert.equal(order[0], "opened");
  assert.ok(order.lastIndexOf("opened") > 0);
  await assert.rejects(t.events({ after: 99, opened: () => assert.fail("opened") }).next(), (e) => e.code === "position_ahead");
  const from = [];
  for await (const e of t.events({ after: 5 })) {
    from.push(e.threadversion);
    if (from.length === 3) break;
  }
  assert.deepEqual(from, [6, 7, 8]);
  assert.ok(proxy.made > 2, `${proxy.made} connections`);
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
  const proxy = await cutting(3, 2000);
  for (const client of [skein, new Skein({ url: proxy.url })]) {
    const t = client.thread((await thread()).ref);
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
  assert.ok(proxy.made > 2, `${proxy.made} connections`);
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
  let cut = false;
  for await (const frame of socket) {
    seen.add(frame.type);
    if (frame.type === "event") versions.push(frame.event.threadversion);
    if (!cut && versions.length === 2 && seen.size === 3) { // a live event on its way would be lost
      cut = true;
      await t.send("item.create", { item: item("one") });
      sockets[0].terminate();
      await t.send("item.create", { item: item("two") });
    }
    if (versions.at(-1) === 4) break;
  }
  assert.deepEqual(versions, [1, 2, 3, 4]);
  assert.deepEqual([...seen].sort(), ["event", "live", "thread"]);
  assert.equal(sockets.length, 2);
  const missing = skein.thread("T-00000000-0000-4000-8000-000000000000");
  await assert.rejects(async () => {
    for await (const _ of new Skein({ url, WebSocket }).thread(missing.ref).socket({ what: ["events"] }));
  }, (e) => e.code === "not_found");
});
