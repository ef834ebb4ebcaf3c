package eventlog

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/internal/natstest"
)

// consumers returns the names of the log's consumers.
func consumers(t *testing.T, l *Log) []string {
	t.Helper()
	stream, err := l.conn.JetStream().Stream(t.Context(), l.cfg.Names.Stream(assets.LogStream))
	must(t, err)
	var names []string
	list := stream.ConsumerNames(t.Context())
	for name := range list.Name() {
		names = append(names, name)
	}
	must(t, list.Err())
	return names
}

// writeMuch appends commits to many aggregates at once until stop is called.
func writeMuch(t *testing.T, l *Log, first int) (stop func()) {
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
	return sync.OnceFunc(func() {
		cancel()
		writing.Wait()
	})
}

// startOwn returns the log of a process whose tails follow its own commits, also on a slow
// machine.
func startOwn(t *testing.T) *Log {
	t.Helper()
	l := start(t)
	l.cfg.Recent = &Recent{}
	l.ownPace = ownPace{run: 64, within: time.Hour, silence: 3 * time.Second, look: 50 * time.Millisecond, gap: 10 * time.Millisecond}
	return l
}

// While a process writes much and alone, its tail has no consumer. It delivers the commits of
// others too, each once and in order, and reads the log again when its process is silent.
func TestTail_FollowsTheCommitsOfItsProcess(t *testing.T) {
	t.Parallel()
	l := startOwn(t)
	other := sibling(t, l)
	other.cfg.Recent = nil
	tail := followFrom(t, l, 0)
	stop := writeMuch(t, l, 100)
	defer stop()
	natstest.Eventually(t, "the tail has no consumer", func() bool { return len(consumers(t, l)) == 0 })
	end, stranger := uint64(0), newAuthor(1)
	take := func(until func(Entry) bool) {
		t.Helper()
		for {
			e, err := tail.Next(t.Context())
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
	for range 3 { // a commit of another process among them
		w := stranger.next(t, 1)
		must(t, other.Append(t.Context(), w))
		stranger.stored(w.Commit)
		take(func(e Entry) bool { return e.Commit.Chain == w.Commit.Chain })
		for len(consumers(t, l)) > 0 { // and then it is alone again, while its reader takes what comes
			n := 0
			take(func(Entry) bool { n++; return n == 50 })
		}
	}
	stop()
	last, err := l.LastSeq(t.Context())
	must(t, err)
	take(func(e Entry) bool { return e.Seq == last })
	natstest.Eventually(t, "the silent tail has a consumer", func() bool { return len(consumers(t, l)) == 1 })
	stranger.write(t, other, 1, 1)
	take(func(e Entry) bool { return e.Seq == last+1 })
	tail.Stop()
	natstest.Eventually(t, "the stopped tail has no consumer", func() bool { return len(consumers(t, l)) == 0 })
}

// A reader that falls behind what is kept in memory finds the rest in the log.
func TestTail_ReadsTheLogWhereItFallsBehind(t *testing.T) {
	t.Parallel()
	l := startOwn(t)
	tail := followFrom(t, l, 0)
	stop := writeMuch(t, l, 100)
	defer stop()
	natstest.Eventually(t, "the tail has no consumer", func() bool { return len(consumers(t, l)) == 0 })
	natstest.Eventually(t, "more is written than is kept", func() bool {
		last, err := l.LastSeq(t.Context())
		must(t, err)
		return last > tailAhead+2*recentCommits
	})
	stop()
	last, err := l.LastSeq(t.Context())
	must(t, err)
	follow(t, tail, 0, int(last))
}

// What was acknowledged before a tail began is not used: a server that lost its power may have
// lost it, and have stored another commit at that sequence.
func TestRecent_BeforeATailBegan(t *testing.T) {
	t.Parallel()
	r, a := &Recent{}, newAuthor(1)
	w := a.next(t, 1)
	r.put(w.Commit)
	w.Commit.Seq = 7
	acknowledged := time.Now()
	before, after := acknowledged.Add(-time.Hour), acknowledged.Add(time.Hour)
	_, next, passed := r.at(7, before)
	if passed || !r.follows(7, before) {
		t.Error("nothing past it was acknowledged")
	}
	r.acknowledged(&unit{writes: []Write{w}})
	select {
	case <-next:
		t.Error("who waits was told before the caller was answered")
	default:
	}
	r.wake()
	select {
	case <-next:
	default:
		t.Error("who waits was not told")
	}
	if e, _, _ := r.at(7, before); e.Commit == nil || e.Commit.Seq != 7 || e.Seq != 7 || e.Commit.Chain != w.Commit.Chain || !e.Time.After(before) || !r.follows(7, before) {
		t.Errorf("got %+v", e)
	}
	if e, _, passed := r.at(7, after); e.Commit != nil || !passed || r.follows(7, after) {
		t.Errorf("got %+v, past it: %v", e, passed)
	}
}

// A tail that follows its own process receives a commit when it is acknowledged, however it was
// written: alone, with others, or as an atomic batch.
func TestTail_ReceivesOwnCommitsWhenAcknowledged(t *testing.T) {
	t.Parallel()
	l := startOwn(t)
	l.ownPace.look, l.ownPace.silence, l.ownPace.gap = time.Hour, 3*time.Hour, time.Hour // it waits for signals alone
	tail := followFrom(t, l, 0)
	stop := writeMuch(t, l, 100)
	natstest.Eventually(t, "the tail has no consumer", func() bool { return len(consumers(t, l)) == 0 })
	stop()
	one, two := newAuthor(1), newAuthor(2)
	for range 3 {
		w := one.next(t, 1)
		must(t, l.Append(t.Context(), w))
		one.stored(w.Commit)
		both := []Write{one.next(t, 1), two.next(t, 1)}
		must(t, l.Append(t.Context(), both...))
		one.stored(both[0].Commit)
		two.stored(both[1].Commit)
		ctx, cancel := context.WithTimeout(t.Context(), natstest.Patience)
		for {
			e, err := tail.Next(ctx)
			if err != nil {
				t.Fatalf("waiting for commit %d: %v", two.seq, err)
			}
			if e.Seq == two.seq {
				break
			}
		}
		cancel()
	}
}
