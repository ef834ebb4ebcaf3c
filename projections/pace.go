package projections

import (
	"context"
	"time"
)

// Commands come first. A document that changes with every commit, such as the
// thread's, is written once a batch, so larger batches are less work for the
// same commits; and while the runner waits, processor and disk are for those
// who append. What comes meanwhile is folded in memory. But nobody who asks for
// what was just written waits for that: see Progress.want.

const (
	busy   = 32                    // so many commits make a batch one under load
	breath = 20 * time.Millisecond // how long what comes is let come together, while a batch is not due
)

// linger lets a commit that came alone wait for others, and reports whether
// somebody wants it now.
func (s *session) linger(ctx context.Context) bool { return s.pause(ctx, s.cfg.Linger) }

// rest says that after a batch under load the next is not due for six times as
// long as it took: what changes all the time, in a turn or a talk, is then mostly
// written once.
func (s *session) rest(b *batch) {
	s.notBefore = time.Time{}
	if b.count >= busy {
		now := time.Now()
		s.notBefore = now.Add(min(6*now.Sub(b.start), s.cfg.Rest))
	}
}

// due reports whether a batch is to be stored: the rest is over, or the read
// models are too far behind for it.
func (s *session) due(b *batch) bool {
	return !time.Now().Before(s.notBefore) || s.cfg.Now().Sub(b.oldest) > s.cfg.RestLag
}

// pause waits, until somebody wants what is not stored yet or ctx ends, and
// reports whether it was cut short.
func (s *session) pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return false
	}
	select {
	case <-s.cfg.Progress.wanted:
	case <-ctx.Done():
	case <-time.After(d):
		return false
	}
	return true
}
