package arguments

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
)

// MaxDepth bounds the nesting of objects and lists in a request, in arguments and in a schema.
// What Skein derives from a request is never nested deeper, and JSON readers of other languages
// accept 64 levels by default.
const MaxDepth = 64

// readTree decodes arguments or a schema. It refuses nesting and numbers that would cost the
// library too much.
func readTree(raw events.JSON) (any, error) { return ReadTree(raw, MaxDepth, number) }

// ReadTree reads JSON for the schema library, which needs numbers as text so that no digit is
// lost; number converts them. Objects and lists may be nested up to deepest levels.
func ReadTree(raw []byte, deepest int, number func(raw events.JSON, at *jsontext.Decoder) (any, error)) (any, error) {
	r := treeReader{dec: jsontext.NewDecoder(strings.NewReader(string(raw))), deepest: deepest, number: number}
	tree, err := r.next()
	if err != nil {
		return nil, err
	}
	if _, err := r.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON value")
	}
	return tree, nil
}

// treeReader is one call of ReadTree.
type treeReader struct {
	dec     *jsontext.Decoder
	deepest int
	number  func(events.JSON, *jsontext.Decoder) (any, error)
}

// next reads the next value.
func (r *treeReader) next() (any, error) {
	kind := r.dec.PeekKind()
	if kind == '0' {
		raw, err := r.dec.ReadValue()
		if err != nil {
			return nil, notJSON(err)
		}
		return r.number(events.JSON(raw), r.dec)
	}
	token, err := r.dec.ReadToken()
	if err != nil {
		return nil, notJSON(err)
	}
	if r.dec.StackDepth() > r.deepest {
		return nil, fmt.Errorf("objects and lists lie more than %d deep in one another", r.deepest)
	}
	switch kind {
	case '"':
		return token.String(), nil
	case 't', 'f':
		return token.Bool(), nil
	case '{':
		out := map[string]any{}
		for r.dec.PeekKind() != '}' {
			token, err := r.dec.ReadToken()
			if err != nil {
				return nil, notJSON(err)
			}
			name := token.String() // the token is gone with the next read
			if out[name], err = r.next(); err != nil {
				return nil, err
			}
		}
		_, err := r.dec.ReadToken()
		return out, notJSON(err)
	case '[':
		out := []any{}
		for r.dec.PeekKind() != ']' {
			v, err := r.next()
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		_, err := r.dec.ReadToken()
		return out, notJSON(err)
	}
	return nil, nil
}

// notJSON returns an error that says where the bytes stop being valid JSON.
func notJSON(err error) error {
	var wrong *jsontext.SyntacticError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jsontext.ErrDuplicateName):
		return errors.New("an object has two members of one name")
	case errors.As(err, &wrong):
		return fmt.Errorf("not JSON at byte %d", wrong.ByteOffset)
	}
	return errors.New("not JSON")
}

// numberError means that a number is too large.
type numberError struct{ path string }

func (e *numberError) Error() string { return e.path + ": the number is out of range" }

// number returns a number without an exponent and with few digits. The library converts numbers to
// fractions of big integers, so 1e999999999 would exhaust memory.
func number(raw events.JSON, dec *jsontext.Decoder) (any, error) {
	if len(raw) <= 60 && !strings.ContainsAny(string(raw), "eE") {
		return stdjson.Number(raw), nil
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return nil, &numberError{oneLine(string(dec.StackPointer()))}
	}
	return stdjson.Number(strconv.FormatFloat(f, 'f', -1, 64)), nil
}
