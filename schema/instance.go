package schema

import (
	stdjson "encoding/json"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
)

// parse decodes JSON for the schema library, which needs numbers as text so that no digit is
// lost.
func parse(raw []byte) (any, error) {
	dec := jsontext.NewDecoder(strings.NewReader(string(raw)))
	v, err := parseNext(dec)
	if err != nil {
		return nil, err
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON value")
	}
	return v, nil
}

func parseNext(dec *jsontext.Decoder) (any, error) {
	kind := dec.PeekKind()
	if kind == '0' {
		raw, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		return number(events.JSON(raw)), nil
	}
	token, err := dec.ReadToken()
	if err != nil {
		return nil, err
	}
	switch kind {
	case '"':
		return token.String(), nil
	case 't', 'f':
		return token.Bool(), nil
	case '{':
		out := map[string]any{}
		for dec.PeekKind() != '}' {
			name, err := dec.ReadToken()
			if err != nil {
				return nil, err
			}
			key := name.String() // the token is gone with the next read
			if out[key], err = parseNext(dec); err != nil {
				return nil, err
			}
		}
		_, err := dec.ReadToken()
		return out, err
	case '[':
		out := []any{}
		for dec.PeekKind() != ']' {
			v, err := parseNext(dec)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		_, err := dec.ReadToken()
		return out, err
	}
	return nil, nil
}

// number returns a number for the schema library, which turns it into a fraction of integers.
// A number that would cost too much (1e999999999) is replaced by one that our schemas, which
// bound numbers by small integers, treat the same.
func number(raw events.JSON) stdjson.Number {
	if n, ok := events.ParseInt(raw); ok {
		return stdjson.Number(strconv.FormatInt(n, 10))
	}
	plain := len(raw) <= 40 && !strings.ContainsAny(string(raw), "eE")
	f, _ := strconv.ParseFloat(string(raw), 64)
	if plain {
		return stdjson.Number(raw)
	}
	if math.Abs(f) < maxInt {
		if f == math.Trunc(f) { // and not an integer: ParseInt would have accepted it
			return "0.5"
		}
		return stdjson.Number(strconv.FormatFloat(f, 'f', -1, 64))
	}
	if math.Signbit(f) {
		return "-1e99"
	}
	return "1e99"
}
