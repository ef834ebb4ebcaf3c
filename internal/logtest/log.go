package logtest

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

// Tenant owns the threads that an [Author] writes.
const Tenant = "acme"

// Start runs a server and returns a log on it with its streams made.
func Start(t testing.TB, opts ...natstest.Option) *eventlog.Log {
	t.Helper()
	return Open(t, natstest.Connect(t, natstest.Start(t, opts...)), eventlog.Config{})
}

// Open returns a log with its streams made, and closes it when the test ends.
func Open(t testing.TB, nc *nats.Conn, cfg eventlog.Config) *eventlog.Log {
	t.Helper()
	l, err := eventlog.Open(nc, cfg, zerolog.Nop(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	if err := l.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	return l
}

// History reads the whole log and fails the test unless each thread's versions are
// contiguous and its chain is unbroken.
func History(t testing.TB, l *eventlog.Log) []*events.Commit {
	t.Helper()
	type end struct {
		version int64
		chain   string
	}
	var all []*events.Commit
	ends := map[string]end{}
	for m, err := range l.Raw(t.Context(), l.Config().Names.Log("*", "*"), 0) {
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

// Sibling returns a second log on the server of the first, on a connection of its own,
// as another process would have it.
func Sibling(t testing.TB, l *eventlog.Log) *eventlog.Log {
	t.Helper()
	nc, err := nats.Connect(l.Conn().ConnectedUrl())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return Open(t, nc, l.Config())
}

// Must fails the test on an error.
func Must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
