package eventlog

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

// follow takes n entries from a tail, and fails the test unless they come one
// after another, the first after a sequence.
func follow(t *testing.T, tail *Tail, after uint64, n int) []Entry {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), natstest.Patience)
	defer cancel()
	var all []Entry
	for range n {
		e, err := tail.Next(ctx)
		if err != nil {
			t.Fatalf("after %d: %v", after, err)
		}
		if after++; e.Seq != after {
			t.Fatalf("got %d, not %d", e.Seq, after)
		}
		all = append(all, e)
	}
	return all
}

func followFrom(t *testing.T, l *Log, after uint64) *Tail {
	t.Helper()
	tail, err := l.Tail(t.Context(), "test", after)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tail.Stop)
	return tail
}

func TestTail(t *testing.T) {
	t.Parallel()
	l := start(t)
	a := newAuthor(1)
	empty := followFrom(t, l, 0)
	a.write(t, l, 1200, 1)
	whole, middle, end := followFrom(t, l, 0), followFrom(t, l, 700), followFrom(t, l, 1200)
	follow(t, empty, 0, 1200)
	for _, e := range follow(t, whole, 0, 1200) {
		if e.Broken != nil || e.Commit.Seq != e.Seq || time.Since(e.Time) > time.Minute {
			t.Fatalf("got %+v", e)
		}
	}
	follow(t, middle, 700, 500)
	if n := end.Waiting(); n != 0 {
		t.Errorf("%d wait at the end", n)
	}
	a.write(t, l, 10, 1)
	for _, tail := range []*Tail{empty, whole, middle, end} {
		follow(t, tail, 1200, 10)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	if _, err := end.Next(ctx); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}

func TestTailSince(t *testing.T) {
	t.Parallel()
	l := start(t)
	a := newAuthor(1)
	a.write(t, l, 3, 1)
	tail := followFrom(t, l, 2)
	at := follow(t, tail, 2, 1)[0].Time
	a.write(t, l, 2, 1)
	since, err := l.TailSince(t.Context(), "test", at)
	if err != nil {
		t.Fatal(err)
	}
	defer since.Stop()
	follow(t, since, 2, 3)
}

func TestTailCountsWhatIsBroken(t *testing.T) {
	t.Parallel()
	m := &told{}
	l := openLog(t, natstest.Connect(t, natstest.Start(t)), Config{}, m)
	a := newAuthor(1)
	a.write(t, l, 2, 1)
	want := spoilt(t, l, a.thread)
	a.seq = want[len(want)-1]
	a.write(t, l, 2, 1)
	for _, e := range follow(t, followFrom(t, l, 0), 0, len(want)+4) {
		var bad *events.BrokenError
		if broken := slices.Contains(want, e.Seq); broken != (e.Commit == nil) || broken != errors.As(e.Broken, &bad) || broken && bad.Seq != e.Seq {
			t.Errorf("entry %d: %v", e.Seq, e.Broken)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if got := slices.Sorted(maps.Keys(m.broken)); !slices.Equal(got, want) {
		t.Errorf("counted were %v, not %v", got, want)
	}
}

func TestTailAcrossARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := natstest.Start(t, natstest.StoreDir(dir))
	p := natstest.NewProxy(t, s.URL())
	l := openLog(t, p.Connect(t), Config{}, nil)
	a := newAuthor(1)
	a.write(t, l, 100, 1)
	tail := followFrom(t, l, 0)
	follow(t, tail, 0, 50)
	s.Shutdown()
	s = natstest.Start(t, natstest.StoreDir(dir))
	p.Lead(t, s.URL())
	p.Cut()
	natstest.Eventually(t, "the log to take a commit", func() bool {
		w := a.next(t, 1)
		err := l.Append(t.Context(), w)
		if err == nil {
			a.stored(w.Commit)
		}
		return err == nil
	})
	a.write(t, l, 49, 1)
	follow(t, tail, 50, 100)
}

func TestTailThroughABadConnection(t *testing.T) {
	t.Parallel()
	direct := start(t)
	p := natstest.NewProxy(t, direct.conn.NATS().ConnectedUrl())
	l := openLog(t, p.Connect(t), Config{}, nil)
	tail := followFrom(t, l, 0)
	a := newAuthor(1)
	for round := range 4 {
		a.write(t, direct, 150, 1)
		follow(t, tail, uint64(150*round), 20)
		p.Cut()
		follow(t, tail, uint64(150*round+20), 130)
	}
}

// Large commits are not read ahead beyond a number of bytes.
func TestATailIsBoundedInBytes(t *testing.T) {
	t.Parallel()
	l := start(t)
	a := newAuthor(1)
	const size, commits = 1 << 20, 40
	for range commits {
		w := Write{Commit: a.draft(t, 1, size), Expected: a.seq}
		must(t, l.Append(t.Context(), w))
		a.stored(w.Commit)
	}
	tail := followFrom(t, l, 0)
	const most = tailBytes / size
	natstest.Eventually(t, "a full tail", func() bool { return tail.Waiting() >= most })
	for n := range uint64(commits) {
		if waiting := tail.Waiting(); waiting > most {
			t.Fatalf("%d commits of a mebibyte are read ahead", waiting)
		}
		follow(t, tail, n, 1)
	}
}

func TestTail_StopsWithoutAReader(t *testing.T) {
	t.Parallel()
	l := start(t)
	newAuthor(1).write(t, l, tailAhead+200, 1)
	tail, err := l.Tail(t.Context(), "test", 0)
	if err != nil {
		t.Fatal(err)
	}
	natstest.Eventually(t, "a full channel", func() bool { return tail.Waiting() == tailAhead })
	stopped := make(chan struct{})
	go func() {
		tail.Stop()
		tail.Stop()
		close(stopped)
	}()
	natstest.Within(t, "the tail to stop", stopped)
	if _, err := tail.Next(t.Context()); err == nil {
		t.Error("a stopped tail goes on")
	}
	stream, err := l.conn.JetStream().Stream(t.Context(), l.cfg.Names.Stream(assets.LogStream))
	if err != nil {
		t.Fatal(err)
	}
	if n := stream.CachedInfo().State.Consumers; n != 0 {
		t.Errorf("%d consumers are left on the server", n)
	}
}

func TestStopAReaderThatWaits(t *testing.T) {
	t.Parallel()
	l := start(t)
	tail := followFrom(t, l, 0)
	answer := make(chan error, 1)
	go func() {
		_, err := tail.Next(context.Background())
		answer <- err
	}()
	tail.Stop()
	if err := natstest.Within(t, "the reader", answer); err == nil {
		t.Error("it was given something")
	}
}

func TestTailOfAClosedConnectionEnds(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t)
	nc := natstest.Connect(t, s)
	l, err := Open(nc, Config{}, zerolog.Nop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	if err := l.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	tail := followFrom(t, l, 0)
	nc.Close()
	answer := make(chan error, 1)
	go func() {
		_, err := tail.Next(context.Background())
		answer <- err
	}()
	if err := natstest.Within(t, "the reader", answer); err == nil {
		t.Error("it was given something")
	}
}
