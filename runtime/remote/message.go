package remote

import (
	"github.com/go-json-experiment/json/jsontext"

	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
)

// version is the protocol's version. A process may check it; fields are only added:
// version 2 has pieces, and a process that knows version 1 receives what fits.
const version = 2

// protocol says how a request is to be answered.
type protocol struct {
	Version     int    `json:"version"`
	Cancel      string `json:"cancel,omitzero"` // the subject on which the call is cancelled; over HTTP the connection is closed
	HeartbeatMs int64  `json:"heartbeatMs"`     // interval of heartbeats
	DeadMs      int64  `json:"deadMs"`          // silence after which the process is given up
	MaxBytes    int64  `json:"maxBytes"`        // of one message of the answer

	Pieces *pieces `json:"pieces,omitzero"` // of the whole request, if this message does not contain it
}

// protocol returns how a call is to be answered, in messages of at most so many bytes.
func (c *callee) protocol(most int64) protocol {
	return protocol{Version: version, HeartbeatMs: c.heartbeat.Milliseconds(), DeadMs: c.dead.Milliseconds(), MaxBytes: most}
}

// reactorRequest is a request on skein.reactor.{name}.
type reactorRequest struct {
	runtime.StepInput
	Protocol protocol `json:"protocol"`
}

// toolRequest is a request on skein.tool.{name}.
type toolRequest struct {
	Tenant      string      `json:"tenant"`
	ThreadID    string      `json:"threadId"`
	ExecutionID string      `json:"executionId"`
	StepID      string      `json:"stepId"`
	CallID      string      `json:"callId"`
	Name        string      `json:"name"`
	Key         string      `json:"key"`
	Attempt     int         `json:"attempt"`
	Arguments   events.JSON `json:"arguments,omitzero"`
	Protocol    protocol    `json:"protocol"`
}

// Kinds of messages of an answer.
const (
	kindHeartbeat = "heartbeat"
	kindChunk     = "chunk"
	kindResult    = "result"
	kindError     = "error"
	kindPiece     = "piece" // requests a piece of the request
)

// message is a message of an answer, without the fields of a result.
type message struct {
	Kind string `json:"kind"`

	Type string      `json:"type,omitzero"` // of a chunk
	Data events.JSON `json:"data,omitzero"`

	Piece int `json:"piece,omitzero"` // which piece is requested

	Message string `json:"message,omitzero"` // of an error
	Retry   bool   `json:"retry,omitzero"`
	AfterMs int64  `json:"afterMs,omitzero"`
}

// The results: their fields are next to the kind.
type (
	reactorResult struct {
		Kind string `json:"kind"`
		runtime.Reaction
	}
	toolResult struct {
		Kind string `json:"kind"`
		runtime.ToolResult
	}
)

// requestOf returns the request of a tool's call.
func requestOf(in *runtime.ToolInput, p protocol) *toolRequest {
	return &toolRequest{
		Tenant: in.Tenant, ThreadID: in.ThreadID, ExecutionID: in.ExecutionID, StepID: in.StepID,
		CallID: in.CallID, Name: in.Name, Key: in.Key, Attempt: in.Attempt, Arguments: in.Arguments, Protocol: p,
	}
}

// reaction returns the reaction in the result of a reactor. shown is what it received,
// if not the whole conversation.
func (c *callee) reaction(body []byte, shown *runtime.Shown) (*runtime.Reaction, error) {
	reaction, err := readReaction(body)
	if err != nil {
		return nil, c.wrong("is invalid: %w", err)
	}
	if reaction.MessagesForModel == nil {
		reaction.MessagesForModel = shown
	}
	return reaction, nil
}

// result returns the result of a tool's call.
func (c *callee) result(body []byte) (runtime.ToolResult, error) {
	result, err := readResult(body)
	if err != nil {
		return runtime.ToolResult{}, c.wrong("is invalid: %w", err)
	}
	return result, nil
}

// readReaction decodes the result of a reactor. The error says what is wrong.
func readReaction(body []byte) (*runtime.Reaction, error) {
	var r struct {
		AssistantEvent *struct {
			ID      string         `json:"id"`
			Content *[]events.JSON `json:"content"`
		} `json:"assistantEvent"`
		ToolCalls        []runtime.ToolCall `json:"toolCalls"`
		MessagesForModel *runtime.Shown     `json:"messagesForModel"`
		Usage            *runtime.Usage     `json:"usage"`
		FinishReason     string             `json:"finishReason"`
	}
	if err := json.Unmarshal(body, &r, lenient()); err != nil {
		return nil, shape(err)
	}
	if r.AssistantEvent == nil || r.AssistantEvent.Content == nil {
		return nil, errors.New("its assistantEvent has no content, which is a list of parts")
	}
	out := &runtime.Reaction{ToolCalls: r.ToolCalls, MessagesForModel: r.MessagesForModel, Usage: r.Usage, FinishReason: r.FinishReason}
	out.AssistantEvent.ID, out.AssistantEvent.Content = r.AssistantEvent.ID, *r.AssistantEvent.Content
	for i, part := range out.AssistantEvent.Content {
		out.AssistantEvent.Content[i] = usablePart(part)
	}
	content, err := json.Marshal(out.AssistantEvent.Content)
	if err != nil {
		return nil, shape(err)
	}
	if err := events.CheckContent(events.Message, content); err != nil {
		e := events.AsError(err)
		path := ""
		if e.Details != nil {
			path = " at /assistantEvent" + e.Details.Path
		}
		return nil, fmt.Errorf("%s%s", clip(e.Message), path)
	}
	seen := map[string]bool{}
	for i := range out.ToolCalls {
		c := &out.ToolCalls[i]
		if c.Arguments == nil {
			c.Arguments = events.JSON("{}")
		}
		switch n := utf8.RuneCountInString(c.CallID); {
		case n < 1 || n > 256:
			return nil, fmt.Errorf("the callId of toolCalls/%d has not 1 to 256 letters", i)
		case seen[c.CallID]:
			return nil, fmt.Errorf("two of its toolCalls have the callId %q", clip(c.CallID))
		case c.Name == "":
			return nil, fmt.Errorf("toolCalls/%d has no name", i)
		}
		c.Arguments = usableInput(c.Arguments)
		seen[c.CallID] = true
	}
	return out, nil
}

// lenient returns the options with which a message is read: what a model has written in it need not
// be what tools can use.
func lenient() json.Options {
	return json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// usableInput returns the arguments of a call as package runtime takes them: what no tool accepts
// is a failure of that call alone.
func usableInput(v events.JSON) events.JSON {
	if jsontext.Value(v).Kind() == '"' && jsontext.Value(v).IsValid() {
		return v
	}
	return runtime.CallArguments(string(v))
}

// usablePart returns a part whose input is one that package runtime takes, if it is that of a call.
func usablePart(part events.JSON) events.JSON {
	var fields map[string]events.JSON
	if jsontext.Value(part).IsValid() || json.Unmarshal(part, &fields, lenient()) != nil || fields["input"] == nil {
		return part
	}
	fields["input"] = usableInput(fields["input"])
	mended, err := json.Marshal(fields, json.Deterministic(true))
	if err != nil { // it is invalid elsewhere
		return part
	}
	return mended
}

// readResult decodes the result of a tool. The error says what is wrong.
func readResult(body []byte) (runtime.ToolResult, error) {
	var r runtime.ToolResult
	if err := json.Unmarshal(body, &r); err != nil {
		return runtime.ToolResult{}, shape(err)
	}
	switch {
	case r.Status != runtime.Success && r.Status != runtime.Failure:
		return runtime.ToolResult{}, fmt.Errorf("its status is %q, not success or error", clip(string(r.Status)))
	case r.Status == runtime.Failure && r.Error == "":
		return runtime.ToolResult{}, errors.New("its status is error, and it has no error")
	case r.Status == runtime.Failure:
		r.Error = clip(r.Error)
	}
	return r, nil
}

// textLetters limits how much text of a process an error contains.
const textLetters = 1000

// clip returns a text of a process for an error: short, and in one line.
func clip(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if utf8.RuneCountInString(s) > textLetters {
		return string([]rune(s)[:textLetters]) + "..."
	}
	return s
}
