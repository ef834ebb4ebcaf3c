package eventlog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

// group makes units of one commit each, of as many threads.
func group(t *testing.T, l *Log, from, n int) []*unit {
	t.Helper()
	units := make([]*unit, n)
	for i := range units {
		units[i] = unitOf(t, l, newAuthor(from+i).next(t, 1))
	}
	return units
}

func unitOf(t *testing.T, l *Log, writes ...Write) *unit {
	t.Helper()
	u, err := l.newUnit(writes)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestAppendALoneCommit(t *testing.T) {
	t.Parallel()
	m := &told{}
	l := openLog(t, natstest.Connect(t, natstest.Start(t)), Config{}, m)
	w := newAuthor(1).next(t, 12)
	if err := l.Append(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	if w.Commit.Seq != 1 || !slices.Equal(m.writes, []int{1}) {
		t.Errorf("at %d by %v", w.Commit.Seq, m.writes)
	}
	inLog(t, l, w.Commit)
	if err := l.Append(t.Context()); err != nil {
		t.Errorf("nothing to append: %v", err)
	}
}

func TestGroupsUpToAndOverTheCrossover(t *testing.T) {
	t.Parallel()
	for n, want := range map[int][]int{
		2: {1, 1}, Crossover: slices.Repeat([]int{1}, Crossover), Crossover + 1: {-Crossover - 1}, batchMessages: {-batchMessages},
	} {
		m := &told{}
		l := openLog(t, natstest.Connect(t, natstest.Start(t)), Config{}, m)
		units := group(t, l, 0, n)
		l.write(units)
		if !slices.Equal(m.writes, want) {
			t.Errorf("%d commits were written as %v", n, m.writes)
		}
		seqs := map[uint64]bool{}
		for _, u := range units {
			if err := natstest.Within(t, "an answer", u.done); err != nil {
				t.Fatal(err)
			}
			seqs[u.writes[0].Commit.Seq] = true
			inLog(t, l, u.writes[0].Commit)
		}
		if len(seqs) != n {
			t.Errorf("%d commits have %d sequences", n, len(seqs))
		}
	}
}

func TestTwoWritesAreAtomic(t *testing.T) {
	t.Parallel()
	m := &told{}
	l := openLog(t, natstest.Connect(t, natstest.Start(t)), Config{}, m)
	a, b := newAuthor(1), newAuthor(2)
	wa, wb := a.next(t, 2), b.next(t, 1)
	if err := l.Append(t.Context(), wa, wb); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(m.writes, []int{-2}) {
		t.Errorf("they were written as %v", m.writes)
	}
	inLog(t, l, wa.Commit)
	inLog(t, l, wb.Commit)
	a.stored(wa.Commit)

	for _, guilty := range []int{0, 1} { // the thread a moves on; b is expected to be empty, but is not
		b.session = "late"
		writes := []Write{a.next(t, 1), b.next(t, 1)}
		if guilty == 0 {
			slices.Reverse(writes)
		}
		var moved *ConflictError
		if err := l.Append(t.Context(), writes...); !errors.As(err, &moved) {
			t.Fatalf("a conflict: %v", err)
		}
		if moved.Subject != l.cfg.Names.Log(tenant, b.thread) || moved.Expected != 0 || moved.Last != wb.Commit.Seq {
			t.Errorf("the conflict is %+v", moved)
		}
	}
	if n := len(history(t, l)); n != 2 {
		t.Errorf("%d commits are stored", n)
	}
}

func TestSeveralPairsShareABatch(t *testing.T) {
	t.Parallel()
	m := &told{}
	l := openLog(t, natstest.Connect(t, natstest.Start(t)), Config{}, m)
	pairs := func(from, n int) []*unit {
		var units []*unit
		for i := range n {
			units = append(units, unitOf(t, l, newAuthor(from+2*i).next(t, 1), newAuthor(from+2*i+1).next(t, 1)))
		}
		return units
	}
	few := pairs(0, 3)
	l.write(few)
	if !slices.Equal(m.writes, []int{-6}) {
		t.Errorf("three pairs were written as %v", m.writes)
	}
	for _, u := range few {
		must(t, natstest.Within(t, "an answer", u.done))
		inLog(t, l, u.writes[0].Commit)
		inLog(t, l, u.writes[1].Commit)
	}
	// One of many is guilty: the others are stored, however few batches the
	// server takes at once.
	guilty := newAuthor(0)
	guilty.session = "late"
	many := append(pairs(1000, 60), unitOf(t, l, newAuthor(2000).next(t, 1), guilty.next(t, 1)))
	l.write(many)
	for i, u := range many {
		err := natstest.Within(t, "an answer", u.done)
		if failed := err != nil; failed != (i == 60) {
			t.Errorf("pair %d: %v", i, err)
		}
		if err == nil {
			inLog(t, l, u.writes[0].Commit)
			inLog(t, l, u.writes[1].Commit)
		}
	}
	if n := len(history(t, l)); n != 6+120 {
		t.Errorf("%d commits are stored", n)
	}
}

func TestAppend_OnlyUnitAtFaultFails(t *testing.T) {
	t.Parallel()
	l := start(t)
	a := newAuthor(1042)
	a.session = "early"
	a.write(t, l, 1, 1)
	units := group(t, l, 1000, 100)
	l.write(units)
	for i, u := range units {
		err := natstest.Within(t, "an answer", u.done)
		if i != 42 {
			if err != nil {
				t.Errorf("commit %d: %v", i, err)
			}
			inLog(t, l, u.writes[0].Commit)
			continue
		}
		var moved *ConflictError
		if !errors.As(err, &moved) || moved.Last != a.seq {
			t.Errorf("the guilty one: %v", err)
		}
	}
	if n := len(history(t, l)); n != 100 {
		t.Errorf("%d commits are stored", n)
	}
}

func TestAnAggregateIsOnlyOnceInABatch(t *testing.T) {
	t.Parallel()
	l := &Log{queue: make(chan *unit, 100), cfg: Config{}.WithDefaults(), conn: start(t).conn}
	a, b, c := newAuthor(1), newAuthor(2), newAuthor(3)
	first := unitOf(t, l, a.next(t, 1))
	for _, u := range []*unit{
		unitOf(t, l, b.next(t, 1)), unitOf(t, l, a.next(t, 1)), unitOf(t, l, c.next(t, 1), b.next(t, 1)), unitOf(t, l, newAuthor(4).next(t, 1)),
	} {
		l.queue <- u
	}
	var rounds []int
	var held []*unit
	for u := first; u != nil; {
		var g []*unit
		g, held = l.gather(u, held, pace{})
		rounds = append(rounds, len(g))
		seen := map[string]bool{}
		for _, u := range g {
			for _, m := range u.msgs {
				if seen[m.Subject] {
					t.Errorf("round %d has %s twice", len(rounds), m.Subject)
				}
				seen[m.Subject] = true
			}
		}
		if u = nil; len(held) > 0 {
			u, held = held[0], held[1:]
		}
	}
	if !slices.Equal(rounds, []int{3, 2}) {
		t.Errorf("the rounds have %v", rounds)
	}
}

func TestABatchHasLimits(t *testing.T) {
	t.Parallel()
	l := &Log{queue: make(chan *unit, 2000), cfg: Config{}.WithDefaults(), conn: start(t).conn}
	for i := range 2 * batchMessages {
		l.queue <- unitOf(t, l, newAuthor(i).next(t, 1))
	}
	if g, rest := l.gather(<-l.queue, nil, pace{}); len(g) != batchMessages || len(rest) > 1 {
		t.Errorf("%d go, %d are held", len(g), len(rest))
	}
	var held []*unit
	for i := range batchMessages {
		held = append(held, unitOf(t, l, newAuthor(3000+2*i).next(t, 1), newAuthor(3001+2*i).next(t, 1)))
	}
	if g, rest := l.gather(held[0], held[1:], pace{}); len(g) != batchMessages/2 || len(g)+len(rest) != len(held) {
		t.Errorf("%d pairs go, %d are held", len(g), len(rest))
	}
	l.queue = make(chan *unit, 10)
	for i := range 4 {
		l.queue <- unitOf(t, l, Write{Commit: newAuthor(i).draft(t, 1, 3<<20)})
	}
	if g, rest := l.gather(<-l.queue, nil, pace{}); len(g) != 2 || len(g)+len(rest)+len(l.queue) != 4 {
		t.Errorf("%d of 3 MB go, %d are held", len(g), len(rest))
	}
}

func TestAppendTooLarge(t *testing.T) {
	t.Parallel()
	l := start(t)
	fits := Write{Commit: newAuthor(1).draft(t, 9, (events.MaxCommitBytes-9*600)/9)}
	if err := l.Append(t.Context(), fits); err != nil {
		t.Errorf("%d bytes: %v", len(fits.Commit.Body), err)
	}
	inLog(t, l, fits.Commit)
	var big *TooLargeError
	over := Write{Commit: newAuthor(2).draft(t, 9, events.MaxCommitBytes/9)}
	if err := l.Append(t.Context(), newAuthor(3).next(t, 1), over); !errors.As(err, &big) || big.Limit != events.MaxCommitBytes {
		t.Errorf("%d bytes: %v", len(over.Commit.Body), err)
	}

	// A stream may take less. In a group the guilty one fails alone.
	reshape(t, l, func(c *jetstream.StreamConfig) { c.MaxMsgSize = 64 << 10 })
	units := append(group(t, l, 100, 20), unitOf(t, l, Write{Commit: newAuthor(4).draft(t, 1, 100<<10)}))
	l.write(units)
	for i, u := range units {
		if err := natstest.Within(t, "an answer", u.done); errors.As(err, &big) != (i == 20) || err != nil && i < 20 {
			t.Errorf("commit %d: %v", i, err)
		}
	}
	if n := len(history(t, l)); n != 21 {
		t.Errorf("%d commits are stored", n)
	}
}

func TestAppendGivesUpWaitingForAPlace(t *testing.T) {
	t.Parallel()
	l := start(t)
	full := &Log{queue: make(chan *unit), stopping: make(chan struct{}), stopped: make(chan struct{}), conn: start(t).conn, cfg: l.cfg}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the caller went away")
	time.AfterFunc(20*time.Millisecond, func() { cancel(cause) })
	var refused *UnavailableError
	if err := full.Append(ctx, newAuthor(1).next(t, 1)); !errors.As(err, &refused) || !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
	// One that waits while the log closes is told so, too.
	answer := make(chan error, 1)
	go func() { answer <- full.Append(context.Background(), newAuthor(1).next(t, 1)) }()
	close(full.stopping)
	if err := natstest.Within(t, "an answer", answer); !errors.As(err, &refused) || !strings.Contains(err.Error(), "closed") {
		t.Errorf("got %v", err)
	}
}

func TestManyWritersOnManyThreads(t *testing.T) {
	t.Parallel()
	const writers, threads, rounds = 256, 1000, 12
	m := &told{}
	l := openLog(t, natstest.Connect(t, natstest.Start(t)), Config{}, m)
	authors := make([]*author, threads)
	for i := range authors {
		authors[i] = newAuthor(i)
	}
	acked := map[uint64]string{}
	conflicts := 0
	for round := range rounds {
		var writes [writers]Write
		var by [writers]*author
		var answers [writers]error
		for i := range writers { // all at once, on what each thread is now
			by[i] = authors[rand.N(1+rand.N(threads))] // the first are hot
			by[i].session = fmt.Sprint(round, "-", i)
			writes[i] = by[i].next(t, 1+rand.N(3))
		}
		var all sync.WaitGroup
		for i := range writers {
			all.Go(func() { answers[i] = l.Append(context.Background(), writes[i]) })
		}
		all.Wait()
		for i, err := range answers {
			var moved *ConflictError
			switch c := writes[i].Commit; {
			case errors.As(err, &moved):
				conflicts++
			case err != nil:
				t.Fatal(err)
			case acked[c.Seq] != "":
				t.Fatalf("sequence %d is that of two commits", c.Seq)
			default:
				acked[c.Seq] = c.Chain
				by[i].stored(c)
			}
		}
	}
	log := history(t, l)
	if len(log) != len(acked) {
		t.Errorf("%d commits are stored, %d were acknowledged", len(log), len(acked))
	}
	for _, c := range log {
		if acked[c.Seq] != c.Chain {
			t.Errorf("commit %d of %s was not acknowledged", c.Seq, c.Thread)
		}
	}
	if batch := -slices.Min(m.writes); batch < Crossover || conflicts == 0 || len(log)+conflicts != writers*rounds {
		t.Errorf("%d commits, %d conflicts, the largest batch of %d: this proved little", len(log), conflicts, batch)
	}
}
