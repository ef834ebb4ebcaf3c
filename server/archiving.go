package server

import (
	"context"

	"github.com/skein-threads/skein/archive"
	"github.com/skein-threads/skein/projections/query"
)

// startArchiving applies the retention policies of tenants.
func (s *Server) startArchiving(background context.Context, queries *query.Queries) error {
	log, err := s.open("archive")
	if err != nil {
		return err
	}
	s.hold(background, log, archive.Lease, archive.New(log, archive.Config{Every: s.cfg.ArchiveEvery, Now: s.cfg.Now}, s.logger).Run)
	cold, err := s.open("cold")
	if err != nil {
		return err
	}
	s.hold(background, cold, archive.ColdLease, func(ctx context.Context) error {
		return archive.New(cold, archive.Config{Every: s.cfg.ArchiveEvery, Now: s.cfg.Now}, s.logger).RunCold(ctx, queries)
	})
	return nil
}
