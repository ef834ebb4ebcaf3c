package timeline

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/derived"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/logtest"
	"github.com/skein-threads/skein/internal/natstest"
)

// emptied throws away what the timeline holds, as age does.
func emptied(t *testing.T, l *eventlog.Log) {
	t.Helper()
	stream, err := l.JetStream().Stream(t.Context(), l.Config().Names.Stream(assets.TimelineStream))
	logtest.Must(t, err)
	logtest.Must(t, stream.Purge(t.Context()))
}

func TestRelay_ResumesByAgeOnEmptyTimeline(t *testing.T) {
	t.Parallel()
	l := logtest.Start(t)
	a := logtest.NewAuthor(1)
	a.Write(t, l, 5, 2)
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
	a.Write(t, l, 3, 2)
	young := entryAfter(t, l, 5).Time
	at, err := Of(l).positionAt(t.Context(), young)
	if err != nil || at != (position{seq: 5}) {
		t.Errorf("the position is %+v: %v", at, err)
	}
	// All of it is.
	aged := Of(l)
	aged.age = time.Nanosecond
	stop = relaying(t, aged)
	natstest.Eventually(t, "the relay to begin", func() bool {
		a.Write(t, l, 1, 1)
		return len(messages(t, l)) > 0
	})
	stop()
	got := messages(t, l)
	first, err := parsePosition(got[0].Header)
	if err != nil || first.seq <= 8 {
		t.Errorf("it begins with %+v: %v", first, err)
	}
}

func TestRebuild_WithoutRelay(t *testing.T) {
	t.Parallel()
	l := logtest.Start(t)
	logtest.Must(t, Of(l).Rebuild(t.Context())) // of nothing
	a := logtest.NewAuthor(1)
	a.Write(t, l, 300, 7)
	logtest.Must(t, Of(l).Rebuild(t.Context()))
	exact(t, l, 0)
	logtest.Must(t, Of(l).Rebuild(t.Context()))
	exact(t, l, 0)
	running(t, l) // it takes over where the rebuilding ended
	a.Write(t, l, 5, 2)
	reaches(t, l, a)
	exact(t, l, 0)
}

func TestRebuild_AfterErasure(t *testing.T) {
	t.Parallel()
	l := logtest.Start(t)
	a, b := logtest.NewAuthor(1), logtest.NewAuthor(2)
	a.Write(t, l, 5, 2)
	b.Write(t, l, 5, 2)
	stream, err := l.JetStream().Stream(t.Context(), l.Config().Names.Stream(assets.LogStream))
	logtest.Must(t, err)
	logtest.Must(t, stream.Purge(t.Context(), jetstream.WithPurgeSubject(l.Config().Names.Log(logtest.Tenant, b.Thread))))
	ctx, cancel := context.WithTimeout(t.Context(), natstest.Patience)
	defer cancel()
	logtest.Must(t, Of(l).Rebuild(ctx))
	exact(t, l, 0)
	logtest.Must(t, stream.Purge(t.Context(), jetstream.WithPurgeSubject(l.Config().Names.Log(logtest.Tenant, a.Thread))))
	logtest.Must(t, Of(l).relayTo(ctx, 10)) // nothing is left to wait for
	logtest.Must(t, Of(l).Rebuild(ctx))
	if n := len(messages(t, l)); n != 0 {
		t.Errorf("the timeline holds %d events", n)
	}
}

func TestPositionAt_YoungCommitsErased(t *testing.T) {
	t.Parallel()
	l := logtest.Start(t)
	old, young := logtest.NewAuthor(1), logtest.NewAuthor(2)
	old.Write(t, l, 3, 1)
	young.Write(t, l, 2, 1)
	first := entryAfter(t, l, 3).Time
	stream, err := l.JetStream().Stream(t.Context(), l.Config().Names.Stream(assets.LogStream))
	logtest.Must(t, err)
	logtest.Must(t, stream.Purge(t.Context(), jetstream.WithPurgeSubject(l.Config().Names.Log(logtest.Tenant, young.Thread))))
	ctx, cancel := context.WithTimeout(t.Context(), natstest.Patience)
	defer cancel()
	if at, err := Of(l).positionAt(ctx, first); err != nil || at != (position{seq: 5}) {
		t.Errorf("the position is %+v: %v", at, err)
	}
}

func TestRebuild_WhileRelayRuns(t *testing.T) {
	t.Parallel()
	l := logtest.Start(t)
	running(t, logtest.Sibling(t, l))
	a, b := logtest.NewAuthor(1), logtest.NewAuthor(2)
	a.Write(t, l, 500, 4)
	written := make(chan struct{})
	stop := make(chan struct{})
	other := logtest.Sibling(t, l)
	go func() { // writes go on
		defer close(written)
		for {
			select {
			case <-stop:
				return
			default:
				b.Write(t, other, 1, 3)
			}
		}
	}()
	for range 5 {
		logtest.Must(t, Of(l).Rebuild(t.Context()))
	}
	close(stop)
	<-written
	last := b
	if a.Seq > b.Seq {
		last = a
	}
	reaches(t, l, last)
	exact(t, l, 0)
}

// A relay that another one overtook at its start returns a fenced error, so that its
// caller starts it again.
func TestRelay_OvertakenAsItBegins(t *testing.T) {
	t.Parallel()
	l := logtest.Start(t)
	a := logtest.NewAuthor(1)
	a.Write(t, l, 2, 2)
	fence, err := derived.NewFence(t.Context(), l.Streams(), l.Config().Names.Stream(assets.TimelineStream))
	logtest.Must(t, err)
	logtest.Must(t, Of(l).relayTo(t.Context(), 1)) // the other
	if err := Of(l).relayBehind(t.Context(), fence, 2); !streams.IsFenced(err) {
		t.Fatalf("the overtaken relay ended with %v", err)
	}
	logtest.Must(t, Of(l).relayTo(t.Context(), 2))
	exact(t, l, 0)
}

// A rebuilding that died goes on with the relay.
func TestRebuild_Interrupted(t *testing.T) {
	t.Parallel()
	l := logtest.Start(t)
	a := logtest.NewAuthor(1)
	a.Write(t, l, 50, 4)
	stop := running(t, l)
	reaches(t, l, a)
	stop()
	_, err := derived.Seize(t.Context(), l.Streams(), l.Config().Names.Stream(assets.TimelineStream), l.Config().Names.Timeline(markOwner, markOwner, assets.TimelineMark), position{}.header())
	logtest.Must(t, err)
	if ok := events.ValidTenant(markOwner); ok {
		t.Error("a tenant may have the mark's name")
	}
	running(t, l)
	natstest.Eventually(t, "the relay to begin again", func() bool { return len(messages(t, l)) == 2*200+1 })
	reaches(t, l, a)
}
