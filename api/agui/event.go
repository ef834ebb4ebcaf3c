package agui

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/api/stream"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runview"
)

// protocolVersion is the version of AG-UI that is spoken here.
const protocolVersion = "1.0"

// Types of events.
const (
	runStarted       = "RUN_STARTED"
	runFinished      = "RUN_FINISHED"
	runError         = "RUN_ERROR"
	stepStarted      = "STEP_STARTED"
	stepFinished     = "STEP_FINISHED"
	textStart        = "TEXT_MESSAGE_START"
	textContent      = "TEXT_MESSAGE_CONTENT"
	textEnd          = "TEXT_MESSAGE_END"
	reasoningStart   = "REASONING_START"
	reasoningBegins  = "REASONING_MESSAGE_START"
	reasoningContent = "REASONING_MESSAGE_CONTENT"
	reasoningEnds    = "REASONING_MESSAGE_END"
	reasoningEnd     = "REASONING_END"
	callStart        = "TOOL_CALL_START"
	callArgs         = "TOOL_CALL_ARGS"
	callEnd          = "TOOL_CALL_END"
	callResult       = "TOOL_CALL_RESULT"
	stateSnapshot    = "STATE_SNAPSHOT"
	messagesSnapshot = "MESSAGES_SNAPSHOT"
	activitySnapshot = "ACTIVITY_SNAPSHOT"
	customEvent      = "CUSTOM"
)

// event is an event of AG-UI. Which fields are set depends on Type.
type event struct {
	Type            string       `json:"type"`
	ThreadID        string       `json:"threadId,omitzero"`
	RunID           string       `json:"runId,omitzero"`
	ParentRunID     string       `json:"parentRunId,omitzero"`
	ProtocolVersion string       `json:"protocolVersion,omitzero"`
	MessageID       string       `json:"messageId,omitzero"`
	Role            string       `json:"role,omitzero"`
	Delta           string       `json:"delta,omitzero"`
	ToolCallID      string       `json:"toolCallId,omitzero"`
	ToolCallName    string       `json:"toolCallName,omitzero"`
	ParentMessageID string       `json:"parentMessageId,omitzero"`
	Content         events.JSON  `json:"content,omitzero"`
	ActivityType    string       `json:"activityType,omitzero"`
	StepName        string       `json:"stepName,omitzero"`
	Name            string       `json:"name,omitzero"`
	Value           events.JSON  `json:"value,omitzero"`
	Snapshot        events.JSON  `json:"snapshot,omitzero"`
	Messages        *[]message   `json:"messages,omitzero"`
	Outcome         *outcome     `json:"outcome,omitzero"`
	Usage           []tokenUsage `json:"usage,omitempty"`
	Message         string       `json:"message,omitzero"`
	Code            string       `json:"code,omitzero"`
}

// frame returns the event as a frame of a stream.
func (e event) frame() (stream.Frame, error) {
	raw, err := json.Marshal(e, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	return stream.Frame{Data: raw}, err
}

// outcome says why a run has ended.
type outcome struct {
	Type       string      `json:"type"` // success, interrupt, cancelled
	Pending    []string    `json:"pendingToolCallIds,omitempty"`
	Interrupts []interrupt `json:"interrupts,omitempty"`
}

// interrupt is what a run waits for.
type interrupt struct {
	ID             string      `json:"id"`
	Reason         string      `json:"reason"`
	Message        string      `json:"message,omitzero"`
	ToolCallID     string      `json:"toolCallId"`
	ResponseSchema events.JSON `json:"responseSchema,omitzero"`
	Metadata       events.JSON `json:"metadata,omitzero"`
}

// approvalSchema is the schema of the answer to an approval.
const approvalSchema = `{"type":"object","properties":{"approved":{"type":"boolean"},"arguments":{"type":"object"},"reason":{"type":"string"}},"required":["approved"]}`

// interruptOf returns a request to people as an interrupt.
func interruptOf(a *events.CallApproval) interrupt {
	about := map[string]any{"tool": a.Name}
	if a.Arguments != nil {
		about["arguments"] = a.Arguments
	}
	out := interrupt{ID: a.CallID, Reason: "tool_call", Message: runview.Prompt(a), ToolCallID: a.CallID, Metadata: marshal(map[string]any{"skein": about})}
	if out.ResponseSchema = events.JSON(approvalSchema); a.Reason == events.ApprovalQuestion {
		out.Reason, out.ResponseSchema = "input_required", a.Answer
	}
	return out
}

// tokenUsage is what a run has used.
type tokenUsage struct {
	Provider          string `json:"provider,omitzero"`
	Model             string `json:"model,omitzero"`
	InputTokens       int64  `json:"inputTokens"`
	OutputTokens      int64  `json:"outputTokens"`
	TotalTokens       int64  `json:"totalTokens"`
	ReasoningTokens   int64  `json:"reasoningTokens,omitzero"`
	CachedInputTokens int64  `json:"cachedInputTokens,omitzero"`
}

func usageOf(u *events.Usage) []tokenUsage {
	if u == nil {
		return nil
	}
	return []tokenUsage{{u.Provider, u.Model, u.InputTokens, u.OutputTokens, u.InputTokens + u.OutputTokens, u.ReasoningTokens, u.CachedTokens}}
}

// marshal encodes values that were decoded from JSON, or made here.
func marshal(v any) events.JSON {
	raw, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil { // it was JSON
		return nil
	}
	return raw
}
