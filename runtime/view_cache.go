package runtime

import (
	"context"
	"sync"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/lru"
)

// viewCache caches the most recently used conversations, and the commits of this process
// since, so that a turn reads from the log only what others wrote. A conversation that
// was taken has one user.
type viewCache struct {
	log   *eventlog.Log
	pages *eventlog.Pages
	most  int // in bytes

	mu    sync.Mutex // guards known
	known *lru.Cache[string, *kept]
}

type kept struct {
	talk    *View            // nil: in use, or not known yet
	commits []*events.Commit // of this process, since then
}

// newViewCache returns a cache of at most that many bytes, of threads of the log.
func newViewCache(log *eventlog.Log, most int) *viewCache {
	return &viewCache{log: log, pages: eventlog.PagesOn(log.Streams()), most: most, known: lru.New[string, *kept](int64(most))}
}

// maxRecent is how many commits of a thread are cached for a later turn.
const maxRecent = 16

// Note caches a commit of this process.
func (h *viewCache) Note(c *events.Commit) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := c.Tenant + "." + c.Thread
	k, more := h.entry(key), held(c)
	if len(k.commits) == maxRecent {
		more -= held(k.commits[0])
		k.commits = append(k.commits[:0:0], k.commits[1:]...)
	}
	k.commits = append(k.commits, c)
	h.known.Grow(key, int64(more))
}

// held estimates the memory of a commit: its body, its events, and the request whose
// strings they share.
func held(c *events.Commit) int { return c.Whole()*5/2 + 256 }

// Take returns the cached conversation of a thread, without reading the log; see
// Follow.
func (h *viewCache) Take(tenant, thread string) *View {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := NewView()
	k, ok := h.known.Get(tenant + "." + thread)
	if !ok {
		return c
	}
	h.known.Drop(tenant + "." + thread)
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
func (h *viewCache) Forget(tenant, thread string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known.Drop(tenant + "." + thread)
}

// Follow reads the commits of the log that the conversation lacks.
func (h *viewCache) Follow(ctx context.Context, c *View, tenant, thread string) error {
	for commit, err := range h.log.Thread(ctx, tenant, thread, c.seq+1) {
		if err != nil {
			return err
		}
		if !c.Apply(commit) { // erased, older than the conversation, or with a history: read from the start
			*c = *NewView()
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
func (h *viewCache) readPages(ctx context.Context, commit *events.Commit) ([]*events.HistoryPage, error) {
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
func (h *viewCache) Return(tenant, thread string, c *View) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.bytes > h.most/4 {
		return
	}
	key := tenant + "." + thread
	if k := h.entry(key); k.talk == nil || k.talk.version < c.version {
		more := c.bytes
		if k.talk != nil {
			more -= k.talk.bytes
		}
		k.talk = c
		h.known.Grow(key, int64(more))
	}
}

// entryBytes is the size of an entry without a conversation and commits.
const entryBytes = 1024

// entry returns the cache entry of a thread, and marks it as the latest used. Hold h.mu.
func (h *viewCache) entry(key string) *kept {
	k, ok := h.known.Get(key)
	if !ok {
		k = &kept{}
		h.known.Put(key, k, entryBytes)
	}
	return k
}
