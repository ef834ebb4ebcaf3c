package projections

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/eventlog/derived"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
)

// threadsCheckpoint returns the checkpoint of threads.
func (h *house) threadsCheckpoint() buckets.Checkpoint {
	h.Helper()
	c, err := buckets.ReadCheckpoint(h.Context(), h.EventLog, h.Models.Of(documents.Threads))
	if err != nil || c.Checkpoint == nil {
		h.Fatalf("the checkpoint of threads: %v, %v", c.Checkpoint, err)
	}
	return *c.Checkpoint
}

// setRemovals writes the checkpoint of threads as a Skein does that writes notes of removals, or
// as an older one.
func (h *house) setRemovals(noted bool) {
	h.Helper()
	c := h.threadsCheckpoint()
	c.Removals = noted
	h.Tamper(h.Models.Of(documents.Threads), buckets.CheckpointKey, string(c.Encode()))
}

// left counts the messages of a thread in the buckets of documents.
func (h *house) left(docs map[documents.Kind]map[string]string, id string) (n uint64) {
	h.Helper()
	for kind := range docs {
		n += h.CountMessages("$KV." + h.Models.Of(kind).Bucket + "." + acme + "." + id + ".>")
	}
	return n
}

const removalNotes = "$KV.thread_threads." + buckets.RemovalPrefix + ">"

// Only threads whose removal may not be on the disk are looked for; all of them if an older Skein
// has run last, or a note cannot be read.
func TestEnsure_AsksForNotedRemovals(t *testing.T) {
	h := newHouse(t)
	r, stop := h.run(Config{Settle: time.Hour})
	settled, settledDocs := h.FullThread(r.Progress())
	stop()
	h.setRemovals(true)
	r, stop = h.run(Config{Settle: time.Hour})
	h.Do("thread.delete", settled, `{}`)
	h.await(r)
	stop()
	if n := h.CountMessages(removalNotes); n != 1 {
		t.Fatalf("there are %d notes of removals, want 1", n)
	}
	_, stop = h.run(Config{Settle: time.Millisecond, CheckpointEvery: time.Millisecond})
	h.Until(func() bool { return h.CountMessages(removalNotes) == 0 }, "the note of what is on the disk stays")
	stop()
	r, stop = h.run(Config{Settle: time.Hour})
	recent, recentDocs := h.FullThread(r.Progress())
	h.Do("thread.delete", recent, `{}`)
	h.await(r)
	stop()
	ensure := func() {
		t.Helper()
		h.BringBack(settledDocs)
		h.BringBack(recentDocs)
		if err := New(h.NewLog(), Config{}, r.logger, nil).Ensure(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ensure()
	if n := h.left(recentDocs, recent); n != 0 {
		t.Errorf("%d messages are left of the thread that was deleted last", n)
	}
	if n := h.left(settledDocs, settled); n == 0 {
		t.Error("all deleted threads were looked for")
	}
	h.Tamper(h.Models.Of(documents.Threads), buckets.RemovalPrefix+"1-1", `{"threads":{"acme.>":1}}`)
	ensure()
	if n := h.left(settledDocs, settled) + h.left(recentDocs, recent); n != 0 {
		t.Errorf("with a broken note %d messages are left", n)
	}
	h.Tamper(h.Models.Of(documents.Threads), buckets.RemovalPrefix+"1-1", `{"threads":{}}`)
	h.setRemovals(false)
	ensure()
	if n := h.left(settledDocs, settled) + h.left(recentDocs, recent); n != 0 {
		t.Errorf("after an older Skein %d messages are left", n)
	}
}

// The note of a removal is stored before the marker of the thread: a bucket that has lost its
// newest messages has no marker without it.
func TestNoteRemovals_BeforeTheMarker(t *testing.T) {
	h := newHouse(t)
	r, _ := h.run(Config{})
	var ids []string
	for range 3 {
		ids = append(ids, h.Do("thread.create", "", `{}`).ThreadID)
	}
	h.await(r)
	sub, err := h.NC.SubscribeSync("$KV.thread_threads.>")
	if err == nil {
		err = h.NC.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		h.Do("thread.delete", id, `{}`)
	}
	h.await(r)
	noted, marked := map[string]uint64{}, 0
	for marked < len(ids) {
		m, err := sub.NextMsg(time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		key := strings.TrimPrefix(m.Subject, "$KV.thread_threads.")
		if strings.HasPrefix(key, buckets.RemovalPrefix) {
			var note buckets.Removal
			if err := json.Unmarshal(m.Data, &note); err != nil {
				t.Fatal(err)
			}
			for name, seq := range note.Threads {
				noted[name] = seq
			}
		}
		if seq, removed := buckets.MarkerSeq(m.Header); removed {
			marked++
			if noted[key] != seq {
				t.Errorf("the marker of %s of commit %d comes before its note: %v", key, seq, noted)
			}
		}
	}
}

// A runner that follows an older Skein, which wrote no notes, says that there are notes only when
// all that it removed is on the disk, also if other writers interrupt it; and one that follows a
// Skein that does, at once.
func TestRunner_SaysThatRemovalsAreNoted(t *testing.T) {
	h := newHouse(t)
	r, stop := h.run(Config{CheckpointEvery: time.Millisecond})
	h.Do("thread.create", "", `{}`)
	h.await(r)
	h.setRemovals(false) // it is interrupted by this
	h.Do("thread.create", "", `{}`)
	h.await(r)
	if h.threadsCheckpoint().Removals {
		t.Error("the checkpoint says so at once")
	}
	h.Until(func() bool {
		all, err := buckets.ReadCheckpoints(t.Context(), h.EventLog, h.Models)
		return err == nil && !slices.ContainsFunc(all[:], func(c buckets.Stored) bool { return c.Seq < r.Progress().Seq() })
	}, "a checkpoint is not written")
	stop() // and the next one has nothing to do
	r, stop = h.run(Config{Settle: time.Millisecond, CheckpointEvery: time.Millisecond})
	h.Until(func() bool { return h.threadsCheckpoint().Removals }, "an idle runner never says so")
	stop()
	r, _ = h.run(Config{})
	h.Do("thread.create", "", `{}`)
	h.await(r)
	if !h.threadsCheckpoint().Removals {
		t.Error("the next runner forgets it")
	}
}

// Writers of the bucket of threads that interrupt the runner do not delay when removals count as
// settled; a runner of an older Skein does.
func TestResumeRemovals(t *testing.T) {
	h := newHouse(t)
	bucket := h.Models.Of(documents.Threads)
	h.Tamper(bucket, "acme.T-1", `{}`)
	fence, err := derived.NewFence(t.Context(), h.EventLog.Streams(), "KV_"+bucket.Bucket)
	if err != nil {
		t.Fatal(err)
	}
	s := &session{Runner: New(h.NewLog(), Config{}, zerolog.Nop(), nil)}
	s.shelves[documents.Threads] = &shelf{fence: fence}
	found := func(at uint64, noted bool) buckets.Stored {
		return buckets.Stored{At: at, Checkpoint: &buckets.Checkpoint{Removals: noted}}
	}
	s.resumeRemovals(found(5, false))
	first := s.removals.since
	if first.IsZero() || s.removals.noted || s.removals.upTo != fence.Last() || fence.Last() == 0 {
		t.Fatalf("it begins with %+v", s.removals)
	}
	// It is interrupted before its checkpoint says that removals have settled.
	s.removals.noted, s.removals.own = true, 9
	if s.resumeRemovals(found(9, false)); !s.removals.noted || s.removals.told {
		t.Errorf("what has settled is forgotten: %+v", s.removals)
	}
	if s.resumeRemovals(found(10, false)); s.removals.noted {
		t.Error("what an older Skein has removed since counts as noted")
	}
	s.removals.own = 9
	for _, step := range []struct {
		name  string
		found buckets.Stored
		again bool
	}{
		{"own checkpoint", found(9, false), false},
		{"nothing written since", found(9, false), false},
		{"that of an older Skein", found(10, false), true},
		{"the same again", found(10, false), false},
		{"that of another process", found(11, true), false},
	} {
		s.removals.since = first
		s.resumeRemovals(step.found)
		if again := s.removals.since != first; again != step.again || s.removals.noted != step.found.Removals {
			t.Errorf("%s: it begins again: %v, noted: %v", step.name, again, s.removals.noted)
		}
	}
	if err := s.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.resumeRemovals(found(11, true)); !s.removals.since.After(first) {
		t.Error("after another connection it does not begin again")
	}
}

// What was removed less than Settle ago keeps its note.
func TestSettleRemovals_KeepsRecentNotes(t *testing.T) {
	h := newHouse(t)
	bucket := h.Models.Of(documents.Threads)
	s := &session{Runner: New(h.NewLog(), Config{}, zerolog.Nop(), nil)}
	fence := func() derived.Fence {
		f, err := derived.NewFence(t.Context(), h.EventLog.Streams(), "KV_"+bucket.Bucket)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	h.Tamper(bucket, buckets.RemovalPrefix+"1-1", `{"threads":{"acme.T-1":1}}`)
	sh := &shelf{fence: fence(), prefix: "$KV." + bucket.Bucket + "."}
	var err error
	if sh.stream, err = h.EventLog.JetStream().Stream(t.Context(), "KV_"+bucket.Bucket); err != nil {
		t.Fatal(err)
	}
	s.shelves[documents.Threads] = sh
	s.resumeRemovals(buckets.Stored{})
	h.Tamper(bucket, buckets.RemovalPrefix+"2-2", `{"threads":{"acme.T-2":2}}`)
	sh.fence = fence()
	for _, step := range []struct {
		name   string
		ago    time.Duration
		purges int
		noted  bool
		want   uint64
	}{
		{"too early", s.cfg.Settle - time.Minute, 0, false, 2},
		{"the first may not be removed yet", s.cfg.Settle, 1, false, 2},
		{"the first has settled", s.cfg.Settle, 0, true, 1},
		{"the second has not", s.cfg.Settle - time.Minute, 0, true, 1},
		{"the second may not be removed yet", s.cfg.Settle, 1, true, 1},
		{"the second has, too", s.cfg.Settle, 0, true, 0},
	} {
		s.removals.since, s.purges.count = time.Now().Add(-step.ago), step.purges
		err := s.settleRemovals(t.Context())
		if left := h.CountMessages(removalNotes); err != nil || s.removals.noted != step.noted || left != step.want {
			t.Errorf("%s: %d notes are left, want %d; noted: %v, %v", step.name, left, step.want, s.removals.noted, err)
		}
	}
}

// After a reconnect the server may be one that was killed: what it has restored is removed.
func TestRunner_SweepsAfterReconnect(t *testing.T) {
	h := newHouse(t)
	log := h.NewLog()
	r, _ := h.start(New(log, Config{}, zerolog.Nop(), nil))
	id, docs := h.FullThread(r.Progress())
	h.Do("thread.delete", id, `{}`)
	h.await(r)
	h.BringBack(docs)
	if err := log.Conn().ForceReconnect(); err != nil {
		t.Fatal(err)
	}
	h.Until(func() bool { return h.left(docs, id) == 0 }, "the restored documents stay")
}
