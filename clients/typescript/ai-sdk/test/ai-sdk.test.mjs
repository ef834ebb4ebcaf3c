// The packed transport, with the AI SDK's own chat, against a Skein with the agent "support".
import assert from "node:assert/strict";
import { test } from "node:test";
import { loadMessages, SkeinChatTransport, stopChat } from "@skein-threads/ai-sdk";
import { AbstractChat } from "ai";

const url = process.env.SKEIN_URL;
const say = (piece) => fetch(`${process.env.CONTROL_URL}/?piece=${encodeURIComponent(piece)}`);

/** The state that useChat keeps, without React. */
class State {
  status = "ready";
  error;
  constructor(messages = []) { this.messages = messages; }
  pushMessage = (m) => (this.messages = [...this.messages, m]);
  popMessage = () => (this.messages = this.messages.slice(0, -1));
  replaceMessage = (n, m) => ((this.messages = this.messages.with(n, m)), this.wake?.());
  snapshot = (v) => structuredClone(v);
  until = async (what) => { while (!what(this.messages)) await new Promise((resolve) => (this.wake = resolve)); };
}
class Chat extends AbstractChat {
  constructor({ messages, ...init }) { super({ ...init, state: new State(messages) }); }
}
const transport = (options) => new SkeinChatTransport({ url, agent: "support", ...options });
const text = (m) => m?.parts.filter((p) => p.type === "text").map((p) => p.text).join("") ?? "";

test("a chat sends its last message only, and is loaded again", async () => {
  const id = crypto.randomUUID();
  const bodies = [];
  const chat = new Chat({ id, transport: transport({ fetch: (input, init) => (bodies.push(JSON.parse(init.body)), fetch(input, init)) }) });
  assert.deepEqual(await loadMessages(id, { url }), []);
  for (const said of ["one", "two"]) await chat.sendMessage({ text: said });
  assert.deepEqual(chat.messages.map(text), ["one", "you said one", "two", "you said two"]);
  assert.deepEqual(bodies.map((b) => [b.messages, text(b.message)]), [[undefined, "one"], [undefined, "two"]]);
  const loaded = await loadMessages(id, { url });
  assert.deepEqual(loaded.map((m) => [m.id, text(m)]), chat.messages.map((m) => [m.id, text(m)]));
  await chat.regenerate();
  assert.equal(text(chat.messages.at(-1)), "you said two");
  assert.equal((await loadMessages(id, { url })).length, 4);
});

test("an answer that is being written is resumed, and stopped", async () => {
  const id = crypto.randomUUID();
  const first = new Chat({ id, transport: transport() });
  const over = first.sendMessage({ text: "slow" });
  await say("Once upon");
  await first.state.until((all) => text(all.at(-1)) === "Once upon");
  const second = new Chat({ id, messages: await loadMessages(id, { url }), transport: transport() });
  const resumed = second.resumeStream();
  await second.state.until((all) => text(all.at(-1)) === "Once upon");
  assert.equal(await stopChat(id, { url }), true);
  await Promise.all([over, resumed]);
  assert.equal(text((await loadMessages(id, { url })).at(-1)), "Once upon");
  assert.equal(await stopChat(id, { url }), false);
});

test("history begins a new chat, and refusals are typed", async () => {
  const id = crypto.randomUUID();
  const before = [{ id: "b1", role: "user", parts: [{ type: "text", text: "before" }] }, { id: "b2", role: "assistant", parts: [{ type: "text", text: "noted" }] }];
  const chat = new Chat({ id, messages: before, transport: transport({ history: true }) });
  await chat.sendMessage({ text: "now" });
  assert.deepEqual((await loadMessages(id, { url })).map(text), ["before", "noted", "now", "you said now"]);
  await assert.rejects(stopChat(`none-${id}`, { url }), (e) => e.name === "SkeinError" && e.code === "not_found" && e.details.entity === "chat");
  await assert.rejects(loadMessages(id, { url: `${url}/elsewhere` }), (e) => e.code === "not_found" && /there is no route/.test(e.message));
  for (const none of ["", ".", ".."]) await assert.rejects(loadMessages(none, { url }), (e) => e.code === "invalid_request");
});
