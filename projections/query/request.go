package query

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
)

// decode decodes the body of a query. Its fields may be at the top, as in
// {"threadId":...}, under "data" like those of a command, or in both.
func (q *Queries) decode(name string, body []byte) (any, error) {
	flat, inData, err := flatten(body)
	if err != nil {
		return nil, err
	}
	data, err := q.schema.DecodeQuery(name, flat)
	if err == nil {
		return data, nil
	}
	e := *events.AsError(err)
	if e.Details != nil {
		details := *e.Details
		field, _, _ := strings.Cut(strings.TrimPrefix(details.Path, "/"), "/")
		if inData[field] {
			details.Path = "/data" + details.Path
		}
		e.Details = &details
	}
	return nil, &e
}

// flatten returns the fields of a body as one object, and the names of those that were under data.
func flatten(body []byte) (flat []byte, inData map[string]bool, err error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return []byte("{}"), nil, nil
	}
	if !bytes.Contains(body, []byte(`"data"`)) && jsontext.Value(body).Kind() == '{' {
		return body, nil, nil // unchanged; the schema refuses it
	}
	top, err := members(body, "")
	if err != nil {
		return nil, nil, err
	}
	out := []byte{'{'}
	known := map[string]bool{}
	inData = map[string]bool{}
	var under []member
	for _, m := range top {
		if m.name == "data" {
			if under, err = members(m.value, "/data"); err != nil {
				return nil, nil, err
			}
			continue
		}
		known[m.name] = true
		out = m.append(out)
	}
	for _, m := range under {
		if known[m.name] {
			return nil, nil, events.Invalid(string(jsontext.Pointer("/data").AppendToken(m.name)), "%.80q is given twice: at the top and under data", m.name)
		}
		inData[m.name] = true
		out = m.append(out)
	}
	return append(out, '}'), inData, nil
}

// member is a field of a JSON object, undecoded.
type member struct {
	name   string
	quoted events.JSON
	value  events.JSON
}

func (m member) append(out []byte) []byte {
	if len(out) > 1 {
		out = append(out, ',')
	}
	out = append(out, m.quoted...)
	out = append(out, ':')
	return append(out, m.value...)
}

// members returns the fields of an object.
func members(raw []byte, path string) ([]member, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(raw))
	first, err := dec.ReadToken()
	if err != nil {
		return nil, events.Invalid(path, "this is not JSON: %w", err)
	}
	if first.Kind() != '{' {
		return nil, events.Invalid(path, "an object is needed")
	}
	var list []member
	for dec.PeekKind() != '}' {
		quoted, err := dec.ReadValue()
		if err != nil {
			return nil, events.Invalid(path, "this is not JSON: %w", err)
		}
		m := member{quoted: bytes.Clone(quoted)}
		if name, err := jsontext.AppendUnquote(nil, m.quoted); err == nil {
			m.name = string(name)
		}
		value, err := dec.ReadValue()
		if err != nil {
			return nil, events.Invalid(path, "this is not JSON: %w", err)
		}
		m.value = bytes.Clone(value)
		list = append(list, m)
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, events.Invalid(path, "this is not JSON: %w", err)
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, events.Invalid(path, "there is more after the object")
	}
	return list, nil
}
