package model

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
)

// ErrNothingToShow reports a turn of which a protocol can show nothing.
var ErrNothingToShow = errors.New("nothing in the thread can be shown to the model, and endpoints refuse an empty input: add a message")

// Exchange is a message of a protocol whose messages hold what one step made: an assistant's has
// its reasoning, its text, and its calls with their results.
type Exchange struct {
	Role      events.Role
	Parts     []Part
	Reasoning []Reasoning
	Calls     []Call
	Results   map[string]Result // by the id of the call
}

// Group returns the items of a turn as exchanges, for protocols without items.
func Group(items []Item) (out []*Exchange) {
	results := map[string]Result{}
	for _, item := range items {
		if r, ok := item.(Result); ok {
			results[r.CallID] = r
		}
	}
	assistant := func(fits func(*Exchange) bool) *Exchange {
		if len(out) > 0 && out[len(out)-1].Role == events.Assistant && fits(out[len(out)-1]) {
			return out[len(out)-1]
		}
		e := &Exchange{Role: events.Assistant, Results: map[string]Result{}}
		out = append(out, e)
		return e
	}
	for _, item := range items {
		switch i := item.(type) {
		case Message:
			if i.Role != events.Assistant {
				out = append(out, &Exchange{Role: i.Role, Parts: i.Parts})
				continue
			}
			e := assistant(func(e *Exchange) bool { return len(e.Calls) == 0 && len(e.Parts) == 0 })
			e.Parts = append(e.Parts, i.Parts...)
		case Reasoning:
			e := assistant(func(e *Exchange) bool { return len(e.Calls) == 0 && len(e.Parts) == 0 })
			e.Reasoning = append(e.Reasoning, i)
		case Call:
			e := assistant(func(e *Exchange) bool { return len(e.Calls) == 0 || e.Calls[0].Step == i.Step })
			e.Calls, e.Results[i.ID] = append(e.Calls, i), results[i.ID]
		}
	}
	return out
}

// Text returns the text of reasoning, if the endpoint takes it.
func (r Reasoning) Text() string {
	var parts []struct {
		Text string `json:"text"`
	}
	var said strings.Builder
	if json.Unmarshal(r.Content, &parts) == nil {
		for _, p := range parts {
			said.WriteString(p.Text)
		}
	}
	return said.String()
}

// ObjectOf returns arguments as a JSON object, which some protocols demand: others become the field
// arguments of one.
func ObjectOf(arguments string) events.JSON {
	if v := jsontext.Value(arguments); v.IsValid() && v.Kind() == '{' {
		return events.JSON(arguments)
	}
	raw, err := json.Marshal(map[string]string{"arguments": strings.ToValidUTF8(arguments, "\uFFFD")})
	if err != nil {
		return events.JSON("{}")
	}
	return raw
}

// Note returns a part as a text: its own, or what stands for it where a protocol has no form for it.
func (p Part) Note() string {
	switch {
	case p.Text != nil:
		return *p.Text
	case p.Refusal != "":
		return p.Refusal
	case p.Type == events.InputImage:
		return "(an image that cannot be shown)"
	case p.FileURL != nil:
		return "(a file: " + Text(p.FileURL) + ")"
	}
	return "(a file that cannot be shown)"
}

// Settings are params of a run in the form of the Responses protocol, for other protocols.
type Settings struct {
	Effort    string // of reasoning
	Verbosity string
	Format    struct {
		Type   string
		Schema struct {
			Name   string      `json:"name,omitzero"`
			Schema events.JSON `json:"schema,omitzero"`
			Strict events.JSON `json:"strict,omitzero"`
		}
	}
	Tool string // the function that must be called
}

// choice is a tool_choice that names functions.
type choice struct {
	Type  string  `json:"type"`
	Name  string  `json:"name"`
	Mode  string  `json:"mode"`
	Tools []named `json:"tools"`
}

type named struct {
	Name string `json:"name"`
}

// Settings takes the params text and reasoning, and what tool_choice names. allowed_tools removes
// all other tools from the turn, since other protocols have no such choice.
func (t *Turn) Settings() (s Settings, err error) {
	var reasoning struct {
		Effort string `json:"effort"`
	}
	var said struct {
		Verbosity string `json:"verbosity"`
		Format    struct {
			Type   string      `json:"type"`
			Name   string      `json:"name"`
			Schema events.JSON `json:"schema"`
			Strict events.JSON `json:"strict"`
		} `json:"format"`
	}
	if err := t.Take(Field{"reasoning", &reasoning}, Field{"text", &said}); err != nil {
		return s, err
	}
	s.Effort, s.Verbosity, s.Format.Type = reasoning.Effort, said.Verbosity, said.Format.Type
	s.Format.Schema.Name, s.Format.Schema.Schema, s.Format.Schema.Strict = said.Format.Name, said.Format.Schema, said.Format.Strict
	var c choice
	if raw := t.Params["tool_choice"]; jsontext.Value(raw).Kind() != '{' || json.Unmarshal(raw, &c) != nil {
		return s, nil
	}
	switch c.Type {
	case "function":
		s.Tool = c.Name
	case "allowed_tools":
		t.Tools = slices.DeleteFunc(t.Tools, func(tool runtime.ToolSpec) bool {
			return !slices.Contains(c.Tools, named{tool.Name})
		})
		t.Params["tool_choice"] = events.Quote(cmp.Or(c.Mode, "auto"))
	}
	return s, nil
}
