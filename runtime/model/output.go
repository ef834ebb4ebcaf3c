package model

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/events/openresponses"
	"github.com/skein-threads/skein/runtime"
)

// Output collects what a decoder reads of an answer, and streams it. at is the place of an item in
// the answer: the reaction has the items in its order. An id that is empty is derived from it.
type Output struct {
	in    *runtime.StepInput
	out   runtime.Stream
	from  string                // names the endpoint
	steps bool                  // calls say which step made them
	taken map[string]bool       // ids of calls that the thread has
	calls map[int64]string      // ids of this answer's calls
	said  map[int64]*spacing    // how far its calls' arguments are written
	items map[int64]events.JSON // complete items
	phase map[int64]string      // of messages whose text has not begun

	texts, refusals, thoughts streamed
	stops                     *stops // nil: the text ends where the endpoint ends it

	ended  bool
	finish string // why it ended early
	usage  runtime.Usage
	used   events.JSON // the usage in the endpoint's own form
}

func newOutput(in *runtime.StepInput, out runtime.Stream, from string) *Output {
	o := &Output{
		in: in, out: out, from: from,
		taken: map[string]bool{}, calls: map[int64]string{}, said: map[int64]*spacing{}, items: map[int64]events.JSON{}, phase: map[int64]string{},
		texts: streamed{}, refusals: streamed{}, thoughts: streamed{},
	}
	for i := range in.Items {
		o.noteCalls(&in.Items[i])
	}
	return o
}

// noteCalls notes the ids of the calls of an item.
func (o *Output) noteCalls(i *events.Item) {
	list, err := openresponses.Form{Split: true}.Write(i)
	if err != nil {
		return
	}
	for _, item := range list {
		if item.Type == "function_call" {
			o.taken[item.CallID] = true
		}
	}
}

// Model returns the provider's name of the model that is asked.
func (o *Output) Model() string { return o.in.Model.Model }

// Phase notes the phase of the message at a place, whose first delta says it.
func (o *Output) Phase(at int64, phase string) {
	if phase != "" {
		o.phase[at] = phase
	}
}

// Text streams a piece of a message's text.
func (o *Output) Text(at int64, id, delta string) {
	if o.stops != nil {
		if delta = o.stops.show(at, id, delta); delta == "" {
			return
		}
		ended := o.stops.ended // after this, nothing is shown
		o.stops.ended = false
		defer func() { o.stops.ended = ended }()
	}
	o.text(o.texts, at, id, delta)
}

// endText shows what was held back of a text that has ended.
func (o *Output) endText(at int64) {
	if o.stops == nil {
		return
	}
	if held := o.stops.rest(at); held.text != "" {
		o.text(o.texts, at, held.id, held.text)
	}
}

// Refusal streams a piece of a message's refusal.
func (o *Output) Refusal(at int64, id, delta string) { o.text(o.refusals, at, id, delta) }

func (o *Output) text(of streamed, at int64, id, delta string) {
	of.add(at, delta)
	o.chunk(runtime.ChunkTextDelta, textDelta{itemID(at, id), delta, o.phase[at]})
	delete(o.phase, at)
}

// Annotations streams the annotations of a message of one text.
func (o *Output) Annotations(at int64, id string, list []events.JSON) {
	if len(list) > 0 {
		o.chunk(openresponses.ChunkAnnotations, annotations{itemID(at, id), list})
	}
}

// Reasoning streams a piece of reasoning.
func (o *Output) Reasoning(at int64, id, delta string) {
	o.thoughts.add(at, delta)
	o.chunk(runtime.ChunkReasoningDelta, textDelta{ID: itemID(at, id), Delta: delta})
}

// EndReasoning streams the end of reasoning, with what the endpoint is sent back of it.
func (o *Output) EndReasoning(at int64, id, encrypted string) {
	end := reasoningEnd{ID: itemID(at, id), EncryptedContent: encrypted}
	if encrypted != "" {
		end.Provider = o.from
	}
	o.chunk(runtime.ChunkReasoningEnd, end)
}

// BeginCall streams that a call has begun. id may be empty.
func (o *Output) BeginCall(at int64, id, name string) {
	o.chunk(runtime.ChunkToolInputStart, toolInput{ToolCallID: o.callID(at, id), ToolName: toolName(name)})
}

// Arguments streams a piece of the arguments of a call.
func (o *Output) Arguments(at int64, delta string) {
	if o.said[at] == nil {
		o.said[at] = &spacing{}
	}
	if said := o.said[at].compact(delta); said != "" {
		o.chunk(runtime.ChunkToolInputDelta, toolInputDelta{o.callID(at, ""), said})
	}
}

// EndCall streams a whole call.
func (o *Output) EndCall(at int64, id, name, arguments string) {
	o.chunk(runtime.ChunkToolInput, toolInput{o.callID(at, id), toolName(name), runtime.CallArguments(arguments)})
}

// Item notes a complete item of the answer, as Open Responses has it: a message, a reasoning, a
// function_call, or an item of the endpoint's own kind. A later one at the same place replaces it.
func (o *Output) Item(at int64, item events.JSON) {
	o.endText(at)
	o.items[at] = item
}

// Items replaces all items by those of the whole answer, unless there are none: some endpoints end
// without it.
func (o *Output) Items(list []events.JSON) {
	if len(list) > 0 {
		clear(o.items)
	}
	for i, item := range list {
		o.items[int64(i)] = item
	}
}

// largestItem is the size of the largest part that a chunk has.
const largestItem = 64 << 10

// OwnItem streams a complete item of the endpoint's own kind.
func (o *Output) OwnItem(raw events.JSON) {
	var item openresponses.Item
	if json.Unmarshal(wellFormed(raw), &item) != nil {
		return // it is found at the end of the answer
	}
	for _, part := range o.ownParts(item) {
		if len(part) > largestItem {
			part = nil
		}
		o.chunk(openresponses.ChunkItem, ownItem{part})
	}
}

// Usage notes what the answer has used. Its model, if not empty, is the one that answered. Input
// tokens include those of a cache. said is the usage in the endpoint's own form, an object.
func (o *Output) Usage(u runtime.Usage, said events.JSON) {
	u.TotalTokens = u.Tokens()
	o.usage, o.used = u, said
}

// End says that the answer is whole. finish is why it ended early, one of the reasons of
// events.Finish; empty: it is complete.
func (o *Output) End(finish string) {
	if o.stops != nil {
		for _, at := range slices.Sorted(maps.Keys(o.stops.held)) {
			o.endText(at)
		}
	}
	o.ended, o.finish = true, finish
}

// The data of chunks.
type (
	textDelta struct {
		ID    string `json:"id"`
		Delta string `json:"delta"`
		Phase string `json:"phase,omitzero"` // of the message, with its first delta
	}
	annotations struct {
		ID          string        `json:"id"`
		Annotations []events.JSON `json:"annotations"`
	}
	ownItem struct {
		Part events.JSON `json:"part,omitzero"`
	}
	reasoningEnd struct {
		ID               string `json:"id"`
		EncryptedContent string `json:"encryptedContent,omitzero"`
		Provider         string `json:"provider,omitzero"` // that can read it
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

func (o *Output) chunk(kind string, data any) {
	if o.out == nil || o.stops != nil && o.stops.ended {
		return
	}
	if raw, err := json.Marshal(data, jsontext.AllowInvalidUTF8(true)); err == nil {
		o.out.Chunk(runtime.Chunk{Type: kind, Data: raw})
	}
}

func itemID(at int64, id string) string { return cmp.Or(id, "output-"+strconv.FormatInt(at, 10)) }

// callID returns the id of the call at a place: the endpoint's, or a new one if that
// is missing, too long, or used by another call of the thread.
func (o *Output) callID(at int64, id string) string {
	if known, ok := o.calls[at]; ok {
		return known
	}
	if id == "" || len(id) > maxCallID || o.taken[id] {
		id = "call_" + o.in.StepID + "-" + strconv.FormatInt(at, 10)
	}
	o.calls[at], o.taken[id] = id, true
	return id
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

// spacing removes the white space between the tokens of JSON that arrives in pieces, so that
// the pieces of a call's arguments are together what its part will hold.
type spacing struct{ inText, escaped bool }

// compact returns a piece without that white space.
func (s *spacing) compact(piece string) string {
	var out strings.Builder
	for i := range len(piece) {
		c := piece[i]
		switch {
		case s.escaped:
			s.escaped = false
		case s.inText:
			s.inText, s.escaped = c != '"', c == '\\'
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			continue
		default:
			s.inText = c == '"'
		}
		out.WriteByte(c)
	}
	return out.String()
}
