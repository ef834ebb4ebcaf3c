package cleanup_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/readtest"
	"github.com/skein-threads/skein/internal/readtest/running"
	"github.com/skein-threads/skein/projections"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/cleanup"
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

// A deleted thread gets no thread that works for it any more. One that an import brings is deleted
// too, with a purge if the first one was purged (AM-85).
func TestCascade_LateWorkers(t *testing.T) {
	h := running.New(t)
	h.Submitting()
	r, _ := h.Run(projections.Config{})
	main := h.Do("thread.create", "", `{}`).ThreadID
	h.Do("thread.delete", main, `{"purge":true}`)
	if r, err := h.Try("thread.create", "", `{"mainThreadId":"`+main+`"}`); !errors.Is(err, &events.Error{Code: events.NotFound}) || !strings.Contains(err.Error(), "Thread "+main+" not found") {
		t.Errorf("created: %+v, %v", r, err)
	}
	h.AwaitRunner(r)
	late := events.DeriveThreadID(readtest.Acme, "late")
	at := events.Time(1_771_588_800_000_000)
	commit, err := events.NewCommit("", []events.Event{{
		ID: events.EventID(readtest.Acme, late, "import", 0), Type: events.ThreadCreatedType, Time: at, Subject: late, Tenant: readtest.Acme, ThreadID: late, Version: 1,
		CommandID: "import", Data: events.ThreadCreated{ID: late, Status: events.ThreadOpen, MainThreadID: main},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.EventLog.Append(t.Context(), eventlog.Write{Commit: commit}); err != nil {
		t.Fatal(err)
	}
	h.Until(func() bool { return h.Tombstone(late) != nil }, "the late thread goes on")
	last := h.Tombstone(late)
	if d := last.Events[len(last.Events)-1].Data.(events.LifecycleDeleted); !d.Purge {
		t.Error("the purge stopped at the thread that was deleted")
	}
}

// Threads that are created for one while it is deleted are refused or deleted: one that was
// created is gone with the others, and the record on the deleted thread names
// each of them, in a state that does not grow (AM-85, AM-88).
func TestCascade_CreatedWhileDeleted(t *testing.T) {
	h := running.New(t)
	h.Submitting()
	r, _ := h.Run(projections.Config{})
	h.AwaitRunner(r)
	for range 5 {
		main := h.Do("thread.create", "", `{}`).ThreadID
		var creating sync.WaitGroup
		made := make(chan string, 64)
		started := make(chan struct{}, 64)
		for range 8 {
			creating.Go(func() {
				for range 8 {
					reply, err := h.Try("thread.create", "", `{"mainThreadId":"`+main+`"}`)
					started <- struct{}{}
					switch {
					case err == nil:
						made <- reply.ThreadID
					case !errors.Is(err, &events.Error{Code: events.NotFound}):
						t.Error(err)
					}
				}
			})
		}
		for range 16 {
			<-started
		}
		deleted := h.Do("thread.delete", main, `{}`)
		creating.Wait()
		close(made)
		var ids []string
		for id := range made {
			ids = append(ids, id)
			first, err := h.EventLog.After(t.Context(), readtest.Acme, id, 0)
			if err != nil || first.Seq > uint64(deleted.Seq) {
				t.Errorf("%s was created after the deletion (%v)", id, err)
			}
			h.Until(func() bool { return h.Tombstone(id) != nil }, id+" goes on")
		}
		if len(ids) == 0 {
			t.Error("no thread was created before the deletion")
		}
	}
}

// Two processes that both delete a thread with the one that it works for send the same command:
// it is done once, and the repeat is no refusal.
func TestCascade_SentTwice(t *testing.T) {
	h := running.New(t)
	main := h.Do("thread.create", "", `{}`).ThreadID
	worker := cleanup.Worker{Tenant: readtest.Acme, Thread: h.CreateWorker(main), Main: main}
	h.Do("thread.delete", main, `{}`)
	for range 2 {
		cleaner := cleanup.New(h.NewLog(), h.Models, cleanup.Config{}, zerolog.Nop(), nil)
		if err := cleaner.DeleteLate(t.Context(), []cleanup.Worker{worker}); err != nil {
			t.Fatal(err)
		}
	}
	if n := h.CountMessages("skein.submit.>"); n != 2 {
		t.Fatalf("%d commands wait, want 2", n)
	}
	h.Submitting()
	h.Until(func() bool { return h.CountMessages("skein.submit.>") == 0 }, "the commands are not done")
	if h.Tombstone(worker.Thread) == nil {
		t.Error("the thread goes on")
	}
	if rejected, err := h.EventLog.Last(t.Context(), readtest.Acme, events.TenantAggregate); err != nil || rejected != nil {
		t.Errorf("the repeat was refused: %+v, %v", rejected, err)
	}
}

// ends counts nothing.
type ends struct{}

func (ends) Ends(int) {}

// While many threads are deleted with one, a few of the commands wait at a time, so that the
// tenant's own find room. The deletion is one small commit.
func TestCascade_LeavesRoom(t *testing.T) {
	h := running.New(t)
	const ahead = 4
	main := h.Do("thread.create", "", `{}`).ThreadID
	cleaner := cleanup.New(h.NewLog(), h.Models, cleanup.Config{Ahead: ahead}, zerolog.Nop(), ends{})
	workers := make([]string, 3*ahead)
	for i := range workers {
		workers[i] = h.CreateWorker(main)
		cleaner.Note(cleanup.Worker{Tenant: readtest.Acme, Thread: workers[i], Main: main})
	}
	deleted := h.Do("thread.delete", main, `{}`)
	if n := len(h.Tombstone(main).Body); n > 1000 {
		t.Errorf("the deletion is a commit of %d bytes", n)
	}
	cleaner.Add(buckets.Deletion{Tenant: readtest.Acme, Thread: main, Seq: uint64(deleted.Seq)})
	h.Start(func(ctx context.Context) error { cleaner.Run(ctx); return nil })
	h.Until(func() bool { return h.CountMessages("skein.submit.>") == ahead }, "no commands wait")
	stream, err := h.EventLog.JetStream().Stream(t.Context(), "SKEIN_COMMANDS")
	if err != nil {
		t.Fatal(err)
	}
	// Each is taken away as it is done, and none comes until there is room for a part. They come in
	// the order of the threads.
	left := slices.Sorted(slices.Values(workers))
	for sent := ahead; sent < len(workers); sent += ahead / 2 {
		for range ahead / 2 {
			info, err := stream.Info(t.Context())
			if err == nil {
				err = stream.DeleteMsg(t.Context(), info.State.FirstSeq)
			}
			if err != nil {
				t.Fatal(err)
			}
			left = left[1:]
		}
		h.Until(func() bool {
			info, err := stream.Info(t.Context())
			if err != nil || info.State.Msgs > ahead {
				t.Fatalf("%d commands wait: %v", info.State.Msgs, err)
			}
			return info.State.LastSeq == uint64(sent+ahead/2)
		}, "the cascade does not go on")
		info, err := stream.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i, thread := range left[:ahead] {
			m, err := stream.GetMsg(t.Context(), info.State.FirstSeq+uint64(i))
			if err != nil || !strings.Contains(string(m.Data), thread) {
				t.Fatalf("command %d is not of %s: %+v, %v", i, thread, m, err)
			}
		}
	}
}
