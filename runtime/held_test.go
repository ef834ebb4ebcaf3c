package runtime

import (
	"context"
	"testing"
	"time"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/queues"
)

// If a worker was suspended for longer than the queue waits, the queue redelivers the
// run to it while it executes it. It continues: no person is asked about a call in
// flight.
func TestWorker_KeepsRunThatIsRedelivered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made, release := make(chan struct{}, 10), make(chan struct{})
	once := tool{ToolSpec{Name: "once"}, func(ctx context.Context, _ *ToolInput) (ToolResult, error) {
		made <- struct{}{}
		select {
		case <-release:
		case <-ctx.Done():
			return ToolResult{}, ctx.Err()
		}
		return Done(text("made")), nil
	}}
	w.agent("a", script(says("x", call("c1", "once", `{}`)), says("y")), once)
	worker := w.work(Config{})
	id, execution := w.begin("a", "hello")
	next(t, made)
	var version int64
	w.look(id, func(s *thread.State) { r, _ := s.Run(execution); version = r.Wanted })
	// Its message is redelivered, as after the queue's wait has expired.
	if err := queues.RunsOf(w.log).Put(tenant, id, version, execution, "a"); err != nil {
		t.Fatal(err)
	}
	w.taken(2)
	close(release)
	all := w.finished(id, execution)
	if recorded, failed, approvals := results(all); recorded != 1 || failed != 0 || approvals != 0 {
		t.Errorf("%d results, %d of them failed, %d approvals", recorded, failed, approvals)
	}
	if n := claims(all, execution); n != 1 {
		t.Errorf("it was claimed %d times", n)
	}
	w.unqueued(id, execution)

	held := &queues.Run{Tenant: tenant, Thread: "T-1", Execution: "exe_1", Version: 7}
	worker.holdMessages(held)
	for name, c := range map[string]struct {
		of   *queues.Run
		kept bool
	}{
		"of the run":                        {&queues.Run{Tenant: tenant, Thread: "T-1", Version: 7}, true},
		"of the run, requested before":      {&queues.Run{Tenant: tenant, Thread: "T-1", Version: 6}, true},
		"of the run, handed over":           {&queues.Run{Tenant: tenant}, true},
		"of a run that was requested since": {&queues.Run{Tenant: tenant, Thread: "T-1", Version: 8}, false},
		"of another thread's run":           {&queues.Run{Tenant: tenant, Thread: "T-2", Version: 6}, false},
		"of another tenant's run":           {&queues.Run{Tenant: "rival", Thread: "T-1", Version: 6}, false},
	} {
		c.of.Execution = held.Execution
		if got := worker.consumeHeld(c.of); got != c.kept {
			t.Errorf("a message %s is treated as the one in hand: %t", name, got)
		}
	}
}

// taken waits until the queue has delivered as many messages as were ever put into it.
func (w *world) taken(messages uint64) {
	w.t.Helper()
	for deadline := time.Now().Add(testPatience); ; time.Sleep(time.Millisecond) {
		c, err := w.log.JetStream().Consumer(w.t.Context(), w.log.Config().Names.Stream(assets.RunStream), "skein-workers")
		if err != nil {
			w.t.Fatal(err)
		}
		info := c.CachedInfo()
		if info.Delivered.Stream >= messages {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("the queue has delivered message %d, not %d", info.Delivered.Stream, messages)
		}
	}
}
