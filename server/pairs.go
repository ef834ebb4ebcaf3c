package server

import (
	"context"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/pairs"
)

// openPairs opens the store of tenants' key-value pairs. It has a connection of its own:
// values are large, and must not delay commands.
func (s *Server) openPairs(ctx context.Context) error {
	log, err := s.open("pairs")
	if err != nil {
		return err
	}
	s.pairs = pairs.On(log.Streams(), pairs.Config{MaxBytes: int64(s.cfg.TenantKVMiB) << 20, Now: s.cfg.Now})
	return assets.EnsurePairs(ctx, log.Streams())
}
