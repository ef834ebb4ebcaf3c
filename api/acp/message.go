package acp

import (
	"github.com/skein-threads/skein/events"
)

// protocolVersion is the version of the protocol that is spoken here.
const protocolVersion = 1

// Kinds of updates.
const (
	userChunk    = "user_message_chunk"
	agentChunk   = "agent_message_chunk"
	thoughtChunk = "agent_thought_chunk"
	toolCall     = "tool_call"
	toolUpdate   = "tool_call_update"
	planUpdate   = "plan"
)

// States of a call.
const (
	pending    = "pending"
	inProgress = "in_progress"
	completed  = "completed"
	failed     = "failed"
)

// Reasons for which a turn stops.
const (
	endTurn   = "end_turn"
	maxTokens = "max_tokens"
	refusal   = "refusal"
	cancelled = "cancelled"
)

// block is a piece of content.
type block struct {
	Type     string    `json:"type"`
	Text     string    `json:"text,omitzero"`
	Data     string    `json:"data,omitzero"`
	MimeType string    `json:"mimeType,omitzero"`
	URI      string    `json:"uri,omitzero"`
	Name     string    `json:"name,omitzero"`
	Resource *resource `json:"resource,omitzero"`
}

// resource is a file that a prompt has in it.
type resource struct {
	URI      string `json:"uri"`
	MimeType string `json:"mimeType,omitzero"`
	Text     string `json:"text,omitzero"`
	Blob     string `json:"blob,omitzero"`
}

// update is an update of a session. Which fields are set depends on Kind.
type update struct {
	Kind       string      `json:"sessionUpdate,omitzero"`
	MessageID  string      `json:"messageId,omitzero"`
	Content    any         `json:"content,omitzero"` // a block, or the contents of a call
	ToolCallID string      `json:"toolCallId,omitzero"`
	Title      string      `json:"title,omitzero"`
	ToolKind   string      `json:"kind,omitzero"`
	Status     string      `json:"status,omitzero"`
	RawInput   events.JSON `json:"rawInput,omitzero"`
	RawOutput  events.JSON `json:"rawOutput,omitzero"`
	Entries    events.JSON `json:"entries,omitzero"` // of a plan
}

// notification tells a client of an update.
type notification struct {
	SessionID string `json:"sessionId"`
	Update    update `json:"update"`
}

// content is a content of a call.
type content struct {
	Type    string `json:"type"`
	Content block  `json:"content"`
}

func say(kind, message, text string) update {
	return update{Kind: kind, MessageID: message, Content: block{Type: "text", Text: text}}
}

func texts(text string) any {
	if text == "" {
		return nil
	}
	return []content{{"content", block{Type: "text", Text: text}}}
}

// capabilities are what the agent can do.
type capabilities struct {
	LoadSession bool `json:"loadSession"`
	Prompt      struct {
		Image           bool `json:"image"`
		Audio           bool `json:"audio"`
		EmbeddedContext bool `json:"embeddedContext"`
	} `json:"promptCapabilities"`
	MCP struct {
		HTTP bool `json:"http"`
		SSE  bool `json:"sse"`
	} `json:"mcpCapabilities"`
	Session struct {
		List   struct{} `json:"list"`
		Resume struct{} `json:"resume"`
		Close  struct{} `json:"close"`
	} `json:"sessionCapabilities"`
}

type implementation struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Version string `json:"version"`
}

type initialized struct {
	ProtocolVersion int            `json:"protocolVersion"`
	Capabilities    capabilities   `json:"agentCapabilities"`
	Info            implementation `json:"agentInfo"`
	AuthMethods     []struct{}     `json:"authMethods"`
}

// clientCapabilities are what the client can do.
type clientCapabilities struct {
	Elicitation *struct {
		Form *struct{} `json:"form"`
	} `json:"elicitation"`
}

// setup are the parameters of session/new, session/load and session/resume.
type setup struct {
	SessionID   string        `json:"sessionId"`
	CWD         string        `json:"cwd"`
	MCPServers  []events.JSON `json:"mcpServers"`
	Directories []string      `json:"additionalDirectories"`
}

// opened is the answer to them.
type opened struct {
	SessionID string `json:"sessionId,omitzero"` // of session/new
	Meta      *meta  `json:"_meta,omitzero"`
}

// meta has what is Skein's own in an answer.
type meta struct {
	Skein struct {
		NotSupported []notSupported `json:"notSupported,omitempty"`
	} `json:"skein"`
}

// notSupported is a field of a request that was not used.
type notSupported struct {
	Field  string `json:"field"`
	Reason string `json:"reason"`
}

// listed is a session in a list.
type listed struct {
	SessionID string `json:"sessionId"`
	CWD       string `json:"cwd"`
	Title     string `json:"title,omitzero"`
	UpdatedAt string `json:"updatedAt,omitzero"`
}

type list struct {
	Sessions []listed `json:"sessions"`
	Next     string   `json:"nextCursor,omitzero"`
}

// permission asks the client's user for an approval.
type permission struct {
	SessionID string   `json:"sessionId"`
	ToolCall  update   `json:"toolCall"`
	Options   []option `json:"options"`
}

type option struct {
	ID   string `json:"optionId"`
	Name string `json:"name"`
	Kind string `json:"kind"`
}

// Options of a permission: their ids are their kinds.
const (
	allowOnce  = "allow_once"
	rejectOnce = "reject_once"
)

// permitted is the answer to it.
type permitted struct {
	Outcome struct {
		Outcome  string `json:"outcome"` // selected, cancelled
		OptionID string `json:"optionId"`
	} `json:"outcome"`
}

// elicitation asks the client's user to fill in a form.
type elicitation struct {
	SessionID  string `json:"sessionId"`
	ToolCallID string `json:"toolCallId"`
	Mode       string `json:"mode"`
	Message    string `json:"message"`
	Schema     any    `json:"requestedSchema"`
}

// elicited is the answer to it.
type elicited struct {
	Action  string         `json:"action"` // accept, decline, cancel
	Content map[string]any `json:"content"`
}
