package openaichat

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
)

// ToolPart begins the type of a part that is a call.
const ToolPart = "tool-"

// errorText begins the text of a result that is an error.
const errorText = "Error:"

// parts fills the message's parts from its content: a text, nothing, or a list
// of parts. Texts become parts of the type text; an assistant that says nothing
// has no part.
func (w *wireMessage) parts(m *Message, text string) error {
	switch jsontext.Value(w.Content).Kind() {
	case 0, 'n':
	case '"':
		if m.Role != events.Assistant || string(w.Content) != `""` {
			m.Content = append(m.Content, textPart(text, w.Content))
		}
	case '[':
		var list []events.JSON
		if err := json.Unmarshal(w.Content, &list); err != nil {
			return oneLine(err)
		}
		for i, raw := range list {
			part, err := convert(raw, text)
			if err != nil {
				return fmt.Errorf("part %d: %w", i+1, err)
			}
			m.Content = append(m.Content, part)
		}
	default:
		return errors.New("its content is a text, null, or a list of parts")
	}
	if w.Refusal != nil {
		part, err := json.Marshal(refusal{events.Refusal, *w.Refusal})
		if err != nil {
			return oneLine(err)
		}
		m.Content = append(m.Content, part)
	}
	content, err := json.Marshal(m.Content)
	if err != nil {
		return oneLine(err)
	}
	if err := events.CheckContent(events.Message, content); err != nil {
		return errors.New(events.AsError(err).Message)
	}
	return nil
}

// convert returns a part in the form that items have (EK 4.4).
func convert(raw events.JSON, text string) (events.JSON, error) {
	if jsontext.Value(raw).Kind() != '{' {
		return nil, errors.New("a part is an object")
	}
	var fields map[string]events.JSON
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, oneLine(err)
	}
	var kind string
	_ = json.Unmarshal(fields["type"], &kind) // what is no text is refused below
	switch {
	case kind == "text":
		fields["type"] = events.JSON(`"` + text + `"`)
		return json.Marshal(fields, json.Deterministic(true))
	case kind == "image_url", kind == "file":
		return file(fields)
	case kind != "" && !slices.Contains(knownParts(), kind):
		return nil, unknownPart(kind)
	}
	return raw, nil
}

// result fills the output of a tool's message: a text stays a text.
func (w *wireMessage) result(m *Message) error {
	switch jsontext.Value(w.Content).Kind() {
	case 0, 'n':
		m.Output = events.JSON("null")
	case '"', '[':
		m.Output = w.Content
	default:
		return errors.New("its content is a text, null, or a list of parts")
	}
	var text string
	if jsontext.Value(w.Content).Kind() == '"' {
		_ = json.Unmarshal(w.Content, &text) // it was read before
	}
	m.IsError = w.IsError || strings.HasPrefix(text, errorText)
	return nil
}

type refusal struct {
	Type    string `json:"type"`
	Refusal string `json:"refusal"`
}

func textPart(partType string, text events.JSON) events.JSON {
	return events.JSON(`{"type":"` + partType + `","text":` + string(text) + `}`)
}
