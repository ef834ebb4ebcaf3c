// Providers of models as aimock imitates them. It prints its address, and ends with its input.
import { LLMock } from "@copilotkit/aimock";

const mock = new LLMock({ port: 0, chunkSize: 4 });
const steady = { model: "steady" };
mock.on({ ...steady, userMessage: "hello" }, { content: "Hello, you." });
mock.on({ ...steady, userMessage: "weather?", hasToolResult: true }, { content: "It rains." });
mock.on({ ...steady, userMessage: "weather?", hasToolResult: false }, { content: "Let me see.", toolCalls: [{ name: "weather", arguments: { city: "Paris" } }] });
mock.on({ model: "busy" }, { content: "never" }, { chaos: { rateLimitRate: 1 } });
mock.on({ model: "garbled" }, { content: "never" }, { chaos: { malformedRate: 1 } });
mock.on({ model: "gone" }, { content: "never" }, { chaos: { disconnectRate: 1 } });
mock.on({ model: "cut" }, { content: "It will be cut off." }, { truncateAfterChunks: 3 });
await mock.start();
console.log(mock.url);
process.stdin.on("end", () => mock.stop()).resume();
