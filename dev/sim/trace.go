package sim

import (
	"fmt"
	"hash"
	"strings"
)

// trace is what happened in a run: always as a hash, so that two runs of a seed
// can be compared, and as text if somebody wants to read it.
type trace struct {
	hash hash.Hash64
	text *strings.Builder
}

func (t *trace) note(words ...string) {
	for _, w := range words {
		_, _ = t.hash.Write([]byte(w))
		_, _ = t.hash.Write([]byte{0})
	}
	if t.text != nil {
		fmt.Fprintln(t.text, words)
	}
}

// Trace keeps what happens as text.
func (r *Run) Trace() *strings.Builder {
	r.trace.text = &strings.Builder{}
	return r.trace.text
}

// Digest tells whether two runs did the same.
func (r *Run) Digest() uint64 { return r.trace.hash.Sum64() }

// Steps returns how many things have happened.
func (r *Run) Steps() int64 { return r.steps.Load() }
