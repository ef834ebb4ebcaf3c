package effects

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/skein-threads/skein/eventlog/queues"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
)

// A timer that is delivered twice takes no effect from the worker that runs its
// attempt, however long that takes.
func TestEffect_TimerDeliveredTwice(t *testing.T) {
	t.Parallel()
	p := newPlant(t)
	entered, free := make(chan int64, 10), make(chan struct{})
	slow := runtime.Effects{"slow": runtime.EffectFunc(func(_ context.Context, in *runtime.EffectInput) error {
		entered <- in.Attempt
		<-free
		return nil
	})}
	one := p.process(slow, Config{})
	p.process(slow, Config{})
	release := sync.OnceFunc(func() { close(free) })
	t.Cleanup(release)
	id := p.schedule(one, "slow", "")
	next(t, entered)
	now := events.TimeOf(time.Now())
	if err := putEffect(t.Context(), p.log, time.Now, acme, p.thread, id, dueEffect{Name: "slow", At: now, Firing: 1, Attempt: 1}); err != nil {
		t.Fatal(err)
	}
	var depth queues.Depth
	p.until(func() bool { // until the second message is settled
		stream, err := p.log.JetStream().Stream(t.Context(), "SKEIN_TIMERS")
		if err != nil {
			t.Fatal(err)
		}
		if depth, err = queues.TimersOf(p.log).Depth(t.Context()); err != nil {
			t.Fatal(err)
		}
		return len(entered) > 0 || stream.CachedInfo().State.LastSeq >= 2 && depth == queues.Depth{Taken: 1}
	}, func() string { return fmt.Sprintf("the state of the queue is %+v", depth) })
	none(t, entered)
	release()
	p.tells(id, "scheduled", "started 1.1", "completed")
}
