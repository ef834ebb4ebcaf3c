// The official TypeScript client of the Agent Client Protocol, against skein acp: node --test acp.mjs
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { Readable, Writable } from "node:stream";
import { test } from "node:test";

import { client, methods, ndJsonStream, PROTOCOL_VERSION } from "@agentclientprotocol/sdk";

const { SKEIN_BINARY, SKEIN_SERVER, SKEIN_SCRIPT } = process.env;
const text = (t) => [{ type: "text", text: t }];

// edit runs skein acp for one test. It collects updates, and answers permissions with answer.
async function edit(answer, run, capabilities = {}) {
  const agent = spawn(SKEIN_BINARY, ["acp", "--agent", "triage", "--server", SKEIN_SERVER, "--tenant", "acme", "--timeout", "1m"], { stdio: ["pipe", "pipe", "inherit"] });
  const updates = [];
  const waiting = [];
  const app = client({ name: "test" })
    .onNotification(methods.client.session.update, ({ params }) => {
      updates.push(params.update);
      waiting.splice(0).forEach((go) => go());
    })
    .onRequest(methods.client.session.requestPermission, ({ params }) => answer(params))
    .onRequest(methods.client.elicitation.create, ({ params }) => answer(params));
  const until = async (found) => {
    while (!updates.some(found)) await new Promise((go) => waiting.push(go));
  };
  const said = (kind = "agent_message_chunk") => updates.filter((u) => u.sessionUpdate === kind).map((u) => u.content.text).join("");
  try {
    await app.connectWith(ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout)), async (ctx) => {
      const init = await ctx.request(methods.agent.initialize, { protocolVersion: PROTOCOL_VERSION, clientCapabilities: capabilities });
      assert.equal(init.protocolVersion, PROTOCOL_VERSION);
      assert.equal(init.agentCapabilities.loadSession, true);
      await run(ctx, { updates, until, said });
    });
  } finally {
    agent.stdin.end();
    if (agent.exitCode === null) await once(agent, "exit");
  }
  assert.equal(agent.exitCode, 0);
}

const open = async (ctx) => (await ctx.request(methods.agent.session.new, { cwd: "/work", mcpServers: [] })).sessionId;
const prompt = (ctx, sessionId, t) => ctx.request(methods.agent.session.prompt, { sessionId, prompt: text(t) });

test("streams, lists, loads and resumes", async () => {
  let session;
  await edit(null, async (ctx, { said }) => {
    session = await open(ctx);
    assert.equal((await prompt(ctx, session, "hello")).stopReason, "end_turn");
    assert.equal(said(), "you said hello");
  });
  await edit(null, async (ctx, { said }) => {
    const { sessions } = await ctx.request(methods.agent.session.list, { cwd: "/work" });
    assert.ok(sessions.some((s) => s.sessionId === session));
    await ctx.request(methods.agent.session.load, { sessionId: session, cwd: "/work", mcpServers: [] });
    assert.equal(said("user_message_chunk"), "hello");
    assert.equal(said(), "you said hello");
  });
  await edit(null, async (ctx, { updates, said }) => {
    await ctx.request(methods.agent.session.resume, { sessionId: session, cwd: "/work", mcpServers: [] });
    assert.equal(updates.length, 0);
    await prompt(ctx, session, "more");
    assert.equal(said(), "you said more");
    await ctx.request(methods.agent.session.close, { sessionId: session });
  });
});

for (const [option, status] of [["allow_once", "completed"], ["reject_once", "failed"]]) {
  test(`asks for permission: ${option}`, async () => {
    const asked = [];
    const answer = (p) => {
      asked.push(p);
      return { outcome: { outcome: "selected", optionId: p.options.find((o) => o.kind === option).optionId } };
    };
    await edit(answer, async (ctx, { updates, said }) => {
      const session = await open(ctx);
      assert.equal((await prompt(ctx, session, "refund")).stopReason, "end_turn");
      assert.equal(asked.length, 1);
      assert.deepEqual(asked[0].toolCall.rawInput, { eur: 5 });
      const id = asked[0].toolCall.toolCallId;
      const call = updates.filter((u) => u.toolCallId === id);
      assert.equal(call[0].sessionUpdate, "tool_call");
      assert.equal(call.at(-1).status, status);
      assert.match(said(), /done$/);
    });
  });
}

test("asks a question with a form", async () => {
  const answer = (p) => {
    assert.equal(p.mode, "form");
    return { action: "accept", content: { answer: "7" } };
  };
  await edit(answer, async (ctx, { updates, said }) => {
    const session = await open(ctx);
    assert.equal((await prompt(ctx, session, "how_much")).stopReason, "end_turn");
    assert.ok(updates.some((u) => u.sessionUpdate === "tool_call_update" && u.status === "completed" && u.rawOutput === "7"));
    assert.match(said(), /done$/);
  }, { elicitation: { form: {} } });
});

test("cancels", async () => {
  await edit(null, async (ctx, { until, said }) => {
    const session = await open(ctx);
    const turn = prompt(ctx, session, "slow");
    await until((u) => u.sessionUpdate === "agent_message_chunk");
    await ctx.notify(methods.agent.session.cancel, { sessionId: session });
    assert.equal((await turn).stopReason, "cancelled");
    assert.equal(said(), "half an ");
  });
});

test("fails with the run's message, and refuses a second prompt and an unknown session", async () => {
  await edit(null, async (ctx, { until }) => {
    const session = await open(ctx);
    const turn = prompt(ctx, session, "fail");
    turn.catch(() => {});
    await until((u) => u.sessionUpdate === "agent_message_chunk");
    await assert.rejects(prompt(ctx, session, "again"), /answers a prompt/);
    await fetch(SKEIN_SCRIPT, { method: "POST" });
    await assert.rejects(turn, /the model is gone/);
    await assert.rejects(prompt(ctx, "nope", "hello"), /nope/);
    await assert.rejects(ctx.request(methods.agent.session.load, { sessionId: "T-0190c0de-0000-7000-a000-000000000001", cwd: "/work", mcpServers: [] }), { code: -32002 });
    assert.equal((await prompt(ctx, session, "hello")).stopReason, "end_turn");
  });
});
