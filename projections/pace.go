package projections

import (
	"context"
	"time"
)

// Commands have priority. A document that changes with every commit, such as the
// thread's, is written once a batch, so larger batches are less work for the same
// commits. While the runner rests, processor and disk are free for appends, and arriving
// commits are folded in memory. A reader of a recent write ends the rest: see
// [buckets.Progress.Want].
//
// What was gathered is stored without the help of a later commit: each rest ends by its timer, and
// a batch that is due is stored whether or not more commits come.

const (
	busy   = 32                    // a batch of this many commits of several threads counts as load
	breath = 20 * time.Millisecond // the rest after any batch, and how long commits are collected before they are folded
)

// linger waits for further commits after one that arrived alone. It reports whether a reader wants
// the batch now.
func (s *session) linger(ctx context.Context) bool { return s.pause(ctx, s.cfg.Linger) }

// rest sets when the next batch is due: a breath after this one. After a batch under load the rest
// is six times as long as the batch took, so that a document that changes all the time is written
// rarely.
func (s *session) rest(b *batch) {
	now, rest := s.cfg.Now(), breath
	if b.count >= busy && b.several {
		rest = max(rest, 6*now.Sub(b.start))
	}
	s.notBefore = now.Add(min(rest, s.cfg.Rest))
}

// due reports whether a batch must be stored now: the rest is over, or the read models are too far
// behind to rest.
func (s *session) due(b *batch) bool {
	now := s.cfg.Now()
	return !now.Before(s.notBefore) || now.Sub(b.oldest) > s.cfg.RestLag
}

// breathe waits for further commits while no batch is due. It reports whether a reader wants the
// batch now.
func (s *session) breathe(ctx context.Context) bool {
	return s.pause(ctx, min(breath, s.notBefore.Sub(s.cfg.Now())))
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
