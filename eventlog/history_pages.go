package eventlog

import (
	"context"
	"sync"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/objects"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/lru"
)

// pageCacheBytes bounds the pages that a reader keeps in memory.
const pageCacheBytes = 16 << 20

// Pages reads the pages of histories: items of a thread, as many as fit into a page, which any number
// of threads inherit. It is safe for concurrent use.
//
//   - A page is the bytes that its digest names, or an error: events.Unavailable, with the digest
//     and the cause.
//   - A page that was stored before it was named is found, on every process: where a copy of the
//     store lags, its leader is asked.
//   - Pages read last are kept in memory, 16 MiB of them at most.
//   - It stores no pages: package files does, as it stores all contents. It does not know which
//     thread names a page, and so returns it to any caller.
type Pages struct {
	store objects.Store

	mu    sync.Mutex // guards known
	known *lru.Cache[string, *events.HistoryPage]
}

// PagesOn returns a reader of the pages that a connection leads to.
func PagesOn(conn *streams.Conn) *Pages {
	return &Pages{store: objects.On(conn, conn.Config().Names.Bucket(assets.FileBucket)), known: lru.New[string, *events.HistoryPage](pageCacheBytes)}
}

// Page returns a page of a tenant, which the caller must not change.
func (r *Pages) Page(ctx context.Context, tenant, digest string) (*events.HistoryPage, error) {
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
func (r *Pages) In(ctx context.Context) func(tenant, digest string) (*events.HistoryPage, error) {
	return func(tenant, digest string) (*events.HistoryPage, error) { return r.Page(ctx, tenant, digest) }
}

func unreadable(digest string, err error) error {
	return events.Errorf(events.Unavailable, "page %s of a history that a thread has inherited cannot be read: %w", digest, err)
}

// content reads an object of the store.
func (r *Pages) content(ctx context.Context, name string) ([]byte, error) {
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

func (r *Pages) cached(name string) *events.HistoryPage {
	r.mu.Lock()
	defer r.mu.Unlock()
	page, _ := r.known.Get(name)
	return page
}

func (r *Pages) keep(name string, page *events.HistoryPage, bytes int) {
	if bytes > pageCacheBytes/4 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known.Put(name, page, int64(bytes))
}
