package schema

import (
	"errors"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/schema/arguments"
)

// MaxDepth bounds the nesting of objects and lists in a request. What Skein derives from a request
// is never nested deeper, and JSON readers of other languages accept 64 levels by default.
const MaxDepth = arguments.MaxDepth

// checkSyntax returns an error unless raw is one JSON value: valid UTF-8, no repeated name in
// an object, not too deep.
func checkSyntax(raw []byte) *events.Error {
	switch {
	case len(raw) == 0:
		return refuse("nothing was sent; send a JSON object")
	case !jsontext.Value(raw).IsValid():
		return broken(raw)
	case nestsDeeper(raw, MaxDepth):
		return refuse("objects and lists lie more than %d deep in one another", MaxDepth)
	}
	return nil
}

// broken returns the error that says where and why raw is not JSON.
func broken(raw []byte) *events.Error {
	// jsontext.Value's methods do not return the reason; a decoder that reads to the end does.
	dec := jsontext.NewDecoder(strings.NewReader(string(raw)))
	_, err := dec.ReadValue()
	if err == nil {
		return refuse("something follows the JSON value, at byte %d", dec.InputOffset())
	}
	var syntax *jsontext.SyntacticError
	if !errors.As(err, &syntax) {
		return refuse("not JSON: the text ends too early, at byte %d", len(raw))
	}
	e := refuse("not JSON: %v at byte %d", syntax.Err, syntax.ByteOffset)
	if errors.Is(err, jsontext.ErrDuplicateName) {
		e = refuse("the name stands twice, again at byte %d", syntax.ByteOffset)
	}
	e.Details.Path = clip(syntax.JSONPointer)
	return e
}
