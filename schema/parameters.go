package schema

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/skein-threads/skein/events"
)

// Parameters is the JSON Schema of a tool's arguments. It does not change once
// made: all goroutines may share one.
type Parameters struct{ compiled *jsonschema.Schema }

// parametersID is the base of a schema that names none. Nothing is ever fetched.
const parametersID = "urn:skein:parameters"

// ParseParameters reads the JSON Schema (2020-12) of a tool's arguments, which
// are an object. It fetches nothing: a schema that refers to another document is
// refused. The error is an invalid_request with a path in raw.
func ParseParameters(raw events.JSON) (*Parameters, error) {
	if err := checkSyntax(raw); err != nil {
		return nil, said(err)
	}
	p, err := parseParameters(raw)
	return p, said(err)
}

func parseParameters(raw events.JSON) (*Parameters, *events.Error) {
	if jsontext.Value(raw).Kind() != '{' {
		return nil, refuse("must be an object")
	}
	if d := member(raw, "$schema"); d != nil && plainText(d) != dialect {
		return nil, in("$schema", refuse("must be %s, or be left out", dialect))
	}
	if plainText(member(raw, "type")) != "object" {
		return nil, in("type", refuse("must be object: a tool's arguments are one"))
	}
	tree, refusal := exactNumbers(raw)
	if refusal != nil {
		return nil, refusal
	}
	if _, err := BoundPatterns(tree); err != nil {
		return nil, refuse("uses %v", err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.Draft = jsonschema.Draft2020
	compiler.LoadURL = func(url string) (io.ReadCloser, error) { return nil, &foreignError{url} }
	if err := compiler.AddResource(parametersID, bytes.NewReader(raw)); err != nil {
		return nil, refuse("is no JSON Schema: %v", err)
	}
	compiled, err := compiler.Compile(parametersID)
	if err == nil {
		return &Parameters{compiled}, nil
	}
	var foreign *foreignError
	var mismatch *jsonschema.ValidationError
	switch {
	case errors.As(err, &foreign):
		return nil, refuse("%v", foreign)
	case errors.As(err, &mismatch):
		leaf := firstLeaf(mismatch)
		e := refuse("is no JSON Schema: %s", leaf.Message)
		e.Details.Path = unescape(leaf.InstanceLocation)
		return nil, e
	}
	var broken *jsonschema.SchemaError
	if errors.As(err, &broken) {
		err = broken.Err
	}
	return nil, refuse("is no JSON Schema: %v", err)
}

// foreignError says that a schema refers to a document outside itself.
type foreignError struct{ url string }

func (e *foreignError) Error() string {
	return fmt.Sprintf("refers to %.128s; write what it says into this schema", e.url)
}

// Check holds the arguments of a call to the schema. The error is an
// invalid_request with a path in the arguments.
func (p *Parameters) Check(arguments events.JSON) error {
	if err := checkSyntax(arguments); err != nil {
		return said(err)
	}
	instance, refusal := exactNumbers(arguments)
	if refusal != nil {
		return said(refusal)
	}
	err := p.compiled.Validate(instance)
	if err == nil {
		return nil
	}
	var mismatch *jsonschema.ValidationError
	if !errors.As(err, &mismatch) { // a schema that leads back to itself
		return said(refuse("the schema cannot judge this: %v", err))
	}
	leaf := firstLeaf(mismatch)
	e := refuse("%s", leaf.Message)
	e.Details.Path = unescape(leaf.InstanceLocation)
	return said(e)
}

// numberBytes bounds a number: the library makes a fraction of whole numbers of
// it, and 1e999999999 would fill the memory.
const numberBytes = 400

// exactNumbers reads JSON for the schema library, and refuses a number that is
// too much for it.
func exactNumbers(raw events.JSON) (any, *events.Error) {
	v, err := parseBy(raw, func(n events.JSON) (stdjson.Number, *events.Error) {
		digits, exponent, _ := strings.Cut(strings.ToLower(string(n)), "e")
		power, err := strconv.Atoi(strings.TrimLeft(exponent, "+-"))
		if exponent == "" {
			power, err = 0, nil
		}
		if err != nil || len(digits) > numberBytes || power > numberBytes {
			return "", refuse("the number has too many digits; %d are allowed", numberBytes)
		}
		return stdjson.Number(n), nil
	})
	if err != nil {
		return nil, asked(err)
	}
	return v, nil
}

// plainText gives a JSON string's text, and nothing of any other value.
func plainText(v events.JSON) string {
	if jsontext.Value(v).Kind() != '"' {
		return ""
	}
	text, _ := jsontext.AppendUnquote(nil, v)
	return string(text)
}
