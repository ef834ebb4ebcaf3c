package model

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
)

// Rules say which params the definition of a model may set: they come from a tenant, and are sent
// with the operator's key.
type Rules struct {
	// Usual may always be set: they shape the answer, and use nothing else that the operator's key
	// permits at the endpoint, store nothing there, and do not change the price.
	Usual []string
	// Own define a step: no definition may set them.
	Own []string
	// Value returns why a usual param may not have a value; nil: any value is permitted.
	Value func(name string, value events.JSON) error
}

// check returns which entries of Config.Params cannot be params of a model.
func (r Rules) check(names []string) error {
	var errs []error
	for _, name := range names {
		kind, isTool := strings.CutPrefix(name, "tools.")
		switch {
		case slices.Contains(r.Own, name):
			errs = append(errs, fmt.Errorf("the param %s (--model-param) defines the step; no model's definition may set it", name))
		case name == "" || isTool && (kind == "" || kind == "function") || strings.ContainsFunc(kind, func(r rune) bool {
			return r != '_' && (r < 'a' || r > 'z') && (r < '0' || r > '9')
		}):
			errs = append(errs, fmt.Errorf("the param %.64q (--model-param) is not a name, or tools and a point and the type of hosted tools", name))
		}
	}
	return errors.Join(errs...)
}

// read returns the params of a model's definition, if all of them are permitted, by the rules or by
// the operator.
func (r Rules) read(raw events.JSON, permitted []string) (map[string]events.JSON, error) {
	params := map[string]events.JSON{}
	if raw == nil {
		return params, nil
	}
	if jsontext.Value(raw).Kind() != '{' || json.Unmarshal(raw, &params) != nil {
		return nil, errors.New("they are not a JSON object")
	}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		if err := r.permit(name, params[name], permitted); err != nil {
			return nil, err
		}
	}
	return params, nil
}

func (r Rules) permit(name string, value events.JSON, permitted []string) error {
	switch {
	case slices.Contains(r.Own, name):
		return fmt.Errorf("%s may not be set", name)
	case slices.Contains(permitted, name):
		return nil
	case name == "tools":
		return permitTools(value, permitted)
	case !slices.Contains(r.Usual, name):
		return fmt.Errorf("%s is not permitted here; the operator permits it with --model-param %[1]s", Clip(name))
	case r.Value != nil:
		return r.Value(name, value)
	}
	return nil
}

// permitTools checks hosted tools, of which only some types are permitted.
func permitTools(raw events.JSON, permitted []string) error {
	var list []struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(raw, &list) != nil {
		return errors.New("tools is of the wrong kind")
	}
	for _, t := range list {
		if !slices.Contains(permitted, "tools."+t.Type) {
			return fmt.Errorf("tools of type %s are not permitted here; the operator permits them with --model-param tools.%[1]s", Clip(t.Type))
		}
	}
	return nil
}

// Field is a param that a request has a field for.
type Field struct {
	Name string
	Into any // a pointer to the field
}

// Take moves params of the model's definition into fields of a request, which they override.
func (t *Turn) Take(fields ...Field) error {
	var errs []error
	for _, f := range fields {
		raw, ok := t.Params[f.Name]
		delete(t.Params, f.Name)
		if ok && json.Unmarshal(raw, f.Into) != nil {
			errs = append(errs, fmt.Errorf("%s is of the wrong kind", f.Name))
		}
	}
	return t.paramsError(errors.Join(errs...))
}

// EncodeTools returns the tools as form has each in a protocol, and after them those of the params. It
// takes these, the limits, which override the turn's, and then more.
func (t *Turn) EncodeTools(form func(runtime.ToolSpec) any, more ...Field) ([]events.JSON, error) {
	var out, hosted []events.JSON
	for _, tool := range t.Tools {
		raw, err := json.Marshal(form(tool))
		if err != nil {
			return nil, fmt.Errorf("the tool %.64q cannot be sent to the model: its parameters are not JSON", tool.Name)
		}
		out = append(out, raw)
	}
	limits := []Field{{"tools", &hosted}, {"max_output_tokens", &t.MaxOutputTokens}, {"temperature", &t.Temperature}}
	if err := t.Take(append(limits, more...)...); err != nil {
		return nil, err
	}
	return append(out, hosted...), nil
}

// NewRequest returns the request whose body has fields, and after them more, which is JSON.
// What shows the thread is one of fields.
func NewRequest(fields any, more string, shown events.JSON) (*Request, error) {
	body, err := json.Marshal(fields, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	return &Request{Body: append(body[:len(body)-1], ","+more+"}"...), Shown: shown}, nil
}

// Clip returns a foreign name as errors show it.
func Clip(name string) string { return fmt.Sprintf("%.64s", strings.ToValidUTF8(name, "?")) }
