package runtime

import (
	"context"
	"testing"
	"time"

	"github.com/skein-threads/skein/eventlog/queues"
	"github.com/skein-threads/skein/eventlog/timeline"
	"github.com/skein-threads/skein/events"
)

// Deleting a thread ends its run: the reactor's context ends, the run leaves the queue,
// nothing of it is written after the tombstone, and the worker keeps nothing of the
// thread (C-6, AM-86).
func TestDelete_EndsRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	relayed, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = timeline.Of(w.log).Relay(relayed)
	}()
	defer func() {
		cancel()
		<-done
	}()
	begun, stopped := make(chan struct{}), make(chan struct{})
	w.agent("slow", ReactorFunc(func(ctx context.Context, _ *StepInput, _ Stream) (*Reaction, error) {
		close(begun)
		<-ctx.Done()
		close(stopped)
		return says("too late"), nil
	}))
	worker := w.work(Config{})
	id, execution := w.begin("slow", "hello")
	w.must("thread.react", id, events.ReactThread{Text: new("and this?")}) // it waits in the queue
	await(t, begun, "the reactor did not begin")
	end := w.must("thread.delete", id, events.DeleteThread{})
	await(t, stopped, "the reactor was not told to stop")
	for there := true; there; {
		var err error
		if there, err = queues.RunsOf(w.log).Has(t.Context(), tenant, id, execution, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	last, err := w.log.Last(t.Context(), tenant, id)
	if err != nil || int64(last.Seq) != end.Seq {
		t.Errorf("something came after the tombstone: %+v, %v", last, err)
	}
	if _, err := w.ask("thread.react", id, events.ReactThread{Text: new("again")}); events.AsError(err).Code != events.NotFound {
		t.Errorf("a deleted thread answers %v", err)
	}
	keeps := func(id string) bool {
		talk := worker.history.Take(tenant, id)
		return talk.Version() > 0
	}
	idle := w.must("thread.create", "", events.CreateThread{AgentID: "slow"}).ThreadID
	if !keeps(idle) {
		t.Fatal("the worker keeps nothing, so that this shows nothing")
	}
	w.must("thread.delete", idle, events.DeleteThread{})
	if keeps(idle) {
		t.Error("the worker keeps what it knew of a deleted thread")
	}
}

func await(t *testing.T, c <-chan struct{}, problem string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(testPatience):
		t.Fatal(problem)
	}
}
