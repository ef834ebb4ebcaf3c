package compact

import (
	"bytes"
	"math/bits"
	"slices"
	"unsafe"
)

// table holds packed values. A Go map has room for eight from the first one on, which most
// threads would never fill, so up to eight values are a list.
type table[P any] struct {
	few  []row[P]
	many map[ID]P // nil while few suffices
}

type row[P any] struct {
	id ID
	p  P
}

const mostFew = 8

func (t *table[P]) get(id ID) (p P, ok bool) {
	if t.many != nil {
		p, ok = t.many[id]
		return p, ok
	}
	if i := t.place(id); i >= 0 {
		return t.few[i].p, true
	}
	return p, false
}

// place returns the place of an id among few, -1 if it is not there.
func (t *table[P]) place(id ID) int {
	for i := range t.few {
		if t.few[i].id == id {
			return i
		}
	}
	return -1
}

func (t *table[P]) set(id ID, p P) {
	if t.many == nil {
		if i := t.place(id); i >= 0 {
			t.few[i].p = p
			return
		}
		if len(t.few) < mostFew {
			t.few = append(t.few, row[P]{id, p})
			return
		}
		t.many = map[ID]P{}
		for _, r := range t.few {
			t.many[r.id] = r.p
		}
		t.few = nil
	}
	t.many[id] = p
}

func (t *table[P]) remove(id ID) {
	if t.many != nil {
		delete(t.many, id)
	} else if i := t.place(id); i >= 0 {
		last := len(t.few) - 1
		t.few[i] = t.few[last]
		t.few = t.few[:last]
	}
}

// all calls yield with each value, in no order. A value that is there may be set meanwhile.
func (t *table[P]) all(yield func(ID, P) bool) {
	for i := range t.few {
		if !yield(t.few[i].id, t.few[i].p) {
			return
		}
	}
	for id, p := range t.many {
		if !yield(id, p) {
			return
		}
	}
}

func (t *table[P]) len() int { return len(t.few) + len(t.many) }

// bytes estimates the memory of the table, in bytes.
func (t *table[P]) bytes() int64 {
	if n := len(t.few); n > 0 {
		return int64(unsafe.Sizeof(row[P]{})) << bits.Len(uint(n-1))
	}
	return Room[ID, P](len(t.many))
}

// sorted returns the values in the order of their ids.
func (t *table[P]) sorted() []*row[P] {
	rows := make([]row[P], 0, t.len())
	for id, p := range t.all {
		rows = append(rows, row[P]{id, p})
	}
	out := make([]*row[P], len(rows))
	for i := range rows {
		out[i] = &rows[i]
	}
	slices.SortFunc(out, func(a, b *row[P]) int { return bytes.Compare(a.id[:], b.id[:]) })
	return out
}
