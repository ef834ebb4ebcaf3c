package cleanup_test

import (
	"testing"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/readtest"
	"github.com/skein-threads/skein/internal/readtest/running"
	"github.com/skein-threads/skein/projections"
)

// The threads that work for a deleted one are deleted too, all the way down, and no other
// (AM-85, AM-88, C-12). A kill of the runner in between changes nothing, nor does a
// repeat.
func TestCascade(t *testing.T) {
	h := running.New(t)
	main := h.Do("thread.create", "", `{"key":"main"}`).ThreadID
	other := h.Do("thread.create", "", `{}`).ThreadID
	workers := []string{h.CreateWorker(main), h.CreateWorker(main)}
	for range 4 {
		workers = append(workers, h.CreateWorker(workers[len(workers)-1]))
	}
	kept := []string{other, h.CreateWorker(other)}
	r, kill := h.Run(projections.Config{})
	h.AwaitRunner(r)
	kill() // so that the knowledge comes from the documents
	h.Do("thread.delete", main, `{}`)
	r, kill = h.Run(projections.Config{})
	h.AwaitRunner(r) // the first commands are submitted, and not executed
	kill()
	r, _ = h.Run(projections.Config{})
	h.Submitting()
	for _, id := range workers {
		h.Until(func() bool { return h.Tombstone(id) != nil }, id+" goes on")
	}
	h.AwaitRunner(r)
	h.Until(func() bool { return h.CountMessages("$KV.thread_threads._.deletion.>") == 0 }, "the notes of the ends are still there")
	for _, id := range kept {
		if h.Tombstone(id) != nil {
			t.Errorf("%s was deleted too", id)
		}
	}
	first := h.Tombstone(workers[0])
	if e := first.Events[len(first.Events)-1]; e.Actor != "skein:cascade" {
		t.Errorf("the tombstone says that %q did it", e.Actor)
	}
	if rejected, err := h.EventLog.Last(t.Context(), readtest.Acme, events.TenantAggregate); err != nil || rejected != nil {
		t.Errorf("a repeat was refused: %+v, %v", rejected, err)
	}
	h.Same(append(kept, workers...)...)
}

// A thread that is created for an ended one is deleted too, with a purge if that one was
// purged (AM-85).
func TestCascadeTakesLateWorkers(t *testing.T) {
	h := running.New(t)
	h.Submitting()
	r, _ := h.Run(projections.Config{})
	main := h.Do("thread.create", "", `{}`).ThreadID
	h.Do("thread.delete", main, `{"purge":true}`)
	h.AwaitRunner(r)
	late := h.CreateWorker(main)
	h.Until(func() bool { return h.Tombstone(late) != nil }, "the late thread goes on")
	last := h.Tombstone(late)
	if d := last.Events[len(last.Events)-1].Data.(events.LifecycleDeleted); !d.Purge {
		t.Error("the purge stopped at the thread that was deleted")
	}
}
