// Package clients tests Skein with released clients of the protocols that it serves, and has the table
// of docs/clients.md. dev/generate writes the page, with the versions that the tests install.
package clients

import (
	"bytes"
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
)

//go:embed package.json */package.json
var manifests embed.FS

// Row is a client, and what of a protocol works with it. Its test shows that.
type Row struct {
	Client   string // as its users call it
	Module   string // of npm, as the manifest names it, or of Go
	Manifest string // with the version of the module; of Go the version
	Protocol string
	Works    string
	Not      string // what does not; empty: nothing is known
	Test     string // or several, separated by spaces
}

// The pages of the protocols.
const (
	responsesPage   = "[Open Responses](openresponses.md)"
	completionsPage = "[Chat Completions](completions.md)"
	filesPage       = "[Files](openai-files.md), [Embeddings](models.md#embeddings)"
	chatPage        = "[AI SDK's chat](chat.md)"
	aguiPage        = "[AG-UI](agui.md)"
	mcpPage         = "[MCP](mcp.md)"
	a2aPage         = "[A2A](a2a.md)"
	acpPage         = "[ACP](acp.md)"
	restPage        = "[HTTP](http.md)"
	typescriptPage  = "[TypeScript](typescript.md)"
	pythonPage      = "[Python](python.md)"
	modelsPage      = "[Models](models.md#endpoints)"
)

// Rows returns the table.
func Rows() []Row {
	const (
		root, completions, files, agui, mcp, a2a, acp, generators = "package.json", "completions/package.json", "files/package.json", "agui/package.json", "mcp/package.json", "a2a/package.json", "acp/package.json", "generators/package.json"
		node                                                      = "TestOpenResponses_Node"
		own                                                       = "0.1.0" // of the packages in clients
		openaiGo, openaiGoVersion                                 = "github.com/openai/openai-go/v3", "v3.95.0"
	)
	return []Row{
		{"OpenAI for Node", "openai", root, responsesPage, "create, stream, retrieve, delete, background, cancel, conversations, functions, images, WebSocket", "", node},
		{"OpenAI for Go", openaiGo, openaiGoVersion, responsesPage, "create, stream, resume, retries, approvals", "", "TestOpenResponses_Go TestOpenResponses_GoRetriesAndApproves"},
		{"AI SDK, provider openai", "@ai-sdk/openai", root, responsesPage, "generate, stream, tools", "", node},
		{"AI SDK, provider open-responses", "@ai-sdk/open-responses", root, responsesPage, "generate, stream, tools", "", node},
		{"OpenAI Agents SDK", "@openai/agents", root, responsesPage, "run, stream, a session of conversations", "", node + " TestSessions_ProgramsOfThePage"},
		{"OpenAI for Node", "openai", completions, completionsPage, "create, stream, `.stream()`, `runTools`, `stop`, models, chats that are kept", "`n`, `logprobs`, audio", "TestCompletions_Node"},
		{"OpenAI for Node, 6", "openai6", completions, completionsPage, "the same", "the same", "TestCompletions_Node"},
		{"LangChain", "@langchain/openai", completions, completionsPage, "invoke, stream, tools, `stop`, a message history", "`n`, `logprobs`", "TestCompletions_Node TestSessions_ProgramsOfThePage"},
		{"AI SDK, provider openai-compatible", "@ai-sdk/openai-compatible", completions, completionsPage, "generate, stream, tools, `stopSequences`, errors", "", "TestCompletions_Node"},
		{"LlamaIndex", "@llamaindex/openai", completions, completionsPage, "chat, stream, tools, errors", "", "TestCompletions_Node"},
		{"OpenAI for Go", openaiGo, openaiGoVersion, completionsPage, "create, stream, tools, `stop`", "`n`, `logprobs`", "TestCompletions_Go"},
		{"go-openai", "github.com/sashabaranov/go-openai", "v1.43.0", completionsPage, "create, stream, tools, `stop`, models, errors", "`n`, `logprobs`", "TestCompletions_GoOpenAI"},
		{"langchaingo", "github.com/tmc/langchaingo", "v0.1.14", completionsPage, "generate, stream, tools, stop words, errors", "", "TestCompletions_LangChainGo"},
		{"OpenAI for Node", "openai", files, filesPage, "upload, list, get, content, delete, `file_id` in messages; vectors as float and base64", "batches, uploads in parts", "TestFilesAndEmbeddings_Node"},
		{"OpenAI for Node, 6", "openai6", files, filesPage, "the same", "the same", "TestFilesAndEmbeddings_Node"},
		{"OpenAI for Go", openaiGo, openaiGoVersion, filesPage, "the same", "the same", "TestFilesAndEmbeddings_Go"},
		{"LangChain, OpenAIEmbeddings", "@langchain/openai", files, filesPage, "documents and queries", "", "TestFilesAndEmbeddings_Node"},
		{"AI SDK, provider openai-compatible", "@ai-sdk/openai-compatible", files, filesPage, "embed, embedMany, errors", "", "TestFilesAndEmbeddings_Node"},
		{"AI SDK, useChat", "ai", root, chatPage, "send, resume, stop, edit, tools, approvals, files; also in a page of Next.js", "", "TestAISDK TestNext_ReloadKeepsTheChat"},
		{"AI SDK 6, useChat", "ai6", root, chatPage, "the same", "", "TestAISDK"},
		{"AG-UI", "@ag-ui/client", agui, aguiPage, "runs, tools, approvals, questions, reload, stop, errors, repeats, forks", "", "TestAGUI"},
		{"CopilotKit", "@copilotkit/core", agui, aguiPage, "the same; info, run, connect, stop", "", "TestAGUI"},
		{"MCP SDK", "@modelcontextprotocol/sdk", mcp, mcpPage, "agents, search and fetch", "", "TestMCP_Node"},
		{"MCP SDK 2", "@modelcontextprotocol/client", mcp, mcpPage, "agents, search and fetch, questions to its user", "", "TestMCP_Node"},
		{"MCP Inspector", "@modelcontextprotocol/inspector", mcp, mcpPage, "tools", "", "TestMCP_Node"},
		{"A2A for JavaScript", "@a2a-js/sdk", a2a, a2aPage, "1.0 over JSON-RPC and HTTP+JSON, 0.3 over JSON-RPC: cards, send, stream, tasks, cancel, approvals, questions, files, push notifications", "", "TestA2A"},
		{"A2A for Go", "github.com/a2aproject/a2a-go", "v0.3.3", a2aPage, "0.3: send, stream, tasks, errors", "push notifications", "TestA2A_Go"},
		{"A2A for JavaScript, a server", "@a2a-js/sdk", a2a, "[Agents elsewhere](tools.md#agents-elsewhere)", "1.0 and 0.3 over JSON-RPC: cards, contexts, questions, failures, cancel", "files", "TestA2A"},
		{"ACP for TypeScript", "@agentclientprotocol/sdk", acp, acpPage, "prompts, permissions, cancel, load, resume, errors", "MCP servers of the client, modes", "TestACP_Node"},
		{"ACP for Go", "github.com/coder/acp-go-sdk", "v0.13.0", acpPage, "prompts, permissions, cancel, load", "the same", "TestACP_Go"},
		{"openapi-fetch", "openapi-fetch", root, restPage, "types from `/api/openapi.json`", "", "TestREST_GeneratedClient"},
		{"orval", "orval", generators, restPage, "a client from `/api/openapi.json`", "", "TestGenerators"},
		{"swagger-typescript-api", "swagger-typescript-api", generators, restPage, "a client from `/api/openapi.json`", "", "TestGenerators"},
		{"typed-openapi", "typed-openapi", generators, restPage, "a client from `/api/openapi.json`", "", "TestGenerators"},
		{"Skein for TypeScript", "@skein-threads/client", own, typescriptPage, "commands, queries, events, chunks, runs, WebSocket; repeats and resumes; also on Deno 2.9.6 and Bun 1.4.5", "", "TestTypeScript"},
		{"the same over NATS, with `@nats-io/transport-node` 3.4.0", "@skein-threads/client", own, typescriptPage, "commands, queries, events, chunks, runs; repeats and resumes; rights of users; on Node", "files, WebSocket", "TestTypeScript"},
		{"React 18 and 19", "@skein-threads/react", own, typescriptPage, "`useThread`, `useRun`, `useApprovals`", "", "TestTypeScript"},
		{"AI SDK 6 and 7, useChat", "@skein-threads/ai-sdk", own, typescriptPage, "a transport: send, resume, stop, approvals", "", "TestTypeScript"},
		{"LangGraph", "@skein-threads/langgraph", own, typescriptPage, "all tests of `@langchain/langgraph-checkpoint-validation`", "history and audit of checkpoints", "TestTypeScript"},
		{"the command skein", "skein", own, typescriptPage, "`npx skein serve`", "", "TestTypeScript_Command"},
		{"Skein for Python", "skein-threads", own, pythonPage, "commands, queries, events, chunks; threads and asyncio; `mypy --strict`", "", "TestPython"},
		{"the same over NATS, with nats-py 2.15", "skein-threads", own, pythonPage, "commands, queries, events, chunks, runs; rights of users; asyncio", "the tests have a stand-in for nats-py", "TestPython"},
		{"LangGraph for Python, its checkpointer", "skein-threads", own, pythonPage, "get, list, put, put writes, delete, and their asynchronous ones", "run within LangGraph: the tests have a stand-in; copy, prune", "TestPython"},
		{"ADK for Python, its sessions", "skein-threads", own, pythonPage, "create, get, list, delete, append; state of sessions, users and apps", "run within ADK: the tests have a stand-in", "TestPython"},
		{"aimock, in place of a provider", "@copilotkit/aimock", "upstream/package.json", modelsPage, "endpoints of `responses`, `chat`, also at Gemini's address, and `messages`: answers, calls, 429, hang-ups, streams that break off, fallback", "", "TestUpstream_AIMock"},
		{"Standard Webhooks", "standardwebhooks", root, "[webhooks](http-workers.md)", "signatures", "", "TestWebhook_StandardWebhooks"},
	}
}

// Version returns the version of a client that its test installs.
func (r Row) Version() (string, error) {
	if !strings.HasSuffix(r.Manifest, ".json") {
		return r.Manifest, nil
	}
	raw, err := manifests.ReadFile(r.Manifest)
	if err != nil {
		return "", err
	}
	var of struct {
		Dependencies map[string]string `json:"dependencies"`
	}
	if err := json.Unmarshal(raw, &of); err != nil {
		return "", fmt.Errorf("%s: %w", r.Manifest, err)
	}
	version := of.Dependencies[r.Module]
	if version == "" {
		return "", fmt.Errorf("%s does not name %s", r.Manifest, r.Module)
	}
	return version[strings.LastIndexByte(version, '@')+1:], nil // npm:openai@6.30.1 is another name
}

// Page returns docs/clients.md.
func Page() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(`# Clients

` + "```sh" + `
make test-clients        # needs Node and npm
` + "```" + `

runs the tests below: each installs the released client, or Skein's own as it is packed, and uses it
unchanged against a running server, with another base URL. [Models](models.md#endpoints) lists the
endpoints of models.
`)
	for rows := Rows(); len(rows) > 0; {
		n := 1
		for n < len(rows) && rows[n].Protocol == rows[0].Protocol {
			n++
		}
		if err := writeTable(&b, rows[:n]); err != nil {
			return nil, err
		}
		rows = rows[n:]
	}
	b.WriteString("\n<!-- written by go run ./dev/generate from dev/clients/matrix.go -->\n")
	return b.Bytes(), nil
}

// writeTable writes the clients of one protocol, and the tests that run them.
func writeTable(b *bytes.Buffer, rows []Row) error {
	var tests []string
	for _, r := range rows {
		for test := range strings.FieldsSeq(r.Test) {
			if test = "`" + test + "`"; !slices.Contains(tests, test) {
				tests = append(tests, test)
			}
		}
	}
	protocol := rows[0].Protocol
	fmt.Fprintf(b, "\n## %s\n\nSee %s. Tests:\n%s.\n\n| client | works | does not |\n|---|---|---|\n", plain(protocol), protocol, strings.Join(tests, ",\n"))
	for _, r := range rows {
		version, err := r.Version()
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "| %s, `%s` %s | %s | %s |\n", r.Client, r.Module, version, r.Works, r.Not)
	}
	return nil
}

// plain returns a link's text, and of several those of all.
func plain(links string) string {
	var names []string
	for link := range strings.SplitSeq(links, "), ") {
		name, _, _ := strings.Cut(strings.TrimPrefix(link, "["), "]")
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}
