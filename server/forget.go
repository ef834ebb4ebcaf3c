package server

import (
	"context"
	"time"

	"github.com/skein-threads/skein/commands"
)

// What a process keeps in memory to spare reading it again is given up when no commit has come through
// it for forgetTicks looks, each forgetEvery after the one before.
const (
	forgetEvery = 15 * time.Second
	forgetTicks = 4
)

// forgetWhenIdle gives up commits and the states of threads that are kept in memory whenever the
// process has stored no commit for a minute, until ctx ends. The runner of the read models does the
// same with its documents.
func (s *Server) forgetWhenIdle(ctx context.Context, d *commands.Dispatcher) {
	tick := time.NewTicker(forgetEvery)
	defer tick.Stop()
	for last, still := s.recent.Newest(), 0; ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		now := s.recent.Newest()
		if still++; now != last {
			last, still = now, 0
		}
		if still == forgetTicks {
			s.recent.Forget()
			d.Forget()
		}
	}
}
