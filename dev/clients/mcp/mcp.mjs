// Released clients of the Model Context Protocol, against /mcp: node --test mcp.mjs
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";

import { Client as Client2, StreamableHTTPClientTransport as Transport2 } from "@modelcontextprotocol/client";
import { Client as Client1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as Transport1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const url = new URL(process.env.SKEIN_URL + "/mcp");

for (const [name, Client, Transport] of [["sdk", Client1, Transport1], ["client", Client2, Transport2]]) {
  test(`${name}: an agent answers, and the thread is found and fetched`, async () => {
    const client = new Client({ name: "node", version: "1.0.0" });
    await client.connect(new Transport(url));
    const { tools } = await client.listTools();
    for (const tool of ["search", "fetch", "ask_agent", "approve", "read_thread"]) {
      assert.ok(tools.some((t) => t.name === tool), tool);
    }
    const answer = await client.callTool({ name: "ask_agent", arguments: { agent: "triage", text: "hello" } });
    assert.equal(answer.isError ?? false, false);
    assert.equal(answer.content[0].text, "Hello, you.");
    assert.equal(answer.structuredContent.status, "completed");
    const { threadId } = answer.structuredContent;
    const found = await client.callTool({ name: "search", arguments: { query: threadId } });
    assert.deepEqual(found.structuredContent.results.map((r) => r.id), [threadId]);
    assert.deepEqual(JSON.parse(found.content[0].text), found.structuredContent); // connectors read the text
    const fetched = await client.callTool({ name: "fetch", arguments: { id: threadId } });
    assert.match(fetched.structuredContent.text, /Hello, you\./);
    const { contents } = await client.readResource({ uri: `skein://threads/${threadId}` });
    assert.match(contents[0].text, /Hello, you\./);
    const refused = await client.callTool({ name: "ask_agent", arguments: { agent: "nobody", text: "x" } });
    assert.equal(refused.isError, true);
    await client.close();
  });
}

test("client: asks its user what an agent asks a person", async () => {
  const client = new Client2({ name: "node", version: "1.0.0" }, { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: "auto" } });
  const said = [{ action: "accept", content: { eur: 7 } }, { action: "decline" }, { action: "cancel" }];
  const asked = [];
  client.setRequestHandler("elicitation/create", async ({ params }) => {
    asked.push([params.message, Object.keys(params.requestedSchema.properties)]);
    return said.shift();
  });
  await client.connect(new Transport2(url));
  const ask = () => client.callTool({ name: "ask_agent", arguments: { agent: "asking", text: "x" } });
  const answered = await ask();
  assert.equal(answered.structuredContent.status, "completed");
  assert.match(answered.content[0].text, /it was .*7/);
  assert.equal((await ask()).structuredContent.status, "completed");
  assert.equal((await ask()).structuredContent.status, "waiting");
  assert.deepEqual(asked, Array(3).fill(["How much?", ["eur"]]));
  await client.close();
});

test("inspector: lists and calls tools", () => {
  const inspect = (...args) => JSON.parse(execFileSync("npx", ["inspector", "--cli", url.href, "--transport", "http", ...args], { encoding: "utf8", timeout: 60_000 }));
  assert.ok(inspect("--method", "tools/list", "--strict").tools.length > 10); // it refuses schemas that other clients do not read
  const answer = inspect("--method", "tools/call", "--tool-name", "ask_agent", "--tool-arg", "agent=triage", "--tool-arg", "text=hello");
  assert.equal(answer.structuredContent.status, "completed");
});
