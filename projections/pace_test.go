package projections

import (
	"context"
	"testing"
	"time"
)

// The runner may wait for company, but not while somebody waits for what was
// just written.
func TestAReaderIsNotKeptWaiting(t *testing.T) {
	h := newHouse(t)
	r, _ := h.run(Config{Linger: time.Hour, Rest: time.Hour})
	for range 3 {
		reply := h.do("thread.create", "", `{}`)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		if err := r.Progress().Wait(ctx, reply.Seq); err != nil {
			t.Fatalf("the reader waited with the runner: %v", err)
		}
		cancel()
	}
}

// Under load the runner rests between batches, and stops resting when it is too
// far behind.
func TestRest(t *testing.T) {
	now := time.Now()
	s := &session{Runner: &Runner{cfg: Config{Rest: time.Hour, RestLag: time.Second, Progress: NewProgress(), Now: func() time.Time { return now }}.withDefaults()}}
	rests := func(b batch) bool {
		b.start = time.Now().Add(-time.Hour) // a long batch makes a long rest
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		s.rest(ctx, &b)
		return ctx.Err() != nil
	}
	if !rests(batch{count: busy, endTime: now}) {
		t.Error("it does not rest under load")
	}
	if rests(batch{count: busy - 1, endTime: now}) {
		t.Error("it rests without load")
	}
	if rests(batch{count: busy, endTime: now.Add(-2 * time.Second)}) {
		t.Error("it rests though it is two seconds behind")
	}
	s.cfg.Progress.want()
	if rests(batch{count: busy, endTime: now}) {
		t.Error("it rests though somebody waits")
	}
}
