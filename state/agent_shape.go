package state

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/schema/arguments"
)

// shape checks the input or output of an agent. A nil shape accepts any JSON.
type shape struct {
	what   string // what is checked, for errors: "input of agent NAME"
	schema *arguments.Schema
}

// boxed wraps a value into an object, because package arguments only supports schemas of objects.
type boxed[T any] struct {
	Value T `json:"value"`
}

const box = "/value" // the path of the value

// shapeOf returns the shape of a Go type.
func shapeOf[T any](what string) (*shape, error) {
	raw, err := arguments.Of(reflect.TypeFor[boxed[T]]())
	if err != nil {
		return nil, events.Invalid("", "the %s, a %v, has no schema: %w", what, reflect.TypeFor[T](), err)
	}
	schema, err := arguments.Compile(raw)
	if err != nil {
		return nil, err
	}
	return &shape{what, schema}, nil
}

// shapeError says why an input or output does not fit its schema.
type shapeError struct {
	what string
	path string // a JSON pointer to the first problem
	text string
}

func (e *shapeError) Error() string { return "the " + e.what + " does not fit its schema: " + e.text }

// errorPath returns the path of a shapeError.
func errorPath(err error) string {
	var e *shapeError
	if errors.As(err, &e) {
		return e.path
	}
	return ""
}

// check checks a JSON value. The error is a *shapeError.
func (s *shape) check(raw events.JSON) error {
	if s == nil {
		return nil
	}
	return s.explain(s.schema.Check(wrap(raw)))
}

func wrap(raw events.JSON) events.JSON {
	return events.JSON(`{"value":` + string(raw) + `}`)
}

// explain converts an error of package arguments to one about the input or output.
func (s *shape) explain(err error) error {
	var misfit *arguments.Error
	if !errors.As(err, &misfit) {
		return err
	}
	e := &shapeError{what: s.what}
	for i, p := range misfit.Problems {
		p.Path = strings.TrimPrefix(p.Path, box)
		if i == 0 {
			e.path = p.Path
		} else {
			e.text += "; "
		}
		e.text += p.String()
	}
	if misfit.More > 0 {
		e.text += fmt.Sprintf("; and %d more", misfit.More)
	}
	return e
}

// decode validates and decodes JSON from a client. The error is an invalid_request.
func decode[T any](s *shape, raw []byte) (T, error) {
	var into boxed[T]
	if !jsontext.Value(raw).IsValid() { // wrap assumes valid JSON
		return into.Value, events.Invalid("", "the %s is not JSON, or has a name twice", s.what)
	}
	err := s.check(raw)
	if err == nil {
		err = s.explain(arguments.Read(wrap(raw), &into))
	}
	if err != nil {
		return into.Value, events.Invalid(errorPath(err), "%w", err)
	}
	return into.Value, nil
}

// OutputError reports that an agent's output does not fit its schema.
type OutputError struct {
	Agent string
	Path  string // a JSON pointer to the first problem
	Cause error
}

func (e *OutputError) Error() string { return "agent " + e.Agent + ": " + e.Cause.Error() }

func (e *OutputError) Unwrap() error { return e.Cause }

// encode returns an output as JSON, and an *OutputError if it does not fit its schema.
func (a *Agent[In, Out]) encode(out Out) (events.JSON, error) {
	raw, err := json.Marshal(out, json.Deterministic(true))
	if err == nil {
		err = a.output.check(raw)
	}
	if err != nil {
		return nil, &OutputError{Agent: a.name, Path: errorPath(err), Cause: err}
	}
	return raw, nil
}
