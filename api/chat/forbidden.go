package chat

import (
	"bytes"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// permitted returns JSON without the members that clients of the AI SDK refuse, as they break off at
// them: __proto__, and a constructor that has a prototype. The thread keeps them.
func permitted(raw []byte) []byte {
	if !bytes.Contains(raw, []byte("proto")) && !bytes.Contains(raw, []byte(`\u`)) {
		return raw
	}
	out, _, err := permittedValue(raw)
	if err != nil { // it is not JSON
		return raw
	}
	return out
}

// permittedValue also reports whether the value is an object with a prototype.
func permittedValue(raw jsontext.Value) (out jsontext.Value, prototype bool, err error) {
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
			if err := json.Unmarshal(member, &name); err != nil {
				return nil, false, err
			}
		}
		value, err := d.ReadValue()
		if err != nil {
			return nil, false, err
		}
		value, has, err := permittedValue(value.Clone())
		if err != nil {
			return nil, false, err
		}
		prototype = prototype || kind == '{' && name == "prototype"
		if name == "__proto__" || name == "constructor" && has {
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
