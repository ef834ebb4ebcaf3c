package projections

import (
	"context"
	"fmt"
	"testing"

	"github.com/skein-threads/skein/events"
)

// submitting does submitted commands until the test ends.
func (h *house) submitting() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = h.dispatcher.Submitted(ctx)
	}()
	h.Cleanup(func() {
		cancel()
		<-done
	})
}

// ended gives a thread's tombstone, nil if it goes on.
func (h *house) ended(id string) *events.Commit {
	h.Helper()
	last, err := h.log.Last(h.Context(), acme, id)
	if err != nil {
		h.Fatal(err)
	}
	if last == nil {
		h.Fatalf("%s is not in the log", id)
	}
	if _, ok := last.Events[len(last.Events)-1].Data.(events.LifecycleDeleted); ok {
		return last
	}
	return nil
}

// worker makes a thread that works for another.
func (h *house) worker(main string) string {
	h.Helper()
	return h.do("thread.create", "", fmt.Sprintf(`{"mainThreadId":%q}`, main)).ThreadID
}

// The threads that work for a deleted one are deleted too, all the way down, and
// no other (AM-85, AM-88, C-12). Killing the runner in between changes nothing,
// and doing it twice does nothing.
func TestCascade(t *testing.T) {
	h := newHouse(t)
	main := h.do("thread.create", "", `{"key":"main"}`).ThreadID
	other := h.do("thread.create", "", `{}`).ThreadID
	workers := []string{h.worker(main), h.worker(main)}
	for range 4 {
		workers = append(workers, h.worker(workers[len(workers)-1]))
	}
	kept := []string{other, h.worker(other)}
	r, kill := h.run(Config{})
	h.await(r)
	kill() // so that what is known comes from the documents
	h.do("thread.delete", main, `{}`)
	r, kill = h.run(Config{})
	h.await(r) // the first commands are submitted, and nobody does them
	kill()
	r, _ = h.run(Config{})
	h.submitting()
	for _, id := range workers {
		h.until(func() bool { return h.ended(id) != nil }, id+" goes on")
	}
	h.await(r)
	h.until(func() bool { return h.messages("$KV.thread_threads._.deletion.>") == 0 }, "the notes of the ends are still there")
	for _, id := range kept {
		if h.ended(id) != nil {
			t.Errorf("%s was deleted too", id)
		}
	}
	first := h.ended(workers[0])
	if e := first.Events[len(first.Events)-1]; e.Actor != "skein:cascade" {
		t.Errorf("the tombstone says that %q did it", e.Actor)
	}
	if rejected, err := h.log.Last(t.Context(), acme, events.TenantAggregate); err != nil || rejected != nil {
		t.Errorf("a repeat was refused: %+v, %v", rejected, err)
	}
	h.same(append(kept, workers...)...)
}

// A thread that is made for one that has ended is deleted too (AM-85). A purge
// goes down with it.
func TestCascadeTakesLateWorkers(t *testing.T) {
	h := newHouse(t)
	h.submitting()
	r, _ := h.run(Config{})
	main := h.do("thread.create", "", `{}`).ThreadID
	h.do("thread.delete", main, `{"purge":true}`)
	h.await(r)
	late := h.worker(main)
	h.until(func() bool { return h.ended(late) != nil }, "the late thread goes on")
	last := h.ended(late)
	if d := last.Events[len(last.Events)-1].Data.(events.LifecycleDeleted); !d.Purge {
		t.Error("the purge stopped at the thread that was deleted")
	}
}
