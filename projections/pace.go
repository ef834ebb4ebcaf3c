package projections

import (
	"context"
	"time"
)

// Commands have priority. A document that changes with every commit, such as the
// thread's, is written once a batch, so larger batches are less work for the same
// commits. While the runner pauses, processor and disk are free for appends, and arriving
// commits are folded in memory. A reader of a recent write ends the pause: see
// [buckets.Progress.Want].

const (
	busy   = 32                    // a batch of this many commits counts as load
	breath = 20 * time.Millisecond // how long commits are collected before they are folded, while no batch is due
)

// linger waits for further commits after one that arrived alone. It reports whether a reader wants
// the batch now.
func (s *session) linger(ctx context.Context) bool { return s.pause(ctx, s.cfg.Linger) }

// rest sets when the next batch is due. After a batch under load the rest is six times as long as
// the batch took, so that a document that changes all the time is written rarely.
func (s *session) rest(b *batch) {
	s.notBefore = time.Time{}
	if b.count >= busy {
		now := time.Now()
		s.notBefore = now.Add(min(6*now.Sub(b.start), s.cfg.Rest))
	}
}

// due reports whether a batch must be stored now: the rest is over, or the read models are too far
// behind to rest.
func (s *session) due(b *batch) bool {
	return !time.Now().Before(s.notBefore) || s.cfg.Now().Sub(b.oldest) > s.cfg.RestLag
}

// pause waits for d. It returns early, and reports that, if ctx ends or a reader wants what is not
// stored yet.
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
