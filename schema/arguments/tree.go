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

// MaxDepth is how deep objects and lists of a request, of arguments and of a schema may
// lie in one another. What Skein makes of a request is never deeper, and 64 is what the
// JSON readers of other languages take unless told otherwise.
const MaxDepth = 64

// readTree reads JSON as the schema library wants it, numbers as text, and
// refuses what would cost it too much.
func readTree(raw events.JSON) (any, error) {
	dec := jsontext.NewDecoder(strings.NewReader(string(raw)))
	tree, err := readNext(dec)
	if err != nil {
		return nil, err
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON value")
	}
	return tree, nil
}

func readNext(dec *jsontext.Decoder) (any, error) {
	kind := dec.PeekKind()
	if kind == '0' {
		raw, err := dec.ReadValue()
		if err != nil {
			return nil, notJSON(err)
		}
		return number(events.JSON(raw), dec)
	}
	token, err := dec.ReadToken()
	if err != nil {
		return nil, notJSON(err)
	}
	if dec.StackDepth() > MaxDepth {
		return nil, fmt.Errorf("objects and lists lie more than %d deep in one another", MaxDepth)
	}
	switch kind {
	case '"':
		return token.String(), nil
	case 't', 'f':
		return token.Bool(), nil
	case '{':
		out := map[string]any{}
		for dec.PeekKind() != '}' {
			token, err := dec.ReadToken()
			if err != nil {
				return nil, notJSON(err)
			}
			name := token.String() // the token is gone with the next read
			if out[name], err = readNext(dec); err != nil {
				return nil, err
			}
		}
		_, err := dec.ReadToken()
		return out, notJSON(err)
	case '[':
		out := []any{}
		for dec.PeekKind() != ']' {
			v, err := readNext(dec)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		_, err := dec.ReadToken()
		return out, notJSON(err)
	}
	return nil, nil
}

// notJSON says where bytes stop being JSON.
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

// numberError says that a number is too large.
type numberError struct{ path string }

func (e *numberError) Error() string { return e.path + ": the number is out of range" }

// number returns a number without an exponent and with few digits: the library
// turns it into a fraction of whole numbers, and 1e999999999 into a full memory.
func number(raw events.JSON, dec *jsontext.Decoder) (any, error) {
	if len(raw) <= 60 && !strings.ContainsAny(string(raw), "eE") {
		return stdjson.Number(raw), nil
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return nil, &numberError{line(string(dec.StackPointer()))}
	}
	return stdjson.Number(strconv.FormatFloat(f, 'f', -1, 64)), nil
}
