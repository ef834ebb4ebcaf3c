package timeline

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/internal/logtest"
)

// arrivals are the entries of a log, as they arrive.
type arrivals chan eventlog.Entry

func (a arrivals) Next(ctx context.Context) (eventlog.Entry, error) {
	select {
	case e := <-a:
		return e, nil
	case <-ctx.Done():
		return eventlog.Entry{}, ctx.Err()
	}
}

func (a arrivals) Waiting() int { return len(a) }

// slowFence notes when messages are stored. That takes a time.
type slowFence struct {
	takes   time.Duration
	sent    int
	stored  []time.Time // by message
	flushes []time.Time
}

func (f *slowFence) Send(context.Context, string, nats.Header, []byte) error {
	f.sent++
	return nil
}

func (f *slowFence) Final(ctx context.Context, _ string, _ nats.Header, _ []byte) error {
	f.sent++
	return f.Flush(ctx)
}

func (f *slowFence) Flush(context.Context) error {
	time.Sleep(f.takes)
	f.flushes = append(f.flushes, time.Now())
	for len(f.stored) < f.sent {
		f.stored = append(f.stored, time.Now())
	}
	return nil
}

func (f *slowFence) Last() uint64 { return uint64(f.sent) }
func (f *slowFence) Sent() uint64 { return uint64(f.sent) }

// However commits arrive, each is on the timeline a pace and two flushes later, though none follows
// it. One that comes a pace after the last flush does not wait, and between two flushes is a pace.
func TestRelay_Pace(t *testing.T) {
	t.Parallel()
	log := logtest.Start(t)
	broken := errors.New("it cannot be read")
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		a := logtest.NewAuthor(1)
		var sent []eventlog.Write
		for range 1 + random.IntN(30) {
			sent = append(sent, a.Next(t, 1))
		}
		synctest.Test(t, func(t *testing.T) {
			line := Of(log)
			fence := &slowFence{takes: time.Duration(random.IntN(3000)) * time.Microsecond}
			tail := make(arrivals, len(sent)*2)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- line.relayEntries(ctx, fence, tail, position{}, 0) }()
			var arrived []time.Time
			for i, w := range sent {
				if random.IntN(3) > 0 { // else with the one before
					time.Sleep(time.Duration(random.IntN(12_000)) * time.Microsecond)
				}
				arrived = append(arrived, time.Now())
				tail <- eventlog.Entry{Seq: uint64(2*i + 1), Commit: w.Commit}
				if random.IntN(5) == 0 {
					tail <- eventlog.Entry{Seq: uint64(2*i + 2), Broken: broken}
				}
			}
			time.Sleep(line.pace + 2*fence.takes)
			synctest.Wait()
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) || len(fence.stored) != len(sent) {
				t.Fatalf("seed %d: %d of %d events are stored, %v", seed, len(fence.stored), len(sent), err)
			}
			for i, at := range fence.stored {
				if late := at.Sub(arrived[i]); late > line.pace+2*fence.takes {
					t.Errorf("seed %d: event %d is late by %v", seed, i, late)
				}
			}
			for i, at := range fence.flushes[1:] {
				if gap := at.Sub(fence.flushes[i]); gap < line.pace {
					t.Errorf("seed %d: flush %d follows after %v", seed, i+1, gap)
				}
			}
			last := time.Time{} // the flush before an event arrived
			for i, at := range arrived {
				for _, flush := range fence.flushes {
					if !flush.After(at) {
						last = flush
					}
				}
				alone := (i == 0 || fence.stored[i-1].Before(at)) && at.Sub(last) >= line.pace
				if alone && fence.stored[i].Sub(at) > fence.takes+fence.takes {
					t.Errorf("seed %d: event %d came alone, and waited for %v", seed, i, fence.stored[i].Sub(at))
				}
			}
		})
	}
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
