package timeline

import (
	"context"
	"strconv"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/logtest"
	"github.com/skein-threads/skein/internal/natstest"
)

// told records what the relay reports to the log's metrics.
type told struct {
	eventlog.NoMetrics
	mu      sync.Mutex // guards what follows
	relayed uint64
	healed  int
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

// openTold returns a log on a new server that reports to m.
func openTold(t *testing.T, m *told) *eventlog.Log {
	t.Helper()
	l, err := eventlog.Open(natstest.Connect(t, natstest.Start(t)), eventlog.Config{}, zerolog.Nop(), m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	logtest.Must(t, l.Ensure(t.Context()))
	return l
}

// entryAfter returns the log's entry after a sequence.
func entryAfter(t *testing.T, l *eventlog.Log, seq uint64) eventlog.Entry {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), natstest.Patience)
	defer cancel()
	tail, err := l.Tail(ctx, "test", seq)
	logtest.Must(t, err)
	defer tail.Stop()
	e, err := tail.Next(ctx)
	logtest.Must(t, err)
	return e
}

// appendBroken puts messages that are no commits into the log.
func appendBroken(t *testing.T, l *eventlog.Log) {
	t.Helper()
	subject := l.Config().Names.Log(logtest.Tenant, "T-broken")
	for _, m := range []*nats.Msg{
		{Subject: subject, Data: []byte("no version")},
		{Subject: subject, Header: nats.Header{events.HeaderVersion: {"1"}}, Data: []byte("no commit")},
		{Subject: subject, Header: nats.Header{events.HeaderVersion: {"1"}}, Data: []byte("[]")},
	} {
		ack, err := l.Streams().Publish(m)
		if err != nil || ack.Error != nil {
			t.Fatal(err, ack.Error)
		}
	}
}

// running runs the relay until the function that it returns is called.
func running(t *testing.T, l *eventlog.Log) (stop func()) {
	t.Helper()
	return relaying(t, Of(l))
}

// relaying does so with a timeline.
func relaying(t *testing.T, timeline *Timeline) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- timeline.Relay(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := natstest.Within(t, "the relay to end", done); err != nil {
			t.Errorf("the relay ended with %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// messages reads the whole timeline, in order.
func messages(t *testing.T, l *eventlog.Log) []streams.Message {
	t.Helper()
	var all []streams.Message
	for from := uint64(1); ; from = all[len(all)-1].Seq + 1 {
		got, err := l.Streams().Direct(t.Context(), l.Config().Names.Stream(assets.TimelineStream), streams.GetRequest{Seq: from, Next: l.Config().Names.Prefix + ".timeline.>", Batch: streams.BatchMessages})
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, got...); len(got) == 0 || got[len(got)-1].Pending == 0 {
			return all
		}
	}
}

// exact fails the test unless the timeline holds every event of the log's
// commits after a sequence, once and in order, each as it is in its commit.
func exact(t *testing.T, l *eventlog.Log, after uint64) {
	t.Helper()
	got := messages(t, l)
	n := 0
	for _, c := range logtest.History(t, l) {
		if c.Seq <= after {
			continue
		}
		for i := range c.Events {
			e := &c.Events[i]
			if n == len(got) {
				t.Fatalf("the timeline ends with %d events, before commit %d", n, c.Seq)
			}
			m := got[n]
			if m.Subject != l.Config().Names.Timeline(logtest.Tenant, c.Thread, e.Type) || string(m.Data) != string(e.Raw()) ||
				m.Header.Get(events.HeaderSeq) != strconv.FormatUint(c.Seq, 10) ||
				m.Header.Get(events.HeaderVersion) != strconv.FormatInt(e.Version, 10) ||
				m.Header.Get(events.HeaderType) != events.EventContentType {
				t.Fatalf("place %d holds %s with %v, not version %d of commit %d", n, m.Subject, m.Header, e.Version, c.Seq)
			}
			n++
		}
	}
	if n != len(got) {
		t.Errorf("the timeline holds %d events, not %d", len(got), n)
	}
}

// reaches waits until the timeline shows a version of the log's commit.
func reaches(t *testing.T, l *eventlog.Log, a *logtest.Author) {
	t.Helper()
	natstest.Eventually(t, "the timeline", func() bool {
		at, err := Of(l).position(t.Context())
		return err == nil && at == position{a.Seq, a.Version}
	})
}
