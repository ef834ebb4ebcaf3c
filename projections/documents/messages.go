package documents

import "github.com/skein-threads/skein/events"

// BlockSize is how many items of a thread one block of its counts of messages covers. A list
// skips whole blocks by their counts, and the rest by pages, so that every offset costs the
// same.
const BlockSize = 32 * PageSize

// Bounds of the counts.
const (
	maxBlocks = 1 << 20
	// the class of every depth from here on, see events.MessageClass
	deep = 8
)

// countMessage adds to a count of a thread's messages. A block ends with its last count that
// is not 0, so that the same messages yield the same bytes.
func countMessage(t *events.Thread, index int64, class int, by int64) {
	n := index / BlockSize
	if index < 0 || n >= maxBlocks {
		return
	}
	for int64(len(t.MessageBlocks)) <= n {
		t.MessageBlocks = append(t.MessageBlocks, []int64{})
	}
	b := t.MessageBlocks[n]
	for len(b) <= class {
		b = append(b, 0)
	}
	b[class] += by
	for len(b) > 0 && b[len(b)-1] == 0 {
		b = b[:len(b)-1]
	}
	t.MessageBlocks[n] = b
}

// MessageFilter selects messages for a list.
type MessageFilter struct {
	Silent   bool   // include silent ones
	MaxDepth int64  // none nested more deeply; negative: any
	Context  string // only those of this context; empty: of any
	Default  string // the thread's default context
}

// Count returns how many messages of a block match. If exact is false, the pages of the block
// must be read instead.
func (f MessageFilter) Count(block []int64) (n int64, exact bool) {
	exact = true
	for class, count := range block {
		depth, foreign, silent := int64(class/4), class&2 != 0, class&1 != 0
		if count == 0 || silent && !f.Silent || f.MaxDepth >= 0 && depth > f.MaxDepth || f.Context != "" && foreign == (f.Context == f.Default) {
			continue
		}
		n += count
		if depth == deep && f.MaxDepth >= deep || f.Context != "" && foreign {
			exact = false // it covers several depths, or several contexts
		}
	}
	return n, exact
}

// Match reports whether a shown entry is a message that matches.
func (f MessageFilter) Match(p *Page, e *Entry) bool {
	return events.ShowsAlone(e.Type, e.Part) && (f.Silent || !e.Silent) && (f.MaxDepth < 0 || e.Depth <= f.MaxDepth) &&
		(f.Context == "" || p.ContextOf(e) == f.Context)
}
