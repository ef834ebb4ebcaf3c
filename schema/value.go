package schema

import (
	"reflect"
	"slices"
	"unicode/utf8"
)

// accepts reports whether a value of the shape's type is obviously valid as JSON that omits its zero
// values. If false, encode it and read that, which says what is wrong.
func (sh *shape) accepts(v reflect.Value) bool {
	if sh.checked {
		return false
	}
	for i := range sh.fields {
		f := &sh.fields[i]
		value := v.Field(f.index[0])
		for _, i := range f.index[1:] {
			value = value.Field(i)
		}
		if value.IsZero() {
			if f.required {
				return false
			}
			continue
		}
		if f.pointer {
			value = value.Elem()
		}
		if !f.rule.accepts(value) {
			return false
		}
	}
	return true
}

func (r *rule) accepts(v reflect.Value) bool {
	switch r.kind {
	case text:
		return r.acceptsText(v.String())
	case flag:
		return true
	case whole, wide:
		n := v.Int()
		return n >= -maxInt && n <= maxInt && (r.minimum == nil || n >= *r.minimum) && (r.maximum == nil || n <= *r.maximum)
	case anything:
		raw := v.Bytes()
		return !r.object || len(raw) > 0 && raw[0] == '{'
	case record:
		return r.shape.accepts(v)
	case list:
		for i := range v.Len() {
			if !r.items.accepts(v.Index(i)) {
				return false
			}
		}
		return (r.minItems == nil || v.Len() >= *r.minItems) && (r.maxItems == nil || v.Len() <= *r.maxItems)
	}
	return false
}

func (r *rule) acceptsText(s string) bool {
	if r.enum != nil {
		return slices.Contains(r.enum, s)
	}
	return utf8.ValidString(s) && (r.match == nil || r.match(s)) && (!r.boundsLength() || r.hasLength(utf8.RuneCountInString(s)))
}
