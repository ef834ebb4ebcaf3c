package eventlog_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/internal/logtest"
)

const bucket = "thread_follower"

// start returns a log with so many commits, and the bucket of a position.
func start(t *testing.T, commits int) (*eventlog.Log, *logtest.Author) {
	t.Helper()
	log, a := logtest.Start(t), logtest.NewAuthor(1)
	logtest.Must(t, assets.EnsureBucket(t.Context(), log.Streams(), bucket))
	a.Write(t, log, commits, 1)
	return log, a
}

func open(t *testing.T, log *eventlog.Log) *eventlog.Position {
	t.Helper()
	p, err := eventlog.OpenPosition(t.Context(), log, bucket, "a test")
	logtest.Must(t, err)
	return p
}

// A position begins at the end of the log, which is also the place of one that another log has left.
func TestPosition_OfThisLog(t *testing.T) {
	t.Parallel()
	log, _ := start(t, 3)
	end, err := log.LastSeq(t.Context())
	logtest.Must(t, err)
	for _, c := range []struct {
		save  uint64
		known bool
		seq   uint64
	}{{end - 2, true, end - 2}, {end + 100, false, end}, {0, true, 0}, {end, true, end}} {
		p := open(t, log)
		logtest.Must(t, p.Save(t.Context(), c.save))
		if p := open(t, log); p.Known() != c.known || p.Seq() != c.seq {
			t.Errorf("after %d was saved: %d, known: %v", c.save, p.Seq(), p.Known())
		}
	}
}

func TestPosition_First(t *testing.T) {
	t.Parallel()
	log, _ := start(t, 3)
	end, err := log.LastSeq(t.Context())
	logtest.Must(t, err)
	p, other := open(t, log), open(t, log)
	if p.Known() || p.Seq() != end {
		t.Errorf("%d of %d, known: %v", p.Seq(), end, p.Known())
	}
	logtest.Must(t, p.Save(t.Context(), end)) // is stored, though it does not move
	if p := open(t, log); !p.Known() || p.Seq() != end {
		t.Errorf("after the first Save: %d of %d, known: %v", p.Seq(), end, p.Known())
	}
	if err := other.Save(t.Context(), 1); !errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		t.Errorf("one that was replaced: %v", err)
	}
}

// Run passes what the log has and what comes, each commit once, and flushes when it is time, also
// when nothing comes.
func TestRun_TakesAndFlushes(t *testing.T) {
	t.Parallel()
	log, a := start(t, 3)
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	var taken, flushed []uint64
	var by time.Time
	stopped, pending := errors.New("stopped"), uint64(0)
	first := make(chan struct{})
	go func() {
		<-first
		a.Write(t, log, 1, 1)
	}()
	err := eventlog.Follow(ctx, log, "test", 1, eventlog.FollowHandler{
		Take: func(e eventlog.Entry) error {
			if e.Commit == nil || e.Commit.Seq != e.Seq {
				t.Errorf("passed %+v", e)
			}
			taken, pending, by = append(taken, e.Seq), e.Seq, time.Now()
			return nil
		},
		FlushBy: func() time.Time { return by },
		Flush: func() error {
			flushed, by = append(flushed, pending), time.Time{}
			switch pending {
			case 3:
				close(first)
			case 4:
				stop(stopped)
			}
			return nil
		},
	})
	if !errors.Is(err, stopped) || !slices.Equal(taken, []uint64{2, 3, 4}) || !slices.Contains(flushed, 3) || !slices.Contains(flushed, 4) {
		t.Errorf("%v: passed %v, flushed at %v", err, taken, flushed)
	}
	failed := errors.New("failed")
	err = eventlog.Follow(t.Context(), log, "test", 0, eventlog.FollowHandler{Take: func(eventlog.Entry) error { return failed }})
	if !errors.Is(err, failed) {
		t.Errorf("Take failed: %v", err)
	}
}
