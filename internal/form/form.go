// Package form turns questions to people into forms: objects of plain values, which MCP and ACP ask
// their users to fill in.
package form

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/skein-threads/skein/events"
)

// field is the property of a form whose answer is no object.
const field = "answer"

// Form is the schema of a form.
type Form struct {
	Type       string                     `json:"type"`
	Properties map[string]json.RawMessage `json:"properties"`
	Required   []string                   `json:"required,omitempty"`
}

// Of returns the form that asks a question whose answer has a schema, and reports whether there is one:
// forms have plain values only.
func Of(question string, answer events.JSON) (Form, bool) {
	if question == "" {
		return Form{}, false
	}
	if answer == nil {
		return Form{"object", map[string]json.RawMessage{field: json.RawMessage(`{"type":"string"}`)}, []string{field}}, true
	}
	if Plain(answer) {
		return Form{"object", map[string]json.RawMessage{field: json.RawMessage(answer)}, []string{field}}, true
	}
	var f Form
	if json.Unmarshal(answer, &f) != nil || f.Type != "object" || len(f.Properties) == 0 {
		return Form{}, false
	}
	return f, !slices.ContainsFunc(slices.Collect(maps.Values(f.Properties)), func(one json.RawMessage) bool { return !Plain(events.JSON(one)) })
}

// Plain reports whether a schema is one of a text, a number or a truth value.
func Plain(schema events.JSON) bool {
	return slices.Contains([]string{"string", "number", "integer", "boolean"}, typeOf(schema))
}

func typeOf(schema events.JSON) string {
	var s struct {
		Type any `json:"type"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return ""
	}
	name, _ := s.Type.(string)
	return name
}

// Answer returns what a form that was filled in answers.
func Answer(content map[string]any) (events.JSON, error) {
	var value any = content
	if one, alone := content[field]; alone && len(content) == 1 {
		value = one
	}
	return json.Marshal(value)
}

// Typed returns what a person typed as the answer to a question whose answer has a schema: the text,
// unless the schema wants something else and the text is JSON.
func Typed(text string, answer events.JSON) events.JSON {
	if answer != nil && typeOf(answer) != "string" && json.Valid([]byte(text)) {
		return events.JSON(text)
	}
	return events.Quote(text)
}
