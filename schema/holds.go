package schema

import (
	"math/bits"
	"reflect"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/skein-threads/skein/events"
)

// written returns the shapes of stored events by type: the envelope, with the data of that
// type in it. The JSON Schemas are written from them. Validating an event by its shape is some
// fifty times as fast. What a shape does not accept, valid or not, is left to the schemas,
// which are authoritative and say what is wrong; a test and a fuzz test hold that the schemas
// accept whatever the shapes accept.
func (all shapes) written() (map[events.Type]*shape, error) {
	around, err := all.of(reflect.TypeFor[envelope]())
	if err != nil {
		return nil, err
	}
	out := map[events.Type]*shape{}
	for _, row := range events.Catalog() {
		data, err := all.of(reflect.TypeOf(row.New()))
		if err != nil {
			return nil, err
		}
		sh := &shape{name: around.name, fields: slices.Clone(around.fields), required: around.required}
		for i := range sh.fields {
			switch f := &sh.fields[i]; f.name {
			case "data":
				f.kind, f.shape = record, data
			case "specversion": // these three are the envelope's Constraint
				f.match = func(s string) bool { return s == "1.0" }
			case "datacontenttype":
				f.match = func(s string) bool { return s == "application/json" }
			case "source":
				f.match = isSource
			}
		}
		out[row.Type] = sh
	}
	return out, nil
}

// plainly reports whether an event's bytes obviously satisfy the schemas. If false, the
// schemas must be asked.
func (v *Validator) plainly(e *events.Event) bool {
	row, known := events.Lookup(e.Type)
	if _, unknown := e.Data.(events.Unknown); unknown || !known || e.Raw() == nil || e.Schema() != row.Schema() {
		return false
	}
	s := scanner{raw: e.Raw()}
	return v.written[e.Type].holds(&s) && s.kind() == 0
}

// holds reports whether the next value, which is valid JSON, obviously satisfies an open
// schema of the shape: other members may be present, and null and "" are not absent values.
func (sh *shape) holds(s *scanner) bool {
	if sh.constraint != "" || s.kind() != '{' {
		return false
	}
	var (
		seen    uint64
		hint    int
		scratch [48]byte
	)
	for s.enter(); s.more('}'); {
		i := sh.find(s.said(scratch[:]), hint)
		if i < 0 {
			s.value()
			continue
		}
		f := &sh.fields[i]
		if f.nullable && s.kind() == 'n' {
			s.value()
		} else if !f.holds(s) {
			return false
		}
		seen |= 1 << i
		hint = i + 1
	}
	return bits.OnesCount64(sh.required&^seen) == 0
}

// mostDigits is the length up to which a number is certainly in range.
const mostDigits = 15

func (r *rule) holds(s *scanner) bool {
	switch kind := s.kind(); r.kind {
	case text:
		return kind == '"' && r.holdsText(s)
	case flag:
		s.value()
		return kind == 't' || kind == 'f'
	case whole, wide:
		n, ok := events.ParseInt(s.value())
		return ok && (r.minimum == nil || int64(n) >= *r.minimum) && (r.maximum == nil || int64(n) <= *r.maximum)
	case real:
		raw := s.value()
		n, err := strconv.ParseFloat(string(raw), 64)
		return err == nil && len(raw) <= mostDigits && (kind == '-' || kind >= '0' && kind <= '9') &&
			(r.minimum == nil || n >= float64(*r.minimum)) && (r.maximum == nil || n <= float64(*r.maximum))
	case anything:
		s.value()
		return !r.object || kind == '{'
	case record:
		return r.shape.holds(s)
	case list:
		return kind == '[' && r.holdsList(s)
	}
	return false
}

func (r *rule) holdsText(s *scanner) bool {
	var scratch [64]byte
	raw := s.said(scratch[:])
	if r.enum != nil {
		return slices.ContainsFunc(r.enum, func(known string) bool { return known == string(raw) })
	}
	if r.match == nil && r.minLength == nil && r.maxLength == nil {
		return true
	}
	return (r.match == nil || r.match(string(raw))) && (!r.boundsLength() || r.hasLength(utf8.RuneCount(raw)))
}

func (r *rule) holdsList(s *scanner) bool {
	n := 0
	for s.enter(); s.more(']'); n++ {
		if !r.items.holds(s) {
			return false
		}
	}
	return (r.minItems == nil || n >= *r.minItems) && (r.maxItems == nil || n <= *r.maxItems)
}
