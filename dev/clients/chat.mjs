// Runs the AI SDK's own chat, as useChat does without React, against a server.
// SKEIN_URL is the server, CONTROL_URL tells the test's reactor what to say next, and AI_SDK is the
// package: ai, or ai6 of version 6.
import assert from "node:assert/strict";
import { test } from "node:test";

const {
  AbstractChat,
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
  validateUIMessages,
} = await import(process.env.AI_SDK);

const base = process.env.SKEIN_URL + "/chat";

class State {
  status = "ready";
  error = undefined;
  constructor(messages) { this.messages = messages; }
  pushMessage = (m) => { this.messages = [...this.messages, m]; };
  popMessage = () => { this.messages = this.messages.slice(0, -1); };
  replaceMessage = (i, m) => { this.messages = [...this.messages.slice(0, i), this.snapshot(m), ...this.messages.slice(i + 1)]; };
  snapshot = (v) => structuredClone(v);
}

class Chat extends AbstractChat {
  constructor({ messages = [], agent = "assistant", ...init }) {
    super({
      transport: new DefaultChatTransport({ api: base, headers: { "Skein-Tenant": "acme" }, body: { agent } }),
      onError: (error) => { this.failure = error; },
      ...init,
      state: new State(messages),
    });
  }
}

const say = (piece) => fetch(process.env.CONTROL_URL + "/?piece=" + encodeURIComponent(piece));
const get = async (id, path = "") => fetch(`${base}/${id}${path}`, { headers: { "Skein-Tenant": "acme" } });
const stored = async (id) => (await get(id)).json();
const text = (m) => m.parts.filter((p) => p.type === "text").map((p) => p.text).join("");
const said = (list) => list.map((m) => `${m.role}: ${text(m)}`);
const ids = (list) => list.map((m) => m.id);

// until waits for a condition on the chat, which changes as chunks arrive.
async function until(what, condition) {
  while (!condition()) await new Promise((done) => setTimeout(done, 5));
}

test("send, list, regenerate and edit", async () => {
  const data = [];
  const lasting = (m) => m.parts.filter((p) => p.type.startsWith("data-"));
  const chat = new Chat({ id: "send", onData: (part) => data.push(part.type) });
  await chat.sendMessage({ text: "one" });
  assert.equal(chat.failure, undefined);
  assert.deepEqual(said(chat.messages), ["user: one", "assistant: you said one"]);
  assert.ok(["data-skein-thread", "data-skein-execution", "data-skein-step"].every((kind) => data.includes(kind)), data.join());
  const reloaded = (await stored("send"))[1];
  assert.deepEqual(lasting(reloaded), lasting(chat.messages[1]));
  const first = chat.messages[1].id;
  await chat.regenerate();
  assert.notEqual(chat.messages[1].id, first);
  await chat.sendMessage({ text: "two" });
  assert.deepEqual(said(await stored("send")), ["user: one", "assistant: you said one", "user: two", "assistant: you said two"]);
  assert.deepEqual(ids(await stored("send")), ids(chat.messages));
  await chat.sendMessage({ text: "uno", messageId: chat.messages[0].id });
  assert.deepEqual(said(chat.messages), ["user: uno", "assistant: you said uno"]);
  assert.deepEqual(said(await stored("send")), said(chat.messages));
  assert.deepEqual(ids(await stored("send")), ids(chat.messages));
  await validateUIMessages({ messages: await stored("send") });
});

test("resume in the middle of a sentence, after a reload", async () => {
  const chat = new Chat({ id: "resume" });
  const sent = chat.sendMessage({ text: "slow" });
  await say("Once upon");
  await until("the first words", () => chat.lastMessage.role === "assistant" && text(chat.lastMessage) === "Once upon");
  const page = new Chat({ id: "resume", messages: await stored("resume") });
  const resumed = page.resumeStream();
  await until("the first words again", () => page.lastMessage.role === "assistant" && text(page.lastMessage) === "Once upon");
  await say(" a time");
  await say("");
  await Promise.all([sent, resumed]);
  assert.deepEqual(said(page.messages), ["user: slow", "assistant: Once upon a time"]);
  assert.deepEqual(ids(page.messages), ids(chat.messages));
  assert.deepEqual(page.lastMessage.parts, chat.lastMessage.parts);
  await page.resumeStream(); // nothing runs
  assert.equal(page.status, "ready");
  assert.equal(page.failure, undefined);
});

test("a disconnect stops nothing, and a stop keeps the text", async () => {
  const chat = new Chat({ id: "stop" });
  const sent = chat.sendMessage({ text: "slow" });
  await say("Once upon");
  await until("the first words", () => chat.lastMessage.role === "assistant" && text(chat.lastMessage) === "Once upon");
  await chat.stop(); // closes the connection
  await sent;
  const again = chat.resumeStream();
  await until("the words again", () => chat.status === "streaming" && text(chat.lastMessage) === "Once upon");
  await fetch(`${base}/stop/stop`, { method: "POST", headers: { "Skein-Tenant": "acme" } });
  await again;
  assert.deepEqual(said(chat.messages), ["user: slow", "assistant: Once upon"]);
  assert.deepEqual(said(await stored("stop")), said(chat.messages));
});

test("initial messages, files and reasoning", async () => {
  const messages = [
    { id: "s", role: "system", parts: [{ type: "text", text: "Be brief." }] },
    { id: "u", role: "user", parts: [{ type: "text", text: "hi" }] },
    { id: "a", role: "assistant", parts: [{ type: "step-start" }, { type: "reasoning", text: "hm" }, { type: "text", text: "hello" }] },
  ];
  const chat = new Chat({ id: "initial", messages });
  await chat.sendMessage({ text: "think", files: [{ type: "file", mediaType: "image/png", url: "data:image/png;base64,iVBORw0KGgo=" }] });
  assert.equal(chat.failure, undefined);
  const answer = chat.lastMessage;
  assert.deepEqual(answer.parts.filter((p) => p.type === "reasoning").map((p) => [p.text, p.state]), [["let me think", "done"]]);
  assert.equal(text(answer), "you said think");
  const list = await stored("initial");
  assert.deepEqual(said(list), ["system: Be brief.", "user: hi", "assistant: hello", "user: think", "assistant: you said think"]);
  assert.equal(list[3].parts[0].url, "data:image/png;base64,iVBORw0KGgo=");
  await validateUIMessages({ messages: list });
});

test("approvals and tools of the client go on by themselves", async () => {
  for (const approved of [true, false]) {
    const id = "tools-" + approved;
    const calls = [];
    const chat = new Chat({
      id, agent: "careful",
      onToolCall: ({ toolCall }) => { calls.push(toolCall.toolName); },
      sendAutomaticallyWhen: (o) => lastAssistantMessageIsCompleteWithApprovalResponses(o) || lastAssistantMessageIsCompleteWithToolCalls(o),
    });
    await chat.sendMessage({ text: "refund me" });
    const parts = () => chat.lastMessage.parts.filter((p) => p.type.startsWith("tool-"));
    assert.deepEqual(parts().map((p) => [p.type, p.state]), [["tool-refund", "approval-requested"], ["tool-how_much", "input-available"]]);
    assert.deepEqual(calls, ["how_much"]); // the server makes the other one
    await validateUIMessages({ messages: await stored(id) });
    chat.addToolOutput({ tool: "how_much", toolCallId: "c2", output: "all" });
    await chat.addToolApprovalResponse({ id: "c1", approved });
    await until("the end", () => chat.failure || (chat.status === "ready" && text(chat.lastMessage).endsWith("done")));
    assert.equal(chat.failure, undefined);
    assert.deepEqual(parts().map((p) => p.state), [approved ? "output-available" : "output-denied", "output-available"]);
    if (approved) assert.deepEqual(parts()[0].output, { refunded: 5 }); // its __proto__ is left out
    assert.equal(chat.messages.length, 2);
    const list = await stored(id);
    assert.deepEqual(said(list), said(chat.messages));
    assert.deepEqual(ids(list), ids(chat.messages));
    assert.deepEqual(list[1].parts.filter((p) => p.toolCallId).map((p) => p.state), parts().map((p) => p.state));
    await validateUIMessages({ messages: list });
  }
});

test("a model that says something else is shown to the end", async () => {
  const change = async (id, headers, shown) => {
    const transport = new DefaultChatTransport({ api: base, headers: { "Skein-Tenant": "acme", ...headers }, body: { agent: "assistant" } });
    const chat = new Chat({ id, transport });
    const sent = chat.sendMessage({ text: "change your mind" });
    await until("the first words", () => chat.lastMessage?.role === "assistant" && text(chat.lastMessage) === "It is, ");
    await say("x");
    await sent;
    assert.equal(chat.failure, undefined);
    assert.equal(text(chat.lastMessage), shown);
    assert.deepEqual(said(await stored(id)), ["user: change your mind", "assistant: It was"]);
  };
  await change("again", {}, "It is, It was");
  if (process.env.AI_SDK !== "ai6") await change("seven", { "x-ai-sdk": "7" }, "It was");
});

test("an error reaches the page, and the chat goes on", async () => {
  const chat = new Chat({ id: "error" });
  await chat.sendMessage({ text: "fail" });
  assert.equal(chat.status, "error");
  assert.match(chat.failure.message, /the model is gone/);
  await chat.sendMessage({ text: "again" });
  assert.equal(text(chat.lastMessage), "you said again");
  const refused = new Chat({ id: "refused", agent: "nowhere" });
  await refused.sendMessage({ text: "hi" });
  assert.equal(refused.status, "error");
});
