package eventlog

import (
	"bytes"
	"sync"

	"github.com/skein-threads/skein/events"
)

// Recent keeps the commits that this process stored last, as they were made, so
// that its own relay and runner need not decode them again. It is shared by the
// logs of one process, see [Config.Recent], and is safe for concurrent use.
//
// A commit is used only if the log gives the very same bytes for it.
type Recent struct {
	mu    sync.Mutex // guards what follows
	slots [recentCommits]*events.Commit
}

// What Recent keeps at most: some 16 MiB.
const (
	recentCommits = 1024
	recentBytes   = 16 << 10
)

// put keeps a commit that was stored.
func (r *Recent) put(c *events.Commit) {
	if r == nil || len(c.Body) > recentBytes {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slots[c.Seq%recentCommits] = c
}

// get gives the commit that is stored at a sequence with that chain and body,
// nil if it is not kept.
func (r *Recent) get(seq uint64, chain string, body []byte) *events.Commit {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	c := r.slots[seq%recentCommits]
	r.mu.Unlock()
	if c == nil || c.Seq != seq || c.Chain != chain || !bytes.Equal(c.Body, body) {
		return nil
	}
	return c
}
