package eventlog

import (
	"context"
	"sync"
	"testing"
	"time"
)

// consumers gives the names of the log's consumers.
func consumers(t *testing.T, l *Log) []string {
	t.Helper()
	stream, err := l.conn.JetStream().Stream(t.Context(), l.cfg.Names.Stream(LogStream))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	list := stream.ConsumerNames(t.Context())
	for name := range list.Name() {
		names = append(names, name)
	}
	if err := list.Err(); err != nil {
		t.Fatal(err)
	}
	return names
}

// awaitConsumers waits until the log has so many consumers.
func awaitConsumers(t *testing.T, l *Log, n int) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		names := consumers(t, l)
		if len(names) == n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the log has the consumers %v, not %d", names, n)
		}
	}
}

// busyWith writes commits of many aggregates at once until stop is called.
func busyWith(t *testing.T, l *Log, first int) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	for n := range 32 {
		a := newAuthor(first + n)
		writing.Go(func() {
			for ctx.Err() == nil {
				w := a.next(t, 1)
				if err := l.Append(t.Context(), w); err != nil {
					t.Error(err)
					return
				}
				a.stored(w.Commit)
			}
		})
	}
	return func() {
		cancel()
		writing.Wait()
	}
}

// startOwn gives the log of a process that follows its own commits also on a
// machine that is slow.
func startOwn(t *testing.T) *Log {
	t.Helper()
	l := start(t)
	l.cfg.Recent = &Recent{}
	l.ownPace = ownPace{run: 64, within: time.Hour, silence: 3 * time.Second, look: 50 * time.Millisecond, gap: 10 * time.Millisecond}
	return l
}

// A tail of a process that writes much has no consumer: it takes what was
// acknowledged. In between others write, and it gives their commits too, each
// once and in order; when nobody writes it reads the log again.
func TestTailFollowsItsOwnProcess(t *testing.T) {
	t.Parallel()
	l := startOwn(t)
	other := sibling(t, l)
	other.cfg.Recent = nil
	tail := followFrom(t, l, 0)
	stop := busyWith(t, l, 100)
	defer stop()
	awaitConsumers(t, l, 0)
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	end, stranger := uint64(0), newAuthor(1)
	take := func(until func(Entry) bool) {
		t.Helper()
		for {
			e, err := tail.Next(ctx)
			if err != nil {
				t.Fatalf("after %d: %v", end, err)
			}
			if end++; e.Seq != end || e.Commit == nil || e.Commit.Seq != end || e.Time.IsZero() {
				t.Fatalf("after %d: %+v", end-1, e)
			}
			if until(e) {
				return
			}
		}
	}
	for range 3 { // a stranger among them
		w := stranger.next(t, 1)
		if err := other.Append(ctx, w); err != nil {
			t.Fatal(err)
		}
		stranger.stored(w.Commit)
		take(func(e Entry) bool { return e.Commit.Chain == w.Commit.Chain })
		// And then it is alone again, while its reader takes what comes.
		for len(consumers(t, l)) > 0 {
			n := 0
			take(func(Entry) bool { n++; return n == 50 })
		}
	}
	stop()
	last, err := l.LastSeq(ctx)
	if err != nil {
		t.Fatal(err)
	}
	take(func(e Entry) bool { return e.Seq == last })
	awaitConsumers(t, l, 1) // it is silent: it looks out for others
	stranger.write(t, other, 1, 1)
	take(func(e Entry) bool { return e.Seq == last+1 })
	tail.Stop()
	awaitConsumers(t, l, 0)
}

// A reader that falls behind what is kept finds the rest in the log.
func TestTailFallsBehindItsOwnProcess(t *testing.T) {
	t.Parallel()
	l := startOwn(t)
	tail := followFrom(t, l, 0)
	stop := busyWith(t, l, 100)
	defer stop()
	awaitConsumers(t, l, 0)
	for deadline := time.Now().Add(8 * patience); ; time.Sleep(10 * time.Millisecond) {
		last, err := l.LastSeq(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if last > 2*tailAhead+2*recentCommits {
			break
		}
		if time.Now().After(deadline) {
			t.Skipf("this machine has written %d commits in a while", last)
		}
	}
	stop()
	last, err := l.LastSeq(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	follow(t, tail, 0, int(last))
}

// What was acknowledged before a tail began is not believed: a server that lost
// its power may have lost it, and have stored something else there.
func TestAcknowledgedBefore(t *testing.T) {
	t.Parallel()
	r, a := &Recent{}, newAuthor(1)
	w := a.next(t, 1)
	r.put(w.Commit)
	w.Commit.Seq = 7
	before := time.Now()
	_, _, told, past := r.at(7, before)
	if past || !r.follows(7, before) {
		t.Error("the log has not gone past it")
	}
	time.Sleep(time.Millisecond)
	r.acknowledged(&unit{writes: []Write{w}})
	select {
	case <-told:
	default:
		t.Error("nobody was told")
	}
	if c, when, _, _ := r.at(7, before); c == nil || c.Seq != 7 || c.Chain != w.Commit.Chain || !when.After(before) || !r.follows(7, before) {
		t.Errorf("got %+v", c)
	}
	if c, _, _, past := r.at(7, time.Now()); c != nil || !past || r.follows(7, time.Now()) {
		t.Errorf("got %+v, past it: %v", c, past)
	}
}
