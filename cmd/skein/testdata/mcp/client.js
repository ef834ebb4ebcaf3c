// The official TypeScript client, against skein mcp: node client.js SKEIN URL TOKEN
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [skein, url, token] = process.argv.slice(2);

async function day(name, transport) {
  const client = new Client({ name: "node", version: "1.0.0" });
  await client.connect(transport);
  const { tools } = await client.listTools();
  const call = (name, args) => client.callTool({ name, arguments: args });
  const made = (await call("create_thread", { title: name })).structuredContent;
  await call("add_message", { thread: made.threadId, text: "hello" });
  const page = (await call("read_thread", { thread: made.threadId })).structuredContent;
  const { resources } = await client.listResources();
  const { contents } = await client.readResource({ uri: made.uri });
  const markdown = contents[0].mimeType === "text/markdown" && contents[0].text.includes("```\nhello\n```");
  const refused = await call("read_thread", { thread: "key:none" });
  const plural = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;
  console.log(`${name}: ${plural(tools.length, "tool")}, ${plural(page.messages.length, "message")}, recorded ${page.mention ?? "nothing"}, ` +
    `${plural(resources.length, "resource")}, ${markdown ? "markdown" : contents[0].text}, ${refused.isError ? refused.content[0].text.split(":")[0] : "no error"}`);
  await client.close();
}

await day("stdio", new StdioClientTransport({ command: skein, args: ["mcp"], env: process.env }));
await day("http", new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${token}` } } }));
