package projections

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
)

// openEnds records how many deletions are not finished.
type openEnds struct {
	NoMetrics
	open atomic.Int64
}

func (e *openEnds) Ends(open int) { e.open.Store(int64(open)) }

// storeRest folds and stores what a session has not read of the log, as one batch.
func (h *house) storeRest(s *session) {
	h.Helper()
	end, err := h.EventLog.LastSeq(h.Context())
	if err != nil {
		h.Fatal(err)
	}
	tail, err := h.EventLog.Tail(h.Context(), "test", s.from())
	if err != nil {
		h.Fatal(err)
	}
	defer tail.Stop()
	b := &batch{}
	for b.end < end {
		e, err := tail.Next(h.Context())
		if err != nil {
			h.Fatal(err)
		}
		b.add(e)
	}
	if err := s.fold(h.Context(), b); err != nil {
		h.Fatal(err)
	}
	if err := s.store(h.Context(), b); err != nil {
		h.Fatal(err)
	}
}

// A commit of one tenant is shown before the documents of the threads are purged that another has
// deleted before it, but for a few. The others have notes, count as open, are no damage, and are
// purged by the next session.
func TestStore_PurgesFewThreadsBeforeACommitIsShown(t *testing.T) {
	h := newHouse(t)
	r, stop := h.run(Config{})
	var family []string
	for range 20 {
		family = append(family, h.Do("thread.create", "", `{}`).ThreadID)
		h.React(family[len(family)-1], 1)
	}
	h.await(r)
	stop()
	withDocuments := func() (n int) {
		for _, id := range family {
			if h.CountMessages("$KV.thread_contexts."+acme+"."+id+".>") > 0 {
				n++
			}
		}
		return n
	}
	metrics := &openEnds{}
	r = New(h.NewLog(), Config{Purges: 3, BatchTime: time.Hour}, zerolog.Nop(), metrics) // however slow the machine is
	s, err := r.newSession(t.Context(), t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range family {
		h.Do("thread.delete", id, `{}`)
	}
	shown, err := h.Dispatcher.Do(t.Context(), "other", "thread.create", []byte(`{"data":{}}`), commands.Meta{})
	if err != nil {
		t.Fatal(err)
	}
	h.storeRest(s)
	if at := r.Progress().Seq(); at < uint64(shown.Seq) {
		t.Errorf("the read models show the log up to %d, want %d", at, shown.Seq)
	}
	if n := withDocuments(); n != 17 {
		t.Errorf("%d deleted threads have documents, want 17 of 20", n)
	}
	if n := metrics.open.Load(); n != 20 {
		t.Errorf("%d deletions count as open, want 20", n)
	}
	if report := h.Verify(); report.Found != 0 {
		t.Errorf("a verification says %+v", report)
	}
	if s, err = r.newSession(t.Context(), t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := withDocuments(); n < 14 {
		t.Errorf("a session that starts has purged all but %d of 17 threads first", n)
	}
	if err := s.purgeRest(t.Context(), func() bool { return true }); err != nil {
		t.Fatal(err)
	}
	if n := withDocuments(); n == 0 {
		t.Error("all are purged while a commit waits")
	}
	h.start(r)
	h.Until(func() bool { return metrics.open.Load() == 0 }, "the deletions do not end")
	if n := withDocuments(); n != 0 {
		t.Errorf("%d deleted threads still have documents", n)
	}
}

// A runner that has nothing else to do goes on with the deleted threads that are left.
func TestRunner_PurgesTheRest(t *testing.T) {
	h := newHouse(t)
	r, stop := h.run(Config{})
	for range 20 {
		h.React(h.Do("thread.create", "", `{}`).ThreadID, 1)
	}
	h.await(r)
	stop()
	for id := range h.Live(h.Models.Of(documents.Threads)) {
		_, thread := documents.CutThreadName(id)
		h.Do("thread.delete", thread, `{}`)
	}
	r, _ = h.run(Config{Purges: 1})
	h.await(r)
	h.Until(func() bool { return h.CountMessages("$KV.thread_threads._.deletion.>") == 0 }, "the notes of the deletions are still there")
	h.Same()
}

// Tenants take turns.
func TestPurges_TenantsTakeTurns(t *testing.T) {
	var p purges
	for n := range 3 {
		p.add(buckets.Deletion{Tenant: "acme", Thread: fmt.Sprint("T-", n)})
	}
	p.add(buckets.Deletion{Tenant: "other", Thread: "T-9"})
	var order []string
	for p.count > 0 {
		order = append(order, p.take().Thread)
		if len(order) == 3 {
			p.add(buckets.Deletion{Tenant: "other", Thread: "T-10"})
		}
	}
	if want := []string{"T-0", "T-9", "T-1", "T-2", "T-10"}; !slices.Equal(order, want) {
		t.Errorf("the order is %v, want %v", order, want)
	}
	if len(p.turns) != 0 || len(p.of) != 0 {
		t.Errorf("%v and %v are left", p.turns, p.of)
	}
}

// The snapshot of a deleted thread is removed, also of one that is not purged.
func TestRunner_RemovesTheSnapshotOfADeletedThread(t *testing.T) {
	h := newHouse(t)
	id := h.Do("thread.create", "", `{}`).ThreadID
	store := eventlog.SnapshotsOn(h.EventLog.Streams())
	if err := store.Save(t.Context(), acme, id, []byte("a state")); err != nil {
		t.Fatal(err)
	}
	h.run(Config{})
	h.Append(id, events.Event{Type: events.LifecycleDeletedType, Data: events.LifecycleDeleted{}}) // a command would remove it itself
	h.Until(func() bool {
		raw, err := store.Load(t.Context(), acme, id)
		return err == nil && raw == nil
	}, "the snapshot is still there")
}
