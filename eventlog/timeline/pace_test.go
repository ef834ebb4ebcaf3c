package timeline

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/internal/logtest"
	"github.com/skein-threads/skein/internal/natstest"
)

// A lone event is relayed at once. Those that follow it within the pace wait, and share one flush.
// A relay that ends while they wait loses none of them.
func TestRelay_Pace(t *testing.T) {
	t.Parallel()
	l := logtest.Start(t)
	live, err := l.Conn().SubscribeSync("skein.timeline.>")
	logtest.Must(t, err, l.Conn().Flush())
	next := func() *nats.Msg {
		t.Helper()
		m, err := live.NextMsg(natstest.Patience)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	slow := Of(l)
	slow.pace = 24 * time.Hour
	stop := relaying(t, slow)
	a := logtest.NewAuthor(1)
	a.Write(t, l, 1, 1)
	if m := next(); m.Reply == "" {
		t.Error("the lone event was sent without waiting for its acknowledgement")
	}
	const commits = 20
	for range commits {
		a.Write(t, l, 1, 2)
	}
	entryAfter(t, l, a.Seq-1) // another reader of the log has received the last one
	stop()
	// The relay does not rest while more commits wait, but the last one has none behind it.
	if n, _, err := live.Pending(); err != nil || n > 2*(commits-1) {
		t.Errorf("%d events were relayed within the pace, %v", n, err)
	}

	running(t, l)
	reaches(t, l, a)
	flushes := 0
	for range commits * 2 {
		if next().Reply != "" {
			flushes++
		}
	}
	if flushes > commits/2 { // the first message of a fence is waited for, and a slow reader's pause
		t.Errorf("%d commits that waited were flushed %d times", commits, flushes)
	}
	exact(t, l, 0)
}

// Up to an end, as a rebuild relays, there is no pace.
func TestRebuild_WithoutPace(t *testing.T) {
	t.Parallel()
	l := logtest.Start(t)
	a := logtest.NewAuthor(1)
	a.Write(t, l, 50, 2)
	slow := Of(l)
	slow.pace = 24 * time.Hour
	logtest.Must(t, slow.Rebuild(t.Context()), slow.relayTo(t.Context(), a.Seq))
	exact(t, l, 0)
}
