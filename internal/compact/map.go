package compact

import (
	"bytes"
	"cmp"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Map holds values by id. The zero value is empty and ready to use. C is a pointer to what packed
// values refer to, such as a [Pool]; all calls take the same one.
type Map[V Value[P, C], P Packed[V, C], C comparable] struct {
	open   map[string]V
	packed table[P]
	bytes  int64 // of open: ids, and what values refer to
}

// Value is a value of a Map.
type Value[P, C any] interface {
	// Pack returns the value without pointers; ok is false if something would be lost, or
	// if the value is one that Open is to list.
	Pack(C) (p P, ok bool)
	// Size returns the bytes that the value refers to.
	Size() int64
}

// Packed is a value without pointers.
type Packed[V, C any] interface {
	Unpack(C) V
}

// Get returns the value of an id.
func (m *Map[V, P, C]) Get(in C, id string) (v V, ok bool) {
	if v, ok = m.open[id]; ok || m.packed.len() == 0 {
		return v, ok
	}
	if key, fits := IDOf(id); fits {
		if p, has := m.packed.get(key); has {
			return p.Unpack(in), true
		}
	}
	return v, false
}

// Set sets the value of an id. Nothing is packed if in is nil.
func (m *Map[V, P, C]) Set(in C, id string, v V) {
	var none C
	if key, fits := IDOf(id); fits && in != none {
		if p, ok := v.Pack(in); ok {
			m.remove(id)
			m.packed.set(key, p)
			return
		}
		m.packed.remove(key)
	}
	m.remove(id)
	if m.open == nil {
		m.open = map[string]V{}
	}
	m.open[id] = v
	m.bytes += TextSize(id) + v.Size()
}

func (m *Map[V, P, C]) remove(id string) {
	if old, had := m.open[id]; had {
		m.bytes -= TextSize(id) + old.Size()
		delete(m.open, id)
	}
}

// All returns all values, in no order. Values may be set meanwhile.
func (m *Map[V, P, C]) All(in C) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for id, v := range m.open {
			if !yield(id, v) {
				return
			}
		}
		for key, p := range m.packed.all {
			if !yield(key.String(), p.Unpack(in)) {
				return
			}
		}
	}
}

// Open returns the ids of the values that are not packed, in no order.
func (m *Map[V, P, C]) Open() iter.Seq[string] { return maps.Keys(m.open) }

// Len returns the number of values.
func (m *Map[V, P, C]) Len() int { return len(m.open) + m.packed.len() }

// Bytes estimates the memory of the map, in bytes.
func (m *Map[V, P, C]) Bytes() int64 {
	return m.bytes + Room[string, V](len(m.open)) + m.packed.bytes()
}

// Object is how a Map is written and read as JSON: an object with a member for each value, in the
// order of their ids.
type Object[V Value[P, C], P Packed[V, C], C comparable] struct {
	Map *Map[V, P, C]
	In  C // as in the Map's methods
}

// IsZero reports whether there is no value.
func (o Object[V, P, C]) IsZero() bool { return o.Map.Len() == 0 }

// MarshalJSONTo writes the values.
func (o Object[V, P, C]) MarshalJSONTo(out *jsontext.Encoder) error {
	if err := out.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	open, packed := slices.Sorted(o.Map.Open()), o.Map.packed.sorted()
	var v V // encoded by pointer, so that it is not copied to the heap for each
	var name []byte
	for len(open) > 0 || len(packed) > 0 {
		var err error
		if len(packed) == 0 || len(open) > 0 && open[0] < string(packed[0].id.text()) {
			name, err = jsontext.AppendQuote(name[:0], open[0])
			v, open = o.Map.open[open[0]], open[1:]
		} else {
			name, err = jsontext.AppendQuote(name[:0], packed[0].id.text())
			v, packed = packed[0].p.Unpack(o.In), packed[1:]
		}
		if err == nil {
			err = out.WriteValue(name)
		}
		if err == nil {
			err = json.MarshalEncode(out, &v, json.Deterministic(true))
		}
		if err != nil {
			return err
		}
	}
	return out.WriteToken(jsontext.EndObject)
}

// UnmarshalJSONFrom adds the values that it reads.
func (o Object[V, P, C]) UnmarshalJSONFrom(in *jsontext.Decoder) error {
	if begin, err := in.ReadToken(); err != nil || begin.Kind() != jsontext.KindBeginObject {
		return cmp.Or(err, errors.New("it is not an object"))
	}
	for in.PeekKind() != jsontext.KindEndObject {
		token, err := in.ReadToken()
		if err != nil {
			return err
		}
		id := token.String()
		var v V
		if err := json.UnmarshalDecode(in, &v); err != nil {
			return err
		}
		o.Map.Set(o.In, id, v)
	}
	_, err := in.ReadToken()
	return err
}

// ID is an id of at most 40 bytes, filled with zeros. Ids that Skein makes have 36.
type ID [40]byte

// IDOf returns the ID of a text; ok is false if it is too long, or has a zero byte.
func IDOf(text string) (id ID, ok bool) {
	if len(text) > len(id) || strings.IndexByte(text, 0) >= 0 {
		return id, false
	}
	copy(id[:], text)
	return id, true
}

func (id ID) String() string { return string(id.text()) }

func (id *ID) text() []byte { return bytes.TrimRight(id[:], "\x00") }
