package runtime

import (
	"context"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/queues"
	"github.com/skein-threads/skein/events"
)

// loseQueue drops the messages in the queue of runs.
func (w *world) loseQueue() {
	w.t.Helper()
	stream, err := w.log.JetStream().Stream(w.t.Context(), w.log.Config().Names.Stream(assets.RunStream))
	if err != nil {
		w.t.Fatal(err)
	}
	if err := stream.Purge(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// sweeps makes a worker sweep one thread until stop, and calls before each time.
func (w *world) sweeps(worker *Worker, id string, before func()) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var sweeping sync.WaitGroup
	sweeping.Go(func() {
		_ = worker.Sweep(ctx, func(context.Context) iter.Seq2[ThreadRef, error] {
			return func(yield func(ThreadRef, error) bool) {
				before()
				yield(ThreadRef{tenant, id}, nil)
			}
		}, 10*time.Millisecond)
	})
	return func() { cancel(); sweeping.Wait() }
}

// A run whose queue message is lost is found and queued again.
func TestSweep_LostMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agent("a", script(says("fine")))
	id, execution := w.begin("a", "hello")
	w.loseQueue()
	defer w.sweeps(w.work(Config{}), id, func() {})()
	w.finished(id, execution)
}

// A run whose queue message is lost is found on a thread that changes constantly, too.
func TestSweep_BusyThread(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agent("a", script(says("fine")))
	id, execution := w.begin("a", "hello")
	w.loseQueue()
	worker := w.work(Config{})
	stop := w.sweeps(worker, id, func() {
		if _, err := w.ask("item.create", id, events.CreateItem{Item: events.NewItem{
			Type: events.Message, Role: events.System, Content: events.JSON(`[{"type":"input_text","text":"a note"}]`),
		}}); err != nil {
			t.Error(err)
		}
	})
	defer stop()
	w.finished(id, execution)
}

// A run that waited is queued again if the message that woke it is lost, even if the
// message that it had before its wait is there again: a killed server may forget that
// it was removed from the queue, and then it is delivered to no worker.
func TestSweep_RunThatWaited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agent("a", script(says("x", call("c1", "pay", `{}`)), says("fine")), tool{ToolSpec{Name: "pay", Manual: true}, func(context.Context, *ToolInput) (ToolResult, error) {
		return Done(nil), nil
	}})
	worker, stop := w.worker(Config{})
	id, execution := w.begin("a", "hello")
	var first int64
	w.until(id, func(e *events.Event) bool {
		if e.Type == events.RunRequestedType {
			first = e.Version
		}
		return e.Type == events.RunParkedType
	})
	w.unqueued(id, execution)
	stop()
	w.must("approval.grant", id, events.GrantApproval{CallID: "c1"})
	var wanted int64
	w.look(id, func(s *thread.State) {
		run, _ := s.Run(execution)
		wanted = run.Wanted
	})
	if wanted <= first {
		t.Fatalf("it is wanted since version %d, and was at %d", wanted, first)
	}
	w.queued(id, execution, wanted)
	w.loseQueue()
	if err := queues.RunsOf(w.log).Put(tenant, id, first, execution, "a"); err != nil {
		t.Fatal(err)
	}
	w.queued(id, execution, first)
	stop = w.sweeps(worker, id, func() {})
	w.queued(id, execution, wanted)
	stop()
	w.work(Config{})
	w.finished(id, execution)
}
