package schema

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/skein-threads/skein/events"
)

// shape is a struct type as the JSON Schemas and the decoder see it.
type shape struct {
	of         reflect.Type
	name       string // of the Go type
	fields     []field
	required   uint64 // a bit for each required field
	checked    bool   // the type has Check
	constraint string // the rules of Check as JSON Schema
}

// field is a member of a JSON object.
type field struct {
	name, doc string
	index     []int // of the Go struct's field, through embedded ones
	rule
}

// checker is implemented by structs with rules that span fields. They also implement constrained,
// which returns the same rules as JSON Schema.
type checker interface{ Check() error }

type constrained interface{ Constraint() string }

// shapes holds the shapes of the types seen so far, so that a type may contain itself.
type shapes map[reflect.Type]*shape

// of returns the shape of a struct type. The error names a field whose type or tag is not
// supported.
func (all shapes) of(t reflect.Type) (*shape, error) {
	if s, ok := all[t]; ok {
		return s, nil
	}
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("%s is not a struct", t)
	}
	s := &shape{of: t, name: t.Name()}
	all[t] = s
	zero := reflect.New(t).Interface()
	_, s.checked = zero.(checker)
	if c, ok := zero.(constrained); ok {
		s.constraint = c.Constraint()
	}
	if s.checked && s.constraint == "" {
		return nil, fmt.Errorf("%s has Check but no Constraint; add the same rules as JSON Schema", t)
	}
	if err := all.collect(s, t, nil); err != nil {
		return nil, err
	}
	if len(s.fields) > 64 {
		return nil, fmt.Errorf("%s has %d fields, and 64 is the limit", t, len(s.fields))
	}
	for i := range s.fields {
		if s.fields[i].required {
			s.required |= 1 << i
		}
	}
	return s, nil
}

// collect adds the fields of t, which is embedded at path. The fields of embedded structs are
// added in place.
func (all shapes) collect(s *shape, t reflect.Type, path []int) error {
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(path[:len(path):len(path)], i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct {
			if err := all.collect(s, f.Type, index); err != nil {
				return err
			}
			continue
		}
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			return fmt.Errorf("%s.%s has no name in JSON", t, f.Name)
		}
		if s.find([]byte(name), 0) >= 0 {
			return fmt.Errorf("%s has two fields %s", t, name)
		}
		r, err := all.rule(f.Type)
		if err == nil {
			err = r.tag(f.Tag.Get("schema"))
		}
		if err != nil {
			return fmt.Errorf("%s.%s: %w", t, f.Name, err)
		}
		s.fields = append(s.fields, field{name: name, doc: f.Tag.Get("doc"), index: index, rule: r})
	}
	return nil
}

// rule returns the rule of a Go type, before the field's tag narrows it.
func (all shapes) rule(t reflect.Type) (rule, error) {
	if t == reflect.TypeFor[events.JSON]() {
		return rule{kind: anything}, nil
	}
	switch t.Kind() {
	case reflect.String:
		return rule{kind: text, enum: enumOf(t)}, nil
	case reflect.Bool:
		return rule{kind: flag}, nil
	case reflect.Int64:
		return rule{kind: wide}, nil
	case reflect.Float64:
		return rule{kind: real}, nil
	case reflect.Pointer:
		r, err := all.rule(t.Elem())
		if r.pointer || r.kind == anything || r.kind == list {
			return rule{}, fmt.Errorf("a pointer to %s is not supported", t.Elem())
		}
		r.pointer = true
		if r.kind == wide { // an optional number: bounded to what JSON readers represent exactly
			r.kind = whole
		}
		return r, err
	case reflect.Struct:
		s, err := all.of(t)
		return rule{kind: record, shape: s}, err
	case reflect.Slice:
		items, err := all.rule(t.Elem())
		if items.pointer {
			return rule{}, fmt.Errorf("a list of pointers is not supported")
		}
		return rule{kind: list, items: &items}, err
	}
	return rule{}, fmt.Errorf("the type %s is not supported", t)
}

// find returns the index of the field called name, -1 if there is none. It looks at hint first,
// because most documents have the fields in order.
func (s *shape) find(name []byte, hint int) int {
	for i := hint; i < len(s.fields); i++ {
		if s.fields[i].name == string(name) {
			return i
		}
	}
	for i := range min(hint, len(s.fields)) {
		if s.fields[i].name == string(name) {
			return i
		}
	}
	return -1
}
