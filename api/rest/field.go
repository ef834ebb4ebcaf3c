package rest

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
)

// field is a field of a query as a parameter.
type field struct {
	name     string
	kind     kind
	required bool
}

// kind is how a parameter is written.
type kind int

const (
	textKind kind = iota
	wholeKind
	flagKind
	listKind // of texts: separated by commas, or repeated
	atKind   // a version or a time
)

// fieldsOf returns the fields of a query's data, including the fields of embedded structs. Fields
// that no parameter can be are left out; a test shows that there are none.
func fieldsOf(data any) []field { return appendFields(nil, reflect.TypeOf(data)) }

func appendFields(list []field, t reflect.Type) []field {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			list = appendFields(list, f.Type)
			continue
		}
		if k, ok := kindOf(f.Type); ok && name != "-" {
			list = append(list, field{name: name, kind: k, required: strings.Contains(","+f.Tag.Get("schema")+",", ",required,")})
		}
	}
	return list
}

func kindOf(t reflect.Type) (kind, bool) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[events.At]():
		return atKind, true
	case t.Kind() == reflect.String:
		return textKind, true
	case t.Kind() == reflect.Int64:
		return wholeKind, true
	case t.Kind() == reflect.Bool:
		return flagKind, true
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.String:
		return listKind, true
	}
	return 0, false
}

// parse returns a parameter's values as JSON.
func (f field) parse(values []string) (jsontext.Value, error) {
	if f.kind == listKind {
		var list []string
		for _, v := range values {
			list = append(list, strings.Split(v, ",")...)
		}
		return f.encode(list)
	}
	if len(values) != 1 {
		return nil, events.Invalid("/"+f.name, "%s stands %d times in the query string; once is possible", f.name, len(values))
	}
	value := values[0]
	switch f.kind {
	case wholeKind:
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return nil, events.Invalid("/"+f.name, "%s is %.40q; it takes a whole number", f.name, value)
		}
		return f.encode(n)
	case flagKind:
		if value != "true" && value != "false" {
			return nil, events.Invalid("/"+f.name, "%s is %.40q; it takes true or false", f.name, value)
		}
		return jsontext.Value(value), nil
	case atKind:
		at := events.At{Time: value}
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			at = events.At{Version: &n}
		}
		if at.Check() != nil {
			return nil, events.Invalid("/"+f.name, "%s takes a version, or a time such as 2026-02-20T10:00:00.000Z", f.name)
		}
		return f.encode(at)
	default:
		return f.encode(value)
	}
}

func (f field) encode(v any) (jsontext.Value, error) {
	raw, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return nil, events.Invalid("/"+f.name, "%s must be valid UTF-8", f.name)
	}
	return raw, nil
}
