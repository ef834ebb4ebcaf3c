package documents

import "github.com/skein-threads/skein/events"

// BlockSize is how many places of a thread one block of its counts of messages
// covers. A list passes over whole blocks by their counts, and over the rest of
// one by its pages, so that any offset costs the same.
const BlockSize = 32 * PageSize

// Bounds of the counts.
const (
	maxBlocks = 1 << 20
	// deep is the class of every depth from it on.
	deep = 8
)

// messageClass gives the place of a kind of messages in a block of counts: by
// depth, by context (the thread's default one or another) and by whether they
// are silent.
func messageClass(depth int64, foreign, silent bool) int {
	class := int(min(max(depth, 0), deep)) * 4
	if foreign {
		class += 2
	}
	if silent {
		class++
	}
	return class
}

// countMessage adds to a count of a thread's messages. A block ends with its last
// count that is not 0, so that the same messages give the same bytes.
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

// MessageFilter says which messages a list shows.
type MessageFilter struct {
	Silent   bool   // silent ones too
	MaxDepth int64  // none nested deeper; negative: any
	Context  string // only those of this context; empty: of any
	Default  string // the thread's default context
}

// Count gives how many messages of a block match. Not exact: the pages of the
// block must be looked at.
func (f MessageFilter) Count(block []int64) (n int64, exact bool) {
	exact = true
	for class, count := range block {
		depth, foreign, silent := int64(class/4), class&2 != 0, class&1 != 0
		if count == 0 || silent && !f.Silent || f.MaxDepth >= 0 && depth > f.MaxDepth || f.Context != "" && foreign == (f.Context == f.Default) {
			continue
		}
		n += count
		if depth == deep && f.MaxDepth >= deep || f.Context != "" && foreign {
			exact = false // it holds several depths, or several contexts
		}
	}
	return n, exact
}

// Match reports whether an entry, which is shown, is a message that matches.
func (f MessageFilter) Match(p *Page, e *Entry) bool {
	return events.ShowsAlone(e.Type, e.Part) && (f.Silent || !e.Silent) && (f.MaxDepth < 0 || e.Depth <= f.MaxDepth) &&
		(f.Context == "" || p.ContextOf(e) == f.Context)
}
