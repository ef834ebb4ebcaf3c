package projections

import (
	"context"
	"testing"
	"time"

	"github.com/rs/zerolog"

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
		before.start = time.Now().Add(-time.Hour) // a long batch makes a long rest
		s.rest(&before)
		return !s.due(&next)
	}
	if !rests(batch{count: busy}, batch{oldest: now}) {
		t.Error("it does not rest under load")
	}
	if rests(batch{count: busy - 1}, batch{oldest: now}) {
		t.Error("it rests without load")
	}
	if rests(batch{count: busy}, batch{oldest: now.Add(-2 * time.Second)}) {
		t.Error("it rests though it is two seconds behind")
	}
	began := time.Now()
	s.rest(&batch{count: busy, start: began.Add(-time.Minute)})
	if rest := s.notBefore.Sub(began); rest < 6*time.Minute || rest > 7*time.Minute {
		t.Errorf("after a batch of a minute it rests for %v", rest)
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
