package events

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// MergePatch applies a JSON Merge Patch (RFC 7396) to a document. An empty document counts as
// null. Members keep their order, new ones are appended in the patch's order, and untouched
// values keep their bytes, so that the same patch on the same document always yields the same
// bytes. The error says that one of the two is not JSON.
func MergePatch(doc, patch []byte) ([]byte, error) {
	merged, err := mergeValue(nil, doc, patch)
	if err != nil {
		return nil, fmt.Errorf("merge patch: %w", err)
	}
	return merged, nil
}

// member is one name and value of an object, as raw JSON.
type member struct{ name, value JSON }

func mergeValue(b []byte, doc, patch JSON) ([]byte, error) {
	if jsontext.Value(patch).Kind() != '{' { // it replaces the document
		if !jsontext.Value(patch).IsValid() {
			return nil, errNotJSON
		}
		return append(b, bytes.TrimSpace(patch)...), nil
	}
	changes, err := members(patch)
	if err != nil {
		return nil, err
	}
	var have []member
	if jsontext.Value(doc).Kind() == '{' {
		if have, err = members(doc); err != nil {
			return nil, err
		}
	}
	b = append(b, '{')
	first := true
	put := func(name, old, change JSON) error {
		if jsontext.Value(change).Kind() == 'n' {
			return nil // removed, or never present
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(append(b, name...), ':')
		if change == nil {
			b = append(b, old...)
			return nil
		}
		var err error
		b, err = mergeValue(b, old, change)
		return err
	}
	for _, m := range have {
		var change JSON
		if i := slices.IndexFunc(changes, m.same); i >= 0 {
			change = changes[i].value
		}
		if err := put(m.name, m.value, change); err != nil {
			return nil, err
		}
	}
	for _, c := range changes {
		if slices.ContainsFunc(have, c.same) {
			continue
		}
		if err := put(c.name, nil, c.value); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

// same reports whether two members have the same name, regardless of escapes.
func (m member) same(o member) bool {
	if bytes.Equal(m.name, o.name) {
		return true
	}
	if bytes.IndexByte(m.name, '\\') < 0 && bytes.IndexByte(o.name, '\\') < 0 {
		return false
	}
	a, _ := jsontext.AppendUnquote(nil, m.name) // the decoder has read both
	b, _ := jsontext.AppendUnquote(nil, o.name)
	return bytes.Equal(a, b)
}

var errNotJSON = errors.New("not a JSON value")

// members splits an object, keeping its order.
func members(object JSON) ([]member, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(object))
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	var out []member
	for dec.PeekKind() != '}' {
		name, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		name = name.Clone()
		value, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		out = append(out, member{JSON(name), bytes.Clone(value)})
	}
	_, err := dec.ReadToken()
	return out, err
}
