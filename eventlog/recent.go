package eventlog

import (
	"bytes"
	"sync"
	"time"

	"github.com/skein-threads/skein/events"
)

// Recent keeps the commits that this process appended last, as they were made, so that its
// own relay and runner need not decode them again, nor read them while it alone writes many:
// see [ownCommits]. It is shared by the logs of one process, see [Config.Recent], and is safe
// for concurrent use.
//
// A commit is used only if the log returns the very same bytes for it, or has acknowledged it.
// One that was never stored is never asked for, and is replaced in its turn.
type Recent struct {
	mu     sync.Mutex               // guards what follows
	kept   map[string]*recentCommit // by chain
	stored map[uint64]*recentCommit // those that were acknowledged, by sequence
	newest uint64                   // the largest sequence that was acknowledged
	next   chan struct{}            // closed by the next wake; nil if nobody waits
	order  [recentCommits]string    // the chains, by turn
	turn   int                      // whose turn it is to be replaced
	old    int                      // the first in order that is kept
	bytes  int                      // of the bodies
}

// recentCommit is a commit as it was made, and as it is stored once that is known.
type recentCommit struct {
	made   *events.Commit
	stored *events.Commit // nil until it is acknowledged
	at     time.Time      // when it was acknowledged
}

// What Recent keeps at most.
const (
	recentCommits = 8192
	recentBytes   = 32 << 20

	recentSearched = 512 // commits in which last searches, at most
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
	for r.order[r.turn] != "" || r.bytes+len(made.Body) > recentBytes {
		r.drop()
	}
	r.kept[c.Chain], r.order[r.turn] = &recentCommit{made: &made}, c.Chain
	r.bytes += len(made.Body)
	r.turn = (r.turn + 1) % recentCommits
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

// Newest returns the largest sequence that was acknowledged.
func (r *Recent) Newest() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.newest
}

// Forget forgets all commits: those who need one read it from the log.
func (r *Recent) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.order[r.old] != "" {
		r.drop()
	}
	r.kept, r.stored = nil, nil // a map keeps the room that it once had
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
	if k == nil || !bytes.Equal(k.made.Body, body) {
		return nil
	}
	stored := *k.made
	stored.Seq = seq
	return &stored
}

// acknowledged records that the log stored the commits of units, at the sequences that they
// have now. Those who wait for them learn it from wake.
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
}

// wake wakes those who wait for what was acknowledged.
func (r *Recent) wake() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next != nil {
		close(r.next)
		r.next = nil
	}
}

// at returns the commit that was acknowledged at a sequence after a time. If there is none, it
// returns an entry without a commit, a channel that is closed when more was acknowledged, and
// whether something past that sequence was acknowledged.
func (r *Recent) at(seq uint64, since time.Time) (e Entry, next <-chan struct{}, passed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k := r.stored[seq]; k != nil && k.at.After(since) {
		return Entry{Seq: seq, Time: k.at, Commit: k.stored, size: len(k.stored.Body)}, nil, false
	}
	if r.next == nil {
		r.next = make(chan struct{})
	}
	return Entry{}, r.next, r.newest >= seq
}

// last returns the sequence of the last commit of an aggregate that was acknowledged after one sequence and
// at most at another, 0 if none was. It does not know if it does not have all commits between the two.
func (r *Recent) last(tenant, aggregate string, after, upTo uint64) (seq uint64, known bool) {
	if r == nil || upTo > after+recentSearched {
		return 0, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for at := upTo; at > after; at-- {
		k := r.stored[at]
		if k == nil {
			return 0, false
		}
		if seq == 0 && k.stored.Thread == aggregate && k.stored.Tenant == tenant {
			seq = at
		}
	}
	return seq, true
}

// follows reports whether at returns the commit with a sequence, or will if this process stores
// it.
func (r *Recent) follows(seq uint64, since time.Time) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.stored[seq]
	return k != nil && k.at.After(since) || r.newest < seq
}
