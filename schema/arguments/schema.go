package arguments

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/pattern"
)

// Limits of the size of a schema and of the arguments of a call, in bytes.
const (
	MaxSchema    = 256 << 10
	MaxArguments = 1 << 20
)

// nowhere is the location of every schema. Nothing can be fetched from it.
const nowhere = "https://schema.invalid/schema.json"

// Schema is a compiled JSON Schema of arguments. It is safe for concurrent use.
type Schema struct {
	mu    sync.Mutex // serializes checks, which count their work in shared fields
	rules *jsonschema.Schema
	work  *work

	patterns int // the total number of instructions
}

// Check checks the arguments of a call against the schema. Empty arguments mean {}. A nil Schema
// accepts any object. The error is an *Error, the same for the same arguments.
func (s *Schema) Check(arguments events.JSON) (err error) {
	if len(arguments) == 0 {
		arguments = events.JSON("{}")
	}
	if len(arguments) > MaxArguments {
		return argumentsError("they have %d bytes, and %d are allowed", len(arguments), MaxArguments)
	}
	value, err := readTree(arguments)
	if err != nil {
		return argumentsError("%v", err)
	}
	if _, ok := value.(map[string]any); !ok {
		return argumentsError("they must be a JSON object")
	}
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.work.left, s.work.steps = maxWork, maxSteps
	if s.work.names*nameBytes(value) > maxSteps {
		return argumentsError("they cannot be checked: %s", caught(tooMuch{}))
	}
	defer func() {
		if r := recover(); r != nil {
			err = argumentsError("they cannot be checked: %s", caught(r))
		}
	}()
	return reasons(s.rules.Validate(value))
}

// Dialect is the JSON Schema that Skein's own schemas and definitions are written in.
const Dialect = "https://json-schema.org/draft/2020-12/schema"

// SchemaError describes what is wrong with the JSON Schema of arguments.
type SchemaError struct {
	Path   string // a JSON pointer into the schema; empty: the schema as a whole
	Reason string // what the schema does, as "is no JSON Schema: ..."
}

func (e *SchemaError) Error() string {
	if e.Path == "" {
		return "the schema of the parameters " + e.Reason
	}
	return "the schema of the parameters " + e.Reason + " (at " + e.Path + ")"
}

// bad returns a SchemaError about the schema as a whole.
func bad(format string, args ...any) *SchemaError {
	return &SchemaError{Reason: fmt.Sprintf(format, args...)}
}

// Compile compiles a JSON Schema of arguments from any author. The error is an *events.Error:
// payload_too_large, or an invalid_request with a *SchemaError.
func Compile(raw events.JSON) (*Schema, error) { return compileLimited(raw, false) }

// CompileDefinition is Compile for a schema that was written for Skein. It must be of [Dialect]
// and of type object, and Go must be able to compile each of its patterns.
func CompileDefinition(raw events.JSON) (*Schema, error) { return compileLimited(raw, true) }

func compileLimited(raw events.JSON, strict bool) (*Schema, error) {
	if len(raw) > MaxSchema {
		return nil, events.TooLarge("the schema of a tool's parameters", int64(len(raw)), MaxSchema)
	}
	s, err := compile(raw, strict)
	if err != nil {
		return nil, events.Invalid(err.Path, "%w", err)
	}
	return s, nil
}

func compile(raw events.JSON, strict bool) (_ *Schema, wrong *SchemaError) {
	root, wrong := readSchema(raw, strict)
	if wrong != nil {
		return nil, wrong
	}
	instructions, err := BoundPatterns(root)
	if err != nil {
		return nil, bad("uses %v", err)
	}
	text, err := stdjson.Marshal(root)
	if err != nil {
		return nil, bad("is no JSON Schema: %v", err)
	}
	defer func() { // the library can panic on schemas that its meta-schema accepts
		if r := recover(); r != nil {
			wrong = bad("is no JSON Schema: %s", caught(r))
		}
	}()
	c := jsonschema.NewCompiler()
	if strict {
		c.Draft = jsonschema.Draft2020
	}
	c.LoadURL = func(url string) (io.ReadCloser, error) { return nil, &remoteError{url} }
	c.Formats["regex"] = isPattern
	s := &Schema{work: &work{}, patterns: instructions}
	c.RegisterExtension("work", nil, s.work)
	if err := c.AddResource(nowhere, bytes.NewReader(text)); err != nil {
		return nil, bad("is no JSON Schema")
	}
	if s.rules, err = c.Compile(nowhere); err != nil {
		return nil, notCompiled(err)
	}
	if deepest(s.rules) > maxInPlace {
		return nil, bad("applies more than %d schemas to one value, or leads back to itself", maxInPlace)
	}
	if err := s.work.limitPatterns(s.rules); err != nil {
		return nil, bad("uses %v", err)
	}
	return s, nil
}

// readSchema reads a schema and prepares it for the library.
func readSchema(raw events.JSON, strict bool) (map[string]any, *SchemaError) {
	tree, err := readTree(raw)
	var number *numberError
	switch {
	case errors.As(err, &number):
		return nil, &SchemaError{number.path, "is no JSON Schema: the number is out of range"}
	case err != nil:
		return nil, bad("is no JSON Schema: %v", err)
	}
	root, ok := tree.(map[string]any)
	switch d := root["$schema"]; {
	case !ok:
		return nil, bad("must be an object")
	case strict && d != nil && d != Dialect:
		return nil, &SchemaError{"/$schema", "must be " + Dialect + ", or be left out"}
	case strict && root["type"] != "object":
		return nil, &SchemaError{"/type", "must be object: a tool's arguments are one"}
	case !allowsObject(root["type"]):
		return nil, &SchemaError{"/type", "must take an object: what a model sends is one"}
	}
	if err := checkTree(root, !strict); err != nil {
		return nil, bad("uses %v", err)
	}
	return root, nil
}

// remoteError means that a schema refers to another document.
type remoteError struct{ url string }

func (e *remoteError) Error() string {
	return fmt.Sprintf("refers to %.128s, which leads out of the schema; put what it names into $defs", oneLine(e.url))
}

// notCompiled explains why the library does not compile a schema.
func notCompiled(err error) *SchemaError {
	var remote *remoteError
	var invalid *jsonschema.ValidationError
	var circle jsonschema.InfiniteLoopError
	switch {
	case errors.As(err, &remote):
		return bad("%v", remote)
	case errors.As(err, &circle):
		return bad("has a $ref that leads back to itself")
	case errors.As(err, &invalid):
		first := problems(invalid)[0]
		return &SchemaError{first.Path, "is no JSON Schema: " + first.Reason}
	}
	return bad("is no JSON Schema: it cannot be compiled; look at each $ref and $id")
}

// allowsObject reports whether a schema's type allows an object.
func allowsObject(t any) bool {
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

// checkTree refuses keywords with a cost that cannot be bounded. If drop is set, it removes
// patterns that Go cannot compile.
func checkTree(tree any, drop bool) error {
	switch t := tree.(type) {
	case []any:
		for _, v := range t {
			if err := checkTree(v, drop); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, v := range t {
			text, isText := v.(string)
			switch {
			case isText && (name == "$dynamicRef" || name == "$recursiveRef"):
				return fmt.Errorf("%s, which is not known here; use $ref", name)
			case isText && name == "pattern" && drop && !compiles(text):
				delete(t, name)
			case name == "patternProperties" && drop:
				if patterns, ok := v.(map[string]any); ok {
					maps.DeleteFunc(patterns, func(pattern string, _ any) bool { return !compiles(pattern) })
				}
			}
			if err := checkTree(v, drop); err != nil {
				return err
			}
		}
	}
	return nil
}

// compiles reports whether Go can parse a pattern, whatever its size.
func compiles(expression string) bool {
	_, err := pattern.Size(expression)
	var large *pattern.SizeError
	return err == nil || errors.As(err, &large)
}

// isPattern implements the format regex. The expression is only parsed, since it comes from the
// arguments.
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
