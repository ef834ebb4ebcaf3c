package serve

import (
	"context"

	"github.com/skein-threads/skein/archive"
)

// startArchiving applies the retention policies of tenants.
func (s *Server) startArchiving(background context.Context) error {
	log, err := s.open("archive")
	if err != nil {
		return err
	}
	s.hold(background, log, archive.Lease, archive.New(log, archive.Config{Every: s.cfg.ArchiveEvery, Now: s.cfg.Now}, s.logger).Run)
	return nil
}
