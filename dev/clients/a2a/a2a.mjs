// The released client of A2A, over each binding and version that a card names, against a running server.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory } from "@a2a-js/sdk/client";
import { TaskState } from "@a2a-js/sdk";

const url = process.env.SKEIN_URL;
const cardPath = "/a2a/triage/.well-known/agent-card.json";
const step = (piece) => fetch(`${process.env.SKEIN_SCRIPT}/?piece=${piece}`);
const text = (value) => ({ content: { $case: "text", value }, metadata: undefined, filename: "", mediaType: "" });
const data = (value) => ({ content: { $case: "data", value }, metadata: undefined, filename: "", mediaType: "" });
const message = (parts, more = {}) => ({
  tenant: "", metadata: undefined, configuration: undefined,
  message: { messageId: crypto.randomUUID(), contextId: "", taskId: "", role: 1, parts, metadata: undefined, extensions: [], referenceTaskIds: [], ...more },
});

// One client for each binding, and one of 0.3, which reads the same card without what is new in it.
const legacyCompat = { enabled: true };
const clients = {
  "JSON-RPC 1.0": () => new ClientFactory({ transports: [new JsonRpcTransportFactory()] }).createFromUrl(url, cardPath),
  "HTTP+JSON 1.0": () => new ClientFactory({ transports: [new RestTransportFactory()] }).createFromUrl(url, cardPath),
  "JSON-RPC 0.3": async () => {
    const card = await (await fetch(url + cardPath)).json();
    delete card.supportedInterfaces;
    return new ClientFactory({
      transports: [new JsonRpcTransportFactory({ legacyCompat })], cardResolver: new DefaultAgentCardResolver({ legacyCompat }),
    }).createFromAgentCard(card);
  },
};

const said = (parts) => parts.map((p) => (p.content?.$case === "text" ? p.content.value : JSON.stringify(p.content?.value))).join("");
const answer = (task) => task.artifacts.map((a) => said(a.parts)).join("; ");

// Reads a stream as a client does that keeps artifacts.
async function read(stream, each = () => {}) {
  const seen = { task: undefined, state: undefined, artifacts: new Map() };
  for await (const { payload } of stream) {
    const v = payload.value;
    switch (payload.$case) {
      case "task":
        assert.equal(seen.task, undefined);
        seen.task = v;
        seen.state = v.status.state;
        for (const a of v.artifacts) seen.artifacts.set(a.artifactId, said(a.parts));
        break;
      case "statusUpdate":
        seen.state = v.status.state;
        break;
      case "artifactUpdate": {
        const before = v.append ? seen.artifacts.get(v.artifact.artifactId) : "";
        seen.artifacts.set(v.artifact.artifactId, before + said(v.artifact.parts));
        break;
      }
      default:
        assert.fail(`what is ${payload.$case}`);
    }
    seen.answer = [...seen.artifacts.values()].join("; ");
    await each(seen);
  }
  return seen;
}

for (const [name, connect] of Object.entries(clients)) {
  test(`${name}: a message, and the next one of its context`, async () => {
    const client = await connect();
    const task = await client.sendMessage(message([text("hello")]));
    assert.equal(task.status.state, TaskState.TASK_STATE_COMPLETED);
    assert.equal(answer(task), "you said hello");
    const next = await client.sendMessage(message([text("again")], { contextId: task.contextId }));
    assert.equal(next.contextId, task.contextId);
    assert.notEqual(next.id, task.id);
    const got = await client.getTask({ tenant: "", id: next.id });
    assert.equal(answer(got), "you said again");
    assert.equal(said(got.history[0].parts), "again");
  });

  test(`${name}: a stream`, async () => {
    const client = await connect();
    const seen = await read(client.sendMessageStream(message([text("hello")])));
    assert.equal(seen.state, TaskState.TASK_STATE_COMPLETED);
    assert.equal(seen.answer, "you said hello");
  });

  test(`${name}: an approval, and a question`, async () => {
    const client = await connect();
    const asks = await client.sendMessage(message([text("refund")]));
    assert.equal(asks.status.state, TaskState.TASK_STATE_INPUT_REQUIRED);
    assert.match(said(asks.status.message.parts), /refund needs an approval/);
    const done = await client.sendMessage(message([data({ grant: true })], { taskId: asks.id, contextId: asks.contextId }));
    assert.equal(done.id, asks.id);
    assert.equal(done.status.state, TaskState.TASK_STATE_COMPLETED);
    const question = await read(client.sendMessageStream(message([text("how_much")])));
    assert.equal(question.state, TaskState.TASK_STATE_INPUT_REQUIRED);
    const end = await read(client.sendMessageStream(message([text("9")], { taskId: question.task.id })));
    assert.equal(end.state, TaskState.TASK_STATE_COMPLETED);
    assert.match(end.answer, /done$/);
  });

  test(`${name}: a failure, and errors by name`, async () => {
    const client = await connect();
    let went;
    const failing = await read(client.sendMessageStream(message([text("fail")])), ({ answer }) => { if (answer) went ??= step("go"); });
    assert.equal(failing.state, TaskState.TASK_STATE_FAILED);
    await assert.rejects(client.getTask({ tenant: "", id: "nothing" }), { name: "TaskNotFoundError" });
    const task = await client.sendMessage(message([text("hello")]));
    await assert.rejects(client.sendMessage(message([text("more")], { taskId: task.id })), { name: "UnsupportedOperationError" });
    await assert.rejects(client.cancelTask({ tenant: "", id: task.id, metadata: undefined }), { name: "TaskNotCancelableError" });
  });

  test(`${name}: a stream that is left, continued and cancelled`, async () => {
    const client = await connect();
    let task;
    for await (const { payload } of client.sendMessageStream(message([text("slow")]))) {
      task ??= payload.value;
      if (payload.$case === "artifactUpdate") break;
    }
    let cancelled;
    const seen = await read(client.resubscribeTask({ tenant: "", id: task.id }), async ({ answer }) => {
      if (answer === "half an ") cancelled ??= client.cancelTask({ tenant: "", id: task.id, metadata: undefined });
    });
    assert.equal((await cancelled).status.state, TaskState.TASK_STATE_CANCELED);
    assert.equal(seen.state, TaskState.TASK_STATE_CANCELED);
  });

  test(`${name}: push notifications`, async () => {
    const client = await connect();
    const told = [];
    let end;
    const ended = new Promise((resolve) => { end = resolve; });
    const receiver = createServer((request, response) => {
      let body = "";
      request.on("data", (piece) => { body += piece; });
      request.on("end", () => {
        const of = JSON.parse(body);
        const { id, status } = of.task ?? (of.kind === "task" ? of : { id: of.statusUpdate.taskId, status: of.statusUpdate.status });
        told.push([id, status.state.replace("TASK_STATE_", "").replace("-", "_").toUpperCase(), request.headers["x-a2a-notification-token"], request.headers.authorization]);
        response.end();
        if (told.at(-1)[1] === "COMPLETED") end();
      });
    });
    await new Promise((resolve) => { receiver.listen(0, "127.0.0.1", resolve); });
    const config = { tenant: "", taskId: "", id: "here", url: `http://127.0.0.1:${receiver.address().port}/`, token: "t-1", authentication: { scheme: "Bearer", credentials: "c-1" } };
    const configuration = { acceptedOutputModes: [], historyLength: undefined, returnImmediately: false, taskPushNotificationConfig: config };
    const asks = await client.sendMessage({ ...message([text("refund")]), configuration });
    assert.equal(asks.status.state, TaskState.TASK_STATE_INPUT_REQUIRED);
    const second = await client.createTaskPushNotificationConfig({ ...config, taskId: asks.id, id: "there", url: `${config.url}there` });
    assert.equal(second.id, "there");
    assert.equal((await client.getTaskPushNotificationConfig({ tenant: "", taskId: asks.id, id: "there" })).url, second.url);
    const all = await client.listTaskPushNotificationConfig({ tenant: "", taskId: asks.id, pageSize: 0, pageToken: "" });
    assert.deepEqual(all.configs.map((c) => c.id).sort(), ["here", "there"]);
    await client.deleteTaskPushNotificationConfig({ tenant: "", taskId: asks.id, id: "there" });
    await client.sendMessage(message([data({ grant: true })], { taskId: asks.id }));
    await ended;
    receiver.closeAllConnections();
    receiver.close();
    for (const one of told) assert.deepEqual([one[0], one[2], one[3]], [asks.id, "t-1", "Bearer c-1"]);
    assert.deepEqual(new Set(told.map((one) => one[1])), new Set(["WORKING", "INPUT_REQUIRED", "COMPLETED"]));
  });

  if (name.endsWith("1.0")) {
    test(`${name}: a list of tasks`, async () => {
      const client = await connect();
      const one = await client.sendMessage(message([text("hello")]));
      const two = await client.sendMessage(message([text("again")], { contextId: one.contextId }));
      const page = await client.listTasks({ tenant: "", contextId: one.contextId, status: 0, pageSize: 1, pageToken: "", historyLength: 0, statusTimestampAfter: undefined, includeArtifacts: true });
      assert.deepEqual(page.tasks.map((t) => t.id), [two.id]);
      assert.equal(answer(page.tasks[0]), "you said again");
      assert.equal(page.totalSize, 2);
      assert.notEqual(page.nextPageToken, "");
    });
  }
}
