package transcript

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
)

// toolPart begins the type of a part that is a call (EK-49).
const toolPart = "tool-"

// errorText begins the text of a result that is an error.
const errorText = "Error:"

// parts fills the message's parts from its content: a text, nothing, or a list
// of parts. Texts become parts of the type text; an assistant that says nothing
// has no part.
func (w *wireMessage) parts(m *Message, text string) error {
	switch w.Content.Kind() {
	case 0, 'n':
	case '"':
		if m.Role != events.Assistant || string(w.Content) != `""` {
			m.Content = append(m.Content, textPart(text, w.Content))
		}
	case '[':
		var list []jsontext.Value
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
		m.Content = append(m.Content, object("type", events.Refusal, "refusal", *w.Refusal))
	}
	if err := events.CheckContent(events.Message, list(m.Content)); err != nil {
		return errors.New(events.AsError(err).Message)
	}
	return nil
}

// convert gives a part its name in EK 4.4. A part of another type is kept as it
// came (EK-173).
func convert(raw jsontext.Value, text string) (jsontext.Value, error) {
	if raw.Kind() != '{' {
		return nil, errors.New("a part is an object")
	}
	var fields map[string]jsontext.Value
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, oneLine(err)
	}
	if string(fields["type"]) != `"text"` {
		return raw, nil
	}
	fields["type"] = quote(text)
	return json.Marshal(fields, json.Deterministic(true))
}

// result fills the output of a tool's message: a text stays a text.
func (w *wireMessage) result(m *Message) error {
	switch w.Content.Kind() {
	case 0, 'n':
		m.Output = jsontext.Value("null")
	case '"', '[':
		m.Output = w.Content
	default:
		return errors.New("its content is a text, null, or a list of parts")
	}
	var text string
	if w.Content.Kind() == '"' {
		_ = json.Unmarshal(w.Content, &text) // it was read before
	}
	m.IsError = w.IsError || strings.HasPrefix(text, errorText)
	return nil
}

func textPart(partType string, text jsontext.Value) jsontext.Value {
	return jsontext.Value(`{"type":"` + partType + `","text":` + string(text) + `}`)
}

// list writes a JSON array.
func list(values []jsontext.Value) jsontext.Value {
	out := jsontext.Value{'['}
	for i, v := range values {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, v...)
	}
	return append(out, ']')
}

// object writes a JSON object of names and values, in that order. A value is a
// text, a bool, or JSON; JSON that is nil is left out with its name.
func object(pairs ...any) jsontext.Value {
	out := jsontext.Value{'{'}
	for i := 0; i+1 < len(pairs); i += 2 {
		var value jsontext.Value
		switch v := pairs[i+1].(type) {
		case string:
			value = quote(v)
		case bool:
			value = jsontext.Value(strconv.FormatBool(v))
		case jsontext.Value:
			if v == nil {
				continue
			}
			value = v
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, quote(pairs[i].(string))...), ':'), value...)
	}
	return append(out, '}')
}

// quote writes a JSON string.
func quote(s string) jsontext.Value {
	b, err := jsontext.AppendQuote(nil, s)
	if err != nil { // what was read is valid UTF-8
		return jsontext.Value(`""`)
	}
	return b
}
