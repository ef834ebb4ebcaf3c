package files

import (
	"context"

	"github.com/skein-threads/skein/events"
)

// Incoming is content that is brought back, such as that of an export: it comes piece
// by piece, each of [events.FilePieceBytes] but for the last. One goroutine uses it.
type Incoming struct{ w *writer }

// Has reports whether a tenant's content is there, and if so keeps the collector from
// it for long enough to name it.
func (s *Store) Has(ctx context.Context, tenant, digest string) (bool, error) {
	o, _, err := s.hold(ctx, tenant, digest)
	return o != nil, err
}

// Incoming begins to store content for a tenant.
func (s *Store) Incoming(tenant string) *Incoming { return &Incoming{s.newWriter(tenant)} }

// Add stores the next piece.
func (i *Incoming) Add(ctx context.Context, piece []byte) error { return i.w.put(ctx, piece) }

// End names the content when all of it is stored.
func (i *Incoming) End(ctx context.Context) (events.FileContent, error) { return i.w.finish(ctx) }

// Drop takes the pieces away again, for content that is not named.
func (i *Incoming) Drop(ctx context.Context) { i.w.drop(ctx) }
