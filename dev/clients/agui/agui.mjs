// Released clients of AG-UI, and of CopilotKit's runtime, against a running server.
import assert from "node:assert/strict";
import { test } from "node:test";
import { HttpAgent, buildResumeArray } from "@ag-ui/client";
import * as schemas from "@ag-ui/core/schemas";
import { CopilotKitCore } from "@copilotkit/core";

globalThis.window ??= { location: new URL(process.env.SKEIN_URL) }; // CopilotKit connects in browsers only
const url = process.env.SKEIN_URL + "/agui";
const tools = [{ name: "weather", description: "Tells the weather.", parameters: { type: "object", properties: { city: { type: "string" } } } }];
const step = (piece) => fetch(`${process.env.SKEIN_SCRIPT}/?piece=${piece}`);
let threads = 0;
const user = (content) => ({ id: crypto.randomUUID(), role: "user", content });

// Every event that an agent receives must fit the schemas of the protocol.
function checked(agent) {
  const events = [];
  agent.subscribe({ onEvent: ({ event }) => { schemas.EventSchema.parse(event); events.push(event); } });
  return Object.assign(agent, { events });
}

// Both clients of the protocol: 1.0 itself, and CopilotKit's with the earlier one.
const clients = {
  "@ag-ui/client": async (threadId) => checked(new HttpAgent({ url: url + "/triage", threadId })),
  "@copilotkit/core": async (threadId) => {
    const core = new CopilotKitCore({ runtimeUrl: url, runtimeTransport: "rest" });
    await new Promise((resolve, reject) => {
      const timer = setInterval(() => { if (core.getAgent("triage")) { clearInterval(timer); resolve(); } }, 10);
      setTimeout(() => reject(new Error("there is no agent triage")), 20_000).unref();
    });
    const agent = core.getAgent("triage");
    agent.threadId = threadId;
    return checked(agent);
  },
};

const say = (agent, text, more = {}, subscriber) => {
  agent.addMessage(user(text));
  return agent.runAgent(more, subscriber);
};
const last = (agent) => agent.events.at(-1);
const shown = (messages) => messages.filter((m) => m.role !== "activity").map((m) => [m.role, m.content ?? "", (m.toolCalls ?? []).map((c) => c.function.name + c.function.arguments).join()].join("|"));

// What a page shows that is loaded again.
async function reloaded(threadId) {
  const agent = await clients["@copilotkit/core"](threadId);
  await agent.connectAgent();
  return agent;
}

for (const [name, open] of Object.entries(clients)) {
  const start = () => open(`${name} ${++threads}`);

  test(`${name}: text, and a second message`, async () => {
    const agent = await start();
    await say(agent, "hello");
    await say(agent, "again");
    assert.deepEqual(shown(agent.messages), ["user|hello|", "assistant|you said hello|", "user|again|", "assistant|you said again|"]);
    assert.equal(last(agent).outcome.type, "success");
    assert.deepEqual((await reloaded(agent.threadId)).messages, agent.messages);
  });

  test(`${name}: a tool of Skein`, async () => {
    const agent = await start();
    await say(agent, "lookup");
    assert.deepEqual(shown(agent.messages), ["user|lookup|", "assistant|let me see|lookup{}", "tool|found|", "assistant|done|"]);
    assert.deepEqual((await reloaded(agent.threadId)).messages, agent.messages);
  });

  test(`${name}: a tool of the client`, async () => {
    const agent = await start();
    await say(agent, "weather", { tools });
    const [call] = agent.messages.at(-1).toolCalls;
    assert.deepEqual(JSON.parse(call.function.arguments), { city: "Paris" });
    if (name === "@ag-ui/client") assert.deepEqual(last(agent).outcome, { type: "success", pendingToolCallIds: [call.id] });
    agent.addMessage({ id: crypto.randomUUID(), role: "tool", toolCallId: call.id, content: "rain" });
    await agent.runAgent({ tools });
    assert.deepEqual(shown(agent.messages).slice(-2), ["tool|rain|", "assistant|done|"]);
    assert.deepEqual((await reloaded(agent.threadId)).messages, agent.messages);
  });

  for (const [how, answer, result] of [
    ["granted", { status: "resolved", payload: { approved: true } }, '{"refunded":5}'],
    ["edited", { status: "resolved", payload: { approved: true, arguments: { eur: 4 } } }, '{"refunded":4}'],
    ["denied", { status: "resolved", payload: { approved: false, reason: "too much" } }],
    ["cancelled", { status: "cancelled" }],
  ]) {
    test(`${name}: an approval, ${how}`, async () => {
      const agent = await start();
      await say(agent, "refund");
      const { interrupts } = last(agent).outcome;
      assert.deepEqual(interrupts.map((i) => i.id), [agent.messages.at(-1).toolCalls[0].id]);
      assert.deepEqual(interrupts[0].responseSchema.required, ["approved"]);
      assert.deepEqual(last(await reloaded(agent.threadId)).outcome.interrupts, interrupts);
      const meanwhile = await fetch(url + "/triage", {
        method: "POST", body: JSON.stringify({ threadId: agent.threadId, runId: crypto.randomUUID(), messages: [...agent.messages, user("more")] }),
      });
      assert.equal(meanwhile.status, 400);
      assert.ok((await meanwhile.json()).error.message.includes(interrupts[0].id));
      await agent.runAgent({ resume: buildResumeArray(interrupts, { [interrupts[0].id]: answer }) });
      assert.equal(last(agent).outcome.type, "success");
      assert.equal(agent.messages.at(-1).content, "done");
      const made = agent.messages.find((m) => m.role === "tool");
      if (result) assert.equal(made.content, result);
      else assert.match(made.content, /denied/);
    });
  }

  test(`${name}: a question`, async () => {
    const agent = await start();
    await say(agent, "how_much");
    const [asked] = last(agent).outcome.interrupts;
    assert.equal(asked.message, "How much?");
    await agent.runAgent({ resume: [{ interruptId: asked.id, status: "resolved", payload: { eur: 9 } }] });
    assert.equal(agent.messages.find((m) => m.role === "tool").content, '{"eur":9}');
    assert.equal(agent.messages.at(-1).content, "done");
  });

  test(`${name}: a client goes away, another one connects, and the run goes on`, async () => {
    const agent = await start();
    let seen;
    const text = new Promise((resolve) => { seen = resolve; });
    const gone = say(agent, "slow", {}, { onTextMessageContentEvent: () => seen() });
    await text;
    await agent.detachActiveRun();
    await gone;
    const other = await clients["@copilotkit/core"](agent.threadId);
    let goesOn; // the client waits for what its subscribers return
    await other.connectAgent({}, { onTextMessageContentEvent: () => { goesOn ??= step("more"); } });
    assert.deepEqual(shown(other.messages), ["user|slow|", "assistant|half an answer|"]);
  });

  test(`${name}: stopped in mid-stream`, async () => {
    const agent = await start();
    const stop = () => fetch(`${url}/agent/triage/stop/${encodeURIComponent(agent.threadId)}`, { method: "POST" });
    await say(agent, "slow", {}, { onTextMessageContentEvent: () => { stop(); } });
    assert.equal(last(agent).type, "RUN_FINISHED");
    if (name === "@ag-ui/client") assert.equal(last(agent).outcome.type, "cancelled");
    assert.equal(agent.messages.at(-1).content, "half an ");
    await say(agent, "hello");
    assert.equal(agent.messages.at(-1).content, "you said hello");
  });

  test(`${name}: a model that fails in mid-stream`, async () => {
    const agent = await start();
    let told;
    await say(agent, "fail", {}, { onTextMessageContentEvent: () => { step("on"); }, onRunErrorEvent: ({ event }) => { told = event; } }).catch(() => {});
    assert.equal(told.message, "the model is gone");
    assert.equal(agent.messages.at(-1).content, "half an ");
  });

  test(`${name}: a repeated runId`, async () => {
    const agent = await start();
    const runId = crypto.randomUUID();
    await say(agent, "hello", { runId });
    const again = await open(agent.threadId);
    again.setMessages(agent.messages.slice(0, 1));
    await again.runAgent({ runId });
    assert.deepEqual(again.messages, agent.messages);
    again.addMessage(user("other"));
    await assert.rejects(again.runAgent({ runId }), /422/);
  });

  test(`${name}: an edited message forks`, async () => {
    const agent = await start();
    await say(agent, "one");
    await say(agent, "two");
    const before = agent.messages;
    agent.setMessages(before.slice(0, 2));
    await say(agent, "second");
    assert.deepEqual(shown((await reloaded(agent.threadId)).messages), ["user|one|", "assistant|you said one|", "user|second|", "assistant|you said second|"]);
  });
}

test("@ag-ui/client: an agent that is not there", async () => {
  const agent = new HttpAgent({ url: url + "/nobody", threadId: "nobody" });
  await assert.rejects(say(agent, "hello"), /404/);
});

test("@copilotkit/core: a thread that is not there is empty", async () => {
  assert.deepEqual((await reloaded("new")).messages, []);
});
