package schema

import (
	"reflect"
	"strings"
)

// Description describes one field by its type and its tag, for the documentation.
type Description struct {
	Name     string // qualified: item.role, commands[].command
	Type     string
	Required bool
	Doc      string
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

// describe omits the repetition when a struct contains itself.
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
		out = append(out, Description{Name: name, Type: f.typeWords(), Required: f.required, Doc: f.doc})
		r := &f.rule
		if r.kind == list {
			name, r = name+"[]", r.items
		}
		if r.kind == record {
			out = append(out, r.shape.describe(name+".", around)...)
		}
	}
	return out
}

// typeWords describes a value in few words; patterns by their name.
func (r *rule) typeWords() string {
	words := strings.TrimPrefix(r.words(), "must be ")
	if r.pattern != "" && r.enum == nil {
		words = "text, " + r.pattern
	} else if r.kind == anything && !r.object {
		words = "any JSON"
	} else if r.kind == list {
		words = strings.Replace(words, "a list", "list", 1) + ", each " + r.items.typeWords()
	}
	for _, article := range []string{"a ", "an "} {
		words = strings.TrimPrefix(words, article)
	}
	if r.nullable {
		words += ", or null"
	}
	return words
}

// Pattern is a named pattern of strings.
type Pattern struct{ Name, Doc, Expression string }

// Patterns returns the named patterns that the descriptions use, in a fixed order.
func Patterns() []Pattern {
	var out []Pattern
	for _, name := range patternNames() {
		out = append(out, Pattern{name, strings.TrimPrefix(wanted(name), "must be "), expression(name)})
	}
	return out
}
