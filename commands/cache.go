package commands

import (
	"container/list"
	"sync"

	"github.com/skein-threads/skein/commands/thread"
)

// entry is a thread that is in use: its state, and who waits for it.
type entry struct {
	tenant, id string

	mu      sync.Mutex // guards waiting and busy
	waiting []*job
	busy    bool // a goroutine works on the thread

	// What follows belongs to the goroutine that made the entry busy.
	state    *thread.State // nil: not loaded
	snapshot int64         // the version that was last snapshotted

	// What follows belongs to the cache.
	place *list.Element
	users int
	bytes int64
}

// entryBytes is about what an entry costs beside its state.
const entryBytes = 400

// cache keeps the states of threads, bounded in bytes; those used longest ago
// go first. A thread in use is never dropped.
type cache struct {
	limit   int64
	metrics Metrics

	mu      sync.Mutex // guards what follows
	entries map[string]*entry
	recent  *list.List // of *entry, those used last in front
	bytes   int64
}

func newCache(limit int64, metrics Metrics) *cache {
	return &cache{limit: limit, metrics: metrics, entries: map[string]*entry{}, recent: list.New()}
}

// take gives the entry of a thread, for use until it is given back.
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

// give gives an entry back, with the size of its state, and drops what is too
// much.
func (c *cache) give(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.users--
	if e.users == 0 {
		size := int64(entryBytes)
		if e.state != nil { // nobody works on it: its goroutine counts as a user
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
