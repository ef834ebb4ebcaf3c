package projections

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/eventlog/derived"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/readtest"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
)

// A runner finds documents that another version of a fold has written: they are rebuilt
// next to it, while threads are written and read, and the checkpoint says so at the end.
func TestAnotherVersion(t *testing.T) {
	h := newHouse(t)
	r, stop := h.run(Config{})
	a := readtest.NewAuthor(h.House, 11)
	a.Write(200)
	h.await(r)
	stop()
	items, steps := h.Models.Of(documents.Items), h.Models.Of(documents.Steps)
	for _, p := range []documents.Projection{items, steps} {
		for key, doc := range h.Live(p) {
			h.Tamper(p, key, strings.Replace(doc, `"threadId"`, `"old":true,"threadId"`, 1))
		}
		c, err := buckets.ReadCheckpoint(t.Context(), h.EventLog, p)
		if err != nil {
			t.Fatal(err)
		}
		c.Version = 99
		h.Tamper(p, buckets.CheckpointKey, string(c.Encode()))
	}
	ctx, end := context.WithCancel(t.Context())
	var others sync.WaitGroup
	others.Go(func() { h.NeverOlder(ctx, a.Threads[0]) })
	r, _ = h.run(Config{BatchCommits: 3})
	a.Write(200)
	for _, p := range []documents.Projection{items, steps} {
		h.Until(func() bool {
			c, err := buckets.ReadCheckpoint(t.Context(), h.EventLog, p)
			return err == nil && c.Version == p.Version
		}, p.Name+" was not rebuilt")
	}
	a.Write(50)
	h.await(r)
	end()
	others.Wait()
	h.Same(a.Threads...)
}

// The read models are ahead of the log.
func TestAnotherLog(t *testing.T) {
	h := newHouse(t)
	h.Tamper(h.Models.Of(documents.Items), buckets.CheckpointKey, `{"projection":"items","version":1,"seq":99}`)
	r := New(h.EventLog, Config{}, zerolog.Nop(), nil)
	_, err := r.newSession(t.Context(), t.Context())
	ahead, ok := err.(*AheadError)
	if !ok || ahead.Checkpoint != 99 {
		t.Errorf("%v", err)
	}
}

// Of two runners under the lease one runs, and when it ends the other takes over.
func TestLease(t *testing.T) {
	if testing.Short() {
		t.Skip("a lease takes seconds to change hands")
	}
	h := newHouse(t)
	shared := buckets.NewProgress()
	var ends []context.CancelFunc
	var running sync.WaitGroup
	for range 2 {
		log := h.NewLog()
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
	made := h.Do("thread.create", "", `{}`)
	wait(made)
	ends[0]()
	wait(h.React(made.ThreadID, 0))
	h.Same(made.ThreadID)
}
