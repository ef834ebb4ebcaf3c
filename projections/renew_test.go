package projections

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/eventlog/derived"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

// TestAnotherVersion begins on documents that another version of a fold made:
// they are rebuilt beside the runner, while threads are written and read, and the
// checkpoint says so at the end.
func TestAnotherVersion(t *testing.T) {
	h := newHouse(t)
	r, stop := h.run(Config{})
	a := newAuthor(h, 11)
	a.write(200)
	h.await(r)
	stop()
	items, steps := h.models.Of(documents.Items), h.models.Of(documents.Steps)
	for _, p := range []documents.Projection{items, steps} {
		for key, doc := range h.live(p) {
			h.tamper(p, key, strings.Replace(doc, `"threadId"`, `"old":true,"threadId"`, 1))
		}
		c, _, err := readCheckpoint(t.Context(), h.log, p)
		if err != nil {
			t.Fatal(err)
		}
		c.Version = 99
		h.tamper(p, checkpointKey, string(c.encode()))
	}
	ctx, end := context.WithCancel(t.Context())
	var beside sync.WaitGroup
	beside.Go(func() { h.neverOlder(ctx, a.threads[0]) })
	r, _ = h.run(Config{BatchCommits: 3})
	a.write(200)
	for _, p := range []documents.Projection{items, steps} {
		h.until(func() bool {
			c, _, err := readCheckpoint(t.Context(), h.log, p)
			return err == nil && c.Version == p.Version
		}, p.Name+" was not rebuilt")
	}
	a.write(50)
	h.await(r)
	end()
	beside.Wait()
	h.same(a.threads...)
}

// TestLostBucket takes whole buckets away, checkpoint and all: until they are
// filled again nobody is told that the read models are anywhere, and what is
// folded meanwhile is right.
func TestLostBucket(t *testing.T) {
	for name, lost := range map[string][]documents.Kind{
		"threads and parts": {documents.Threads, documents.Parts}, "items": {documents.Items}, "the index": {documents.Index},
		"contexts and the index": {documents.Contexts, documents.Index},
	} {
		t.Run(name, func(t *testing.T) { lose(t, lost) })
	}
}

func lose(t *testing.T, lost []documents.Kind) {
	h := newHouse(t)
	h.fill(100, 2)
	r, stop := h.run(Config{})
	a := newAuthor(h, 12)
	a.write(200)
	h.await(r)
	stop()
	for _, k := range lost {
		if err := h.log.JetStream().DeleteStream(t.Context(), "KV_"+h.models.Of(k).Bucket); err != nil {
			t.Fatal(err)
		}
	}
	r = New(h.newLog(), Config{}, zerolog.Nop(), nil)
	if err := r.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.write(100) // to be folded without what was lost
	thread := a.threads[len(a.threads)-1]
	asked := h.asker(QueryConfig{})
	h.start(r)
	for _, id := range []string{"T-00000000-0000-7000-8000-000000000099", "T-00000000-0000-7000-8000-000000000000"} {
		doc := ask[events.Thread](asked, "thread.get", `{"threadId":"`+id+`","minSeq":1}`)
		items := ask[events.ItemList](asked, "item.list", `{"threadId":"`+id+`","minSeq":1}`)
		if doc.Items != 4 || len(items.Items) != 4 {
			t.Errorf("%s shows %d of %d items", id, len(items.Items), doc.Items)
		}
	}
	h.append(thread, events.Event{Type: events.HistoryTruncatedType, Data: events.HistoryTruncated{FromIndex: 2}})
	a.write(100)
	h.await(r)
	h.same(append(h.filled(100), a.threads...)...)
}

// TestAnotherLog begins on read models that are ahead of the log.
func TestAnotherLog(t *testing.T) {
	h := newHouse(t)
	h.tamper(h.models.Of(documents.Items), checkpointKey, `{"projection":"items","version":1,"seq":99}`)
	r := New(h.log, Config{}, zerolog.Nop(), nil)
	_, err := r.begin(t.Context(), t.Context())
	ahead, ok := err.(*AheadError)
	if !ok || ahead.Checkpoint != 99 {
		t.Errorf("%v", err)
	}
}

func TestUnknownProjection(t *testing.T) {
	h := newHouse(t)
	_, err := New(h.log, Config{}, zerolog.Nop(), nil).Rebuild(t.Context(), []string{"items", "nothing"}, true)
	unknown, ok := err.(*UnknownProjectionError)
	if !ok || unknown.Name != "nothing" || len(unknown.Known) != documents.Kinds {
		t.Errorf("%v", err)
	}
	if report := h.rebuild(true, "items", "thread_steps"); len(report.Projections) != 2 {
		t.Errorf("%v", report.Projections)
	}
}

// TestRepairUnderSteadyLoad alters every document of many threads while all of
// them are written: the repair comes to an end, and so does the runner.
func TestRepairUnderSteadyLoad(t *testing.T) {
	h := newHouse(t)
	ids := h.fill(50, 4)
	r, _ := h.run(Config{})
	h.await(r)
	for _, p := range h.models.List() {
		for key, doc := range h.live(p) {
			h.tamper(p, key, strings.Replace(doc, `{`, `{"tampered":true,`, 1))
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	var beside sync.WaitGroup
	for lane := range 2 {
		beside.Go(func() {
			for n := lane; ctx.Err() == nil; n += 2 {
				h.do("thread.update", ids[n%len(ids)], `{"title":"again"}`)
			}
		})
	}
	begun := r.Progress().Seq()
	report := h.rebuild(false)
	// What the runner itself wrote again meanwhile needed no repair.
	if report.Found == 0 || report.Repaired == 0 {
		t.Errorf("found %d, repaired %d", report.Found, report.Repaired)
	}
	if now := r.Progress().Seq(); now == begun {
		t.Error("the runner stood still meanwhile")
	}
	stop()
	beside.Wait()
	h.await(r)
	if report := h.rebuild(true); report.Found != 0 {
		t.Errorf("%d differences are left: %+v", report.Found, report.Differences[0])
	}
	h.same(ids...)
}

// TestVerifyWhileTheRunnerIsBehind reports nothing that is only late.
func TestVerifyWhileTheRunnerIsBehind(t *testing.T) {
	h := newHouse(t)
	a := newAuthor(h, 13)
	r, stop := h.run(Config{})
	a.write(100)
	h.await(r)
	stop()
	a.write(100)
	if report := h.rebuild(true); report.Found != 0 {
		t.Errorf("%+v", report)
	}
	r, stop = h.run(Config{BatchCommits: 1})
	for range 10 {
		a.write(10)
		if report := h.rebuild(true); report.Found != 0 {
			t.Errorf("%+v", report)
		}
	}
	h.await(r)
	stop()
	h.same(a.threads...)
}

// TestLease runs two runners under the lease: one of them runs, and when it ends
// the other takes over.
func TestLease(t *testing.T) {
	if testing.Short() {
		t.Skip("a lease takes seconds to change hands")
	}
	h := newHouse(t)
	shared := NewProgress()
	var ends []context.CancelFunc
	var running sync.WaitGroup
	for range 2 {
		log := h.newLog()
		r := New(log, Config{Progress: shared}, zerolog.Nop(), nil)
		ctx, cancel := context.WithCancel(context.Background())
		ends = append(ends, cancel)
		running.Go(func() { derived.LeasesOn(log.Streams(), log.Logger()).Hold(ctx, RunnerLease, r.Run) })
	}
	defer running.Wait()
	defer ends[1]()
	wait := func(r *events.Reply) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := shared.Wait(ctx, uint64(r.Seq)); err != nil {
			t.Fatal(err)
		}
	}
	made := h.do("thread.create", "", `{}`)
	wait(made)
	ends[0]()
	wait(h.react(made.ThreadID, 0))
	h.same(made.ThreadID)
}

// TestReportIsJSON: the command line prints it.
func TestReportIsJSON(t *testing.T) {
	raw, err := json.Marshal(Report{Projections: []string{"items"}, Differences: []Difference{{Projection: "items", Kind: Missing, LogSeq: 3}}}, json.Deterministic(true))
	if err != nil || !strings.Contains(string(raw), `"kind":"missing","logSeq":3`) {
		t.Errorf("%s, %v", raw, err)
	}
}
