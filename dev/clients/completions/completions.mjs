// Released clients of Chat Completions against a running server.
import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";
import OpenAI6 from "openai6";
import { ChatOpenAI } from "@langchain/openai";
import { tool as llamaTool } from "@llamaindex/core/tools";
import { OpenAI as LlamaOpenAI } from "@llamaindex/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, streamText, tool, jsonSchema, stepCountIs } from "ai";

const baseURL = process.env.SKEIN_URL + "/v1";
const model = "triage";
const hello = [{ role: "system", content: "Be kind." }, { role: "user", content: "hello" }];
const parameters = { type: "object", properties: { city: { type: "string" } } };

for (const [name, Client] of [["openai 7", OpenAI], ["openai 6", OpenAI6]]) {
  const client = new Client({ baseURL, apiKey: "none", maxRetries: 0 });

  test(`${name}: create, stream, helper, usage`, async () => {
    const made = await client.chat.completions.create({ model, messages: hello });
    assert.equal(made.choices[0].message.content, "Hello, you.");
    assert.equal(made.usage.total_tokens, 7);
    let text = "", finish, usage;
    for await (const chunk of await client.chat.completions.create({ model, messages: hello, stream: true, stream_options: { include_usage: true } })) {
      text += chunk.choices[0]?.delta.content ?? "";
      finish ??= chunk.choices[0]?.finish_reason;
      usage = chunk.usage ?? usage;
    }
    assert.deepEqual([text, finish, usage.total_tokens], ["Hello, you.", "stop", 7]);
    const short = await client.chat.completions.create({ model, messages: hello, stop: "you" });
    assert.equal(short.choices[0].message.content, "Hello, ");
    const final = await client.chat.completions.stream({ model, messages: hello }).finalChatCompletion();
    assert.equal(final.choices[0].message.content, "Hello, you.");
  });

  test(`${name}: runTools, streamed and not`, async () => {
    for (const stream of [false, true]) {
      let asked;
      const runner = client.chat.completions.runTools({
        model, stream, messages: [{ role: "user", content: "weather?" }],
        tools: [{ type: "function", function: { name: "weather", parameters, parse: JSON.parse, function: (a) => { asked = a; return "rain"; } } }],
      });
      assert.equal(await runner.finalContent(), "It rains.");
      assert.deepEqual(asked, { city: "Paris" });
    }
  });

  test(`${name}: models, errors`, async () => {
    assert.equal((await client.models.retrieve(model)).id, model);
    await assert.rejects(client.models.retrieve("nobody"), (e) => e.status === 404 && e.code === "model_not_found");
    await assert.rejects(client.chat.completions.create({ model: "nobody", messages: hello }), (e) => e.status === 404 && e.code === "model_not_found");
    await assert.rejects(client.chat.completions.create({ model, messages: [] }), (e) => e.status === 400 && e.param === "messages");
  });

  test(`${name}: a chat is one thread`, async () => {
    const headers = { "X-Conversation-Id": name };
    const first = await client.chat.completions.create({ model, messages: hello }, { headers }).withResponse();
    const more = [...hello, first.data.choices[0].message, { role: "user", content: "hello again" }];
    const second = await client.chat.completions.create({ model, messages: more }, { headers }).withResponse();
    const [a, b] = [first, second].map((r) => r.response.headers.get("Skein-Thread-Id"));
    assert.ok(a);
    assert.equal(a, b);
  });
}

test("LangChain: invoke, stream, tools", async () => {
  const llm = new ChatOpenAI({ model, apiKey: "none", configuration: { baseURL }, maxRetries: 0 });
  const made = await llm.invoke("hello");
  assert.equal(made.content, "Hello, you.");
  assert.equal(made.usage_metadata.total_tokens, 7);
  assert.equal((await llm.invoke("hello", { stop: ["you"] })).content, "Hello, ");
  let all;
  for await (const chunk of await llm.stream("hello")) all = all ? all.concat(chunk) : chunk;
  assert.equal(all.content, "Hello, you.");
  assert.equal(all.usage_metadata.total_tokens, 7);
  const bound = llm.bindTools([{ type: "function", function: { name: "weather", description: "Weather.", parameters } }]);
  let asked;
  for await (const chunk of await bound.stream("weather?")) asked = asked ? asked.concat(chunk) : chunk;
  assert.deepEqual(asked.tool_calls.map((c) => [c.name, c.args]), [["weather", { city: "Paris" }]]);
  const answer = await bound.invoke([{ role: "user", content: "weather?" }, asked, { role: "tool", tool_call_id: asked.tool_calls[0].id, content: "rain" }]);
  assert.equal(answer.content, "It rains.");
});

test("AI SDK, openai-compatible: generate, stream, tools, errors", async () => {
  const provider = createOpenAICompatible({ name: "skein", baseURL, includeUsage: true });
  const made = await generateText({ model: provider(model), prompt: "hello" });
  assert.equal(made.text, "Hello, you.");
  assert.equal(made.usage.totalTokens, 7);
  assert.equal((await generateText({ model: provider(model), prompt: "hello", stopSequences: ["you"] })).text, "Hello, ");
  const tools = { weather: tool({ description: "Weather.", inputSchema: jsonSchema(parameters), execute: async () => "rain" }) };
  const streamed = streamText({ model: provider(model), prompt: "weather?", tools, stopWhen: stepCountIs(3) });
  assert.equal(await streamed.text, "It rains.");
  assert.equal(await streamed.finishReason, "stop");
  await assert.rejects(generateText({ model: provider("nobody"), prompt: "x", maxRetries: 0 }), (e) => e.message.includes("nobody"));
});

test("LlamaIndex: chat, stream, tools, errors", async () => {
  const as = (model) => new LlamaOpenAI({ model, apiKey: "none", baseURL, maxRetries: 0 });
  const llm = as(model);
  assert.equal((await llm.chat({ messages: hello })).message.content, "Hello, you.");
  let text = "";
  for await (const chunk of await llm.chat({ messages: hello, stream: true })) text += chunk.delta;
  assert.equal(text, "Hello, you.");
  const tools = [llamaTool({ name: "weather", description: "Weather.", parameters, execute: ({ city }) => `rain in ${city}` })];
  const asked = [{ role: "user", content: "weather?" }];
  const made = await llm.exec({ messages: asked, tools });
  assert.deepEqual(made.toolCalls.map((c) => [c.name, c.input]), [["weather", { city: "Paris" }]]);
  assert.equal((await llm.chat({ messages: [...asked, ...made.newMessages], tools })).message.content, "It rains.");
  await assert.rejects(as("nobody").chat({ messages: hello }), (e) => e.message.includes("nobody"));
});
