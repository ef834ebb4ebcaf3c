package eventlog

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/derived"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

// running runs the relay until the function that it gives is called.
func running(t *testing.T, l *Log) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Relay(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := within(t, "the relay to end", done); err != nil {
			t.Errorf("the relay ended with %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// timeline reads the whole timeline, in order.
func timeline(t *testing.T, l *Log) []streams.Message {
	t.Helper()
	var all []streams.Message
	for from := uint64(1); ; from = all[len(all)-1].Seq + 1 {
		got, err := l.conn.Direct(t.Context(), l.cfg.Names.Stream(assets.TimelineStream), streams.GetRequest{Seq: from, Next: l.cfg.Names.Prefix + ".timeline.>", Batch: streams.BatchMessages})
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
func exact(t *testing.T, l *Log, after uint64) {
	t.Helper()
	got := timeline(t, l)
	n := 0
	for _, c := range history(t, l) {
		if c.Seq <= after {
			continue
		}
		for i := range c.Events {
			e := &c.Events[i]
			if n == len(got) {
				t.Fatalf("the timeline ends with %d events, before commit %d", n, c.Seq)
			}
			m := got[n]
			if m.Subject != l.cfg.Names.Timeline(tenant, c.Thread, e.Type) || string(m.Data) != string(e.Raw()) ||
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
func reaches(t *testing.T, l *Log, a *author) {
	t.Helper()
	eventually(t, "the timeline", func() bool {
		at, err := l.timelinePosition(t.Context())
		return err == nil && at == position{a.seq, a.version}
	})
}

func TestRelay(t *testing.T) {
	t.Parallel()
	m := &told{}
	l := openLog(t, natstest.Connect(t, natstest.Start(t)), Config{}, m)
	live, err := l.conn.NATS().SubscribeSync("skein.timeline.>")
	must(t, err)
	other := newAuthor(2)
	other.write(t, l, 1, 3)
	a := newAuthor(1)
	a.write(t, l, 400, 5)
	running(t, l)
	reaches(t, l, a)
	a.write(t, l, 3, 5)
	reaches(t, l, a)
	exact(t, l, 0)
	for range 3 + 403*5 { // a plain subscriber has them too
		if _, err := live.NextMsg(patience); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the metrics", func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.relayed == a.seq
	})

	c, err := l.conn.JetStream().CreateConsumer(t.Context(), l.cfg.Names.Stream(assets.TimelineStream), jetstream.ConsumerConfig{
		Durable: "items", FilterSubject: "skein.timeline.acme.*.item.>",
	})
	must(t, err)
	if n := c.CachedInfo().NumPending; n != 1+403*2 {
		t.Errorf("a consumer of items is given %d", n)
	}
	batch, err := c.FetchNoWait(10)
	must(t, err)
	for m := range batch.Messages() {
		if _, _, of, ok := l.cfg.Names.ParseTimeline(m.Subject()); !ok || of != events.ItemCreatedType {
			t.Errorf("a consumer of items is given %s", m.Subject())
		}
	}
}

func TestRelayIsQuick(t *testing.T) {
	l := start(t)
	running(t, l)
	a := newAuthor(1)
	a.write(t, l, 1, 1)
	reaches(t, l, a)
	live, err := l.conn.NATS().SubscribeSync("skein.timeline.>")
	must(t, err, l.conn.NATS().Flush())
	took, appended := make([]time.Duration, 50), make([]time.Duration, 50)
	for i := range took {
		began := time.Now()
		a.write(t, l, 1, 1)
		appended[i] = time.Since(began)
		if _, err := live.NextMsg(patience); err != nil {
			t.Fatal(err)
		}
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	slices.Sort(appended)
	quick := took[len(took)/4] // the machine may be loaded
	t.Logf("from append to a subscriber: p25 %v, p50 %v, at most %v", quick, took[len(took)/2], took[len(took)-1])
	if quick > 100*time.Millisecond && quick > 10*appended[len(appended)/4] {
		t.Errorf("three quarters of the events take more than %v", quick)
	}
}

func TestRelayResumesAmidACommit(t *testing.T) {
	t.Parallel()
	for _, cut := range []int{0, 1, 3, 6} { // how many of the second commit's six events are there
		l := start(t)
		a := newAuthor(1)
		a.write(t, l, 2, 6)
		fence, err := derived.NewFence(t.Context(), l.conn, l.cfg.Names.Stream(assets.TimelineStream))
		must(t, err)
		for _, c := range history(t, l) {
			if c.Seq == 2 {
				c.Events = c.Events[:cut]
			}
			must(t, l.relayCommit(t.Context(), fence, timelineHeader(), c, 0, false))
		}
		must(t, fence.Flush(t.Context()))
		running(t, l)
		a.write(t, l, 1, 2)
		reaches(t, l, a)
		exact(t, l, 0)
	}
}

func TestRelayIsKilledAtRandom(t *testing.T) {
	t.Parallel()
	l := start(t)
	a := newAuthor(1)
	const commits, kills = 600, 60
	written := make(chan struct{})
	go func() {
		defer close(written)
		a.write(t, l, commits, 4)
	}()
	for range kills {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.Int64N(int64(15*time.Millisecond))))
		_ = l.relay(ctx, 0)
		cancel()
	}
	<-written
	running(t, l)
	reaches(t, l, a)
	exact(t, l, 0)
}

func TestRelayIsCutOffAtRandom(t *testing.T) {
	t.Parallel()
	direct := start(t)
	p := natstest.NewProxy(t, direct.conn.NATS().ConnectedUrl())
	l := openLog(t, p.Connect(t), Config{AckTimeout: 200 * time.Millisecond}, nil)
	running(t, l)
	a := newAuthor(1)
	for range 8 {
		a.write(t, direct, 40, 4)
		switch rand.N(3) {
		case 0:
			p.Mute.Store(true)
		case 1:
			p.Deaf.Store(true)
		}
		a.write(t, direct, 20, 4)
		p.Cut()
	}
	reaches(t, direct, a)
	exact(t, direct, 0)
}

func TestTwoRelaysAtOnce(t *testing.T) {
	t.Parallel()
	l := start(t)
	running(t, l)
	running(t, sibling(t, l))
	a := newAuthor(1)
	a.write(t, l, 700, 4)
	reaches(t, l, a)
	exact(t, l, 0)
}

func TestRelayPassesWhatIsBroken(t *testing.T) {
	t.Parallel()
	l := start(t)
	a := newAuthor(1)
	a.write(t, l, 2, 2)
	spoilt(t, l, "T-broken")
	running(t, l)
	eventually(t, "the good ones before", func() bool { return len(timeline(t, l)) == 4 })
	a.write(t, l, 2, 2)
	spoilt(t, l, "T-broken")
	reaches(t, l, a)
	got := timeline(t, l)
	if len(got) != 8 {
		t.Errorf("the timeline holds %d events", len(got))
	}
	// A rebuilding ends although the log's last commits cannot be read.
	must(t, l.RebuildTimeline(t.Context()))
	if got := timeline(t, l); len(got) != 8 {
		t.Errorf("the timeline holds %d events", len(got))
	}
}
