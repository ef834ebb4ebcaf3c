package projections

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
)

// The runner may pause to fill a batch, but a query that waits for a recent write ends the
// pause.
func TestRunner_WaitingQueryEndsPause(t *testing.T) {
	h := newHouse(t)
	r, _ := h.run(Config{Linger: time.Hour, Rest: time.Hour})
	for range 3 {
		reply := h.Do("thread.create", "", `{}`)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if err := r.Progress().Wait(ctx, uint64(reply.Seq)); err != nil {
			t.Fatalf("the reader waited with the runner: %v", err)
		}
		cancel()
	}
}

// Under load a batch is due after a pause, or at once when its oldest commit is too old.
func TestRunner_RestsUnderLoad(t *testing.T) {
	now := time.Now()
	s := &session{Runner: &Runner{cfg: Config{Rest: time.Hour, RestLag: time.Second, Now: func() time.Time { return now }}.withDefaults()}}
	rests := func(before, next batch) bool {
		before.start = now.Add(-time.Hour) // a long batch makes a long rest
		s.rest(&before)
		now = now.Add(breath)
		return !s.due(&next)
	}
	if !rests(batch{count: busy, several: true}, batch{oldest: now}) {
		t.Error("it does not rest under load")
	}
	if rests(batch{count: busy - 1, several: true}, batch{oldest: now}) {
		t.Error("it rests for more than a breath without load")
	}
	if rests(batch{count: 10 * busy}, batch{oldest: now}) {
		t.Error("it rests for more than a breath after commits of one thread")
	}
	if rests(batch{count: busy, several: true}, batch{oldest: now.Add(-2 * time.Second)}) {
		t.Error("it rests though it is two seconds behind")
	}
	s.rest(&batch{count: busy, several: true, start: now.Add(-time.Minute)})
	if rest := s.notBefore.Sub(now); rest != 6*time.Minute {
		t.Errorf("after a batch of a minute it rests for %v", rest)
	}
}

// However a batch follows the one before, a rest ends by itself: within a breath after commits of one
// thread, and within the longest rest after others. A reader that waits ends it at once.
func TestRunner_RestsEnd(t *testing.T) {
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			upTo := func(d time.Duration) time.Duration { return time.Duration(random.Int64N(int64(d))) }
			s := &session{Runner: &Runner{cfg: Config{Progress: buckets.NewProgress()}.withDefaults()}}
			before := &batch{count: 1 + random.IntN(2*busy), several: random.IntN(2) == 0, start: time.Now()}
			time.Sleep(upTo(300 * time.Millisecond))
			s.rest(before)
			stored, longest := time.Now(), breath
			if before.several && before.count >= busy {
				longest = s.cfg.Rest
			}
			time.Sleep(upTo(2 * breath))
			wanted := random.IntN(2) == 0
			came, next := time.Now(), &batch{oldest: time.Now()}
			if wanted {
				longest = came.Sub(stored)
				s.cfg.Progress.Want()
			}
			for ended := false; !ended && !s.due(next); {
				ended = s.breathe(t.Context())
			}
			if rest := time.Since(stored); rest > max(longest, came.Sub(stored)) {
				t.Errorf("seed %d: it rests for %v after a batch of %d commits, wanted: %v", seed, rest, before.count, wanted)
			}
		})
	}
}

// A lone commit soon after another waits for the rest of a breath and no longer, unless a reader
// wants it.
func TestRunner_RestsForABreath(t *testing.T) {
	h := newHouse(t)
	var clock atomic.Int64
	began := time.Now()
	// Its clock stands still, so that only what this test does ends a rest. The lag counts from
	// the server's clock, and is out of the way.
	r, _ := h.run(Config{Linger: -1, RestLag: time.Hour, Now: func() time.Time { return began.Add(time.Duration(clock.Load())) }})
	create := func() uint64 { return uint64(h.Do("thread.create", "", `{}`).Seq) }
	reaches := func(seq uint64) { // without wanting it
		t.Helper()
		for {
			now, change := r.Progress().Now()
			if now >= seq {
				return
			}
			natstest.Within(t, "the read models to advance", change)
		}
	}
	first := create()
	reaches(first)
	var second uint64
	for range 10 {
		second = create()
	}
	if now := r.Progress().Seq(); now > first {
		t.Errorf("commit %d was stored within a breath of the last batch", now)
	}
	clock.Add(int64(breath))
	reaches(second)
	third := create()
	ctx, cancel := context.WithTimeout(t.Context(), natstest.Patience)
	defer cancel()
	if err := r.Progress().Wait(ctx, third); err != nil {
		t.Errorf("a reader waited for the rest to end: %v", err)
	}
}

// While a batch is not due, arriving commits are folded, and a document that changes with
// all of them is written once.
func TestRunner_FoldsWhileItRests(t *testing.T) {
	h := newHouse(t)
	id := h.Do("thread.create", "", `{}`).ThreadID
	const items = 2 * busy
	last := uint64(0)
	for range items {
		last = uint64(h.Do("item.create", id, `{"item":{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}}`).Seq)
	}
	whole := documents.Place{Kind: documents.Threads, Thread: documents.ThreadName(acme, id)}
	var s *session
	r := New(h.NewLog(), Config{Linger: -1, RestLag: time.Minute, Now: func() time.Time {
		if s != nil && s.cache.node(whole).slot.Seq == last {
			return time.Now().Add(time.Hour) // all of it is folded: it has rested long enough
		}
		return time.Now()
	}}, zerolog.Nop(), nil)
	s, err := r.newSession(t.Context(), t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.notBefore, s.nextTick = time.Now().Add(time.Hour), time.Now().Add(time.Hour)
	tail, err := s.log.Tail(t.Context(), "test", s.from())
	if err != nil {
		t.Fatal(err)
	}
	defer tail.Stop()
	b, err := s.gather(t.Context(), tail)
	if err != nil {
		t.Fatal(err)
	}
	if b.count != 1+items || b.end != last {
		t.Errorf("%d commits up to %d were gathered, want %d up to %d", b.count, b.end, 1+items, last)
	}
	// Besides the items and their index: the thread, its context, and two of the list of contexts.
	if want := 4 + items + items/documents.PageSize; len(s.dirty) != want {
		t.Errorf("%d documents are to be written, want %d", len(s.dirty), want)
	}
	if err := s.store(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if got := r.Progress().Seq(); got != last {
		t.Errorf("stored up to %d, want %d", got, last)
	}
}
