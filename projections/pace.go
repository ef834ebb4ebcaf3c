package projections

import (
	"context"
	"time"
)

// Commands come first. A document that changes with every commit, such as the
// thread's, is written once a batch, so larger batches are less work for the
// same commits; and while the runner waits, processor and disk are for those
// who append. But nobody who asks for what was just written waits for that: see
// Progress.want.

// busy is how many commits make a batch one under load.
const busy = 32

// linger lets a commit that came alone wait for others.
func (s *session) linger(ctx context.Context) { s.pause(ctx, s.cfg.Linger) }

// rest waits after a batch under load for three times as long as the batch
// took, unless the read models are too far behind.
func (s *session) rest(ctx context.Context, b *batch) {
	if b.count < busy || s.cfg.Now().Sub(b.endTime) > s.cfg.RestLag {
		return
	}
	s.pause(ctx, min(3*time.Since(b.start), s.cfg.Rest))
}

// pause waits, until somebody wants what is not stored yet.
func (s *session) pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-s.cfg.Progress.wanted:
	case <-time.After(d):
	case <-ctx.Done():
	}
}
