package eventlog

import (
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// A commit that this process stored comes back as it was made, for the very
// same bytes only; another process's is decoded.
func TestRecent(t *testing.T) {
	t.Parallel()
	l := start(t)
	l.cfg.Recent = &Recent{}
	a := newAuthor(1)
	w := a.next(t, 3)
	if err := l.Append(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	c := w.Commit
	if got := l.cfg.Recent.get(c.Seq, c.Chain, slices.Clone(c.Body)); got != c {
		t.Errorf("it was not kept: %v", got)
	}
	altered := slices.Clone(c.Body)
	altered[len(altered)/2] ^= 1
	if l.cfg.Recent.get(c.Seq, c.Chain, altered) != nil || l.cfg.Recent.get(c.Seq, "another", c.Body) != nil || l.cfg.Recent.get(c.Seq+recentCommits, c.Chain, c.Body) != nil {
		t.Error("it was given for other bytes, another chain or another sequence")
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
		if same := e.Commit == c; same != (name == "its own process") {
			t.Errorf("%s: the commit as it was made: %v", name, same)
		}
		for i := range e.Commit.Events {
			if string(e.Commit.Events[i].Raw()) != string(c.Events[i].Raw()) || len(c.Events[i].Raw()) == 0 {
				t.Errorf("%s: event %d has other bytes", name, i)
			}
		}
		tail.Stop()
	}
}

// After a large write a small one waits for company, as long as it was told and
// no longer; enough company ends the wait.
func TestASmallWriteWaitsForCompany(t *testing.T) {
	t.Parallel()
	l := &Log{queue: make(chan *unit, 10), cfg: Config{}.WithDefaults(), wire: &nats.Conn{}}
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
	case <-time.After(patience):
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
	if p.enough != 20 || p.wait != longestWait {
		t.Errorf("after forty: %+v", p)
	}
	for range 4 { // it is given up when nobody comes back
		p = p.after(big[:1], time.Millisecond)
	}
	if p != (pace{}) {
		t.Errorf("after small ones: %+v", p)
	}
}
