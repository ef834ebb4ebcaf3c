// Released clients of Open Responses against a running server.
import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";
import { ResponsesWS } from "openai/resources/responses/ws";
import { createOpenResponses } from "@ai-sdk/open-responses";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, streamText, tool, jsonSchema, stepCountIs } from "ai";
import { Agent, Runner, OpenAIProvider, tool as agentTool, setTracingDisabled } from "@openai/agents";
import { OpenAIConversationsSession } from "@openai/agents";

const baseURL = process.env.SKEIN_URL + "/v1";
const client = new OpenAI({ baseURL, apiKey: "none", maxRetries: 0 });
const model = "triage";
setTracingDisabled(true);

test("openai: create, stream, helper, retrieve, delete", async () => {
  const made = await client.responses.create({ model, input: "hello" });
  assert.equal(made.output_text, "Hello, you.");
  let text = "", first;
  for await (const e of await client.responses.create({ model, input: "hello", stream: true })) {
    if (e.type === "response.created") first = e.response.id;
    if (e.type === "response.output_text.delta") text += e.delta;
  }
  assert.equal(text, "Hello, you.");
  const final = await client.responses.stream({ model, input: "hello" }).finalResponse();
  assert.equal(final.output_text, "Hello, you.");
  const numbers = [];
  for await (const e of await client.responses.retrieve(first, { stream: true, starting_after: 2 })) numbers.push(e.sequence_number);
  assert.equal(numbers[0], 3);
  const again = await client.responses.stream({ response_id: first, starting_after: 2 }).finalResponse();
  assert.equal(again.id, first);
  assert.equal((await client.responses.inputItems.list(first)).data.length, 1);
  const next = await client.responses.create({ model, input: "more", previous_response_id: first });
  assert.equal(next.previous_response_id, first);
  await client.responses.delete(made.id);
  await assert.rejects(client.responses.retrieve(made.id), (e) => e.status === 404 && e.code === "not_found");
});

test("openai: background, cancel", async () => {
  const made = await client.responses.create({ model, input: "hello", background: true });
  assert.equal(made.status, "queued");
  const done = await client.responses.stream({ response_id: made.id }).finalResponse();
  assert.equal(done.status, "completed");
  assert.equal((await client.responses.cancel(made.id)).status, "completed");
});

test("openai: conversations", async () => {
  const c = await client.conversations.create({ metadata: { a: "1" }, items: [{ type: "message", role: "user", content: "one" }] });
  await client.responses.create({ model, input: "two", conversation: c.id });
  const items = [];
  for await (const item of client.conversations.items.list(c.id, { order: "asc", limit: 2 })) items.push(item);
  assert.equal(items.length, 3);
  assert.equal((await client.conversations.items.retrieve(items[2].id, { conversation_id: c.id })).id, items[2].id);
  await client.conversations.items.delete(items[2].id, { conversation_id: c.id });
  assert.equal((await client.conversations.delete(c.id)).deleted, true);
});

test("openai: models, errors, function calls", async () => {
  const ids = [];
  for await (const m of client.models.list()) ids.push(m.id);
  assert.ok(ids.includes(model));
  await assert.rejects(client.responses.create({ model: "nobody", input: "x" }), (e) => e.status === 404 && e.code === "model_not_found");
  const tools = [{ type: "function", name: "weather", parameters: { type: "object", properties: { city: { type: "string" } } }, strict: false }];
  const first = await client.responses.stream({ model, input: "weather?", tools }).finalResponse();
  const call = first.output.find((o) => o.type === "function_call");
  assert.deepEqual(JSON.parse(call.arguments), { city: "Paris" });
  const second = await client.responses.create({ model, tools, previous_response_id: first.id, input: [{ type: "function_call_output", call_id: call.call_id, output: "rain" }] });
  assert.equal(second.output_text, "It rains.");
});

// ask sends response.create on a socket, and returns the response, or the error.
function ask(socket, body) {
  return new Promise((resolve, reject) => {
    const error = (e) => { socket.off("response.completed", done); resolve(e.error ?? e); };
    const done = (e) => { socket.off("error", error); resolve(e.response); };
    socket.once("response.completed", done);
    socket.once("error", error);
    socket.once("close", reject);
    socket.send({ type: "response.create", model, ...body });
  });
}

test("openai: ResponsesWS creates, continues, recovers", async () => {
  const socket = new ResponsesWS(client);
  const first = await ask(socket, { input: "hello", store: false });
  assert.equal(first.output[0].content[0].text, "Hello, you.");
  const second = await ask(socket, { input: "hello", store: false, previous_response_id: first.id });
  assert.equal(second.previous_response_id, first.id);
  const tools = [{ type: "function", name: "weather", parameters: { type: "object" }, strict: false }];
  const called = await ask(socket, { input: "weather?", tools });
  const call = called.output.find((o) => o.type === "function_call");
  const told = await ask(socket, { tools, previous_response_id: called.id, input: [{ type: "function_call_output", call_id: call.call_id, output: "rain" }] });
  assert.equal(told.output[0].content[0].text, "It rains.");
  const wrong = await ask(socket, { input: "hello", previous_response_id: "resp_nobody" });
  assert.equal(wrong.error.code, "previous_response_not_found");
  assert.equal(wrong.status, 404);
  const other = new ResponsesWS(client);
  assert.equal((await ask(other, { input: "hello", store: false, previous_response_id: second.id })).error.code, "previous_response_not_found");
  assert.equal((await ask(other, { input: "hello" })).status, "completed");
  socket.close();
  other.close();
});

test("openai: images, an Idempotency-Key", async () => {
  const input = [{ role: "user", content: [{ type: "input_text", text: "hello" }, { type: "input_image", image_url: "data:image/png;base64,AAAA", detail: "auto" }, { type: "input_image", image_url: "https://example.com/a.png", detail: "auto" }] }];
  const made = await client.responses.create({ model, input }, { idempotencyKey: "k-1" });
  assert.equal(made.output_text, "Hello, you.");
  assert.deepEqual((await client.responses.inputItems.list(made.id)).data[0].content.map((p) => p.type), ["input_text", "input_image", "input_image"]);
  const again = await client.responses.create({ model, input }, { headers: { "Idempotency-Key": "k-2" } });
  assert.equal((await client.responses.create({ model, input }, { headers: { "Idempotency-Key": "k-2" } })).id, again.id);
  await assert.rejects(client.responses.create({ model, input: "hello" }, { headers: { "Idempotency-Key": "k-2" } }), (e) => e.status === 422 && e.code === "idempotency_key_reused");
});

const weather = tool({ description: "The weather.", inputSchema: jsonSchema({ type: "object", properties: { city: { type: "string" } } }), execute: async () => "rain" });
for (const [name, provider] of [
  ["@ai-sdk/open-responses", createOpenResponses({ name: "skein", url: baseURL + "/responses", apiKey: "none" })],
  ["@ai-sdk/openai", createOpenAI({ baseURL, apiKey: "none" })],
]) {
  test(name + ": text, stream, tools", async () => {
    assert.equal((await generateText({ model: provider(model), prompt: "hello", maxRetries: 0 })).text, "Hello, you.");
    let text = "";
    for await (const part of streamText({ model: provider(model), prompt: "hello", maxRetries: 0 }).textStream) text += part;
    assert.equal(text, "Hello, you.");
    const out = await generateText({ model: provider(model), prompt: "weather?", tools: { weather }, stopWhen: stepCountIs(3), maxRetries: 0 });
    assert.equal(out.text, "It rains.");
    const streamed = streamText({ model: provider(model), prompt: "weather?", tools: { weather }, stopWhen: stepCountIs(3), maxRetries: 0 });
    text = "";
    for await (const part of streamed.textStream) text += part;
    assert.equal(text, "It rains.");
  });
}

test("@openai/agents: run, stream, a session of conversations", async () => {
  const runner = new Runner({ modelProvider: new OpenAIProvider({ openAIClient: client, useResponses: true }) });
  const agent = new Agent({ name: "a", model, instructions: "Be brief.", tools: [agentTool({
    name: "weather", description: "The weather.", strict: false, parameters: { type: "object", properties: { city: { type: "string" } }, required: [], additionalProperties: true }, execute: async () => "rain",
  })] });
  assert.equal((await runner.run(agent, "weather?")).finalOutput, "It rains.");
  const streamed = await runner.run(agent, "hello", { stream: true });
  for await (const _ of streamed) { /* to its end */ }
  await streamed.completed;
  assert.equal(streamed.finalOutput, "Hello, you.");
  const session = new OpenAIConversationsSession({ client });
  assert.equal((await runner.run(agent, "hello", { session })).finalOutput, "Hello, you.");
  assert.equal((await runner.run(agent, "weather?", { session })).finalOutput, "It rains.");
  assert.ok((await session.getItems()).length >= 4);
});
