package schema

import (
	"errors"
	"math/bits"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/skein-threads/skein/events"
)

// read decodes the next value into v, a struct of the shape's type, and validates it. It stops
// at the first fault. Any-JSON fields refer to bytes of the document rather than copies.
func (sh *shape) read(s *scanner, v reflect.Value) *events.Error {
	if s.kind() != '{' {
		return refuse("must be an object")
	}
	var (
		seen    uint64
		hint    int
		scratch [48]byte
	)
	for s.begin(); s.next('}'); {
		name := s.readString(scratch[:])
		i := sh.find(name, hint)
		if i < 0 {
			return in(clip(name), refuse("there is no such field; known are %s", sh.names()))
		}
		f := &sh.fields[i]
		present, err := f.read(s, v, f.index)
		if err != nil {
			return in(f.name, err)
		}
		if present {
			seen |= 1 << i
		}
		hint = i + 1
	}
	if missing := sh.required &^ seen; missing != 0 {
		f := &sh.fields[bits.TrailingZeros64(missing)]
		return in(f.name, refuse("is missing; it %s", f.words()))
	}
	if sh.checked {
		if err := v.Addr().Interface().(checker).Check(); err != nil {
			return refusalOf(err)
		}
	}
	return nil
}

// refusalOf returns the error of a Check as a refusal. The error may have a path of its own.
func refusalOf(err error) *events.Error {
	var e *events.Error
	if errors.As(err, &e) && e.Details != nil {
		return e
	}
	return refuse("%w", err)
}

func (sh *shape) names() string {
	names := make([]string, len(sh.fields))
	for i := range sh.fields {
		names[i] = sh.fields[i].name
	}
	return strings.Join(names, ", ")
}

// read decodes a field's value and reports whether it is present, since null and an empty string
// may mean absent.
func (f *field) read(s *scanner, v reflect.Value, index []int) (present bool, _ *events.Error) {
	kind := s.kind()
	if kind == 'n' && (f.kind != anything || f.object) {
		s.value()
		if f.required && !f.nullable {
			return false, refuse("is null; it %s", f.words())
		}
		return true, nil
	}
	if kind == '"' && f.kind == text && f.optionalText() && s.at+1 < len(s.raw) && s.raw[s.at+1] == '"' {
		s.value()
		return false, nil
	}
	target := v.Field(index[0])
	for _, i := range index[1:] {
		target = target.Field(i)
	}
	if f.pointer {
		fresh := reflect.New(target.Type().Elem())
		target.Set(fresh)
		target = fresh.Elem()
	}
	return true, f.value(s, target)
}

// optionalText reports whether "" means absent.
func (r *rule) optionalText() bool { return !r.required && !r.pointer }

// value decodes a value that does not mean absent.
func (r *rule) value(s *scanner, target reflect.Value) *events.Error {
	switch r.kind {
	case text:
		return r.text(s, target)
	case flag:
		switch string(s.value()) {
		case "true":
			target.SetBool(true)
		case "false":
			target.SetBool(false)
		default:
			return refuse("%s", r.words())
		}
	case whole, wide: // a wide number has bounds of its own, see closed
		n, ok := events.ParseInt(s.value())
		if !ok && r.maximum == nil {
			return refuse("%s; 2^53-1 is the limit", r.words())
		}
		if !ok || r.minimum != nil && n < *r.minimum || r.maximum != nil && n > *r.maximum {
			return refuse("%s", r.words())
		}
		target.SetInt(n)
	case real:
		n, err := strconv.ParseFloat(string(s.value()), 64)
		if err != nil || r.minimum != nil && n < float64(*r.minimum) || r.maximum != nil && n > float64(*r.maximum) {
			return refuse("%s", r.words())
		}
		target.SetFloat(n + 0) // -0 is 0
	case anything:
		if r.object && s.kind() != '{' {
			return refuse("%s", r.words())
		}
		target.SetBytes(s.value())
	case record:
		return r.shape.read(s, target)
	case list:
		return r.list(s, target)
	}
	return nil
}

func (r *rule) text(s *scanner, target reflect.Value) *events.Error {
	if s.kind() != '"' {
		return refuse("%s", r.words())
	}
	var scratch [64]byte
	raw := s.readString(scratch[:])
	if r.enum != nil {
		i := slices.IndexFunc(r.enum, func(known string) bool { return known == string(raw) })
		if i < 0 {
			return refuse("%s", r.words())
		}
		target.SetString(r.enum[i])
		return nil
	}
	value := string(raw)
	if r.match != nil && !r.match(value) {
		return refuse("%s", r.words())
	}
	if r.boundsLength() && !r.hasLength(utf8.RuneCountInString(value)) {
		return refuse("%s", r.words())
	}
	target.SetString(value)
	return nil
}

// boundsLength reports whether the length of a text is bounded.
func (r *rule) boundsLength() bool { return r.minLength != nil || r.maxLength != nil }

// hasLength reports whether a text may have n characters.
func (r *rule) hasLength(n int) bool {
	return (r.minLength == nil || n >= *r.minLength) && (r.maxLength == nil || n <= *r.maxLength)
}

func (r *rule) list(s *scanner, target reflect.Value) *events.Error {
	if s.kind() != '[' {
		return refuse("%s", r.words())
	}
	n := 0
	target.Set(reflect.MakeSlice(target.Type(), 0, 8))
	for s.begin(); s.next(']'); n++ {
		if r.maxItems != nil && n == *r.maxItems {
			return refuse("%s", r.words())
		}
		target.Grow(1)
		target.SetLen(n + 1)
		if s.kind() == 'n' && (r.items.kind != anything || r.items.object) {
			return at(n, refuse("is null; it %s", r.items.words()))
		}
		if err := r.items.value(s, target.Index(n)); err != nil {
			return at(n, err)
		}
	}
	if r.minItems != nil && n < *r.minItems {
		return refuse("%s", r.words())
	}
	return nil
}
