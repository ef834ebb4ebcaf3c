package timeline

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/derived"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/logtest"
	"github.com/skein-threads/skein/internal/natstest"
)

func TestRelay(t *testing.T) {
	t.Parallel()
	m := &told{}
	l := openTold(t, m)
	live, err := l.Conn().SubscribeSync("skein.timeline.>")
	logtest.Must(t, err)
	other := logtest.NewAuthor(2)
	other.Write(t, l, 1, 3)
	a := logtest.NewAuthor(1)
	a.Write(t, l, 400, 5)
	running(t, l)
	reaches(t, l, a)
	a.Write(t, l, 3, 5)
	reaches(t, l, a)
	exact(t, l, 0)
	for range 3 + 403*5 { // a plain subscriber has them too
		if _, err := live.NextMsg(natstest.Patience); err != nil {
			t.Fatal(err)
		}
	}
	natstest.Eventually(t, "the metrics", func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.relayed == a.Seq
	})

	c, err := l.JetStream().CreateConsumer(t.Context(), l.Config().Names.Stream(assets.TimelineStream), jetstream.ConsumerConfig{
		Durable: "items", FilterSubject: "skein.timeline.acme.*.item.>",
	})
	logtest.Must(t, err)
	if n := c.CachedInfo().NumPending; n != 1+403*2 {
		t.Errorf("a consumer of items is given %d", n)
	}
	batch, err := c.FetchNoWait(10)
	logtest.Must(t, err)
	for m := range batch.Messages() {
		if _, _, of, ok := l.Config().Names.ParseTimeline(m.Subject()); !ok || of != events.ItemCreatedType {
			t.Errorf("a consumer of items is given %s", m.Subject())
		}
	}
}

func TestRelay_IsQuick(t *testing.T) {
	l := logtest.Start(t)
	running(t, l)
	a := logtest.NewAuthor(1)
	a.Write(t, l, 1, 1)
	reaches(t, l, a)
	live, err := l.Conn().SubscribeSync("skein.timeline.>")
	logtest.Must(t, err, l.Conn().Flush())
	took, appended := make([]time.Duration, 50), make([]time.Duration, 50)
	for i := range took {
		began := time.Now()
		a.Write(t, l, 1, 1)
		appended[i] = time.Since(began)
		if _, err := live.NextMsg(natstest.Patience); err != nil {
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

func TestRelay_ResumesWithinACommit(t *testing.T) {
	t.Parallel()
	for _, cut := range []int{0, 1, 3, 6} { // how many of the second commit's six events are there
		l := logtest.Start(t)
		a := logtest.NewAuthor(1)
		a.Write(t, l, 2, 6)
		fence, err := derived.NewFence(t.Context(), l.Streams(), l.Config().Names.Stream(assets.TimelineStream))
		logtest.Must(t, err)
		for _, c := range logtest.History(t, l) {
			if c.Seq == 2 {
				c.Events = c.Events[:cut]
			}
			logtest.Must(t, Of(l).relayCommit(t.Context(), fence, relayHeader(), c, 0, false))
		}
		logtest.Must(t, fence.Flush(t.Context()))
		running(t, l)
		a.Write(t, l, 1, 2)
		reaches(t, l, a)
		exact(t, l, 0)
	}
}

func TestRelay_KilledAtRandom(t *testing.T) {
	t.Parallel()
	l := logtest.Start(t)
	a := logtest.NewAuthor(1)
	const commits, kills = 600, 60
	written := make(chan struct{})
	go func() {
		defer close(written)
		a.Write(t, l, commits, 4)
	}()
	for range kills {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.Int64N(int64(15*time.Millisecond))))
		_ = Of(l).relayTo(ctx, 0)
		cancel()
	}
	<-written
	running(t, l)
	reaches(t, l, a)
	exact(t, l, 0)
}

func TestRelay_DisconnectedAtRandom(t *testing.T) {
	t.Parallel()
	direct := logtest.Start(t)
	p := natstest.NewProxy(t, direct.Conn().ConnectedUrl())
	l := logtest.Open(t, p.Connect(t), eventlog.Config{AckTimeout: 200 * time.Millisecond})
	running(t, l)
	a := logtest.NewAuthor(1)
	for range 8 {
		a.Write(t, direct, 40, 4)
		switch rand.N(3) {
		case 0:
			p.DropReceived.Store(true)
		case 1:
			p.DropSent.Store(true)
		}
		a.Write(t, direct, 20, 4)
		p.Cut()
	}
	reaches(t, direct, a)
	exact(t, direct, 0)
}

func TestRelay_TwoAtOnce(t *testing.T) {
	t.Parallel()
	l := logtest.Start(t)
	running(t, l)
	running(t, logtest.Sibling(t, l))
	a := logtest.NewAuthor(1)
	a.Write(t, l, 700, 4)
	reaches(t, l, a)
	exact(t, l, 0)
}

func TestRelay_SkipsBrokenCommits(t *testing.T) {
	t.Parallel()
	l := logtest.Start(t)
	a := logtest.NewAuthor(1)
	a.Write(t, l, 2, 2)
	appendBroken(t, l)
	running(t, l)
	natstest.Eventually(t, "the good ones before", func() bool { return len(messages(t, l)) == 4 })
	a.Write(t, l, 2, 2)
	appendBroken(t, l)
	reaches(t, l, a)
	got := messages(t, l)
	if len(got) != 8 {
		t.Errorf("the timeline holds %d events", len(got))
	}
	// A rebuilding ends although the log's last commits cannot be read.
	logtest.Must(t, Of(l).Rebuild(t.Context()))
	if got := messages(t, l); len(got) != 8 {
		t.Errorf("the timeline holds %d events", len(got))
	}
}

// Events of an entity that only a newer Skein knows are put on the timeline.
func TestRelay_EventsOfUnknownEntities(t *testing.T) {
	t.Parallel()
	l := logtest.Start(t)
	a := logtest.NewAuthor(1)
	for i, name := range []events.Type{"novelty.arrived", "plain"} {
		c, err := events.NewCommit(a.Chain, []events.Event{{
			ID: fmt.Sprint("e", i), Type: name, Subject: a.Thread, Time: 1, Tenant: logtest.Tenant, ThreadID: a.Thread,
			Version: a.Version + 1, CommandID: "c", Data: events.Unknown{Schema: "urn:x", Raw: events.JSON("{}")},
		}})
		logtest.Must(t, err)
		logtest.Must(t, l.Append(t.Context(), eventlog.Write{Commit: c, Expected: a.Seq}))
		a.Version, a.Chain, a.Seq = c.Version, c.Chain, c.Seq
	}
	a.Write(t, l, 1, 2)
	running(t, l)
	reaches(t, l, a)
	exact(t, l, 0)
	logtest.Must(t, l.Ensure(t.Context()))
}
