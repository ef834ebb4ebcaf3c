package eventlog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/internal/natstest"
)

// impatient is how long the logs of these tests wait for an acknowledgement.
const impatient = 300 * time.Millisecond

// patiently makes attempts whose log waits longer and longer for an acknowledgement,
// until one is told of every commit: it asks for as long as three acknowledgements may
// take, and the machine may stand still for longer than the shortest.
func patiently(t *testing.T, attempt func(wait time.Duration) (unknown error)) {
	t.Helper()
	var unknown error
	for _, wait := range []time.Duration{4 * impatient, 10 * time.Second, time.Minute} {
		if unknown = attempt(wait); unknown == nil || t.Failed() {
			return
		}
		t.Logf("with %v: %v", wait, unknown)
	}
	t.Error(unknown)
}

// doubtful returns the units whose acknowledgements the tests lose.
func doubtful(t *testing.T, l *Log) map[string][]*unit {
	t.Helper()
	var pairs []*unit
	for i := range 3 {
		pairs = append(pairs, unitOf(t, l, newAuthor(2*i).next(t, 1), newAuthor(2*i+1).next(t, 2)))
	}
	return map[string][]*unit{
		"a lone commit":   group(t, l, 0, 1),
		"a large commit":  {unitOf(t, l, Write{Commit: newAuthor(0).draft(t, 8, 200<<10)})},
		"a few":           group(t, l, 0, Crossover),
		"a batch":         group(t, l, 0, 40),
		"a pair":          pairs[:1],
		"several pairs":   pairs,
		"both in a batch": append(pairs, group(t, l, 100, 10)...),
	}
}

// settled fails the test unless every unit was stored, once, where it says, or it is
// not known of one whether it was.
func settled(t *testing.T, direct *Log, units []*unit) (unknown error) {
	t.Helper()
	n := 0
	for i, u := range units {
		var doubt *UnknownError
		if err := answer(t, u); errors.As(err, &doubt) {
			unknown = err
		} else if err != nil {
			t.Errorf("unit %d: %v", i, err)
		}
		n += len(u.writes)
	}
	if unknown != nil {
		return unknown
	}
	for _, u := range units {
		for _, w := range u.writes {
			inLog(t, direct, w.Commit)
		}
	}
	if stored := len(history(t, direct)); stored != n {
		t.Errorf("%d commits are stored, not %d", stored, n)
	}
	return nil
}

// answer returns what the writer of a unit is told, however long the log asks.
func answer(t *testing.T, u *unit) error {
	t.Helper()
	select {
	case err := <-u.done:
		return err
	case <-time.After(5 * time.Minute):
		t.Fatal("a unit has no answer")
		return nil
	}
}

func commits(units []*unit) uint64 {
	n := 0
	for _, u := range units {
		n += len(u.writes)
	}
	return uint64(n)
}

// holds reports whether the log ends at a sequence.
func holds(t *testing.T, l *Log, seq uint64) func() bool {
	return func() bool {
		last, err := l.LastSeq(t.Context())
		return err == nil && last == seq
	}
}

func TestAppend_LostAcknowledgement(t *testing.T) {
	t.Parallel()
	for name := range doubtful(t, &Log{cfg: Config{}.WithDefaults(), conn: start(t).conn}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			patiently(t, func(wait time.Duration) error {
				direct := start(t)
				p := natstest.NewProxy(t, direct.conn.NATS().ConnectedUrl())
				l := openLog(t, p.Connect(t), Config{AckTimeout: wait}, nil)
				units := doubtful(t, l)[name]
				p.DropReceived.Store(true)
				go l.write(units)
				natstest.Eventually(t, "the commits in the log", holds(t, direct, commits(units)))
				p.Cut()
				return settled(t, direct, units)
			})
		})
	}
}

func TestAppend_LostMessage(t *testing.T) {
	t.Parallel()
	for name := range doubtful(t, &Log{cfg: Config{}.WithDefaults(), conn: start(t).conn}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			patiently(t, func(wait time.Duration) error {
				direct := start(t)
				p := natstest.NewProxy(t, direct.conn.NATS().ConnectedUrl())
				l := openLog(t, p.Connect(t), Config{AckTimeout: wait}, nil)
				units := doubtful(t, l)[name]
				p.DropSent.Store(true)
				go l.write(units)
				size := 0
				for _, u := range units {
					size += u.bytes
				}
				natstest.Eventually(t, "all to be lost", func() bool { return p.Lost.Load() > int64(size) })
				p.Cut()
				return settled(t, direct, units)
			})
		})
	}
}

func TestOutcome_ServerRestarts(t *testing.T) {
	t.Parallel()
	for name := range doubtful(t, &Log{cfg: Config{}.WithDefaults(), conn: start(t).conn}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			patiently(t, func(wait time.Duration) error {
				dir := t.TempDir()
				s := natstest.Start(t, natstest.StoreDir(dir))
				direct := openLog(t, natstest.Connect(t, s), Config{}, nil)
				p := natstest.NewProxy(t, s.URL())
				l := openLog(t, p.Connect(t), Config{AckTimeout: wait}, nil)
				units := doubtful(t, l)[name]
				p.DropReceived.Store(true)
				go l.write(units)
				natstest.Eventually(t, "the commits in the log", holds(t, direct, commits(units)))
				s.Shutdown()
				s = natstest.Start(t, natstest.StoreDir(dir))
				p.Lead(t, s.URL())
				p.Cut()
				return settled(t, openLog(t, natstest.Connect(t, s), Config{}, nil), units)
			})
		})
	}
}

func TestJetStreamIsAwayForAMoment(t *testing.T) {
	t.Parallel()
	patiently(t, func(wait time.Duration) error {
		direct := start(t)
		empty := natstest.Start(t)
		p := natstest.NewProxy(t, direct.conn.NATS().ConnectedUrl())
		l := openLog(t, p.Connect(t), Config{AckTimeout: wait}, nil)
		asked, err := natstest.Connect(t, empty).SubscribeSync("$JS.API.STREAM.MSG.GET.>")
		if err != nil {
			t.Fatal(err)
		}
		units := group(t, l, 0, 20)
		p.DropReceived.Store(true)
		go l.write(units)
		natstest.Eventually(t, "the commits in the log", holds(t, direct, commits(units)))
		p.Lead(t, empty.URL()) // it has no log, and does not know
		p.Cut()
		if _, err := asked.NextMsg(natstest.Patience); err != nil {
			t.Fatal(err)
		}
		p.Lead(t, direct.conn.NATS().ConnectedUrl())
		p.Cut()
		return settled(t, direct, units)
	})
}

func TestOutcome_StaysUnknown(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 20} {
		direct := start(t)
		p := natstest.NewProxy(t, direct.conn.NATS().ConnectedUrl())
		l := openLog(t, p.Connect(t), Config{AckTimeout: impatient}, nil)
		units := group(t, l, 0, n)
		p.DropReceived.Store(true)
		go l.write(units)
		natstest.Eventually(t, "the commits in the log", holds(t, direct, commits(units)))
		if n == 1 {
			l.conn.NATS().Close()
		} else {
			p.Lead(t, natstest.Start(t).URL())
			p.Cut()
		}
		for i, u := range units {
			var unknown *UnknownError
			if err := natstest.Within(t, "an answer", u.done); !errors.As(err, &unknown) || unknown.Cause == nil {
				t.Errorf("commit %d, which is stored: %v", i, err)
			}
		}
	}
}

func TestLeader_MissingStreamIsAnError(t *testing.T) {
	t.Parallel()
	l := bare(t, Config{})
	if _, err := l.conn.Leader(t.Context(), l.cfg.Names.Stream(assets.LogStream), streams.GetRequest{Seq: 1, Next: l.cfg.Names.Log(tenant, "T-1")}); err == nil || errors.Is(err, streams.ErrNoMessage) {
		t.Errorf("got %v", err)
	}
	must(t, l.Ensure(t.Context()))
	if _, err := l.conn.Leader(t.Context(), l.cfg.Names.Stream(assets.LogStream), streams.GetRequest{Seq: 1, Next: l.cfg.Names.Log(tenant, "T-1")}); !errors.Is(err, streams.ErrNoMessage) {
		t.Errorf("got %v", err)
	}
}

func TestAClosedConnectionTakesNothing(t *testing.T) {
	direct := start(t)
	l := sibling(t, direct)
	l.conn.NATS().Close()
	var refused *UnavailableError
	if err := l.Append(t.Context(), newAuthor(1).next(t, 1)); !errors.As(err, &refused) {
		t.Errorf("got %v", err)
	}
	if n := len(history(t, direct)); n != 0 {
		t.Errorf("%d commits are stored", n)
	}
}

func TestAppend_RefusedOfflineIsNotStoredLater(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := natstest.Start(t, natstest.StoreDir(dir))
	p := natstest.NewProxy(t, s.URL())
	l := openLog(t, p.Connect(t), Config{AckTimeout: impatient}, nil)
	s.Shutdown()
	p.Cut()
	natstest.Eventually(t, "the connection to notice", func() bool { return !l.conn.NATS().IsConnected() })
	const writers = 600 // more than one group
	answers := make(chan error, writers)
	for i := range writers {
		w := newAuthor(i).next(t, 1)
		go func() { answers <- l.Append(context.Background(), w) }()
	}
	began := time.Now()
	for range writers {
		var refused *UnavailableError
		if err := natstest.Within(t, "an answer", answers); !errors.As(err, &refused) {
			t.Fatalf("got %v", err)
		}
	}
	if took := time.Since(began); took > 100*impatient { // and not one wait after another
		t.Errorf("the answers took %v", took)
	}
	p.Lead(t, natstest.Start(t, natstest.StoreDir(dir)).URL())
	natstest.Eventually(t, "the connection", l.conn.NATS().IsConnected)
	late := newAuthor(writers)
	late.write(t, l, 1, 1)
	if n := len(history(t, l)); n != 1 {
		t.Errorf("%d commits are stored", n)
	}
}

func TestCloseWhileTheServerIsAway(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t)
	nc := natstest.Connect(t, s, nats.MaxReconnects(-1))
	l := openLog(t, nc, Config{AckTimeout: time.Minute}, nil)
	s.Shutdown()
	natstest.Eventually(t, "the connection to notice", func() bool { return !nc.IsConnected() })
	const writers = 2000
	answers := make(chan error, writers)
	for i := range writers {
		w := newAuthor(i).next(t, 1)
		go func() { answers <- l.Append(context.Background(), w) }()
	}
	closed := make(chan struct{})
	go func() {
		l.Close()
		close(closed)
	}()
	began := time.Now()
	natstest.Within(t, "the log to close", closed)
	if took := time.Since(began); took > l.cfg.AckTimeout/2 {
		t.Errorf("it took %v to close", took)
	}
	for range writers {
		var refused *UnavailableError
		if err := natstest.Within(t, "an answer", answers); !errors.As(err, &refused) {
			t.Fatalf("got %v", err)
		}
	}
}

// The connection is cut at random, amid many writes, with bytes lost either way.
// Whatever happens: what was acknowledged is stored where it says, what was
// refused is not, and nothing is stored twice.
func TestAppendsThroughABadConnection(t *testing.T) {
	const writers, each, cuts = 24, 30, 10
	t.Parallel()
	direct := start(t)
	p := natstest.NewProxy(t, direct.conn.NATS().ConnectedUrl())
	l := openLog(t, p.Connect(t), Config{AckTimeout: impatient / 2}, nil)
	var mu sync.Mutex // guards what follows
	stored, refused := map[string]uint64{}, map[string]bool{}
	var done, over atomic.Int64
	var all sync.WaitGroup
	for n := range writers {
		all.Go(func() {
			defer over.Add(1)
			a := newAuthor(n)
			for i := range each {
				a.session = fmt.Sprint(i)
				w := a.next(t, 1)
				err := l.Append(context.Background(), w)
				done.Add(1)
				mu.Lock()
				var no *UnavailableError
				var unknown *UnknownError
				switch {
				case err == nil:
					stored[w.Commit.Chain] = w.Commit.Seq
					a.stored(w.Commit)
				case errors.As(err, &no):
					refused[w.Commit.Chain] = true
				case errors.As(err, &unknown): // the author cannot go on
					i = each
				default:
					t.Errorf("append: %v", err)
				}
				mu.Unlock()
				if i == each {
					return
				}
			}
		})
	}
	for range cuts {
		mark := done.Load() + rand.Int64N(writers)
		natstest.Eventually(t, "some writes", func() bool { return done.Load() >= mark || over.Load() == writers })
		switch rand.N(3) {
		case 0:
			p.DropReceived.Store(true)
		case 1:
			p.DropSent.Store(true)
		}
		lost := p.Lost.Load() + rand.Int64N(4000)
		deadline := time.Now().Add(50 * time.Millisecond)
		natstest.Eventually(t, "some bytes to be lost", func() bool { return p.Lost.Load() > lost || time.Now().After(deadline) })
		p.Cut()
	}
	all.Wait()
	seen := map[string]bool{}
	for _, c := range history(t, direct) {
		if seen[c.Chain] {
			t.Errorf("commit %d is there twice", c.Seq)
		}
		seen[c.Chain] = true
		if refused[c.Chain] {
			t.Errorf("commit %d was refused", c.Seq)
		}
		if at, ok := stored[c.Chain]; ok && at != c.Seq {
			t.Errorf("commit %d was said to be at %d", c.Seq, at)
		}
		delete(stored, c.Chain)
	}
	if len(stored) > 0 || len(seen) == 0 {
		t.Errorf("%d acknowledged commits are not in the log of %d", len(stored), len(seen))
	}
}
