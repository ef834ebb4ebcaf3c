// The packed hooks, rendered into a document, against a Skein with the agents "echo" and "support".
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { Skein } from "@skein-threads/client";
import { SkeinProvider, useApprovals, useRun, useThread } from "@skein-threads/react";
import { JSDOM } from "jsdom";
import { createElement as h, StrictMode, useEffect, version } from "react";

const url = process.env.SKEIN_URL;
const { window } = new JSDOM("<div id='root'></div>");
for (const name of ["window", "document", "navigator"]) Object.defineProperty(globalThis, name, { configurable: true, value: name === "window" ? window : window[name] });
const { createRoot } = await import("react-dom/client");
const skein = new Skein({ url });
const say = (piece) => fetch(`${process.env.CONTROL_URL}/?piece=${encodeURIComponent(piece)}`);

/** Renders a component that shows what a hook returns, and waits for what it shows. */
function show(hook) {
  const root = createRoot(document.createElement("div"));
  let now;
  let wake = () => {};
  const Shows = () => {
    const value = hook();
    useEffect(() => ((now = value), wake()));
    return null;
  };
  root.render(h(StrictMode, null, h(SkeinProvider, { client: skein }, h(Shows))));
  after(() => root.unmount());
  return {
    get now() { return now; },
    unmount: () => root.unmount(),
    async until(what) {
      while (!now || !what(now)) await new Promise((resolve) => (wake = resolve));
      return now;
    },
  };
}

async function thread(agentId) {
  const { threadId } = await skein.send("thread.create", { agentId });
  return skein.thread(threadId);
}
const texts = (items) => items.map((i) => [i.content].flat().findLast((part) => part?.text)?.text);
const item = (text) => ({ item: { type: "message", role: "user", content: [{ type: "input_text", text }] } });

test("the version of React", () => assert.match(version, new RegExp(`^${process.env.REACT}\\.`)));

test("useThread shows a thread, and what others change", async () => {
  const t = await thread("echo");
  const view = show(() => useThread(t.ref));
  await view.until((v) => v.thread?.id === t.ref && !v.loading);
  const other = new Skein({ url }).thread(t.ref);
  for (const n of "123") await other.send("item.create", item(n));
  const { items } = await view.until((v) => v.items.length === 3);
  assert.deepEqual(texts(items), ["1", "2", "3"]);
  await view.now.send("message.delete", { itemId: items[1].id });
  await view.until((v) => texts(v.items).join() === "1,3");
  await other.send("thread.update", { title: "A title" });
  await view.until((v) => v.thread.title === "A title");
  await other.send("thread.delete", {});
  assert.equal((await view.until((v) => v.error)).error.code, "not_found");
  assert.equal((await show(() => useThread("key:nothing")).until((v) => v.error)).error.code, "not_found");
});

test("useRun shows an answer while it is written, also to one who comes later", async () => {
  const t = await thread("support");
  const first = show(() => useRun(t.ref));
  await first.until((v) => v.status === "idle");
  await first.now.start({ text: "slow" });
  await say("Once upon");
  await first.until((v) => v.status === "running" && v.text === "Once upon");
  const second = show(() => useRun(t.ref));
  await second.until((v) => v.status === "running" && v.text === "Once upon");
  first.unmount(); // ends nothing
  await say(" a time");
  await second.until((v) => v.text === "Once upon a time");
  await say("");
  const { execution } = await second.until((v) => v.status === "completed");
  assert.equal(execution.threadId, t.ref);
  await second.now.start({ text: "slow" });
  await say("Never");
  await second.until((v) => v.text === "Never");
  await second.now.stop();
  await second.until((v) => v.status === "failed" && v.execution.stopped !== undefined || v.status === "completed");
  await assert.rejects(second.now.start({ text: "" }), (e) => e.code === "invalid_request");
});

test("useApprovals shows what waits, and grants it", async () => {
  const waiting = show(() => useApprovals({ agentId: "support" }));
  await waiting.until((v) => !v.loading);
  const t = await thread("support");
  const run = show(() => useRun(t.ref));
  await run.until((v) => v.status === "idle");
  await run.now.start({ text: "refund me" });
  const { approvals } = await waiting.until((v) => v.approvals.some((a) => a.threadId === t.ref));
  await run.until((v) => v.status === "waiting");
  const mine = approvals.find((a) => a.threadId === t.ref);
  assert.deepEqual([mine.name, mine.arguments], ["refund", { eur: 5 }]);
  await waiting.now.grant(mine);
  await waiting.until((v) => !v.approvals.some((a) => a.threadId === t.ref));
  const { items } = await show(() => useThread(t.ref)).until((v) => texts(v.items).includes("Refunded."));
  assert.deepEqual(items.map((i) => i.role).slice(0, 2), ["user", "assistant"]);
});
