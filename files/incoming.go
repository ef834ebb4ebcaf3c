package files

import (
	"context"

	"github.com/skein-threads/skein/events"
)

// Incoming is content that is being restored, such as that of an export: it arrives piece by
// piece, each of [events.FilePieceBytes] except the last. It is used by one goroutine.
type Incoming struct{ w *writer }

// Has reports whether a tenant's content is stored, and if so protects it from the collector
// for long enough to name it.
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

// Drop deletes the pieces of content that was not named.
func (i *Incoming) Drop(ctx context.Context) { i.w.drop(ctx) }
