// The packed client over NATS, against a Skein with accounts and the agents "echo", which answers in ten
// pieces, and "assistant", which says what it is told.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Skein, SkeinError } from "@skein-threads/client";
import { natsTransport } from "@skein-threads/client/nats";
import { SkeinSaver } from "@skein-threads/langgraph";
import { connect, credsAuthenticator } from "@nats-io/transport-node";

const open = [];
/** A client of a user of the tenant, with its connection. */
async function client(name = "app", options = {}, more = {}) {
  const nc = await connect({
    servers: process.env.SKEIN_NATS, ignoreClusterUpdates: true, maxReconnectAttempts: -1, reconnectTimeWait: 20, inboxPrefix: `_INBOX.${name}`,
    authenticator: credsAuthenticator(readFileSync(process.env[`SKEIN_CREDS_${name}`])), ...more,
  });
  open.push(nc);
  return { nc, skein: new Skein(natsTransport(nc, { tenant: "acme", ...options })) };
}
test.after(() => Promise.all(open.map((nc) => nc.close())));

const { nc, skein } = await client();
const control = async (what) => assert.ok((await fetch(`${process.env.CONTROL_URL}/${what}`)).ok);
const item = (text) => ({ type: "message", role: "user", content: [{ type: "input_text", text }] });
const said = (e) => e.data.content[0].text;
const missing = "T-00000000-0000-4000-8000-000000000000";

/** How many subscriptions a connection has besides that of its requests, and who listens to its status. */
const kept = (nc) => [nc.protocol.subscriptions.size() - (nc.protocol.subscriptions.getMux() ? 1 : 0), nc.protocol.listeners.length];

async function thread(on = skein, agentId = "echo") {
  const { threadId } = await on.send("thread.create", { agentId });
  return on.thread(threadId);
}

/** The first n of a stream. */
async function take(n, stream, each = () => {}) {
  const seen = [];
  for await (const one of stream) {
    seen.push(one);
    await each(seen.length);
    if (seen.length === n) break;
  }
  return seen;
}

/** A client of which some methods of its connection do more, or less. */
const between = (methods, options = {}) => new Skein(natsTransport(new Proxy(nc, { get: (on, name) => methods[name] ?? (typeof on[name] === "function" ? on[name].bind(on) : on[name]) }), { tenant: "acme", ...options }));

/** A promise that is resolved later. */
function later() {
  let resolve;
  const promise = new Promise((r) => (resolve = r));
  return { promise, resolve };
}

/** Adds items to a thread, hundreds of them, whose texts are numbers from 1. */
async function fill(t, hundreds) {
  for (let i = 0; i < hundreds; i++) {
    await t.send("thread.commit", { commands: Array.from({ length: 100 }, (_, j) => ({ command: "item.create", data: { item: item(String(1 + i * 100 + j)) } })) });
  }
}

/** Is resolved when a thread's n-th next item has come. */
function come(t, n) {
  return new Promise((resolve) => nc.subscribe(`skein.timeline.acme.${t.ref}.item.created`, { max: n, callback: () => --n === 0 && resolve() }));
}

test("commands are executed once, and queries show what the client wrote", async () => {
  const t = await thread();
  const first = await t.send("item.create", { item: item("one") }, { commandId: `once-${t.ref}` });
  const again = await t.send("item.create", { item: item("one") }, { commandId: `once-${t.ref}` });
  assert.deepEqual(again, first);
  await t.send("item.create", { item: item("two") });
  const { items } = await t.query("item.list", { order: "asc" });
  assert.deepEqual(items.map((i) => i.content[0].text), ["one", "two"]);
  await skein.send("kv.set", { bucket: "b", key: "k", value: 1 }); // kv.get takes no minSeq
  assert.deepEqual((await skein.query("kv.get", { bucket: "b", key: "k" })).value, 1);
  assert.deepEqual(kept(nc), [0, 0]);
});

test("a command whose answer is lost is repeated, and executed once", async () => {
  const t = await thread();
  const { skein: other } = await client("app", {}, { servers: process.env.SKEIN_NATS_DIRECT });
  await control("lose");
  const sent = t.send("item.create", { item: item("once") });
  await take(1, other.thread(t.ref).events({ types: ["item.created"] })); // it is executed
  await control("cut");
  await sent;
  assert.equal((await t.query("item.list")).items.length, 1);
});

test("refusals are typed", async () => {
  await assert.rejects(skein.thread("key:nothing").query("thread.get"), (e) => e instanceof SkeinError && e.code === "not_found" && e.status === 404 && !e.retry);
  const t = await thread();
  await assert.rejects(t.send("thread.update", { title: "x" }, { expectedVersion: 9 }), (e) => e.code === "version_conflict" && e.details.currentVersion === 2);
  await assert.rejects(t.send("thread.update", { nothing: 1 }), (e) => e.code === "invalid_request" && e.param !== "");
  const large = "x".repeat(nc.info.max_payload);
  await assert.rejects(t.send("thread.update", { title: large }), (e) => e.code === "payload_too_large" && e.details.limit === nc.info.max_payload - 64);
  const room = nc.info.max_payload - 64 - JSON.stringify({ commandId: "largest", threadId: t.ref, data: { title: "" } }).length;
  await assert.rejects(t.send("thread.update", { title: "x".repeat(room) }, { commandId: "largest" }), /the command's data has/); // the largest that arrives
  for (let n = 0; n < 12; n++) await t.send("item.create", { item: item("x".repeat(400_000)) });
  await assert.rejects(t.query("thread.document"), (e) => e.code === "payload_too_large" && /fromMessage/.test(e.message));
  assert.equal((await take(12, t.events({ types: ["item.created"] }))).length, 12); // of which the log has pages
  const stop = new AbortController();
  stop.abort(new Error("enough"));
  await assert.rejects(skein.query("thread.list", {}, { signal: stop.signal }), /enough/);
});

test("what is no token of a subject is refused, and never sent", async () => {
  for (const tenant of ["", "a.b", "*", ">", "a b", "a\r\nPUB x 0"]) assert.throws(() => natsTransport(nc, { tenant }), (e) => e.code === "invalid_request");
  for (const name of ["thread", "thread.get.more", "thread.*", ">", "thread. get", "thread.get\r\n"]) {
    await assert.rejects(skein.query(name, {}), (e) => e.code === "invalid_request" && /noun.verb/.test(e.message));
  }
  for (const ref of ["", "*", ">", "a.b", `${missing}.>`, `${missing} x`, "T-*"]) {
    for (const stream of [skein.thread(ref).events(), skein.thread(ref).chunks()]) await assert.rejects(stream.next(), (e) => e.code === "invalid_request");
  }
  await assert.rejects(skein.thread(missing).events({ types: ["item.>"] }).next(), (e) => e.code === "invalid_request");
  await assert.rejects(skein.events({ after: "x" }).next(), (e) => e.code === "invalid_request");
  await assert.rejects(skein.thread(missing).events().next(), (e) => e.code === "not_found");
  await assert.rejects(skein.thread("key:nothing").events().next(), (e) => e.code === "not_found");
  await assert.rejects(skein.thread(missing).readFile("a"), (e) => e.code === "invalid_request" && /HTTP/.test(e.message));
  assert.deepEqual(kept(nc), [0, 0]);
});

test("events of a thread are live, and go on where the connection was lost", async () => {
  const t = await thread();
  const key = (await skein.send("thread.resolve", { key: `a.b/${t.ref}` })).threadId;
  await skein.thread(key).send("item.create", { item: item("by its key") });
  assert.equal(said((await take(1, skein.thread(`key:a.b/${t.ref}`).events({ types: ["item.*"] })))[0]), "by its key");
  for (let n = 0; n < 3; n++) await t.send("item.create", { item: item(String(n)) });
  const order = [];
  const seen = await take(9, t.events({ types: ["item.*"], opened: () => order.push("opened") }), async (n) => {
    order.push(n);
    if (n === 3) for (const text of "34") await t.send("item.create", { item: item(text) });
    if (n === 4) {
      const { skein: other } = await client();
      await control("cut");
      for (const text of "56") await other.thread(t.ref).send("item.create", { item: item(text) });
    }
    if (n === 7) {
      await control("stop");
      await control("start");
      for (const text of "78") await t.send("item.create", { item: item(text) });
    }
  });
  assert.deepEqual(seen.map(said), [..."012345678"]);
  assert.deepEqual(order.slice(0, 4), ["opened", 1, 2, 3]);
  assert.ok(order.lastIndexOf("opened") > 0);
  const from = await take(3, t.events({ after: 5 }));
  assert.deepEqual(from.map((e) => e.threadversion), [6, 7, 8]);
  await assert.rejects(t.events({ after: 99, opened: () => assert.fail("opened") }).next(), (e) => e.code === "position_ahead");
  await assert.rejects(t.events({ log: "another" }).next(), (e) => e.code === "position_ahead");
  assert.deepEqual(kept(nc), [0, 0]);
});

test("a reader that is slow misses nothing", async () => {
  const t = await thread();
  const stream = t.events({ types: ["item.*"] });
  await t.send("item.create", { item: item("0") });
  assert.equal(said((await stream.next()).value), "0");
  const n = 1500;
  const all = come(t, n);
  await fill(t, n / 100);
  await all; // and so as much has come to the reader
  for (let i = 1; i <= n; i++) assert.equal(said((await stream.next()).value), String(i));
  const next = stream.next(); // nothing comes again
  await t.send("item.create", { item: item("last") });
  assert.equal(said((await next).value), "last");
  await stream.return();
});

test("of the events from now on none is missed, though more come than wait before the end of the log is told", async () => {
  const t = await thread();
  const told = later();
  const late = later();
  const request = async (subject, ...more) => {
    const m = await nc.request(subject, ...more);
    if (!subject.endsWith("history.get")) return m;
    told.resolve();
    await late.promise;
    return m;
  };
  const stream = between({ request }).events({ types: ["item.created"] });
  const first = stream.next();
  await told.promise;
  const all = come(t, 1100);
  await fill(t, 11);
  await all;
  late.resolve();
  assert.equal(said((await first).value.event), "1");
  for (let n = 2; n <= 1100; n++) assert.equal(said((await stream.next()).value.event), String(n));
  await stream.return();
});

test("each event and chunk is shown once, though each of their messages comes twice", async () => {
  const subscribe = (subject, { callback }) => nc.subscribe(subject, { callback: (error, m) => (callback(error, m), callback(error, m)) });
  const twice = between({ subscribe });
  const t = await thread();
  const stop = new AbortController();
  const { promise: opened, resolve } = later();
  const ofTenant = take(3, (async function* () {
    for await (const { event } of twice.events({ types: ["item.*"], opened: resolve })) if (event.threadid === t.ref) yield event;
  })());
  const ofThread = twice.thread(t.ref).events({ types: ["item.*"], signal: stop.signal });
  await opened;
  await t.send("item.create", { item: item("0") });
  const seen = [(await ofThread.next()).value];
  for (const text of "12") await t.send("item.create", { item: item(text) }), seen.push((await ofThread.next()).value);
  assert.deepEqual(seen.map(said), [..."012"]);
  assert.deepEqual((await ofTenant).map(said), [..."012"]);
  await ofThread.return();
  const indexes = [];
  let text = "";
  for await (const e of twice.thread(t.ref).run({ text: "hello" })) {
    if (e.type === "chunk") indexes.push(e.chunk.index);
    if (e.type === "chunk" && e.chunk.type === "text-delta") text += e.chunk.data.delta;
  }
  assert.equal(text, "0123456789");
  assert.deepEqual(indexes, indexes.map((_, n) => n));
});

test("a request that nobody answers is sent again before it is given up", async () => {
  let sent = 0;
  const request = (...args) => (sent++ === 0 ? new Promise(() => {}) : nc.request(...args));
  const { ref } = await thread();
  const t = between({ request }).thread(ref);
  await t.send("item.create", { item: item("once") });
  assert.equal(sent, 2);
  assert.equal((await t.query("item.list")).items.length, 1);
});

test("events go on after queries that took longer than the client's timeout", async () => {
  const t = await thread();
  let lose = false; // the message of item 1: that of an earlier one may come late
  let hang = 0; // how many requests are not answered
  const subscribe = (subject, { callback }) => nc.subscribe(subject, { callback: (error, m) => (lose && Buffer.from(m.data).includes('"text":"1"') ? (lose = false) : callback(error, m)) });
  const request = (subject, ...more) => (subject.endsWith("event.list") && hang-- > 0 ? new Promise(() => {}) : nc.request(subject, ...more));
  const stream = between({ subscribe, request }, { timeout: 200 }).thread(t.ref).events({ types: ["item.*"] });
  await t.send("item.create", { item: item("0") });
  assert.equal(said((await stream.next()).value), "0");
  [lose, hang] = [true, 2];
  const next = stream.next();
  for (const text of "12") await t.send("item.create", { item: item(text) });
  assert.deepEqual([said((await next).value), said((await stream.next()).value)], ["1", "2"]);
  assert.deepEqual([lose, hang < 0], [false, true]);
  await stream.return();
});

test("Skein waits no longer than the sender of a request does", async () => {
  const t = await thread();
  await skein.query("consumer.create", { name: "brief", threadId: t.ref, types: ["item.*"] });
  let answer;
  const request = (subject, body, o) => (answer = nc.request(subject, body, { ...o, timeout: 60_000 })); // to see what is answered too late
  await assert.rejects(between({ request }, { timeout: 400 }).query("consumer.next", { name: "brief", waitMs: 10_000 }), (e) => e.code === "unavailable");
  assert.match((await answer).string(), /not answered within/);
  await t.send("item.create", { item: item("one") }); // which nobody has taken
  assert.equal(said((await skein.query("consumer.next", { name: "brief", waitMs: 5000 })).event), "one");
  await skein.query("consumer.delete", { name: "brief" });
});

test("a request that takes an event is not sent again while it waits for one", async () => {
  const patience = [];
  const s = between({ request: (subject, body, o) => (patience.push(o.timeout), nc.request(subject, body, o)) });
  const t = await thread();
  await s.query("consumer.create", { name: "patient", threadId: t.ref });
  const { event } = await s.query("consumer.next", { name: "patient", waitMs: 10_000 });
  assert.equal(event.type, "thread.created");
  assert.ok(patience.at(-1) > 10_000, String(patience));
  await s.query("consumer.delete", { name: "patient" });
});

test("events of a deleted thread end, those of the tenant go on, also after a restart", async () => {
  const t = await thread();
  const stop = new AbortController();
  let resolve;
  const opened = new Promise((r) => (resolve = r));
  const positions = [];
  const tenant = (async () => {
    for await (const { event, position } of skein.events({ types: ["item.*", "lifecycle.deleted"], signal: stop.signal, opened: resolve })) {
      if (event.threadid !== t.ref) continue;
      positions.push([position, event.type]);
      if (event.type === "lifecycle.deleted") return;
    }
  })();
  await opened;
  await t.send("item.create", { item: item("one") });
  await t.send("thread.commit", { commands: ["two", "three", "four"].map((text) => ({ command: "item.create", data: { item: item(text) } })) });
  await control("stop");
  await control("start");
  await t.send("item.create", { item: item("five") });
  const types = [];
  for await (const e of t.events()) {
    types.push(e.type);
    if (types.length === 1) await t.send("thread.delete", {});
  }
  assert.equal(types.at(-1), "lifecycle.deleted");
  for await (const e of t.events({ after: types.length })) assert.fail(e.type); // what was seen last is the end
  await tenant;
  assert.deepEqual(positions.map(([, type]) => type), [...Array(5).fill("item.created"), "lifecycle.deleted"]);
  const [third] = positions[2];
  assert.match(third, /^\d+\.1\.[a-z]\w+$/);
  const rest = await take(3, skein.events({ after: third, types: ["item.*", "lifecycle.deleted"] }));
  assert.deepEqual(rest.map((e) => [e.position, e.event.type]), positions.slice(3));
  await assert.rejects(skein.events({ after: "999999999" }).next(), (e) => e.code === "position_ahead");
  await assert.rejects(skein.events({ after: "1.0.another" }).next(), (e) => e.code === "position_ahead");
  await assert.rejects(skein.events({ log: "another" }).next(), (e) => e.code === "position_ahead");
  assert.deepEqual(kept(nc), [0, 0]);
});

test("a run is followed to its end, also where the connection is lost", async () => {
  for (const agent of ["echo", "assistant"]) {
    const t = await thread(skein, agent);
    const kinds = [];
    const indexes = [];
    let text = "";
    for await (const e of t.run({ text: "slow" })) {
      kinds.push(e.type);
      if (e.type === "started" && agent === "assistant") await control("say?piece=a");
      if (e.type !== "chunk") continue;
      indexes.push(e.chunk.index);
      if (e.chunk.type !== "text-delta") continue;
      text += e.chunk.data.delta;
      if (text === "a") {
        await control("cut");
        for (const piece of ["b", "c", ""]) await control(`say?piece=${piece}`);
      }
    }
    assert.deepEqual([kinds[0], kinds.at(-1)], ["started", "done"]);
    assert.equal(text, agent === "echo" ? "0123456789" : "abc");
    assert.deepEqual(indexes, indexes.map((_, n) => n));
    const { executions } = await t.query("execution.list");
    assert.equal(executions[0].status, "completed");
    const again = [];
    for await (const e of t.chunks({ execution: executions[0].id })) again.push(e.chunk.index);
    assert.deepEqual(again, indexes);
    const rest = [];
    for await (const e of t.chunks({ execution: executions[0].id, after: 3 })) rest.push(e.chunk.index);
    assert.deepEqual(rest, indexes.slice(4));
    for await (const e of t.chunks({ execution: executions[0].id, after: indexes.at(-1) })) assert.fail(`${e.type}`);
    await assert.rejects(t.chunks({ execution: "exe_none" }).next(), (e) => e.code === "not_found");
  }
  assert.deepEqual(kept(nc), [0, 0]);
});

test("a chunk that is lost is read from what stores it, which may lag behind", async () => {
  const t = await thread(skein, "assistant");
  let lag = 0; // how many more pages of chunks are empty
  let lost = false;
  const losing = between({
    subscribe: (subject, { callback }) =>
      nc.subscribe(subject, {
        callback: (error, m) => {
          if (error || !m.subject.endsWith(".chunk.emitted") || !m.json().data.data?.delta?.includes("b")) return callback(error, m);
          [lag, lost] = [2, true];
        },
      }),
    request: async (subject, ...more) => {
      const m = await nc.request(subject, ...more);
      if (!subject.endsWith("chunk.list") || lag-- <= 0) return m;
      return { subject: m.subject, data: new TextEncoder().encode(JSON.stringify({ ...m.json(), chunks: [] })) };
    },
  });
  const indexes = [];
  let text = "";
  for await (const e of losing.thread(t.ref).run({ text: "slow" })) {
    if (e.type === "started") await control("say?piece=a");
    assert.notEqual(e.type, "gap");
    if (e.type !== "chunk") continue;
    indexes.push(e.chunk.index);
    if (e.chunk.type !== "text-delta") continue;
    text += e.chunk.data.delta;
    if (text === "a") for (const piece of ["b", "c", ""]) await control(`say?piece=${piece}`);
  }
  assert.deepEqual([text, lost, lag < 0], ["abc", true, true]);
  assert.deepEqual(indexes, indexes.map((_, n) => n));
});

test("a run is read to its last chunk, also where this clock is wrong", async () => {
  const now = Date.now;
  for (const hours of [1, -1]) {
    const t = await thread(skein, "assistant");
    const late = [];
    let held = false; // chunks from "b" on
    const behind = between({
      subscribe: (subject, { callback }) =>
        nc.subscribe(subject, {
          callback: (error, m) => {
            held ||= m.subject.endsWith(".chunk.emitted") && m.json().data.data?.delta === "b";
            if (held && m.subject.endsWith(".chunk.emitted")) late.push(() => callback(error, m));
            else callback(error, m);
          },
        }),
      request: async (subject, ...more) => {
        const m = await nc.request(subject, ...more);
        if (held && subject.endsWith("execution.get")) setTimeout(() => late.splice(0).forEach((come) => come()), 50); // the run has ended
        if (!held || !subject.endsWith("chunk.list")) return m;
        return { subject: m.subject, data: new TextEncoder().encode(JSON.stringify({ ...m.json(), chunks: [] })) }; // a replica lags behind
      },
    });
    let text = "";
    Date.now = () => now() + hours * 3_600_000;
    try {
      for await (const e of behind.thread(t.ref).run({ text: "slow" })) {
        if (e.type === "started") await control("say?piece=a");
        if (e.type !== "chunk" || e.chunk.type !== "text-delta") continue;
        text += e.chunk.data.delta;
        if (text === "a") for (const piece of ["b", ""]) await control(`say?piece=${piece}`);
      }
    } finally {
      Date.now = now;
    }
    assert.equal(text, "ab");
  }
});

test("a run that waits in the queue is followed, and one that is removed from it fails", async () => {
  const t = await thread(skein, "assistant");
  const first = t.run({ text: "slow" });
  assert.equal((await first.next()).value.type, "started");
  const waits = t.run({ text: "hello", policy: "enqueue" });
  const removed = t.run({ text: "hello", policy: "enqueue" });
  assert.ok((await waits.next()).value.run.queuedId);
  const { queuedId } = (await removed.next()).value.run;
  const failed = assert.rejects(removed.next(), (e) => e.code === "not_found");
  await t.send("queue.remove", { queuedId });
  await failed;
  await control("say?piece=");
  let last;
  for await (const e of waits) last = e;
  assert.equal(last.execution.status, "completed");
  await first.return();
  assert.deepEqual(kept(nc), [0, 0]);
});

test("the next run of a thread is followed", async () => {
  const t = await thread();
  const chunks = t.chunks();
  const first = chunks.next(); // which waits: there is no run
  await t.send("thread.react", { text: "hello" });
  let text = "";
  for (let next = await first; !next.done; next = await chunks.next()) {
    if (next.value.chunk.type === "text-delta") text += next.value.chunk.data.delta;
  }
  assert.equal(text, "0123456789");
});

test("rights: what a user may not do is refused by name, at once", async () => {
  const reader = await client("reader");
  const t = await thread();
  const refused = (subject) => (e) => e instanceof SkeinError && e.code === "forbidden" && e.status === 403 && e.message.includes(subject);
  const three = [1, 2, 3].map(() => reader.skein.thread(t.ref).send("thread.update", { title: "x" }));
  for (const one of three) await assert.rejects(one, refused("publish on skein.cmd.acme.thread.update"));
  assert.equal((await reader.skein.thread(t.ref).query("thread.get")).id, t.ref);
  assert.equal((await take(1, reader.skein.thread(t.ref).events()))[0].type, "thread.created");
  const writer = await client("writer");
  await assert.rejects(writer.skein.thread(t.ref).events().next(), refused(`subscribe to skein.timeline.acme.${t.ref}.>`));
  await assert.rejects(writer.skein.events().next(), refused("subscribe to skein.timeline.acme.*.>"));
  const elsewhere = new Skein(natsTransport(nc, { tenant: "globex" }));
  await assert.rejects(elsewhere.query("thread.list", {}), refused("publish on skein.query.globex.thread.list"));
  const inbox = await client("app", {}, { inboxPrefix: "_INBOX" });
  await assert.rejects(inbox.skein.query("thread.list", {}), refused("inboxPrefix"));
  for (const one of [reader, writer]) assert.deepEqual(kept(one.nc), [0, 0]);
});

test("what is ended leaves nothing behind", async () => {
  const t = await thread();
  const stop = new AbortController();
  const streams = [t.events({ signal: stop.signal, after: 2 }), t.chunks({ signal: stop.signal }), skein.events({ signal: stop.signal })];
  const waiting = streams.map((s) => assert.rejects(s.next(), /enough/));
  await t.query("thread.get"); // and so they are subscribed
  assert.equal(kept(nc)[0], 3);
  stop.abort(new Error("enough"));
  await Promise.all(waiting);
  assert.deepEqual(kept(nc), [0, 0]);
  for (const text of ["one", "two"]) await t.send("item.create", { item: item(text) });
  const leave = new AbortController(); // while events are left to be shown
  await assert.rejects(take(3, t.events({ signal: leave.signal }), (n) => n === 2 && leave.abort(new Error("enough"))), /enough/);
});

test("a server that does not answer is named, and a closed connection ends what waits", async () => {
  const lasting = await client();
  const short = (await client("app", { timeout: 400 })).skein;
  const t = await thread();
  const stream = lasting.skein.thread(t.ref).events({ after: 2 });
  const next = stream.next();
  await lasting.skein.query("thread.list", {}); // and so it is subscribed
  await control("stop");
  await assert.rejects(short.query("thread.list", {}), (e) => e.code === "unavailable" && e.retry && e.message.includes("skein.query.acme.thread.list"));
  await assert.rejects(short.events().next(), (e) => e.code === "unavailable");
  await control("start");
  await t.send("item.create", { item: item("after") });
  assert.equal(said((await next).value), "after");
  const waits = [stream.next(), lasting.skein.query("history.get", { minSeq: 1e9 })].map((p) => assert.rejects(p, (e) => e.code === "unavailable" && /closed/.test(e.message)));
  await lasting.nc.close();
  await Promise.all(waits);
  await assert.rejects(lasting.skein.query("thread.list", {}), (e) => e.code === "unavailable" && /closed/.test(e.message));
});

test("what is made for a client works over NATS, too: the checkpointer of LangGraph", async () => {
  const saver = new SkeinSaver({ client: skein });
  const checkpoint = { v: 4, id: "1ef4f797-8335-6428-8001-8a1503f9b875", ts: "2026-01-01T00:00:00Z", channel_values: { n: 1 }, channel_versions: { n: 1 }, versions_seen: {} };
  const config = await saver.put({ configurable: { thread_id: "over-nats", checkpoint_ns: "" } }, checkpoint, { source: "input", step: -1, parents: {} }, { n: 1 });
  assert.deepEqual((await saver.getTuple(config)).checkpoint.channel_values, { n: 1 });
});
