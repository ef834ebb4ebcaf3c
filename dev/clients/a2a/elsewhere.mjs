// An agent of the released server of A2A. It prints its address, and ends with its input.
import { createServer } from "node:http";
import express from "express";
import { TaskState } from "@a2a-js/sdk";
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from "@a2a-js/sdk/server";
import { agentCardHandler, jsonRpcHandler, UserBuilder } from "@a2a-js/sdk/server/express";

const text = (value) => ({ content: { $case: "text", value }, metadata: undefined, filename: "", mediaType: "" });
const said = (message) => message.parts.map((p) => p.content?.value ?? "").join("");
const waiting = new Map(); // what ends a task that is told to wait
const signal = () => {
  let resolve;
  const promise = new Promise((r) => (resolve = r));
  return { promise, resolve };
};
const [waits, cancelled] = [signal(), signal()]; // a task does, and was

const executor = {
  async execute({ taskId, contextId, userMessage, task }, bus) {
    const end = (state, words, artifact) => {
      const parts = [text(words)];
      const message = { messageId: crypto.randomUUID(), contextId, taskId, role: 2, parts, metadata: undefined, extensions: [], referenceTaskIds: [] };
      const status = { state, message: artifact ? undefined : message, timestamp: new Date().toISOString() };
      const artifacts = artifact ? [{ artifactId: "a", name: "", description: "", parts, metadata: undefined, extensions: [] }] : [];
      bus.publish(AgentEvent.task({ id: taskId, contextId, status, artifacts, history: [userMessage], metadata: undefined }));
      bus.finished();
    };
    switch (task ? "answer" : said(userMessage)) {
      case "answer":
        return end(TaskState.TASK_STATE_COMPLETED, `booked for ${said(userMessage)} in ${contextId}`, true);
      case "book":
        return end(TaskState.TASK_STATE_INPUT_REQUIRED, "Which day?");
      case "fail":
        return end(TaskState.TASK_STATE_FAILED, "no train");
      case "wait": {
        const status = { state: TaskState.TASK_STATE_WORKING, message: undefined, timestamp: new Date().toISOString() };
        bus.publish(AgentEvent.task({ id: taskId, contextId, status, artifacts: [], history: [userMessage], metadata: undefined }));
        await new Promise((resolve) => {
          waiting.set(taskId, resolve);
          waits.resolve();
        });
        return end(TaskState.TASK_STATE_CANCELED, "cancelled");
      }
    }
    end(TaskState.TASK_STATE_COMPLETED, `you said ${said(userMessage)}`, true);
  },
  async cancelTask(taskId) {
    waiting.get(taskId)?.();
    cancelled.resolve();
  },
};

const app = express();
const server = createServer(app).listen(0, "127.0.0.1", () => {
  const url = `http://127.0.0.1:${server.address().port}`;
  const modes = ["text/plain"];
  const card = {
    name: "elsewhere", description: "Books.", version: "1", provider: undefined, documentationUrl: "", iconUrl: "", signatures: [],
    supportedInterfaces: ["1.0", "0.3"].map((protocolVersion) => ({ url: `${url}/a2a`, protocolBinding: "JSONRPC", protocolVersion, tenant: "" })),
    capabilities: { streaming: true, pushNotifications: false, extensions: [], extendedAgentCard: false }, securitySchemes: {}, securityRequirements: [],
    defaultInputModes: modes, defaultOutputModes: modes, skills: [{ id: "s", name: "s", description: "s", tags: [], examples: [], inputModes: modes, outputModes: modes, securityRequirements: [] }],
  };
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), executor);
  app.use("/.well-known/agent-card.json", agentCardHandler({ agentCardProvider: requestHandler }));
  app.use("/a2a", jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication, legacyCompat: { enabled: true } }));
  const { supportedInterfaces, ...old } = card; // of a server of 0.3
  app.get("/old/.well-known/agent-card.json", (_, res) => res.json({ ...old, url: `${url}/a2a`, preferredTransport: "JSONRPC", protocolVersion: "0.3.0" }));
  app.get("/waits", async (_, res) => res.send(String(await waits.promise)));
  app.get("/cancelled", async (_, res) => res.send(String(await cancelled.promise)));
  console.log(url);
});
process.stdin.on("end", () => process.exit()).resume();
