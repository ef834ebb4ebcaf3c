package schema

import (
	"math/bits"
	"reflect"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/skein-threads/skein/events"
)

// storedEvents returns the shapes of stored events by type: the envelope with the data of that
// type. Checking an event by its shape is about fifty times as fast as by its JSON Schema, which
// is generated from the same shape. A shape may reject valid events: on a rejection the JSON
// Schema decides, and says what is wrong. A test and a fuzz test check that the schemas accept
// everything that the shapes accept.
func (all shapes) storedEvents() (map[events.Type]*shape, error) {
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

// fastValid reports whether the shape check alone proves e valid. If it returns false, the JSON
// Schema decides.
func (v *Validator) fastValid(e *events.Event) bool {
	row, known := events.Lookup(e.Type)
	if _, unknown := e.Data.(events.Unknown); unknown || !known || e.Raw() == nil || e.Schema() != row.Schema() {
		return false
	}
	s := scanner{raw: e.Raw()}
	return v.storedEvents[e.Type].fastValid(&s) && s.kind() == 0
}

// fastValid reports whether the next value, which must be valid JSON, satisfies the shape as a
// stored document: unknown members may be present, and null and "" do not mean absent. A false
// result does not prove it invalid.
func (sh *shape) fastValid(s *scanner) bool {
	if sh.constraint != "" || s.kind() != '{' {
		return false
	}
	var (
		seen    uint64
		hint    int
		scratch [48]byte
	)
	for s.begin(); s.next('}'); {
		i := sh.find(s.readString(scratch[:]), hint)
		if i < 0 {
			s.value()
			continue
		}
		f := &sh.fields[i]
		if f.nullable && s.kind() == 'n' {
			s.value()
		} else if !f.fastValid(s) {
			return false
		}
		seen |= 1 << i
		hint = i + 1
	}
	return bits.OnesCount64(sh.required&^seen) == 0
}

// maxSafeDigits is the length up to which a number is certainly in range.
const maxSafeDigits = 15

func (r *rule) fastValid(s *scanner) bool {
	switch kind := s.kind(); r.kind {
	case text:
		return kind == '"' && r.fastValidText(s)
	case flag:
		s.value()
		return kind == 't' || kind == 'f'
	case whole, wide:
		n, ok := events.ParseInt(s.value())
		return ok && (r.minimum == nil || int64(n) >= *r.minimum) && (r.maximum == nil || int64(n) <= *r.maximum)
	case real:
		raw := s.value()
		n, err := strconv.ParseFloat(string(raw), 64)
		return err == nil && len(raw) <= maxSafeDigits && (kind == '-' || kind >= '0' && kind <= '9') &&
			(r.minimum == nil || n >= float64(*r.minimum)) && (r.maximum == nil || n <= float64(*r.maximum))
	case anything:
		s.value()
		return !r.object || kind == '{'
	case record:
		return r.shape.fastValid(s)
	case list:
		return kind == '[' && r.fastValidList(s)
	}
	return false
}

func (r *rule) fastValidText(s *scanner) bool {
	var scratch [64]byte
	raw := s.readString(scratch[:])
	if r.enum != nil {
		return slices.ContainsFunc(r.enum, func(known string) bool { return known == string(raw) })
	}
	if r.match == nil && r.minLength == nil && r.maxLength == nil {
		return true
	}
	return (r.match == nil || r.match(string(raw))) && (!r.boundsLength() || r.hasLength(utf8.RuneCount(raw)))
}

func (r *rule) fastValidList(s *scanner) bool {
	n := 0
	for s.begin(); s.next(']'); n++ {
		if !r.items.fastValid(s) {
			return false
		}
	}
	return (r.minItems == nil || n >= *r.minItems) && (r.maxItems == nil || n <= *r.maxItems)
}
