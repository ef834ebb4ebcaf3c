package eventlog

import (
	"bytes"
	"sync"

	"github.com/skein-threads/skein/events"
)

// Recent keeps the commits that this process appended last, as they were made, so that
// its own relay and runner need not decode them again. It is shared by the logs of one
// process, see [Config.Recent], and is safe for concurrent use.
//
// A commit is used only if the log returns the very same bytes for it. One that was never
// stored is never asked for, and is replaced in its turn.
type Recent struct {
	mu    sync.Mutex                // guards what follows
	kept  map[string]*events.Commit // by chain
	order [recentCommits]string     // the chains, by turn
	next  int                       // whose turn it is to be replaced
	old   int                       // the first in order that is kept
	bytes int                       // of the bodies
}

// What Recent keeps at most.
const (
	recentCommits = 8192
	recentBytes   = 32 << 20
)

// put keeps a commit that is about to be stored. It is not to be changed any
// more, but for its sequence.
func (r *Recent) put(c *events.Commit) {
	if r == nil || len(c.Body) > recentBytes/32 { // of one large thread, others would find nothing
		return
	}
	made := *c // the sequence is set while others read
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept == nil {
		r.kept = make(map[string]*events.Commit, recentCommits)
	}
	if r.kept[c.Chain] != nil { // it is tried again
		return
	}
	for r.order[r.next] != "" || r.bytes+len(made.Body) > recentBytes {
		r.drop()
	}
	r.kept[c.Chain], r.order[r.next] = &made, c.Chain
	r.bytes += len(made.Body)
	r.next = (r.next + 1) % recentCommits
}

// drop forgets the oldest commit.
func (r *Recent) drop() {
	chain := r.order[r.old]
	r.bytes -= len(r.kept[chain].Body)
	delete(r.kept, chain)
	r.order[r.old] = ""
	r.old = (r.old + 1) % recentCommits
}

// get returns the commit with that chain and body, as it is stored at a sequence;
// nil if it is not kept.
func (r *Recent) get(seq uint64, chain string, body []byte) *events.Commit {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	k := r.kept[chain]
	r.mu.Unlock()
	if k == nil || !bytes.Equal(k.Body, body) {
		return nil
	}
	stored := *k
	stored.Seq = seq
	return &stored
}
