package server

import (
	"context"

	"github.com/skein-threads/skein/commands"
)

// startLives ends the lives of threads' key-value states whose time is over, in one process at
// a time.
func (s *Server) startLives(background context.Context, dispatcher *commands.Dispatcher) error {
	log, err := s.open("lives")
	if err != nil {
		return err
	}
	s.endLives = func(ctx context.Context) (int, error) {
		return newLifeEnder(log, dispatcher, s.cfg.Now, s.logger).End(ctx)
	}
	s.hold(background, log, livesLease, func(ctx context.Context) error {
		return newLifeEnder(log, dispatcher, s.cfg.Now, s.logger).Run(ctx)
	})
	return nil
}
