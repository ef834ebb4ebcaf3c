package schema

import (
	"fmt"
	"reflect"
	"strings"
)

// Description describes one field by its type and its tag, for the documentation.
type Description struct {
	Name     string // qualified: item.role, commands[].command
	Type     string
	Required bool
	Doc      string
	// Holds is the struct type of the object, or of the objects in the list; nil for other types.
	Holds reflect.Type
}

// Describe returns the fields of a struct, those of nested structs after their own. The error
// names the field with an invalid tag.
func Describe(value any) ([]Description, error) {
	sh, err := shapes{}.of(reflect.TypeOf(value))
	if err != nil {
		return nil, err
	}
	return sh.describe("", nil), nil
}

// describe lists the fields below prefix. It stops at a struct that contains itself.
func (sh *shape) describe(prefix string, around []*shape) []Description {
	for _, s := range around {
		if s == sh {
			return nil
		}
	}
	around = append(around[:len(around):len(around)], sh)
	var out []Description
	for i := range sh.fields {
		f := &sh.fields[i]
		name := prefix + f.name
		inner, r := name, &f.rule
		if r.kind == list {
			inner, r = name+"[]", r.items
		}
		d := Description{Name: name, Type: f.typeWords(), Required: f.required, Doc: f.doc}
		if r.kind == record {
			d.Holds = r.shape.of
		}
		out = append(out, d)
		if r.kind == record {
			out = append(out, r.shape.describe(inner+".", around)...)
		}
	}
	return out
}

// typeWords describes the type of a value in a few words. A pattern is described by its name.
func (r *rule) typeWords() string {
	words := ""
	switch {
	case r.enum != nil:
		words = "one of " + strings.Join(r.enum, ", ")
	case r.pattern != "":
		words = r.pattern
	case r.kind == text:
		words = "text" + limits(r.minLength, r.maxLength)
	case r.kind == flag:
		words = "boolean"
	case r.kind == whole || r.kind == wide:
		words = "integer" + limits(r.minimum, r.maximum)
	case r.kind == real:
		words = "number" + limits(r.minimum, r.maximum)
	case r.kind == anything && !r.object:
		words = "any JSON"
	case r.kind == list:
		words = "list" + limits(r.minItems, r.maxItems) + " of " + r.items.typeWords()
	default:
		words = "object"
	}
	if r.nullable {
		words += " or null"
	}
	return words
}

// limits describes the bounds of a number, or of the length of a text or a list.
func limits[N int | int64](least, most *N) string {
	switch {
	case least != nil && most != nil:
		return fmt.Sprintf(" %d-%d", *least, *most)
	case most != nil:
		return fmt.Sprintf(" ≤ %d", *most)
	case least != nil:
		return fmt.Sprintf(" ≥ %d", *least)
	}
	return ""
}

// Pattern is a named pattern of strings.
type Pattern struct{ Name, Doc, Expression string }

// Patterns returns the named patterns that the descriptions use, in a fixed order.
func Patterns() []Pattern {
	var out []Pattern
	for _, name := range patternNames() {
		out = append(out, Pattern{name, strings.TrimPrefix(describePattern(name), "must be "), expression(name)})
	}
	return out
}
