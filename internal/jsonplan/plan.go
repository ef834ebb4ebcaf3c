// Package jsonplan encodes structs to the same bytes as package json of
// github.com/go-json-experiment, deterministic, in a fraction of the time: what is known of a
// type is worked out once, and no state of an encoder is kept while its values are written.
//
// # What it promises
//
//   - The bytes, and the errors, are those of json.Marshal with json.Deterministic. What a
//     plan does not cover is encoded by that package.
//   - A plan never changes and is safe for concurrent use.
//
// # What may enter
//
// Encoding that is faster than the library's and makes no difference. Decoding, and formats of
// our own, belong elsewhere.
package jsonplan

import (
	stdjson "encoding/json"
	"reflect"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Plan is how the values of one type are encoded.
type Plan struct {
	of     reflect.Type
	append writer
}

// writer appends a value to b.
type writer func(b []byte, v reflect.Value) ([]byte, error)

// Of returns the plan of a type.
func Of(t reflect.Type) *Plan { return &Plan{of: t, append: compile(t, map[reflect.Type]*writer{})} }

// Append appends the value, which is of the plan's type or a pointer to it, to b.
func (p *Plan) Append(b []byte, value any) ([]byte, error) {
	v := reflect.ValueOf(value)
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.IsValid() && v.Type() == p.of {
		if out, err := p.append(b, v); err == nil {
			return out, nil
		}
	}
	return whole(b, value)
}

// whole encodes a value with the library.
func whole(b []byte, value any) ([]byte, error) {
	raw, err := json.Marshal(value, json.Deterministic(true))
	return append(b, raw...), err
}

// Appender is implemented by a type that encodes itself. Its JSON is valid, without spaces.
type Appender interface {
	AppendJSON(b []byte) ([]byte, error)
}

// compile returns the writer of a type. structs are those that were met: one may be part of itself.
func compile(t reflect.Type, structs map[reflect.Type]*writer) writer {
	switch {
	case t.Kind() == reflect.Pointer:
		return pointer(compile(t.Elem(), structs))
	case t == reflect.TypeFor[stdjson.RawMessage]():
		return writeRaw
	case t.Implements(reflect.TypeFor[Appender]()):
		return func(b []byte, v reflect.Value) ([]byte, error) { return v.Interface().(Appender).AppendJSON(b) }
	case encodesItself(t):
		return writeWhole
	}
	switch t.Kind() {
	case reflect.String:
		return writeString
	case reflect.Bool:
		return func(b []byte, v reflect.Value) ([]byte, error) { return strconv.AppendBool(b, v.Bool()), nil }
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return func(b []byte, v reflect.Value) ([]byte, error) { return strconv.AppendInt(b, v.Int(), 10), nil }
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return func(b []byte, v reflect.Value) ([]byte, error) { return strconv.AppendUint(b, v.Uint(), 10), nil }
	case reflect.Slice:
		if t.Elem().Kind() != reflect.Uint8 { // bytes are encoded as text
			return list(compile(t.Elem(), structs))
		}
	case reflect.Struct:
		if met := structs[t]; met != nil {
			return func(b []byte, v reflect.Value) ([]byte, error) { return (*met)(b, v) }
		}
		own := writer(writeWhole)
		structs[t] = &own
		if fields, ok := fieldsOf(t, structs); ok {
			own = object(fields)
		}
		return own
	}
	return writeWhole
}

func writeWhole(b []byte, v reflect.Value) ([]byte, error) { return whole(b, v.Interface()) }

func writeString(b []byte, v reflect.Value) ([]byte, error) {
	s := v.String()
	if !plain(s) {
		return jsontext.AppendQuote(b, s)
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"'), nil
}

// plain reports whether s is ASCII that needs no escapes in JSON.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			return false
		}
	}
	return true
}

func writeRaw(b []byte, v reflect.Value) ([]byte, error) {
	if v.IsNil() {
		return append(b, "null"...), nil
	}
	return jsontext.AppendFormat(b, v.Bytes())
}

func pointer(to writer) writer {
	return func(b []byte, v reflect.Value) ([]byte, error) {
		if v.IsNil() {
			return append(b, "null"...), nil
		}
		return to(b, v.Elem())
	}
}

func list(of writer) writer {
	return func(b []byte, v reflect.Value) (_ []byte, err error) {
		b = append(b, '[')
		for i := range v.Len() {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = of(b, v.Index(i)); err != nil {
				return b, err
			}
		}
		return append(b, ']'), nil
	}
}

func object(fields []field) writer {
	return func(b []byte, v reflect.Value) (_ []byte, err error) {
		begun := len(b)
		for i := range fields {
			f := &fields[i]
			in := v
			if f.within >= 0 {
				in = v.Field(f.within)
			}
			in = in.Field(f.at)
			if f.omit != nil && f.omit(in) {
				continue
			}
			b = append(b, f.name...)
			if b, err = f.append(b, in); err != nil {
				return b, err
			}
		}
		if len(b) == begun {
			return append(b, '{', '}'), nil
		}
		b[begun] = '{' // instead of the first field's comma
		return append(b, '}'), nil
	}
}
