package chat

import (
	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// Chunk is a chunk of the AI SDK's UI message stream. Which fields are set depends on Type; no
// other is sent.
type Chunk struct {
	Type             string      `json:"type"`
	MessageID        string      `json:"messageId,omitzero"`
	ID               string      `json:"id,omitzero"`
	Delta            string      `json:"delta,omitzero"`
	ToolCallID       string      `json:"toolCallId,omitzero"`
	ToolName         string      `json:"toolName,omitzero"`
	InputTextDelta   string      `json:"inputTextDelta,omitzero"`
	Input            events.JSON `json:"input,omitzero"`
	Output           events.JSON `json:"output,omitzero"`
	ErrorText        string      `json:"errorText,omitzero"`
	ProviderExecuted *bool       `json:"providerExecuted,omitzero"` // Skein makes the call, not the client
	ApprovalID       string      `json:"approvalId,omitzero"`
	Reason           string      `json:"reason,omitzero"`
	SourceID         string      `json:"sourceId,omitzero"`
	URL              string      `json:"url,omitzero"`
	MediaType        string      `json:"mediaType,omitzero"`
	Title            string      `json:"title,omitzero"`
	Filename         string      `json:"filename,omitzero"`
	Data             events.JSON `json:"data,omitzero"`
	Transient        bool        `json:"transient,omitzero"`
	FinishReason     string      `json:"finishReason,omitzero"`
}

// Types of chunks, besides the types of parts.
const (
	typeStart           = "start"
	typeStartStep       = "start-step"
	typeFinishStep      = "finish-step"
	typeResetStep       = "reset-step"
	typeFinish          = "finish"
	typeAbort           = "abort"
	typeError           = "error"
	typeToolInput       = events.ChunkToolInput
	typeToolOutput      = events.ChunkToolOutput
	typeToolError       = events.ChunkToolError
	typeToolInputError  = "tool-input-error"
	typeToolDenied      = "tool-output-denied"
	typeApprovalRequest = "tool-approval-request"
	typeSourceURL       = "source-url"
	typeSourceDocument  = "source-document"
	typeFile            = "file"
)

// Types of Skein's own data parts.
const (
	dataPrefix    = "data-"
	skeinPrefix   = "data-skein-"
	dataThread    = skeinPrefix + "thread"
	dataExecution = skeinPrefix + "execution"
	dataStep      = skeinPrefix + "step"
	dataSubstate  = skeinPrefix + "substate"
	dataQuestion  = skeinPrefix + "question"
	dataPart      = skeinPrefix + "part"
)

// dataChunk returns a data part.
func dataChunk(kind, id string, data any) Chunk {
	raw, err := json.Marshal(data, json.Deterministic(true))
	if err != nil { // of maps and structs of this package
		raw = []byte("{}")
	}
	return Chunk{Type: kind, ID: id, Data: raw}
}

// some returns v, or {} if it is absent or null: the client expects an input.
func some(v events.JSON) events.JSON {
	if len(v) == 0 || string(v) == "null" {
		return events.JSON("{}")
	}
	return v
}
