package events

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// KeyedValues is the object of a key-value state, ready to be changed: keys with values, some of which
// are lists to which values are pushed. The object is parsed once, and so are the lists that are pushed
// to, and it is encoded once, whatever the number of changes. Keys stay in the order in
// which they came, and untouched values keep their bytes, so that the same changes of the same
// object always yield the same bytes.
type KeyedValues struct {
	order []*keyedEntry          // some may be gone
	index map[string]*keyedEntry // by unquoted name
}

// keyedEntry is the value of a key: raw, or as a list once something was pushed to it.
type keyedEntry struct {
	name   []byte // quoted
	value  []byte
	list   [][]byte
	isList bool
	gone   bool
}

var errNotList = errors.New("not a list")

// ParseKeyedValues reads an object. An empty document and null count as {}.
func ParseKeyedValues(doc []byte) (*KeyedValues, error) {
	v := &KeyedValues{index: map[string]*keyedEntry{}}
	switch jsontext.Value(doc).Kind() {
	case '{':
	case 'n', 0:
		return v, nil
	default:
		return nil, errors.New("the state is not an object")
	}
	dec := jsontext.NewDecoder(bytes.NewReader(doc))
	if _, err := dec.ReadToken(); err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	for dec.PeekKind() != '}' {
		quoted, err := dec.ReadValue()
		if err != nil {
			return nil, fmt.Errorf("read state: %w", err)
		}
		quoted = quoted.Clone()
		key, err := jsontext.AppendUnquote(nil, quoted)
		if err != nil {
			return nil, fmt.Errorf("read state: %w", err)
		}
		value, err := dec.ReadValue()
		if err != nil {
			return nil, fmt.Errorf("read state: %w", err)
		}
		v.put(string(key), quoted, bytes.Clone(value))
	}
	return v, nil
}

// Len returns the number of keys.
func (v *KeyedValues) Len() int { return len(v.index) }

// Keys returns the keys, in their order.
func (v *KeyedValues) Keys() []string {
	keys := make([]string, 0, len(v.index))
	for _, e := range v.order {
		if !e.gone {
			name, _ := jsontext.AppendUnquote(nil, e.name) // which Parse or Set quoted
			keys = append(keys, string(name))
		}
	}
	return keys
}

// Value returns the value of a key, and reports whether it has one.
func (v *KeyedValues) Value(key string) ([]byte, bool) {
	e, ok := v.index[key]
	if !ok {
		return nil, false
	}
	return e.encode(nil), true
}

// Clear removes all keys.
func (v *KeyedValues) Clear() { v.order, v.index = nil, map[string]*keyedEntry{} }

// Delete removes a key, if it is there.
func (v *KeyedValues) Delete(key string) {
	if e, ok := v.index[key]; ok {
		e.gone = true
		delete(v.index, key)
	}
}

// Set sets the value of a key.
func (v *KeyedValues) Set(key string, value []byte) error {
	name, err := jsontext.AppendQuote(nil, key)
	if err != nil {
		return fmt.Errorf("key %.80q: %w", key, err)
	}
	v.put(key, name, value)
	return nil
}

func (v *KeyedValues) put(key string, name, value []byte) {
	e, ok := v.index[key]
	if !ok {
		e = &keyedEntry{name: name}
		v.index[key], v.order = e, append(v.order, e)
	}
	e.value, e.list, e.isList = value, nil, false
}

// Push appends a value to the list of a key, which it creates, and keeps the last most values;
// all if it is 0.
func (v *KeyedValues) Push(key string, value []byte, most int64) error {
	e, ok := v.index[key]
	if !ok {
		if err := v.Set(key, []byte("[]")); err != nil {
			return err
		}
		e = v.index[key]
	}
	if !e.isList {
		list, err := elements(e.value)
		if err != nil {
			return fmt.Errorf("push to key %.80q: its value is not a list; set it to one first", key)
		}
		e.value, e.list, e.isList = nil, list, true
	}
	e.list = append(e.list, value)
	if most > 0 && int64(len(e.list)) > most {
		e.list = e.list[int64(len(e.list))-most:]
	}
	return nil
}

// elements splits a list.
func elements(list []byte) ([][]byte, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(list))
	first, err := dec.ReadToken()
	if err != nil {
		return nil, err
	}
	if first.Kind() != '[' {
		return nil, errNotList
	}
	var out [][]byte
	for dec.PeekKind() != ']' {
		value, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		out = append(out, bytes.Clone(value))
	}
	_, err = dec.ReadToken()
	return out, err
}

// Keep removes all keys but these.
func (v *KeyedValues) Keep(keys []string) {
	wanted := make(map[string]bool, len(keys))
	for _, key := range keys {
		wanted[key] = true
	}
	for key := range v.index {
		if !wanted[key] {
			v.Delete(key)
		}
	}
}

// Encode returns the object.
func (v *KeyedValues) Encode() []byte {
	n := 2
	for _, e := range v.order {
		n += len(e.name) + len(e.value) + 4
		for _, one := range e.list {
			n += len(one) + 1
		}
	}
	b := append(make([]byte, 0, n), '{')
	for _, e := range v.order {
		if e.gone {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(b, e.name...), ':')
		b = e.encode(b)
	}
	return append(b, '}')
}

// encode appends the value.
func (e *keyedEntry) encode(b []byte) []byte {
	if !e.isList {
		return append(b, e.value...)
	}
	b = append(b, '[')
	return append(append(b, bytes.Join(e.list, []byte{','})...), ']')
}
