package arguments

import (
	"bytes"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// HasPrototype reports whether JSON has a member that programs in JavaScript take for the prototype of
// an object: __proto__, or a constructor that has a prototype. The clients of the AI SDK break off at a
// stream that has one, wherever it is. So no call of a tool has them in its arguments, and no chat sends
// them. What is not JSON has none.
func HasPrototype(raw []byte) bool {
	if !may(raw) {
		return false
	}
	w := walk{}
	_, _, err := w.value(raw)
	return err == nil && w.found
}

// WithoutPrototype returns JSON without such members. What has none is returned as it is, and so is
// what is not JSON.
func WithoutPrototype(raw []byte) []byte {
	if !may(raw) {
		return raw
	}
	w := walk{}
	out, _, err := w.value(raw)
	if err != nil || !w.found {
		return raw
	}
	return out
}

// may reports whether JSON may have such a member; most has none.
func may(raw []byte) bool {
	return bytes.Contains(raw, []byte("proto")) || bytes.Contains(raw, []byte(`\u`))
}

// walk looks at a value and all that is in it.
type walk struct{ found bool }

// value returns a value without such members, and reports whether it is an object with a prototype.
func (w *walk) value(raw jsontext.Value) (out jsontext.Value, prototype bool, err error) {
	kind := raw.Kind()
	if kind != '{' && kind != '[' {
		return raw, false, nil
	}
	d := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if _, err := d.ReadToken(); err != nil {
		return nil, false, err
	}
	out = append(out, byte(kind))
	for d.PeekKind() != kind+2 { // } and ]
		var name string
		var member jsontext.Value
		if kind == '{' {
			if member, err = d.ReadValue(); err != nil {
				return nil, false, err
			}
			member = member.Clone()
			if err := json.Unmarshal(member, &name, jsontext.AllowInvalidUTF8(true)); err != nil {
				return nil, false, err
			}
		}
		value, err := d.ReadValue()
		if err != nil {
			return nil, false, err
		}
		value, has, err := w.value(value.Clone())
		if err != nil {
			return nil, false, err
		}
		prototype = prototype || kind == '{' && name == "prototype"
		if name == "__proto__" || name == "constructor" && has {
			w.found = true
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		if kind == '{' {
			out = append(append(out, member...), ':')
		}
		out = append(out, value...)
	}
	return append(out, byte(kind+2)), prototype, nil
}
