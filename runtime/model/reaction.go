package model

import (
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

// reaction returns the content of the answer as a reaction.
func (o *Output) reaction() (*runtime.Reaction, error) {
	if err := o.addStreamed(); err != nil {
		return nil, err
	}
	out := &runtime.Reaction{AssistantEvent: runtime.Assistant{Content: []events.JSON{}}, FinishReason: o.finish}
	for _, at := range slices.Sorted(maps.Keys(o.items)) {
		item, stopped := o.items[at], false
		if o.stops != nil {
			item, stopped = o.stops.cut(item)
		}
		if !o.addItem(out, at, item) {
			return nil, Unreadable("item " + strconv.FormatInt(at, 10) + " is not of its type")
		}
		if stopped {
			out.FinishReason = ""
			break
		}
	}
	content, err := json.Marshal(out.AssistantEvent.Content)
	if err != nil || events.CheckContent(events.Message, content) != nil {
		return nil, Unreadable("it has an invalid part")
	}
	return out, nil
}

type callPart struct {
	Type       string      `json:"type"`
	ToolCallID string      `json:"toolCallId"`
	Input      events.JSON `json:"input"`
	Step       string      `json:"skein:step,omitzero"` // of a protocol whose messages hold what a step made
}

func addPart(out *runtime.Reaction, part any) {
	if raw, err := json.Marshal(part, json.Deterministic(true)); err == nil { // valid JSON: cannot fail
		out.AssistantEvent.Content = append(out.AssistantEvent.Content, raw)
	}
}

// addItem adds an item of the answer to the reaction, and reports whether it is of its type.
func (o *Output) addItem(out *runtime.Reaction, at int64, raw events.JSON) bool {
	var item openresponses.Item
	raw = wellFormed(raw)
	if json.Unmarshal(raw, &item) != nil || item.Type == "" {
		return false
	}
	item.Origin = nil // the endpoint must not set it
	switch item.Type {
	case "message":
		return addMessage(out, item)
	case "reasoning":
		return o.addReasoning(out, item)
	case "function_call":
		o.addCall(out, at, item)
		return true
	}
	for _, part := range o.ownParts(item) {
		addPart(out, part)
	}
	return true
}

// ownParts returns an item of the endpoint's own kind as parts that say whose it is.
func (o *Output) ownParts(item openresponses.Item) []events.JSON {
	item.Origin = nil // the endpoint must not set it
	if item.Rest == nil {
		item.Rest = map[string]events.JSON{}
	}
	item.Rest[openresponses.Provider] = events.Quote(o.from)
	return openresponses.Parts(item)
}

func addMessage(out *runtime.Reaction, item openresponses.Item) bool {
	if k := jsontext.Value(item.Content).Kind(); k != '[' && k != 'n' && k != 0 {
		return false
	}
	for _, raw := range openresponses.Parts(item) {
		var fields map[string]events.JSON
		if json.Unmarshal(raw, &fields) != nil {
			return false
		}
		drop(fields, "annotations", "logprobs")
		addPart(out, fields)
	}
	return true
}

func (o *Output) addReasoning(out *runtime.Reaction, item openresponses.Item) bool {
	for _, raw := range openresponses.Parts(item) {
		var fields map[string]events.JSON
		if json.Unmarshal(raw, &fields) != nil {
			return false
		}
		delete(fields, "status")
		drop(fields, "summary", "content", "encrypted_content")
		if fields["summary"] != nil || fields["content"] != nil || fields["encrypted_content"] != nil {
			fields[openresponses.Provider] = events.Quote(o.from)
			addPart(out, fields)
		}
	}
	return true
}

func (o *Output) addCall(out *runtime.Reaction, at int64, item openresponses.Item) {
	said := ""
	if item.Arguments != nil {
		said = *item.Arguments
	}
	input := runtime.CallArguments(said)
	if o.finish != "" && (item.Status == "incomplete" || jsontext.Value(input).Kind() != '{') {
		return // it was cut off
	}
	name := toolName(item.Name)
	id := o.callID(at, item.CallID)
	part := callPart{Type: events.ToolPart + name, ToolCallID: id, Input: input}
	if o.steps {
		part.Step = o.in.StepID
	}
	addPart(out, part)
	out.ToolCalls = append(out.ToolCalls, runtime.ToolCall{CallID: id, Name: name, Arguments: input})
}

// streamed collects what came of a text or of reasoning as deltas, by its index in the answer.
type streamed map[int64]*strings.Builder

func (s streamed) add(index int64, delta string) {
	if s[index] == nil {
		s[index] = &strings.Builder{}
	}
	s[index].WriteString(delta)
}

// addStreamed adds to the items of the answer what came as deltas alone: some endpoints end
// without an item of it, or with an empty one. What was shown stays.
func (o *Output) addStreamed() error {
	for _, one := range []struct {
		of   streamed
		kind string
		item func(said string) any
	}{
		{o.thoughts, "reasoning", func(said string) any {
			return map[string]any{"type": "reasoning", "summary": []any{map[string]any{"type": "summary_text", "text": said}}}
		}},
		{o.texts, "message", func(said string) any {
			return map[string]any{"type": "message", "role": "assistant", "content": []any{map[string]any{"type": "output_text", "text": said}}}
		}},
		{o.refusals, "message", func(said string) any {
			return map[string]any{"type": "message", "role": "assistant", "content": []any{map[string]any{"type": "refusal", "refusal": said}}}
		}},
	} {
		if o.has(one.kind) {
			continue
		}
		for _, index := range slices.Sorted(maps.Keys(one.of)) {
			said := one.of[index].String()
			if said == "" {
				continue
			}
			raw, err := json.Marshal(one.item(strings.ToValidUTF8(said, "\uFFFD")), json.Deterministic(true))
			if err != nil {
				return err
			}
			if was, taken := o.items[index]; taken && kindOf(was) != one.kind {
				index = slices.Max(slices.Collect(maps.Keys(o.items))) + 1
			}
			o.items[index] = raw
		}
	}
	return nil
}

// has reports whether the answer has an item of a kind that says something.
func (o *Output) has(kind string) bool {
	for _, raw := range o.items {
		var item struct {
			Type             string      `json:"type"`
			Content          events.JSON `json:"content"`
			Summary          events.JSON `json:"summary"`
			EncryptedContent events.JSON `json:"encrypted_content"`
		}
		if json.Unmarshal(wellFormed(raw), &item) == nil && item.Type == kind &&
			(Holds(item.Content) || Holds(item.Summary) || Holds(item.EncryptedContent)) {
			return true
		}
	}
	return false
}

func kindOf(raw events.JSON) string {
	var item struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(wellFormed(raw), &item) // what is none of the kind stays
	return item.Type
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
		if v, ok := fields[name]; ok && !Holds(v) {
			delete(fields, name)
		}
	}
}

// Holds reports whether a field of an item has content: it is not null, and not an empty text or list.
func Holds(raw events.JSON) bool {
	switch string(raw) {
	case "", "null", "[]", `""`:
		return false
	}
	return true
}
