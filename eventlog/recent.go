package eventlog

import (
	"bytes"
	"sync"
	"time"

	"github.com/skein-threads/skein/events"
)

// Recent keeps the commits that this process gave to the log last, as they were
// made, so that its own relay and runner need not decode them again, nor read
// them at all while many are written: see [Tail]. It is shared by the logs of one
// process, see [Config.Recent], and is safe for concurrent use.
//
// A commit is used only if the log gives the very same bytes for it, or has
// acknowledged it. One that was never stored is given by nothing, and goes in its
// turn.
type Recent struct {
	mu     sync.Mutex               // guards what follows
	kept   map[string]*recentCommit // by chain
	stored map[uint64]*recentCommit // of those, what was acknowledged, by sequence
	newest uint64                   // the greatest sequence that was acknowledged
	told   chan struct{}            // closed when something is acknowledged; nil if nobody waits
	order  [recentCommits]string    // the chains, by turn
	next   int                      // whose turn it is to be replaced
	old    int                      // the first in order that is kept
	bytes  int                      // of the bodies
}

// recentCommit is a commit as it was made, and as it is stored once that is known.
type recentCommit struct {
	made   *events.Commit
	stored *events.Commit
	at     time.Time // when it was acknowledged
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
		r.kept = make(map[string]*recentCommit, recentCommits)
		r.stored = make(map[uint64]*recentCommit, recentCommits)
	}
	if r.kept[c.Chain] != nil { // it is tried again
		return
	}
	for r.order[r.next] != "" || r.bytes+len(made.Body) > recentBytes {
		r.drop()
	}
	r.kept[c.Chain], r.order[r.next] = &recentCommit{made: &made}, c.Chain
	r.bytes += len(made.Body)
	r.next = (r.next + 1) % recentCommits
}

// drop forgets the oldest commit.
func (r *Recent) drop() {
	chain := r.order[r.old]
	k := r.kept[chain]
	r.bytes -= len(k.made.Body)
	delete(r.kept, chain)
	if k.stored != nil && r.stored[k.stored.Seq] == k {
		delete(r.stored, k.stored.Seq)
	}
	r.order[r.old] = ""
	r.old = (r.old + 1) % recentCommits
}

// acknowledged notes that the log has stored the commits of units, at the
// sequences that they have now.
func (r *Recent) acknowledged(units ...*unit) {
	if r == nil {
		return
	}
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, u := range units {
		for _, w := range u.writes {
			r.newest = max(r.newest, w.Commit.Seq)
			k := r.kept[w.Commit.Chain]
			if k == nil { // too large, or too long ago
				continue
			}
			stored := *k.made
			stored.Seq = w.Commit.Seq
			k.stored, k.at = &stored, now
			r.stored[stored.Seq] = k
		}
	}
	if r.told != nil {
		close(r.told)
		r.told = nil
	}
}

// get gives the commit with that chain and body, as it is stored at a sequence;
// nil if it is not kept.
func (r *Recent) get(seq uint64, chain string, body []byte) *events.Commit {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	k := r.kept[chain]
	r.mu.Unlock()
	if k == nil || !bytes.Equal(k.made.Body, body) {
		return nil
	}
	stored := *k.made
	stored.Seq = seq
	return &stored
}

// at gives the commit that was acknowledged with a sequence after a time, and
// when. If there is none, it gives a channel that is closed at the next acknowledgement, and
// whether the log has gone past that sequence.
func (r *Recent) at(seq uint64, since time.Time) (c *events.Commit, when time.Time, told <-chan struct{}, past bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k := r.stored[seq]; k != nil && k.at.After(since) {
		return k.stored, k.at, nil, false
	}
	if r.told == nil {
		r.told = make(chan struct{})
	}
	return nil, time.Time{}, r.told, r.newest >= seq
}

// follows reports whether at gives the commit with a sequence, or will, if this
// process stores it.
func (r *Recent) follows(seq uint64, since time.Time) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.stored[seq]
	return k != nil && k.at.After(since) || r.newest < seq
}
