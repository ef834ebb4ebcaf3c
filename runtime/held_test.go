package runtime

import (
	"context"
	"testing"
	"time"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/queues"
)

// When a worker stood still for longer than the queue waits, the queue delivers the
// run to it again while it has it in hand. It goes on with it: nobody is asked about a
// call that is under way.
func TestARunInHandIsNotTakenFromItself(t *testing.T) {
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
	// Its message comes once more, as it does when the queue has waited in vain.
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
	w.unqueued(execution)

	// A run that was asked for once more since is another piece of work.
	held := &queues.Run{Execution: "exe_1", Version: 7}
	worker.hold(held)
	for version, kept := range map[int64]bool{6: true, 7: true, 8: false} {
		if got := worker.keeps(&queues.Run{Execution: "exe_1", Version: version}); got != kept {
			t.Errorf("a message of version %d is taken for the one in hand, of version 7: %t", version, got)
		}
	}
}

// taken waits until the queue has delivered as many messages as have ever been put
// into it.
func (w *world) taken(messages uint64) {
	w.t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(time.Millisecond) {
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
