package arguments

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/pattern"
	"github.com/skein-threads/skein/schema"
)

// Limits of what a schema and the arguments of a call may be, in bytes.
const (
	MaxSchema    = 256 << 10
	MaxArguments = 1 << 20
)

// nowhere is where a schema seems to lie; nothing is there.
const nowhere = "https://schema.invalid/schema.json"

// Schema is a JSON Schema of arguments, compiled. Safe for concurrent use.
type Schema struct {
	mu    sync.Mutex // a check counts its work in what the schema shares
	rules *jsonschema.Schema
	work  *work

	patterns int // instructions of all of them
}

// Check holds the arguments of a call to the schema; no bytes are {}. A nil
// Schema takes any object. The error is an *Error, the same for the same
// arguments.
func (s *Schema) Check(arguments events.JSON) (err error) {
	if len(arguments) == 0 {
		arguments = events.JSON("{}")
	}
	if len(arguments) > MaxArguments {
		return wrong("they have %d bytes, and %d are allowed", len(arguments), MaxArguments)
	}
	value, err := readTree(arguments)
	if err != nil {
		return wrong("%v", err)
	}
	if _, ok := value.(map[string]any); !ok {
		return wrong("they must be a JSON object")
	}
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.work.left, s.work.steps = maxWork, maxSteps
	if s.work.names*nameBytes(value) > maxSteps {
		return wrong("they cannot be checked: %s", caught(tooMuch{}))
	}
	defer func() {
		if r := recover(); r != nil {
			err = wrong("they cannot be checked: %s", caught(r))
		}
	}()
	return reasons(s.rules.Validate(value))
}

// Compile reads a JSON Schema of arguments. The error is an *events.Error that
// says what is wrong with it: invalid_request, or payload_too_large.
func Compile(raw events.JSON) (_ *Schema, err error) {
	if len(raw) > MaxSchema {
		return nil, events.TooLarge("the schema of a tool's parameters", int64(len(raw)), MaxSchema)
	}
	tree, err := readTree(raw)
	if err != nil {
		return nil, events.Invalid("", "the parameters are no JSON Schema: %w", err)
	}
	root, ok := tree.(map[string]any)
	if !ok {
		return nil, events.Invalid("", "the parameters must be a JSON Schema, an object")
	}
	if !takesObject(root["type"]) {
		return nil, events.Invalid("/type", "the parameters must take an object: what a model sends is one")
	}
	if err := mend(root); err != nil {
		return nil, events.Invalid("", "the parameters use %w", err)
	}
	instructions, err := schema.BoundPatterns(root)
	if err != nil {
		return nil, events.Invalid("", "the parameters use %w", err)
	}
	text, err := stdjson.Marshal(root)
	if err != nil {
		return nil, events.Invalid("", "the parameters are no JSON Schema: %w", err)
	}
	defer func() { // the library takes for granted what its own schema of schemas does not say
		if r := recover(); r != nil {
			err = events.Invalid("", "the parameters are no JSON Schema: %s", caught(r))
		}
	}()
	c := jsonschema.NewCompiler()
	c.LoadURL = func(string) (io.ReadCloser, error) { return nil, errRemote }
	c.Formats["regex"] = isPattern
	s := &Schema{work: &work{}, patterns: instructions}
	c.RegisterExtension("work", nil, s.work)
	if err := c.AddResource(nowhere, bytes.NewReader(text)); err != nil {
		return nil, events.Invalid("", "the parameters are no JSON Schema")
	}
	if s.rules, err = c.Compile(nowhere); err != nil {
		return nil, badSchema(err)
	}
	if deepest(s.rules) > maxInPlace {
		return nil, events.Invalid("", "the parameters apply more than %d schemas to one value, or go round in a circle", maxInPlace)
	}
	if err := s.work.bound(s.rules); err != nil {
		return nil, events.Invalid("", "the parameters use %w", err)
	}
	return s, nil
}

var errRemote = errors.New("a $ref or $schema that leads out of the schema; put what it names into $defs")

// badSchema says what is wrong with a schema.
func badSchema(err error) error {
	var invalid *jsonschema.ValidationError
	var circle jsonschema.InfiniteLoopError
	switch {
	case errors.Is(err, errRemote):
		return events.Invalid("", "the parameters have %w", errRemote)
	case errors.As(err, &circle):
		return events.Invalid("", "the parameters have a $ref that leads back to itself")
	case errors.As(err, &invalid):
		first := problems(invalid)[0]
		return events.Invalid(first.Path, "the parameters are no JSON Schema: %s", first)
	}
	return events.Invalid("", "the parameters are no JSON Schema: they cannot be compiled; look at each $ref and $id")
}

// takesObject reports whether a schema's type lets an object through.
func takesObject(t any) bool {
	switch t := t.(type) {
	case nil:
		return true
	case string:
		return t == "object"
	case []any:
		return slices.Contains(t, any("object"))
	}
	return false
}

// mend takes out of a schema the patterns that Go does not know, and refuses
// what cannot be bounded.
func mend(tree any) error {
	switch t := tree.(type) {
	case []any:
		for _, v := range t {
			if err := mend(v); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, v := range t {
			text, isText := v.(string)
			switch {
			case isText && (name == "$dynamicRef" || name == "$recursiveRef"):
				return fmt.Errorf("%s, which is not known here; use $ref", name)
			case isText && name == "pattern" && !compiles(text):
				delete(t, name)
			case name == "patternProperties":
				if patterns, ok := v.(map[string]any); ok {
					for pattern := range patterns {
						if !compiles(pattern) {
							delete(patterns, pattern)
						}
					}
				}
			}
			if err := mend(v); err != nil {
				return err
			}
		}
	}
	return nil
}

// compiles reports whether Go knows a pattern, however large it is.
func compiles(expression string) bool {
	_, err := pattern.Size(expression)
	var large *pattern.SizeError
	return err == nil || errors.As(err, &large)
}

// isPattern is the format regex: an expression that comes as an argument, and is
// not compiled for that.
func isPattern(value any) bool {
	text, ok := value.(string)
	if !ok {
		return true
	}
	_, err := pattern.Size(text)
	return err == nil
}

func caught(r any) string {
	if _, ok := r.(tooMuch); ok {
		return "the schema asks for too much work"
	}
	return "the schema is one that the checker does not understand"
}
