package eventlog

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/derived"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

// emptied throws away what the timeline holds, as age does.
func emptied(t *testing.T, l *Log) {
	t.Helper()
	stream, err := l.conn.JetStream().Stream(t.Context(), l.cfg.Names.Stream(assets.TimelineStream))
	must(t, err)
	must(t, stream.Purge(t.Context()))
}

func TestAnEmptyTimelineGoesOnByAge(t *testing.T) {
	t.Parallel()
	l := start(t)
	a := newAuthor(1)
	a.write(t, l, 5, 2)
	stop := running(t, l)
	reaches(t, l, a)
	stop()
	emptied(t, l)

	// All of the log is young enough: it comes again.
	stop = running(t, l)
	reaches(t, l, a)
	exact(t, l, 0)
	stop()

	// Some of it is too old.
	emptied(t, l)
	tail := followFrom(t, l, 0)
	follow(t, tail, 0, 5)
	a.write(t, l, 3, 2)
	young := follow(t, tail, 5, 3)[0].Time
	l.cfg.TimelineAge = time.Since(young)
	at, err := l.positionAt(t.Context(), young)
	if err != nil || at != (position{seq: 5}) {
		t.Errorf("the position is %+v: %v", at, err)
	}
	// All of it is.
	l.cfg.TimelineAge = time.Nanosecond
	stop = running(t, l)
	eventually(t, "the relay to begin", func() bool {
		a.write(t, l, 1, 1)
		return len(timeline(t, l)) > 0
	})
	stop()
	got := timeline(t, l)
	first, err := parsePosition(got[0].Header)
	if err != nil || first.seq <= 8 {
		t.Errorf("it begins with %+v: %v", first, err)
	}
}

func TestRebuildWithoutARelay(t *testing.T) {
	t.Parallel()
	l := start(t)
	must(t, l.RebuildTimeline(t.Context())) // of nothing
	a := newAuthor(1)
	a.write(t, l, 300, 7)
	must(t, l.RebuildTimeline(t.Context()))
	exact(t, l, 0)
	must(t, l.RebuildTimeline(t.Context()))
	exact(t, l, 0)
	running(t, l) // it takes over where the rebuilding ended
	a.write(t, l, 5, 2)
	reaches(t, l, a)
	exact(t, l, 0)
}

func TestRebuildOfWhatWasErased(t *testing.T) {
	t.Parallel()
	l := start(t)
	a, b := newAuthor(1), newAuthor(2)
	a.write(t, l, 5, 2)
	b.write(t, l, 5, 2)
	stream, err := l.conn.JetStream().Stream(t.Context(), l.cfg.Names.Stream(assets.LogStream))
	must(t, err)
	must(t, stream.Purge(t.Context(), jetstream.WithPurgeSubject(l.cfg.Names.Log(tenant, b.thread))))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	must(t, l.RebuildTimeline(ctx))
	exact(t, l, 0)
	must(t, stream.Purge(t.Context(), jetstream.WithPurgeSubject(l.cfg.Names.Log(tenant, a.thread))))
	must(t, l.relay(ctx, 10)) // nothing is left to wait for
	must(t, l.RebuildTimeline(ctx))
	if n := len(timeline(t, l)); n != 0 {
		t.Errorf("the timeline holds %d events", n)
	}
}

func TestThePositionWhereTheYoungWasErased(t *testing.T) {
	t.Parallel()
	l := start(t)
	old, young := newAuthor(1), newAuthor(2)
	old.write(t, l, 3, 1)
	young.write(t, l, 2, 1)
	first := follow(t, followFrom(t, l, 3), 3, 1)[0].Time
	stream, err := l.conn.JetStream().Stream(t.Context(), l.cfg.Names.Stream(assets.LogStream))
	must(t, err)
	must(t, stream.Purge(t.Context(), jetstream.WithPurgeSubject(l.cfg.Names.Log(tenant, young.thread))))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if at, err := l.positionAt(ctx, first); err != nil || at != (position{seq: 5}) {
		t.Errorf("the position is %+v: %v", at, err)
	}
}

func TestRebuildWhileTheRelayRuns(t *testing.T) {
	t.Parallel()
	l := openLog(t, natstest.Connect(t, natstest.Start(t)), Config{}, nil)
	running(t, sibling(t, l))
	a, b := newAuthor(1), newAuthor(2)
	a.write(t, l, 500, 4)
	written := make(chan struct{})
	stop := make(chan struct{})
	other := sibling(t, l)
	go func() { // writes go on
		defer close(written)
		for {
			select {
			case <-stop:
				return
			default:
				b.write(t, other, 1, 3)
			}
		}
	}()
	for range 5 {
		must(t, l.RebuildTimeline(t.Context()))
	}
	close(stop)
	<-written
	last := b
	if a.seq > b.seq {
		last = a
	}
	reaches(t, l, last)
	exact(t, l, 0)
}

// A relay that another overtook as it began says that it was fenced, so that whoever
// started it begins again.
func TestRelay_OvertakenAsItBegins(t *testing.T) {
	t.Parallel()
	l := start(t)
	a := newAuthor(1)
	a.write(t, l, 2, 2)
	fence, err := derived.NewFence(t.Context(), l.conn, l.cfg.Names.Stream(assets.TimelineStream))
	must(t, err)
	must(t, l.relay(t.Context(), 1)) // the other
	if err := l.relayBehind(t.Context(), fence, 2); !streams.IsFenced(err) {
		t.Fatalf("the overtaken relay ended with %v", err)
	}
	must(t, l.relay(t.Context(), 2))
	exact(t, l, 0)
}

// A rebuilding that died goes on with the relay.
func TestRebuildIsInterrupted(t *testing.T) {
	t.Parallel()
	l := start(t)
	a := newAuthor(1)
	a.write(t, l, 50, 4)
	stop := running(t, l)
	reaches(t, l, a)
	stop()
	_, err := derived.Seize(t.Context(), l.conn, l.cfg.Names.Stream(assets.TimelineStream), l.cfg.Names.Timeline(markTenant, markTenant, assets.TimelineMark), position{}.header())
	must(t, err)
	if ok := events.ValidTenant(markTenant); ok {
		t.Error("a tenant may have the mark's name")
	}
	running(t, l)
	eventually(t, "the relay to begin anew", func() bool { return len(timeline(t, l)) == 2*200+1 })
	reaches(t, l, a)
}
