package schema

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// kind is the JSON type of a value.
type kind uint8

const (
	text     kind = iota + 1 // string, or a named string
	flag                     // bool
	whole                    // *int64, up to 2^53-1 either way
	wide                     // int64, within its tag's bounds
	real                     // float64
	anything                 // events.JSON
	record                   // a struct
	list                     // a slice
)

// rule says which values are valid.
type rule struct {
	kind     kind
	pointer  bool // the Go value is a pointer: "" and false are values
	required bool
	nullable bool // required, but may be null
	object   bool // of the kind anything: only an object is valid

	pattern string            // the name of a pattern of events
	match   func(string) bool // the check of that pattern
	enum    []string

	minLength, maxLength *int // in code points
	minItems, maxItems   *int
	minimum, maximum     *int64

	shape *shape // of a record
	items *rule  // of a list
}

// tag parses a field's `schema:"..."`.
func (r *rule) tag(tag string) error {
	for word := range strings.SplitSeq(tag, ",") {
		name, value, _ := strings.Cut(word, "=")
		var err error
		switch name {
		case "":
		case "required":
			r.required = true
		case "nullable":
			r.nullable = true
		case "object":
			r.object = true
		case "pattern":
			r.pattern = value
			if r.match = matcher(value); r.match == nil {
				err = fmt.Errorf("unknown pattern %q", value)
			}
		case "items": // the pattern of each string of a list
			if r.kind != list {
				err = fmt.Errorf("only a list has items")
			} else {
				err = r.items.tag("pattern=" + value)
			}
		case "minLength":
			r.minLength, err = count(value)
		case "maxLength":
			r.maxLength, err = count(value)
		case "minItems":
			r.minItems, err = count(value)
		case "maxItems":
			r.maxItems, err = count(value)
		case "minimum":
			r.minimum, err = bound(value)
		case "maximum":
			r.maximum, err = bound(value)
		default:
			err = fmt.Errorf("unknown word %q", name)
		}
		if err != nil {
			return err
		}
	}
	return r.fits()
}

// fits refuses a tag that does not apply to the type of its field, and so would have no effect.
func (r *rule) fits() error {
	ofText := r.pattern != "" || r.minLength != nil || r.maxLength != nil
	ofNumber := r.minimum != nil || r.maximum != nil
	ofList := r.minItems != nil || r.maxItems != nil
	number := r.kind == whole || r.kind == wide || r.kind == real
	if ofText && r.kind != text || ofNumber && !number || ofList && r.kind != list ||
		r.object && r.kind != anything || r.nullable && !(r.pointer && r.required) {
		return fmt.Errorf("the rule does not fit the type")
	}
	return nil
}

func count(s string) (*int, error) {
	n, err := strconv.Atoi(s)
	if err == nil && n < 0 {
		err = fmt.Errorf("%d is below 0", n)
	}
	return &n, err
}

func bound(s string) (*int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	return &n, err
}

// enumerated is implemented by named string types with a closed set of values.
type enumerated interface{ Enum() []string }

func enumOf(t reflect.Type) []string {
	if e, ok := reflect.Zero(t).Interface().(enumerated); ok {
		return e.Enum()
	}
	return nil
}
