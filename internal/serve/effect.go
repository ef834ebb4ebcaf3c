package serve

import (
	"context"

	"github.com/skein-threads/skein/runtime"
)

// startEffects starts the timers of effects; their Committed is for the dispatcher.
// Workers that have the effects registered run them, see runtime.EffectWorker.
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
