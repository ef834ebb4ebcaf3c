package commands

import (
	"container/list"
	"sync"

	"github.com/skein-threads/skein/commands/thread"
)

// entry is a cached thread: its state, and the jobs that wait for it.
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
// New entries are in the list recent. When an entry reaches the end of recent it is evicted,
// except every keepOneIn-th, which moves to the list kept. Without kept, a workload that uses
// slightly more threads than fit, in turn, would never hit: an LRU cache always evicts the thread
// that is used next.
type cache struct {
	limit   int64
	metrics Metrics

	mu      sync.Mutex // guards the fields below
	entries map[string]*entry
	recent  *list.List // of *entry, most recently used first
	kept    *list.List // of *entry, those kept instead of evicted, most recently used first
	bytes   int64      // of both
	window  int64      // of recent
	passed  int        // entries that have reached the end of recent
}

const (
	windowShare = 8  // recent may use at least 1/windowShare of the bytes
	keepOneIn   = 17 // of the entries that leave recent
)

func newCache(limit int64, metrics Metrics) *cache {
	return &cache{limit: limit, metrics: metrics, entries: map[string]*entry{}, recent: list.New(), kept: list.New()}
}

// acquire returns the entry of a thread. It stays in use, and is not evicted, until release.
func (c *cache) acquire(tenant, id string) *entry {
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

// release ends a use of an entry, updates the size of its state, and evicts entries over the
// limit.
func (c *cache) release(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.users--
	if e.users == 0 {
		size := int64(entryBytes)
		if e.state != nil { // no goroutine works on the entry, since that goroutine would count as a user
			size += e.state.Bytes()
		}
		c.grow(e, size-e.bytes)
		e.bytes = size
	}
	for c.bytes > c.limit && c.shrink() {
	}
	c.metrics.Cached(len(c.entries), c.bytes)
}

// shrink evicts an entry, or moves it to kept. It reports false if all entries are in use.
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

// forget evicts all entries that are not in use.
func (c *cache) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.shrink() {
	}
	c.metrics.Cached(len(c.entries), c.bytes)
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
