package jsonplan

import (
	"encoding"
	stdjson "encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
)

// field is one field of a struct.
type field struct {
	name   string // ,"name":
	within int    // the embedded struct that has it, or -1
	at     int
	omit   func(reflect.Value) bool // nil: it is always written
	append writer
}

// fieldsOf returns the fields of a struct in the order in which they are written. ok is false
// if the struct uses what a plan does not cover.
func fieldsOf(t reflect.Type, structs map[reflect.Type]*writer) (fields []field, ok bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, tagged := f.Tag.Lookup("json")
		switch {
		case tag == "-":
		case f.Anonymous && tagged, !f.Anonymous && tagged && !f.IsExported():
			return nil, false
		case f.Anonymous:
			inner, ok := embedded(f.Type, structs)
			if !ok {
				return nil, false
			}
			for n := range inner {
				inner[n].within = i
			}
			fields = append(fields, inner...)
		case f.IsExported():
			one, ok := fieldOf(f, tag, structs)
			if !ok {
				return nil, false
			}
			one.at = i
			fields = append(fields, one)
		}
	}
	names := map[string]bool{}
	for _, f := range fields {
		if names[f.name] {
			return nil, false
		}
		names[f.name] = true
	}
	return fields, true
}

// embedded returns the fields of an embedded struct, which has no embedded one itself.
func embedded(t reflect.Type, structs map[reflect.Type]*writer) ([]field, bool) {
	if t.Kind() != reflect.Struct || encodesItself(t) || t.Implements(reflect.TypeFor[Appender]()) {
		return nil, false
	}
	inner, ok := fieldsOf(t, structs)
	return inner, ok && !slices.ContainsFunc(inner, func(f field) bool { return f.within >= 0 })
}

// fieldOf returns a field by its tag.
func fieldOf(f reflect.StructField, tag string, structs map[reflect.Type]*writer) (field, bool) {
	name, options, _ := strings.Cut(tag, ",")
	if name == "" {
		name = f.Name
	}
	if strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) {
		return field{}, false
	}
	out := field{name: `,"` + name + `":`, within: -1, append: compile(f.Type, structs)}
	switch options {
	case "":
	case "omitzero":
		if _, has := reflect.PointerTo(f.Type).MethodByName("IsZero"); has {
			return field{}, false
		}
		out.omit = reflect.Value.IsZero
	case "omitempty":
		if k := f.Type.Kind(); encodesItself(f.Type) || f.Type.Implements(reflect.TypeFor[Appender]()) || k != reflect.Slice && k != reflect.Map && k != reflect.String {
			return field{}, false
		}
		out.omit = func(v reflect.Value) bool { return v.Len() == 0 }
	default:
		return field{}, false
	}
	return out, true
}

// encodesItself reports whether the type has a method by which the library encodes it.
func encodesItself(t reflect.Type) bool {
	if t.Kind() == reflect.Interface {
		return true
	}
	to := reflect.PointerTo(t)
	for _, method := range []reflect.Type{
		reflect.TypeFor[json.MarshalerTo](), reflect.TypeFor[json.Marshaler](), reflect.TypeFor[stdjson.Marshaler](),
		reflect.TypeFor[encoding.TextAppender](), reflect.TypeFor[encoding.TextMarshaler](),
	} {
		if to.Implements(method) {
			return true
		}
	}
	return false
}
