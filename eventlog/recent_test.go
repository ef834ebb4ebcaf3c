package eventlog

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

// A commit that this process stored comes back as it was made, for the very
// same bytes only; another process's is decoded.
func TestRecent(t *testing.T) {
	t.Parallel()
	l := start(t)
	recent := &Recent{}
	l.cfg.Recent = recent
	a := newAuthor(1)
	w := a.next(t, 3)
	if err := l.Append(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	c := w.Commit
	asMade := func(got *events.Commit) bool { return got != nil && &got.Events[0] == &c.Events[0] }
	if got := recent.get(c.Seq, c.Chain, slices.Clone(c.Body)); !asMade(got) || got.Seq != c.Seq {
		t.Errorf("it was not kept: %v", got)
	}
	altered := slices.Clone(c.Body)
	altered[len(altered)/2] ^= 1
	if recent.get(c.Seq, c.Chain, altered) != nil || recent.get(c.Seq, "another", c.Body) != nil {
		t.Error("it was given for other bytes or another chain")
	}
	for name, reader := range map[string]*Log{"its own process": l, "another": sibling(t, l)} {
		if name == "another" {
			reader.cfg.Recent = nil
		}
		tail, err := reader.Tail(t.Context(), "test", 0)
		if err != nil {
			t.Fatal(err)
		}
		e, err := tail.Next(t.Context())
		if err != nil || e.Commit == nil {
			t.Fatal(e.Broken, err)
		}
		if asMade(e.Commit) != (name == "its own process") || e.Commit.Seq != c.Seq {
			t.Errorf("%s: the commit as it was made: %v, at %d", name, asMade(e.Commit), e.Commit.Seq)
		}
		for i := range e.Commit.Events {
			if string(e.Commit.Events[i].Raw()) != string(c.Events[i].Raw()) || len(c.Events[i].Raw()) == 0 {
				t.Errorf("%s: event %d has other bytes", name, i)
			}
		}
		tail.Stop()
	}
}

// What is kept is bounded in number and in bytes; the oldest goes first.
func TestRecentIsBounded(t *testing.T) {
	t.Parallel()
	keep := func(r *Recent, n, size int) (chain string, body []byte) {
		chain, body = fmt.Sprint(n), make([]byte, size)
		r.put(&events.Commit{Chain: chain, Body: body})
		return chain, body
	}
	for _, c := range []struct{ size, most int }{{1, recentCommits}, {recentBytes / 32, 32}} {
		r := &Recent{}
		for n := range 3*c.most + 5 {
			chain, body := keep(r, n, c.size)
			if r.get(1, chain, body) == nil {
				t.Fatalf("%d of %d bytes was not kept", n, c.size)
			}
			keep(r, n, c.size) // a repeat is kept once
			if want := min(n+1, c.most); len(r.kept) != want || r.bytes != want*c.size {
				t.Fatalf("after %d of %d bytes, %d are kept, %d bytes", n, c.size, len(r.kept), r.bytes)
			}
		}
		if r.get(1, fmt.Sprint(2*c.most+4), make([]byte, c.size)) != nil || r.get(1, fmt.Sprint(2*c.most+5), make([]byte, c.size)) == nil {
			t.Error("it is not the oldest that went")
		}
	}
	r := &Recent{}
	if chain, body := keep(r, 1, recentBytes/32+1); r.get(1, chain, body) != nil {
		t.Error("a very large one was kept")
	}
	for n := range 3 { // after it has forgotten, it keeps again
		chain, body := keep(r, n, 10)
		if r.Forget(); r.get(1, chain, body) != nil || r.bytes != 0 || len(r.kept) != 0 {
			t.Errorf("%d bytes in %d commits were not forgotten", r.bytes, len(r.kept))
		}
		if keep(r, n, 10); r.get(1, chain, body) == nil {
			t.Error("it keeps nothing any more")
		}
	}
}

// After a large write a small one waits to fill a batch, no longer than its pause; enough
// others end the wait.
func TestPace_SmallWriteWaitsToFillABatch(t *testing.T) {
	t.Parallel()
	l := &Log{queue: make(chan *unit, 10), cfg: Config{}.WithDefaults(), conn: start(t).conn}
	wait := pace{enough: 3, wait: time.Hour}
	first := unitOf(t, l, newAuthor(1).next(t, 1))
	done := make(chan int)
	go func() {
		group, _ := l.gather(first, nil, wait)
		done <- len(group)
	}()
	l.queue <- unitOf(t, l, newAuthor(2).next(t, 1))
	l.queue <- unitOf(t, l, newAuthor(3).next(t, 1))
	select {
	case n := <-done:
		if n != 3 {
			t.Errorf("%d went", n)
		}
	case <-time.After(natstest.Patience):
		t.Fatal("three are enough, and it waited on")
	}
	if group, _ := l.gather(first, nil, pace{enough: 3, wait: time.Millisecond}); len(group) != 1 {
		t.Errorf("%d went", len(group))
	}
	big := make([]*unit, 40)
	for i := range big {
		big[i] = unitOf(t, l, newAuthor(10+i).next(t, 1))
	}
	p := pace{}.after(big, time.Second)
	if p.enough != 30 || p.wait != longestWait {
		t.Errorf("after forty: %+v", p)
	}
	for range 5 { // it is given up when nobody comes back
		p = p.after(big[:1], time.Millisecond)
	}
	if p != (pace{}) {
		t.Errorf("after small ones: %+v", p)
	}
}
