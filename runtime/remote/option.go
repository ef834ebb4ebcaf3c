package remote

import (
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/events"
)

// Option changes one of the defaults.
type Option func(*settings)

type settings struct {
	heartbeat time.Duration
	dead      time.Duration
	maxBytes  int
	logger    zerolog.Logger
}

// Timing says how often a process is to give a sign of life, and after which
// silence it is taken for dead: 5 and 15 seconds by default. Of callers.
func Timing(heartbeat, dead time.Duration) Option {
	return func(s *settings) { s.heartbeat, s.dead = heartbeat, dead }
}

// MaxBytes bounds one message of an answer; by default and at most it is what
// the server takes, 4 MiB. All messages of one answer together have 16 times as
// much room. Of callers.
func MaxBytes(n int) Option { return func(s *settings) { s.maxBytes = n } }

// Logger is told of panics, and of what could not be answered. Of processes that
// serve; by default nothing is.
func Logger(l zerolog.Logger) Option { return func(s *settings) { s.logger = l } }

func with(opts []Option) (settings, error) {
	s := settings{heartbeat: 5 * time.Second, dead: 15 * time.Second, maxBytes: events.MaxPayload, logger: zerolog.Nop()}
	for _, apply := range opts {
		apply(&s)
	}
	if s.heartbeat < time.Millisecond || s.dead < 2*s.heartbeat {
		return s, fmt.Errorf("a heartbeat every %s, dead after %s: the second is at least twice the first, and the first a millisecond", s.heartbeat, s.dead)
	}
	if s.maxBytes < 1 {
		return s, fmt.Errorf("the bound of an answer is %d bytes; it is at least 1", s.maxBytes)
	}
	return s, nil
}
