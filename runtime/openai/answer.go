package openai

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/openai/openai-go/v3/responses"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/events/openresponses"
	"github.com/skein-threads/skein/runtime"
)

// answer collects the events of an endpoint's answer, and streams them.
type answer struct {
	in    *runtime.StepInput
	out   runtime.Stream
	taken map[string]bool       // ids of calls that the thread has
	calls map[int64]string      // ids of this answer's calls, by their index
	said  map[int64]*spacing    // how far its calls' arguments are written, by their index
	done  map[int64]events.JSON // complete items, by their index
	phase map[int64]string      // of messages whose text has not begun, by their index
	from  string                // names the endpoint

	texts, refusals, thoughts streamed

	ended    bool
	err      error
	response *responses.Response
	finish   string // why it ended early
}

func newAnswer(in *runtime.StepInput, out runtime.Stream, from string) *answer {
	a := &answer{in: in, out: out, from: from, phase: map[int64]string{}, taken: map[string]bool{}, calls: map[int64]string{}, said: map[int64]*spacing{}, done: map[int64]events.JSON{}, texts: streamed{}, refusals: streamed{}, thoughts: streamed{}}
	for i := range in.Items {
		a.note(&in.Items[i])
	}
	return a
}

// note notes the ids of the calls of an item.
func (a *answer) note(i *events.Item) {
	list, err := openresponses.Form{Split: true}.Write(i)
	if err != nil {
		return
	}
	for _, o := range list {
		if o.Type == "function_call" {
			a.taken[o.CallID] = true
		}
	}
}

// take handles one event. Events of unknown types are skipped: the last event contains
// everything.
func (a *answer) take(e responses.ResponseStreamEventUnion) {
	switch e.Type {
	case "":
		a.err = unreadable("an event has no type")
	case "response.output_text.delta", "response.refusal.delta":
		if e.Type == "response.refusal.delta" {
			a.refusals.add(e.OutputIndex, e.Delta)
		} else {
			a.texts.add(e.OutputIndex, e.Delta)
		}
		a.chunk(runtime.ChunkTextDelta, delta{cmp.Or(e.ItemID, place(e.OutputIndex)), e.Delta, a.phase[e.OutputIndex]})
		delete(a.phase, e.OutputIndex)
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		a.thoughts.add(e.OutputIndex, e.Delta)
		a.chunk(runtime.ChunkReasoningDelta, delta{ID: cmp.Or(e.ItemID, place(e.OutputIndex)), Delta: e.Delta})
	case "response.output_item.added":
		if phase := fieldsOf(e.Item.RawJSON()).Phase; e.Item.Type == "message" && phase != "" {
			a.phase[e.OutputIndex] = phase
		}
		if e.Item.Type == "function_call" {
			a.chunk(runtime.ChunkToolInputStart, toolInput{ToolCallID: a.callID(e.OutputIndex, e.Item.CallID), ToolName: toolName(e.Item.Name)})
		}
	case "response.function_call_arguments.delta":
		if said := a.spaces(e.OutputIndex).compact(e.Delta); said != "" {
			a.chunk(runtime.ChunkToolInputDelta, toolInputDelta{a.callID(e.OutputIndex, ""), said})
		}
	case "response.output_item.done":
		a.done[e.OutputIndex] = events.JSON(e.Item.RawJSON())
		if found := fieldsOf(e.Item.RawJSON()).annotations(); e.Item.Type == "message" && len(found) > 0 {
			a.chunk(openresponses.ChunkAnnotations, annotations{cmp.Or(e.Item.ID, place(e.OutputIndex)), found})
		}
		if e.Item.Type == "reasoning" && slices.ContainsFunc([]string{e.Item.JSON.Summary.Raw(), e.Item.JSON.Content.Raw(), e.Item.JSON.EncryptedContent.Raw()}, holds) {
			a.chunk(runtime.ChunkReasoningEnd, reasoningEnd{cmp.Or(e.Item.ID, place(e.OutputIndex)), e.Item.EncryptedContent})
		}
		if e.Item.Type == "function_call" && e.Item.Status != "incomplete" {
			a.chunk(runtime.ChunkToolInput, toolInput{a.callID(e.OutputIndex, e.Item.CallID), toolName(e.Item.Name), runtime.CallArguments(e.Item.Arguments.OfString)})
		}
	case "response.completed", "response.incomplete":
		a.ended, a.response = true, &e.Response
		if reason := e.Response.IncompleteDetails.Reason; reason != "" || e.Type == "response.incomplete" {
			a.finish = finishReason(reason)
		}
	case "response.failed":
		a.err = eventFailure([]byte(e.Response.Error.RawJSON()))
	case "response.cancelled":
		a.err = &failure{text: "the model's endpoint cancelled the answer", retry: true}
	case "error":
		a.err = eventFailure([]byte(e.RawJSON()))
	}
}

// finishReason converts the reason of an incomplete answer.
func finishReason(reason string) string {
	switch reason {
	case "max_output_tokens", "max_tokens":
		return events.FinishLength
	case "content_filter":
		return events.FinishContentFilter
	}
	return events.FinishOther
}

// The data of chunks.
type (
	delta struct {
		ID    string `json:"id"`
		Delta string `json:"delta"`
		Phase string `json:"phase,omitzero"` // of the message, with its first delta
	}
	annotations struct {
		ID          string        `json:"id"`
		Annotations []events.JSON `json:"annotations"`
	}
	reasoningEnd struct {
		ID               string `json:"id"`
		EncryptedContent string `json:"encryptedContent,omitzero"`
	}
	toolInput struct {
		ToolCallID string      `json:"toolCallId"`
		ToolName   string      `json:"toolName"`
		Input      events.JSON `json:"input,omitzero"`
	}
	toolInputDelta struct {
		ToolCallID     string `json:"toolCallId"`
		InputTextDelta string `json:"inputTextDelta"`
	}
)

func (a *answer) chunk(kind string, data any) {
	if a.out == nil {
		return
	}
	if raw, err := json.Marshal(data, jsontext.AllowInvalidUTF8(true)); err == nil {
		a.out.Chunk(runtime.Chunk{Type: kind, Data: raw})
	}
}

func place(index int64) string { return "output-" + strconv.FormatInt(index, 10) }

// callID returns the id of the call at an index: the endpoint's, or a new one if that
// is missing, too long, or used by another call of the thread.
func (a *answer) callID(index int64, id string) string {
	if known, ok := a.calls[index]; ok {
		return known
	}
	if id == "" || len(id) > maxCallID || a.taken[id] {
		id = "call_" + a.in.StepID + "-" + strconv.FormatInt(index, 10)
	}
	a.calls[index], a.taken[id] = id, true
	return id
}

// reaction returns the content of the answer as a reaction.
func (a *answer) reaction() (*runtime.Reaction, error) {
	if len(a.response.Output) > 0 { // some endpoints end without it
		clear(a.done)
	}
	for i, item := range a.response.Output {
		a.done[int64(i)] = events.JSON(item.RawJSON())
	}
	if err := a.addStreamed(); err != nil {
		return nil, err
	}
	out := &runtime.Reaction{AssistantEvent: runtime.Assistant{Content: []events.JSON{}}}
	for _, index := range slices.Sorted(maps.Keys(a.done)) {
		if err := a.item(out, index, a.done[index]); err != nil {
			return nil, err
		}
	}
	out.FinishReason = a.finish
	content, err := json.Marshal(out.AssistantEvent.Content)
	if err != nil || events.CheckContent(events.Message, content) != nil {
		return nil, unreadable("it has an invalid part")
	}
	return out, nil
}

type callPart struct {
	Type       string      `json:"type"`
	ToolCallID string      `json:"toolCallId"`
	Input      events.JSON `json:"input"`
}

func (a *answer) part(out *runtime.Reaction, part any) {
	if raw, err := json.Marshal(part, json.Deterministic(true)); err == nil { // valid JSON: cannot fail
		out.AssistantEvent.Content = append(out.AssistantEvent.Content, raw)
	}
}

// item adds an item of the answer to the reaction.
func (a *answer) item(out *runtime.Reaction, index int64, raw events.JSON) error {
	nonsense := unreadable("item " + strconv.FormatInt(index, 10) + " is not of its type")
	var o openresponses.Item
	raw = wellFormed(raw)
	if json.Unmarshal(raw, &o) != nil || o.Type == "" {
		return nonsense
	}
	o.Origin = nil // the endpoint must not set it
	switch o.Type {
	case "message", "reasoning":
		if k := jsontext.Value(o.Content).Kind(); o.Type == "message" && k != '[' && k != 'n' && k != 0 {
			return nonsense
		}
		for _, raw := range openresponses.Parts(o) {
			var fields map[string]events.JSON
			if json.Unmarshal(raw, &fields) != nil {
				return nonsense
			}
			if o.Type == "message" {
				drop(fields, "annotations", "logprobs")
				a.part(out, fields)
				continue
			}
			delete(fields, "status")
			drop(fields, "summary", "content", "encrypted_content")
			if fields["summary"] != nil || fields["content"] != nil || fields["encrypted_content"] != nil {
				fields[openresponses.Provider] = events.Quote(a.from)
				a.part(out, fields)
			}
		}
	case "function_call":
		said := ""
		if o.Arguments != nil {
			said = *o.Arguments
		}
		input := runtime.CallArguments(said)
		if a.finish != "" && (o.Status == "incomplete" || jsontext.Value(input).Kind() != '{') {
			break // it was cut off
		}
		name := toolName(o.Name)
		id := a.callID(index, o.CallID)
		a.part(out, callPart{events.ToolPart + name, id, input})
		out.ToolCalls = append(out.ToolCalls, runtime.ToolCall{CallID: id, Name: name, Arguments: input})
	default:
		if o.Rest == nil {
			o.Rest = map[string]events.JSON{}
		}
		o.Rest[openresponses.Provider] = events.Quote(a.from)
		for _, part := range openresponses.Parts(o) {
			a.part(out, part)
		}
	}
	return nil
}

// unreadable returns the failure of an answer that is not what the protocol says. It is paid, and
// nothing says that the next one would be another.
func unreadable(what string) *failure {
	return &failure{text: "the model's answer cannot be read: " + what, broke: true}
}

// messageFields are the fields of a message that its text does not have.
type messageFields struct {
	Phase   string `json:"phase"`
	Content []struct {
		Annotations []events.JSON `json:"annotations"`
	} `json:"content"`
}

func fieldsOf(raw string) (m messageFields) {
	_ = json.Unmarshal([]byte(raw), &m, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)) // it has none of them then
	return m
}

// annotations returns the annotations of a message of one part, whose deltas are one text.
func (m messageFields) annotations() []events.JSON {
	if len(m.Content) != 1 {
		return nil
	}
	return m.Content[0].Annotations
}

// toolName returns the name of a call's tool. One that no tool can have, which a model made up, is
// replaced: the call is answered like that of any other tool that does not exist.
func toolName(name string) string {
	name = name[:min(len(name), maxName)]
	if wireName(name) != name || !events.Pattern(events.PatternName).MatchString(name) {
		return wireName("unknown_" + name)
	}
	return name
}

// wellFormed returns JSON with U+FFFD in place of half of a surrogate pair, which models write.
func wellFormed(raw events.JSON) events.JSON {
	var v any
	if jsontext.Value(raw).IsValid() || json.Unmarshal(raw, &v, jsontext.AllowInvalidUTF8(true)) != nil {
		return raw
	}
	mended, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return raw
	}
	return mended
}

// drop removes fields without content.
func drop(fields map[string]events.JSON, names ...string) {
	for _, name := range names {
		if v, ok := fields[name]; ok && !holds(string(v)) {
			delete(fields, name)
		}
	}
}

// holds reports whether a field has content.
func holds(raw string) bool {
	return raw != "" && raw != "null" && raw != "[]" && raw != `""`
}
