package pages

import (
	"context"
	"sync"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/objects"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/lru"
)

// CacheBytes bounds the pages that a reader keeps in memory.
const CacheBytes = 16 << 20

// Reader reads pages. It is safe for concurrent use.
type Reader struct {
	store objects.Store

	mu    sync.Mutex // guards known
	known *lru.Cache[string, *events.HistoryPage]
}

// On returns a reader of the pages that a connection leads to.
func On(conn *streams.Conn) *Reader {
	return &Reader{store: objects.On(conn, conn.Config().Names.Bucket(assets.FileBucket)), known: lru.New[string, *events.HistoryPage](CacheBytes)}
}

// Page returns a page of a tenant, which the caller must not change.
func (r *Reader) Page(ctx context.Context, tenant, digest string) (*events.HistoryPage, error) {
	name := tenant + "/" + digest
	if page := r.cached(name); page != nil {
		return page, nil
	}
	content, err := r.content(ctx, name)
	if err != nil {
		return nil, unreadable(digest, err)
	}
	page, err := events.DecodeHistoryPage(content, digest)
	if err != nil {
		return nil, unreadable(digest, err)
	}
	r.keep(name, page, len(content))
	return page, nil
}

// In returns Page with a context.
func (r *Reader) In(ctx context.Context) func(tenant, digest string) (*events.HistoryPage, error) {
	return func(tenant, digest string) (*events.HistoryPage, error) { return r.Page(ctx, tenant, digest) }
}

func unreadable(digest string, err error) error {
	return events.Errorf(events.Unavailable, "page %s of a history that a thread has inherited cannot be read: %w", digest, err)
}

// content reads an object of the store.
func (r *Reader) content(ctx context.Context, name string) ([]byte, error) {
	o, err := r.store.FindNear(ctx, name)
	if err == nil && !o.Exists() { // a copy that lags may have answered
		o, err = r.store.Find(ctx, name)
	}
	switch {
	case err != nil:
		return nil, err
	case !o.Exists():
		return nil, streams.ErrNoMessage
	}
	return r.store.Read(ctx, &o.Object).Whole()
}

func (r *Reader) cached(name string) *events.HistoryPage {
	r.mu.Lock()
	defer r.mu.Unlock()
	page, _ := r.known.Get(name)
	return page
}

func (r *Reader) keep(name string, page *events.HistoryPage, bytes int) {
	if bytes > CacheBytes/4 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known.Put(name, page, int64(bytes))
}
