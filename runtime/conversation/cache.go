package conversation

import (
	"container/list"
	"context"
	"sync"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/pages"
	"github.com/skein-threads/skein/events"
)

// Cache caches the most recently used conversations, and the commits of this process
// since, so that a turn reads from the log only what others wrote. A conversation that
// was taken has one user.
type Cache struct {
	log   *eventlog.Log
	pages *pages.Reader
	most  int // in bytes

	mu    sync.Mutex
	bytes int
	order *list.List // of *kept, the latest used first
	byKey map[string]*list.Element
}

type kept struct {
	key     string
	talk    *View            // nil: in use, or not known yet
	commits []*events.Commit // of this process, since then
	size    int
}

// NewCache returns a cache of at most that many bytes, of threads of the log.
func NewCache(log *eventlog.Log, most int) *Cache {
	return &Cache{log: log, pages: pages.On(log.Streams()), most: most, order: list.New(), byKey: map[string]*list.Element{}}
}

// maxRecent is how many commits of a thread are cached for a later turn.
const maxRecent = 16

// Note caches a commit of this process.
func (h *Cache) Note(c *events.Commit) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := h.entry(c.Tenant + "." + c.Thread)
	if len(k.commits) == maxRecent {
		h.resize(k, -held(k.commits[0]))
		k.commits = append(k.commits[:0:0], k.commits[1:]...)
	}
	k.commits = append(k.commits, c)
	h.resize(k, held(c))
	h.trim()
}

// held estimates the memory of a commit: its body, its events, and the request whose
// strings they share.
func held(c *events.Commit) int { return c.Whole()*5/2 + 256 }

// Take returns the cached conversation of a thread, without reading the log; see
// Follow.
func (h *Cache) Take(tenant, thread string) *View {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := New()
	e := h.byKey[tenant+"."+thread]
	if e == nil {
		return c
	}
	k := e.Value.(*kept)
	h.drop(e)
	if k.talk != nil {
		c = k.talk
	}
	for _, commit := range k.commits {
		if !c.Apply(commit) {
			break // what lies between is read from the log
		}
	}
	return c
}

// Forget drops the cache of a thread.
func (h *Cache) Forget(tenant, thread string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e := h.byKey[tenant+"."+thread]; e != nil {
		h.drop(e)
	}
}

// Follow reads the commits of the log that the conversation lacks.
func (h *Cache) Follow(ctx context.Context, c *View, tenant, thread string) error {
	for commit, err := range h.log.Thread(ctx, tenant, thread, c.seq+1) {
		if err != nil {
			return err
		}
		if !c.Apply(commit) { // erased, older than the conversation, or with a history: read from the start
			*c = *New()
			c.version = commit.Version - int64(len(commit.Events))
			if c.pages, err = h.readPages(ctx, commit); err != nil {
				return err
			}
			c.Apply(commit)
		}
	}
	return nil
}

// readPages reads the pages of the history that a commit inherits, in order.
func (h *Cache) readPages(ctx context.Context, commit *events.Commit) ([]*events.HistoryPage, error) {
	from := inherits(commit)
	if from == nil {
		return nil, nil
	}
	read := make([]*events.HistoryPage, len(from.Pages))
	for i := range from.Pages {
		var err error
		if read[i], err = h.pages.Page(ctx, commit.Tenant, from.Pages[i].Digest); err != nil {
			return nil, err
		}
	}
	return read, nil
}

// Return returns a conversation to the cache.
func (h *Cache) Return(tenant, thread string, c *View) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.bytes > h.most/4 {
		return
	}
	k := h.entry(tenant + "." + thread)
	if k.talk == nil || k.talk.version < c.version {
		h.resize(k, c.bytes)
		k.talk = c
	}
	h.trim()
}

// entry returns the cache entry of a thread, and marks it as the latest used. The
// caller holds the lock, as for the methods below.
func (h *Cache) entry(key string) *kept {
	if e := h.byKey[key]; e != nil {
		h.order.MoveToFront(e)
		return e.Value.(*kept)
	}
	k := &kept{key: key}
	h.byKey[key] = h.order.PushFront(k)
	h.resize(k, 1024)
	return k
}

func (h *Cache) resize(k *kept, by int) {
	k.size += by
	h.bytes += by
}

func (h *Cache) trim() {
	for h.bytes > h.most {
		h.drop(h.order.Back())
	}
}

func (h *Cache) drop(e *list.Element) {
	k := h.order.Remove(e).(*kept)
	delete(h.byKey, k.key)
	h.bytes -= k.size
}
