// Renders the page of examples/next, and talks to a server through its route, as Next.js would.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { test } from "node:test";
import { build } from "esbuild";
import { createElement } from "react";
import { renderToString } from "react-dom/server";
import { DefaultChatTransport, readUIMessageStream } from "ai";

const { GET, POST } = await import("./route.js");

test("the page shows messages, and calls that wait for an approval", async () => {
  const { outputFiles } = await build({ entryPoints: ["page.jsx"], bundle: true, write: false, format: "esm", packages: "external", jsx: "automatic" });
  await writeFile("page.bundle.js", outputFiles[0].text);
  const { default: Page } = await import("./page.bundle.js");
  const html = renderToString(createElement(Page, { id: "page", messages: [
    { id: "u", role: "user", parts: [{ type: "text", text: "refund me" }] },
    { id: "a", role: "assistant", parts: [{ type: "tool-refund", toolCallId: "c1", state: "approval-requested", input: { eur: 5 }, approval: { id: "c1" } }] },
  ] }));
  assert.match(html, /refund me/);
  assert.match(html, /Approve/);
});

test("the route passes requests on, and streams answers", async () => {
  const server = createServer(async (request, response) => {
    const url = new URL(request.url, "http://localhost");
    const path = url.pathname.split("/").slice(2).filter(Boolean).map(decodeURIComponent);
    let body = "";
    for await (const piece of request) body += piece;
    const answer = await (request.method === "POST" ? POST : GET)(
      new Request(url, { method: request.method, body: request.method === "POST" ? body : undefined }), { params: Promise.resolve({ path }) });
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    if (answer.body) for await (const piece of answer.body) response.write(piece);
    response.end();
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const api = `http://127.0.0.1:${server.address().port}/chat`;
  const transport = new DefaultChatTransport({ api, body: { agent: "assistant" } });
  const stream = await transport.sendMessages({
    chatId: "next", trigger: "submit-message", messages: [{ id: "u1", role: "user", parts: [{ type: "text", text: "hi" }] }],
  });
  let last;
  for await (const message of readUIMessageStream({ stream })) last = message;
  assert.equal(last.parts.find((p) => p.type === "text").text, "you said hi");
  assert.equal(await transport.reconnectToStream({ chatId: "next" }), null);
  const list = await (await fetch(`${api}/next`)).json();
  assert.deepEqual(list.map((m) => m.id), ["u1", last.id]);
  server.close();
});
