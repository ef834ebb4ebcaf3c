package buckets

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/projections/documents"
)

// RemovalPrefix is the prefix of the keys of removals, in the bucket of threads.
const RemovalPrefix = "_.removal."

// Removal is a note in the bucket of threads that documents of deleted threads are removed. It is
// written before the markers of the threads, and stays until the removal is certainly on the disk:
// until then a killed server may restore the documents.
type Removal struct {
	Threads map[string]uint64 `json:"threads"` // by name: the sequence of the tombstone

	first, last uint64 // the lowest and the highest of these sequences
}

// Key returns the key of the note.
func (r Removal) Key() string { return fmt.Sprintf("%s%d-%d", RemovalPrefix, r.first, r.last) }

// Encode returns the note as it is stored.
func (r Removal) Encode() []byte {
	b, err := json.Marshal(r, json.Deterministic(true))
	if err != nil {
		panic(err) // it has only texts and numbers of ours
	}
	return b
}

// ParseRemoval decodes a note. ok is false if it contains a name that is not a thread's.
func ParseRemoval(raw []byte) (r Removal, ok bool) {
	if json.Unmarshal(raw, &r) != nil || r.Threads == nil {
		return Removal{}, false
	}
	for name := range r.Threads {
		if _, ok := documents.ParsePlace(documents.Threads, name); !ok || strings.ContainsAny(name, "*>") {
			return Removal{}, false
		}
	}
	return r, true
}

// removedTogether is the maximum number of threads in one note: about 100 KB.
const removedTogether = 1000

// Removals returns the notes for some deleted threads.
func Removals(deleted []documents.Deletion) (notes []Removal) {
	for len(deleted) > 0 {
		part := deleted[:min(len(deleted), removedTogether)]
		deleted = deleted[len(part):]
		r := Removal{Threads: make(map[string]uint64, len(part)), first: part[0].Seq, last: part[len(part)-1].Seq}
		for _, d := range part {
			r.Threads[documents.ThreadName(d.Tenant, d.Thread)] = d.Seq
		}
		notes = append(notes, r)
	}
	return notes
}
