package serve

import (
	"context"

	"github.com/skein-threads/skein/runtime"
)

// startEffects starts what keeps the timers of effects; its Committed is for the
// dispatcher. Effects themselves are run by workers that know them, see
// runtime.EffectWorker.
func (s *Server) startEffects(background context.Context) (*runtime.EffectTimers, error) {
	log, err := s.open("timers")
	if err != nil {
		return nil, err
	}
	timers := runtime.NewEffectTimers(log, s.cfg.Now, s.logger)
	s.running.Go(func() { timers.Run(background) })
	s.hold(background, log, runtime.EffectLease, timers.Sweeping)
	return timers, nil
}
