package projections

import (
	"context"
	"time"
)

// Commands have priority. A document that changes with every commit, such as the
// thread's, is written once a batch, so larger batches are less work for the same
// commits; and while the runner pauses, processor and disk are free for appends. Commits
// that arrive meanwhile are folded in memory. But no reader of a recent write waits for
// that: see [buckets.Progress.Want].

const (
	busy   = 32                    // a batch of as many commits counts as load
	breath = 20 * time.Millisecond // how long commits are collected before they are folded, while a batch is not due
)

// linger waits for others with a commit that arrived alone, and reports whether a reader
// wants it now.
func (s *session) linger(ctx context.Context) bool { return s.pause(ctx, s.cfg.Linger) }

// rest sets when the next batch is due: after a batch under load, not for six times as
// long as it took, so that a document that changes all the time is mostly written
// once.
func (s *session) rest(b *batch) {
	s.notBefore = time.Time{}
	if b.count >= busy {
		now := time.Now()
		s.notBefore = now.Add(min(6*now.Sub(b.start), s.cfg.Rest))
	}
}

// due reports whether a batch is to be stored: the rest is over, or the read
// models are too far behind for one.
func (s *session) due(b *batch) bool {
	return !time.Now().Before(s.notBefore) || s.cfg.Now().Sub(b.oldest) > s.cfg.RestLag
}

// pause waits, at most until a reader wants what is not stored yet or ctx ends, and
// reports whether it was cut short.
func (s *session) pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return false
	}
	select {
	case <-s.cfg.Progress.Wanted():
	case <-ctx.Done():
	case <-time.After(d):
		return false
	}
	return true
}
