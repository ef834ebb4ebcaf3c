package events

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ChunkEmittedType is the event of a chunk.
const ChunkEmittedType Type = "chunk.emitted"

// ChunkEmitted is a piece of an execution's stream. It is transport, not state: it never
// enters the log and is deleted after an hour. Its event has no place of its own in the
// thread; its version is that of the thread when the worker started.
type ChunkEmitted struct {
	ExecutionID string `json:"executionId" schema:"required,pattern=id" doc:"The execution that streams."`
	Index       int64  `json:"index" schema:"required,minimum=0" doc:"Its place in the execution's stream, from 0."`
	StepID      string `json:"stepId,omitzero" schema:"pattern=id" doc:"The step that sent it."`
	Attempt     int64  `json:"attempt" schema:"required,minimum=1" doc:"The claim of the worker that sent it, from 1."`
	Type        string `json:"type" schema:"required,maxLength=128" doc:"The kind of chunk."`
	Data        JSON   `json:"data,omitzero" doc:"The chunk itself."`
}

// Kinds of chunks, including the deltas that a reactor writes.
const (
	ChunkContextID       = "data-context-id"
	ChunkContextSubstate = "data-context-substate"
	ChunkThreadPing      = "data-thread-ping"
	ChunkToolOutput      = "tool-output-available"
	ChunkToolError       = "tool-output-error"
	ChunkFinish          = "finish"
	ChunkTextDelta       = "text-delta"
	ChunkReasoningDelta  = "reasoning-delta"
	ChunkReasoningEnd    = "reasoning-end"
	ChunkToolInputStart  = "tool-input-start"
	ChunkToolInputDelta  = "tool-input-delta"
	ChunkToolInput       = "tool-input-available"
)

// ChunkKind declares one kind of chunk: the fields of its data, an object, which may have
// others as well.
type ChunkKind struct {
	Type   string
	Doc    string
	Fields []ChunkField
	// For a delta: Of is the field that names what the text belongs to, and Text the field
	// with the text. Deltas with the same Of can be joined into one.
	Of, Text string
}

// ChunkField is one field of a chunk's data.
type ChunkField struct {
	Name     string
	Doc      string
	Optional bool
	Any      bool // any JSON, not only a string
}

// ChunkKinds returns the kinds that Skein knows. A reactor may emit others.
func ChunkKinds() []ChunkKind {
	call := ChunkField{Name: "toolCallId", Doc: "The call."}
	id := ChunkField{Name: "id", Doc: "Which text: a step may write several."}
	tool := ChunkField{Name: "toolName", Doc: "The tool."}
	return []ChunkKind{
		{Type: ChunkContextID, Doc: "The context that the run works in.", Fields: []ChunkField{{Name: "contextId", Doc: "The context."}}},
		{Type: ChunkContextSubstate, Doc: "What the run does now.", Fields: []ChunkField{
			{Name: "substate", Doc: "In a word."}, {Name: "stepId", Doc: "The step.", Optional: true},
		}},
		{Type: ChunkThreadPing, Doc: "The run is alive.", Fields: []ChunkField{{Name: "at", Doc: "When it said so, in UTC."}}},
		{Type: ChunkTextDelta, Doc: "More of a text.", Fields: []ChunkField{id, {Name: "delta", Doc: "What is added."}}, Of: "id", Text: "delta"},
		{Type: ChunkReasoningDelta, Doc: "More of a reasoning.", Fields: []ChunkField{id, {Name: "delta", Doc: "What is added."}}, Of: "id", Text: "delta"},
		{Type: ChunkReasoningEnd, Doc: "A reasoning is complete.", Fields: []ChunkField{
			id, {Name: "encryptedContent", Doc: "What only its model can read.", Optional: true},
			{Name: "provider", Doc: "The endpoint that can read that.", Optional: true},
		}},
		{Type: ChunkToolInputStart, Doc: "The model begins to write a call.", Fields: []ChunkField{call, tool}},
		{Type: ChunkToolInputDelta, Doc: "More of a call's arguments, as text.", Fields: []ChunkField{
			call, {Name: "inputTextDelta", Doc: "What is added."},
		}, Of: "toolCallId", Text: "inputTextDelta"},
		{Type: ChunkToolInput, Doc: "A call is complete.", Fields: []ChunkField{call, tool, {Name: "input", Doc: "The arguments.", Any: true}}},
		{Type: ChunkToolOutput, Doc: "A call returned its result.", Fields: []ChunkField{call, {Name: "output", Doc: "The result.", Any: true}}},
		{Type: ChunkToolError, Doc: "A call failed.", Fields: []ChunkField{call, {Name: "errorText", Doc: "What happened."}}},
		{Type: ChunkFinish, Doc: "The run is over: the last chunk of every run.", Fields: []ChunkField{
			{Name: "finishReason", Doc: "stop, error, length, content-filter, tool-calls or other."},
			{Name: "errorText", Doc: "Why it failed.", Optional: true},
		}},
	}
}

// chunkKinds is the result of ChunkKinds, computed once.
var chunkKinds = ChunkKinds()

// Finish is the data of the chunk that ends a run.
type Finish struct {
	Reason    string `json:"finishReason"`
	ErrorText string `json:"errorText,omitzero"`
}

// Reasons why a run ended, as in the AI SDK's streams.
const (
	FinishStop          = "stop" // it completed its work
	FinishError         = "error"
	FinishLength        = "length"
	FinishContentFilter = "content-filter"
	FinishToolCalls     = "tool-calls"
	FinishOther         = "other" // it was stopped
)

// FinishReason returns the reason for a model's own word, FinishOther if it is none of the
// reasons above.
func FinishReason(word string) string {
	switch word {
	case FinishStop, FinishError, FinishLength, FinishContentFilter, FinishToolCalls:
		return word
	}
	return FinishOther
}

// FinishOf returns the end of a run whose execution has that state.
func FinishOf(state ExecutionStatus, errorText string) Finish {
	if state == ExecutionFailed {
		return Finish{Reason: FinishError, ErrorText: errorText}
	}
	return Finish{Reason: FinishStop}
}

var chunkTypePattern = regexp.MustCompile(`^[a-z0-9]+(-[A-Za-z0-9_]+)*$`)

// Delta is the text that a chunk appends, for chunks that do nothing else. Deltas with the
// same key can be joined into one.
type Delta struct {
	Key  string
	Text string
}

// CheckChunk validates a chunk: its type is words joined by dashes, at most 128 bytes, and its
// data has the fields of its kind (for a kind that Skein does not know: any JSON, or none).
// For a delta it also returns the Delta. The error is an invalid_request or payload_too_large.
func CheckChunk(kind string, data JSON) (*Delta, error) {
	at := slices.IndexFunc(chunkKinds, func(k ChunkKind) bool { return k.Type == kind })
	switch {
	case at < 0 && (len(kind) > 128 || !chunkTypePattern.MatchString(kind)):
		return nil, Invalid("/type", "%q is no type of a chunk: words with dashes between, such as text-delta", clip(kind))
	case len(data) > MaxEventBytes:
		return nil, TooLarge("the chunk's data", int64(len(data)), MaxEventBytes)
	case at < 0 && data != nil && !jsontext.Value(data).IsValid():
		return nil, Invalid("/data", "the data of a chunk is JSON")
	case at < 0:
		return nil, nil
	}
	d := chunkData{kind: &chunkKinds[at]}
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, Invalid("/data", "the data of a %s is an object", kind)
	}
	for i, f := range d.kind.Fields {
		switch is := d.is[i]; {
		case is == 0 && f.Optional:
		case is == 0:
			return nil, Invalid("/data/"+f.Name, "a %s has %s", kind, f.Name)
		case !f.Any && is != '"':
			return nil, Invalid("/data/"+f.Name, "%s of a %s is a text", f.Name, kind)
		}
	}
	if d.kind.Text == "" || d.fields != len(d.kind.Fields) {
		return nil, nil
	}
	return &d.delta, nil
}

// chunkData decodes the data of a chunk of a known kind.
type chunkData struct {
	kind   *ChunkKind
	is     [4]jsontext.Kind // of each of the kind's fields; 0: absent
	fields int              // the number of fields, of all names
	delta  Delta            // set if the chunk is one
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (d *chunkData) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() != '{' {
		return errors.New("it is no object")
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for ; dec.PeekKind() != '}'; d.fields++ {
		token, err := dec.ReadToken()
		if err != nil {
			return err
		}
		name := token.String()
		value, err := dec.ReadValue()
		if err != nil {
			return err
		}
		at := slices.IndexFunc(d.kind.Fields, func(f ChunkField) bool { return f.Name == name })
		if at < 0 {
			continue
		}
		if d.is[at] = value.Kind(); d.is[at] != '"' {
			continue
		}
		switch name {
		case d.kind.Of:
			err = json.Unmarshal(value, &d.delta.Key)
		case d.kind.Text:
			err = json.Unmarshal(value, &d.delta.Text)
		}
		if err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}

// DeltaData returns the data of a delta of that kind.
func DeltaData(kind string, d Delta) (JSON, error) {
	at := slices.IndexFunc(chunkKinds, func(k ChunkKind) bool { return k.Type == kind && k.Text != "" })
	if at < 0 {
		return nil, fmt.Errorf("%s is no delta", kind)
	}
	return json.Marshal(map[string]string{chunkKinds[at].Of: d.Key, chunkKinds[at].Text: d.Text}, json.Deterministic(true))
}

type chunkRules interface {
	ChunkEmitted(e *Event, d ChunkEmitted) error
}

func chunkEvents() []Row {
	return []Row{transient(row(ChunkEmittedType, 1, "A piece of an execution's stream; never in the log.",
		ChunkEmitted{ExecutionID: exampleExecution, Index: 7, StepID: exampleStep, Attempt: 1, Type: ChunkToolOutput, Data: JSON(`{"toolCallId":"tc_1","output":{"status":"shipped"}}`)}, Rules.ChunkEmitted))}
}
