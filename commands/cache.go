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
	users int
	bytes int64
}

// entryBytes estimates the size of an entry without its state.
const entryBytes = 400

// cache keeps the states of threads, bounded in bytes. It evicts the least recently used
// first, and never a thread in use.
type cache struct {
	limit   int64
	metrics Metrics

	mu      sync.Mutex // guards the fields below
	entries map[string]*entry
	recent  *list.List // of *entry, most recently used first
	bytes   int64
}

func newCache(limit int64, metrics Metrics) *cache {
	return &cache{limit: limit, metrics: metrics, entries: map[string]*entry{}, recent: list.New()}
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
		c.bytes += e.bytes
	} else {
		c.recent.MoveToFront(e.place)
	}
	e.users++
	return e
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
		c.bytes += size - e.bytes
		e.bytes = size
	}
	for old := c.recent.Back(); old != nil && c.bytes > c.limit; {
		e, before := old.Value.(*entry), old.Prev()
		if e.users == 0 {
			c.recent.Remove(old)
			delete(c.entries, e.tenant+"."+e.id)
			c.bytes -= e.bytes
		}
		old = before
	}
	c.metrics.Cached(len(c.entries), c.bytes)
}
