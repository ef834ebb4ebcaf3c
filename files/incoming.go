package files

import (
	"context"

	"github.com/skein-threads/skein/events"
)

// Incoming is content that is being restored, such as that of an export: it arrives piece by
// piece, each of [events.FilePieceBytes] except the last. It must be used by one goroutine only.
type Incoming struct{ w *writer }

// Has reports whether a tenant's content is stored. If so, it protects the content from the
// collector for long enough that an event can name it.
func (s *Store) Has(ctx context.Context, tenant, digest string) (bool, error) {
	o, _, err := s.hold(ctx, tenant, digest)
	return o != nil, err
}

// Incoming starts storing content for a tenant.
func (s *Store) Incoming(tenant string) *Incoming { return &Incoming{s.newWriter(tenant)} }

// Add stores the next piece.
func (i *Incoming) Add(ctx context.Context, piece []byte) error { return i.w.put(ctx, piece) }

// End names the content once all of it is stored.
func (i *Incoming) End(ctx context.Context) (events.FileContent, error) { return i.w.finish(ctx) }

// Drop deletes the stored pieces instead of naming the content.
func (i *Incoming) Drop(ctx context.Context) { i.w.drop(ctx) }
