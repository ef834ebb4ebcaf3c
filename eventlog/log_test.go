package eventlog

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

const tenant = "acme"

// start runs a server and returns a log on it with its streams.
func start(t testing.TB, opts ...natstest.Option) *Log {
	t.Helper()
	return openLog(t, natstest.Connect(t, natstest.Start(t, opts...)), Config{}, nil)
}

// openLog returns a log with its streams, and closes it when the test ends.
func openLog(t testing.TB, nc *nats.Conn, cfg Config, metrics Metrics) *Log {
	t.Helper()
	l, err := Open(nc, cfg, zerolog.Nop(), metrics)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	if err := l.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	return l
}

// bare returns a log whose streams were not created.
func bare(t *testing.T, cfg Config) *Log {
	t.Helper()
	l, err := Open(natstest.Connect(t, natstest.Start(t)), cfg, zerolog.Nop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// reshape changes the log's stream.
func reshape(t *testing.T, l *Log, change func(*jetstream.StreamConfig)) {
	t.Helper()
	stream, err := l.conn.JetStream().Stream(t.Context(), l.cfg.Names.Stream(assets.LogStream))
	if err != nil {
		t.Fatal(err)
	}
	cfg := stream.CachedInfo().Config
	change(&cfg)
	if _, err := l.conn.JetStream().UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
}

// sibling returns a second log on the server of the first, on a connection of its
// own, as another process would have it.
func sibling(t testing.TB, l *Log) *Log {
	t.Helper()
	nc := natstest.Dial(t, l.conn.NATS().ConnectedUrl())
	return openLog(t, nc, l.cfg, nil)
}

// author writes the commits of one thread, each after the one before.
type author struct {
	thread  string
	session string // two sessions' commits differ
	version int64
	seq     uint64
	chain   string
}

func newAuthor(n int) *author {
	return &author{thread: fmt.Sprintf("T-00000000-0000-7000-8000-%012d", n)}
}

// draft makes the author's next commit, of n events with some bytes each.
func (a *author) draft(t testing.TB, n, size int) *events.Commit {
	t.Helper()
	command := fmt.Sprintf("c-%s-%d", a.session, a.version)
	list := make([]events.Event, n)
	for i := range list {
		own := strconv.Itoa(i) // a commit holds equal values once
		pad := events.JSON(`"` + own + strings.Repeat("x", max(size-len(own), 0)) + `"`)
		list[i] = events.Event{
			ID: events.EventID(tenant, a.thread, command, i), Type: events.ProfileChangedType, Subject: a.thread,
			Time: events.TimeOf(time.Unix(1771588800, 0)), Tenant: tenant, ThreadID: a.thread, Version: a.version + int64(i) + 1,
			CommandID: command, Data: events.ProfileChanged{Metadata: pad},
		}
		if i%2 == 1 {
			list[i].Type, list[i].Data = events.ItemCreatedType, events.ItemCreated{ID: "itm_1", ContextID: "ctx_1", Content: pad}
		}
	}
	c, err := events.NewCommit(a.chain, list)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// next is a commit of n small events with what it expects.
func (a *author) next(t testing.TB, n int) Write {
	t.Helper()
	return Write{Commit: a.draft(t, n, 20), Expected: a.seq}
}

// stored makes a stored commit the one that the next comes after.
func (a *author) stored(c *events.Commit) { a.version, a.seq, a.chain = c.Version, c.Seq, c.Chain }

// write appends n commits of some events each.
func (a *author) write(t testing.TB, l *Log, n, events int) {
	t.Helper()
	for range n {
		w := a.next(t, events)
		if err := l.Append(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		a.stored(w.Commit)
	}
}

// inLog fails the test unless the log holds exactly that commit at its sequence.
func inLog(t testing.TB, l *Log, c *events.Commit) {
	t.Helper()
	got, err := l.Get(t.Context(), c.Seq)
	if err != nil || got == nil || got.Chain != c.Chain || got.Thread != c.Thread || string(got.Body) != string(c.Body) {
		t.Errorf("at %d the log holds %v, not the commit of %s to version %d: %v", c.Seq, got, c.Thread, c.Version, err)
	}
}

// history reads the whole log and fails the test unless each thread's versions
// are contiguous and its chain unbroken.
func history(t testing.TB, l *Log) []*events.Commit {
	t.Helper()
	type end struct {
		version int64
		chain   string
	}
	var all []*events.Commit
	ends := map[string]end{}
	for m, err := range l.Raw(t.Context(), l.cfg.Names.Log("*", "*"), 0) {
		if err != nil {
			t.Fatal(err)
		}
		c, err := l.Decode(m)
		if err != nil {
			t.Fatal(err)
		}
		before := ends[c.Thread]
		if c.First() != before.version || c.Chain != events.Chain(before.chain, c.Body) {
			t.Errorf("commit %d of %s does not come after version %d", c.Seq, c.Thread, before.version)
		}
		ends[c.Thread] = end{c.Version, c.Chain}
		all = append(all, c)
	}
	return all
}

// told collects what a log tells its metrics.
type told struct {
	mu      sync.Mutex // guards what follows
	writes  []int      // commits; negative if they were one atomic batch
	broken  map[uint64]int
	relayed uint64
	healed  int
}

func (m *told) Appended(commits int, _ int, batch bool, _ float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if batch {
		commits = -commits
	}
	m.writes = append(m.writes, commits)
}

func (m *told) Broken(_ string, seq uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken == nil {
		m.broken = map[uint64]int{}
	}
	m.broken[seq]++
}

func (m *told) Healed(messages int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.healed += messages
}

func (m *told) Relayed(seq uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.relayed = seq
}

func TestOpenRefusesABadConfiguration(t *testing.T) {
	nc := natstest.Connect(t, natstest.Start(t))
	for _, cfg := range []Config{
		{Names: events.Names{Prefix: "No.Good"}}, {Replicas: 2}, {TimelineAge: time.Second},
	} {
		if l, err := Open(nc, cfg, zerolog.Nop(), nil); err == nil {
			l.Close()
			t.Errorf("%+v was taken", cfg)
		}
	}
}

func TestCloseTwiceAndRefuseAfter(t *testing.T) {
	l := start(t)
	a := newAuthor(1)
	a.write(t, l, 1, 1)
	l.Close()
	l.Close()
	w := a.next(t, 1)
	var refused *UnavailableError
	if err := l.Append(t.Context(), w); !errors.As(err, &refused) {
		t.Errorf("a closed log: %v", err)
	}
	if last, err := l.LastSeq(t.Context()); err != nil || last != a.seq {
		t.Errorf("the log ends at %d, not %d: %v", last, a.seq, err)
	}
}

func TestCloseWritesWhatWasAccepted(t *testing.T) {
	l := start(t)
	const writers = 64
	answers := make(chan error, writers)
	for i := range writers {
		w := newAuthor(i).next(t, 1)
		go func() { answers <- l.Append(context.Background(), w) }()
	}
	l.Close()
	stored := 0
	for range writers {
		var refused *UnavailableError
		switch err := natstest.Within(t, "an answer", answers); {
		case err == nil:
			stored++
		case !errors.As(err, &refused):
			t.Errorf("while closing: %v", err)
		}
	}
	if got := len(history(t, sibling(t, l))); got != stored {
		t.Errorf("%d commits are in the log, %d were acknowledged", got, stored)
	}
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
