package rest

import (
	"net/http"
	"strings"

	"github.com/skein-threads/skein/api/edge"
)

// protocolRoute is a route of another protocol, which is described by its own specification.
type protocolRoute struct {
	pattern string // as the edge has it
	id      string // of the operation
	doc     string
	body    string // what the body is; empty: there is none
	answer  string // what the answer is
	status  int
	streams bool // or server-sent events
}

// The specifications of the protocols.
const (
	openResponsesSpec = "https://www.openresponses.org"
	completionsSpec   = "https://platform.openai.com/docs/api-reference/chat"
	filesSpec         = "https://platform.openai.com/docs/api-reference/files"
	embeddingsSpec    = "https://platform.openai.com/docs/api-reference/embeddings"
	chatSpec          = "https://ai-sdk.dev/docs/ai-sdk-ui/stream-protocol"
	mcpSpec           = "https://modelcontextprotocol.io/specification"
	aguiSpec          = "https://docs.ag-ui.com"
	a2aSpec           = "https://a2a-protocol.org/latest/specification/"
)

// protocolRoutes lists the routes of the protocols that clients of others speak. A test compares it
// with what the edge serves.
func protocolRoutes() []protocolRoute {
	return []protocolRoute{
		{"POST /v1/responses", "createResponse", "Answers an input with an agent, as Open Responses defines it.", "The request of Open Responses.", "The response.", http.StatusOK, true},
		{"GET /v1/responses", "connectResponses", "Opens the WebSocket of Open Responses.", "", "A WebSocket.", http.StatusSwitchingProtocols, false},
		{"GET /v1/responses/{id}", "getResponse", "Returns a response, or follows it as server-sent events with stream=true.", "", "The response.", http.StatusOK, true},
		{"DELETE /v1/responses/{id}", "deleteResponse", "Deletes a response.", "", "What was deleted.", http.StatusOK, false},
		{"POST /v1/responses/{id}/cancel", "cancelResponse", "Cancels a response in the background.", "", "The response.", http.StatusOK, false},
		{"GET /v1/responses/{id}/input_items", "listInputItems", "Lists what a response was given.", "", "A page of items.", http.StatusOK, false},
		{"POST /v1/responses/compact", "compactResponse", "Summarises an input.", "The input.", "The compacted input.", http.StatusOK, false},
		{"POST /v1/responses/input_tokens", "countInputTokens", "Estimates the tokens of an input.", "The request of Open Responses.", "The count.", http.StatusOK, false},
		{"GET /v1/models", "listModels", "Lists the agents and models that answer.", "", "The list.", http.StatusOK, false},
		{"GET /v1/models/{id}", "getModel", "Returns an agent or model that answers.", "", "The model.", http.StatusOK, false},
		{"POST /v1/conversations", "createConversation", "Creates a conversation, which is a thread.", "Items and metadata.", "The conversation.", http.StatusOK, false},
		{"GET /v1/conversations/{id}", "getConversation", "Returns a conversation.", "", "The conversation.", http.StatusOK, false},
		{"POST /v1/conversations/{id}", "updateConversation", "Changes the metadata of a conversation.", "The metadata.", "The conversation.", http.StatusOK, false},
		{"DELETE /v1/conversations/{id}", "deleteConversation", "Deletes a conversation.", "", "What was deleted.", http.StatusOK, false},
		{"GET /v1/conversations/{id}/items", "listConversationItems", "Lists the items of a conversation.", "", "A page of items.", http.StatusOK, false},
		{"POST /v1/conversations/{id}/items", "createConversationItems", "Adds items to a conversation.", "The items.", "The items as they were added.", http.StatusOK, false},
		{"GET /v1/conversations/{id}/items/{item}", "getConversationItem", "Returns an item of a conversation.", "", "The item.", http.StatusOK, false},
		{"DELETE /v1/conversations/{id}/items/{item}", "deleteConversationItem", "Deletes an item of a conversation.", "", "The conversation.", http.StatusOK, false},

		{"POST /v1/chat/completions", "createChatCompletion", "Answers messages with an agent, as OpenAI's Chat Completions does.", "The request of Chat Completions.", "The completion.", http.StatusOK, true},

		{"POST /v1/files", "uploadFile", "Uploads a file, by whose id messages may refer to it.", "A form with the fields purpose and file.", "The file.", http.StatusOK, false},
		{"GET /v1/files", "listUploadedFiles", "Lists files.", "", "A page of files.", http.StatusOK, false},
		{"GET /v1/files/{id}", "getUploadedFile", "Describes a file.", "", "The file.", http.StatusOK, false},
		{"DELETE /v1/files/{id}", "deleteUploadedFile", "Deletes a file.", "", "What was deleted.", http.StatusOK, false},
		{"GET /v1/files/{id}/content", "getUploadedContent", "Returns the content of a file; parts of it with Range.", "", "The content.", http.StatusOK, false},

		{"POST /v1/embeddings", "createEmbedding", "Passes texts to the endpoint of a model that embeds them.", "The request of OpenAI's Embeddings.", "The embeddings.", http.StatusOK, false},

		{"POST /mcp", "callMCP", "Answers a request of the Model Context Protocol: tools and resources of threads and agents.", "A request of JSON-RPC.", "Its answer.", http.StatusOK, false},

		{"POST /chat", "postChat", "Sends a message or answers calls, and streams the message that follows, as the AI SDK's chat does.", "The chat's id, and its last message or all of them.", "", http.StatusOK, true},
		{"GET /chat/{id}", "getChat", "Lists the messages of a chat.", "", "The messages of the AI SDK.", http.StatusOK, false},
		{"GET /chat/{id}/stream", "resumeChat", "Streams the message that is being written from its beginning; 204 if none is.", "", "", http.StatusOK, true},
		{"POST /chat/{id}/stop", "stopChat", "Stops what the chat's agent does.", "Empty, or the id of the message that is being written.", "Whether something was stopped.", http.StatusOK, false},

		{"POST /agui/{agent}", "runAGUI", "Runs an agent, or resumes its run, as AG-UI defines it.", "The RunAgentInput of AG-UI.", "", http.StatusOK, true},
		{"GET /agui/info", "getAGUIInfo", "Lists the agents, as CopilotKit's runtime does.", "", "The agents.", http.StatusOK, false},
		{"POST /agui/agent/{agent}/run", "runCopilotKit", "Runs an agent, as CopilotKit's runtime does.", "The RunAgentInput of AG-UI.", "", http.StatusOK, true},
		{"POST /agui/agent/{agent}/connect", "connectCopilotKit", "Streams the messages of a thread, and then what is live.", "The RunAgentInput of AG-UI.", "", http.StatusOK, true},
		{"POST /agui/agent/{agent}/stop/{threadId}", "stopCopilotKit", "Stops what a thread's agent does.", "Empty, or the id of the run that is to be stopped.", "Whether something was stopped.", http.StatusOK, false},

		{"GET /.well-known/agent-card.json", "getDefaultAgentCard", "Returns the A2A card of the agent that --a2a-agent names.", "", "The card.", http.StatusOK, false},
		{"GET /a2a/{agent}/.well-known/agent-card.json", "getAgentCard", "Returns the A2A card of an agent.", "", "The card.", http.StatusOK, false},
		{"POST /a2a/{agent}", "callA2A", "Answers a request of A2A, 1.0 or 0.3.", "A request of JSON-RPC.", "Its answer.", http.StatusOK, true},
		{"POST /a2a/{agent}/message:send", "sendA2AMessage", "Sends a message, and returns its task when it has ended or requires input.", "The SendMessageRequest of A2A.", "The task.", http.StatusOK, false},
		{"POST /a2a/{agent}/message:stream", "streamA2AMessage", "Sends a message, and streams its task.", "The SendMessageRequest of A2A.", "", http.StatusOK, true},
		{"GET /a2a/{agent}/tasks", "listA2ATasks", "Lists tasks, those that changed last first.", "", "A page of tasks.", http.StatusOK, false},
		{"GET /a2a/{agent}/tasks/{task}", "getA2ATask", "Returns a task; with :subscribe after its id it is streamed.", "", "The task.", http.StatusOK, true},
		{"POST /a2a/{agent}/tasks/{task}", "changeA2ATask", "Cancels or streams a task: its id is followed by :cancel or :subscribe.", "Empty, or an object.", "The task.", http.StatusOK, true},
		{"GET /a2a/{agent}/extendedAgentCard", "getExtendedAgentCard", "Returns the A2A card of an agent, as to any caller.", "", "The card.", http.StatusOK, false},
		{"POST /a2a/{agent}/tasks/{task}/pushNotificationConfigs", "createA2APush", "Refuses push notifications of a task.", "An object.", "Nothing.", http.StatusOK, false},
		{"GET /a2a/{agent}/tasks/{task}/pushNotificationConfigs", "listA2APush", "Refuses push notifications of a task.", "", "Nothing.", http.StatusOK, false},
		{"GET /a2a/{agent}/tasks/{task}/pushNotificationConfigs/{id}", "getA2APush", "Refuses push notifications of a task.", "", "Nothing.", http.StatusOK, false},
		{"DELETE /a2a/{agent}/tasks/{task}/pushNotificationConfigs/{id}", "deleteA2APush", "Refuses push notifications of a task.", "", "Nothing.", http.StatusOK, false},
	}
}

// describe returns the path and the operation of a route.
func (r protocolRoute) describe() (path, method string, operation node) {
	method, path, _ = strings.Cut(r.pattern, " ")
	spec, tag := openResponsesSpec, "v1"
	if strings.HasPrefix(path, "/chat") {
		spec, tag = chatSpec, "chat"
	}
	switch {
	case strings.HasPrefix(path, "/agui"):
		spec, tag = aguiSpec, "agui"
	case strings.HasPrefix(path, "/a2a/"), path == "/.well-known/agent-card.json":
		spec, tag = a2aSpec, "a2a"
	case strings.HasPrefix(path, "/v1/chat/"):
		spec = completionsSpec
	case strings.HasPrefix(path, "/v1/files"):
		spec = filesSpec
	case path == "/v1/embeddings":
		spec = embeddingsSpec
	case path == "/mcp":
		spec, tag = mcpSpec, "mcp"
	}
	content := node{}
	switch {
	case strings.HasSuffix(path, "/content"):
		content["*/*"] = node{"schema": node{}}
	case r.answer != "":
		content["application/json"] = node{"schema": node{}}
	}
	if r.streams {
		content["text/event-stream"] = node{"schema": node{"type": "string"}}
	}
	answer := node{"description": r.answer, "content": content}
	if r.answer == "" {
		answer["description"] = "Server-sent events."
	}
	if r.status == http.StatusSwitchingProtocols {
		delete(answer, "content")
	}
	responses := node{"default": refusalAnswer()}
	switch r.status {
	case http.StatusSwitchingProtocols:
		responses["101"] = answer
	default:
		responses["200"] = answer
	}
	operation = node{
		"operationId": r.id, "summary": r.doc, "tags": []string{tag}, "responses": responses,
		"externalDocs": node{"url": spec},
	}
	var parameters []node
	for part := range strings.SplitSeq(path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			parameters = append(parameters, node{"name": strings.TrimSuffix(name, "}"), "in": "path", "required": true, "schema": node{"type": "string"}})
		}
	}
	if parameters != nil {
		operation["parameters"] = parameters
	}
	if r.body != "" {
		kind := "application/json"
		if path == edge.FilesPath {
			kind = "multipart/form-data"
		}
		operation["requestBody"] = node{"description": r.body, "content": mediaType(kind, node{"type": "object"})}
	}
	return path, strings.ToLower(method), operation
}
