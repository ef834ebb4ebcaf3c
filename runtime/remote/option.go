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

// Timing sets the interval of heartbeats, and the silence after which a process is
// given up: 5 and 15 seconds by default. For callers.
func Timing(heartbeat, dead time.Duration) Option {
	return func(s *settings) { s.heartbeat, s.dead = heartbeat, dead }
}

// MaxBytes limits one message of an answer; the default is 4 MiB, the maximum over NATS the
// server's limit. All messages of one answer together may have 16 times that size. For
// callers.
func MaxBytes(n int) Option { return func(s *settings) { s.maxBytes = n } }

// Logger sets the logger of panics and of calls that could not be answered, and of why an
// endpoint could not be reached; default none. For processes that serve, and for callers
// over HTTP.
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
