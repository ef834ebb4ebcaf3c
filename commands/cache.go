package commands

import (
	"container/list"
	"sync"

	"github.com/skein-threads/skein/commands/thread"
)

// entry is a thread in use: its state, and the jobs that wait for it.
type entry struct {
	tenant, id string

	mu      sync.Mutex // guards waiting and busy
	waiting []*job
	busy    bool // a goroutine works on the thread

	// Owned by the goroutine that made the entry busy.
	state    *thread.State // nil: not loaded
	snapshot int64         // the version of the last snapshot

	// Owned by the cache.
	place *list.Element
	kept  bool // it is in the list kept rather than recent
	users int
	bytes int64
}

// entryBytes estimates the size of an entry without its state.
const entryBytes = 400

// cache keeps the states of threads, bounded in bytes, and never evicts a thread in use.
//
// It evicts the least recently used of those that were used last, but keeps one in some of them
// among those that stay: when the threads in use exceed the cache a little and are used in turn, the
// least recently used thread is always the next to be used, and a cache that evicts it would never
// have any.
type cache struct {
	limit   int64
	metrics Metrics

	mu      sync.Mutex // guards the fields below
	entries map[string]*entry
	recent  *list.List // of *entry, most recently used first
	kept    *list.List // the same, of those that stay
	bytes   int64      // of both
	window  int64      // of recent
	passed  int        // entries that have reached the end of recent
}

const (
	windowShare = 8  // recent has at least this part of the bytes
	keepOneIn   = 17 // of those that leave recent
)

func newCache(limit int64, metrics Metrics) *cache {
	return &cache{limit: limit, metrics: metrics, entries: map[string]*entry{}, recent: list.New(), kept: list.New()}
}

// take returns the entry of a thread, which stays in use until give.
func (c *cache) take(tenant, id string) *entry {
	name := tenant + "." + id
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[name]
	if !ok {
		e = &entry{tenant: tenant, id: id, bytes: entryBytes}
		c.entries[name] = e
		e.place = c.recent.PushFront(e)
		c.grow(e, e.bytes)
	} else {
		c.list(e).MoveToFront(e.place)
	}
	e.users++
	return e
}

// list returns the list that an entry is in.
func (c *cache) list(e *entry) *list.List {
	if e.kept {
		return c.kept
	}
	return c.recent
}

// grow counts bytes of an entry.
func (c *cache) grow(e *entry, by int64) {
	c.bytes += by
	if !e.kept {
		c.window += by
	}
}

// give releases an entry, updates the size of its state, and evicts what exceeds the limit.
func (c *cache) give(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.users--
	if e.users == 0 {
		size := int64(entryBytes)
		if e.state != nil { // no goroutine works on it: that goroutine counts as a user
			size += e.state.Bytes()
		}
		c.grow(e, size-e.bytes)
		e.bytes = size
	}
	for c.bytes > c.limit && c.shrink() {
	}
	c.metrics.Cached(len(c.entries), c.bytes)
}

// shrink evicts an entry, or keeps it. It reports whether there was any that is not in use.
func (c *cache) shrink() bool {
	recent, kept := unused(c.recent), unused(c.kept)
	e := kept
	if kept == nil || recent != nil && c.window > c.limit/windowShare && c.recent.Len() > 1 {
		e = recent
	}
	if e == nil {
		return false
	}
	c.list(e).Remove(e.place)
	c.grow(e, -e.bytes)
	if !e.kept {
		if c.passed++; c.passed%keepOneIn == 0 && e.bytes <= c.limit/windowShare {
			e.kept, e.place = true, c.kept.PushFront(e)
			c.grow(e, e.bytes)
			return true
		}
	}
	delete(c.entries, e.tenant+"."+e.id)
	return true
}

// unused returns the least recently used entry of a list that is not in use, nil if there is none.
func unused(l *list.List) *entry {
	for at := l.Back(); at != nil; at = at.Prev() {
		if e := at.Value.(*entry); e.users == 0 {
			return e
		}
	}
	return nil
}
