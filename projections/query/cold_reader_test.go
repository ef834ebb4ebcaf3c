package query

import (
	"context"
	"errors"
	"testing"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/readtest"
	"github.com/skein-threads/skein/projections/documents"
	"github.com/skein-threads/skein/quota"
)

// foldsWait receives whenever somebody begins to wait for a place.
type foldsWait chan struct{}

func (w foldsWait) Places(_ string, _, waiting int) {
	if waiting > 0 {
		w <- struct{}{}
	}
}

func (foldsWait) PlaceRefused(string, string) {}

// A fold foldsWait for one of the places that tenants share; one that was folded needs none.
func TestReader_WaitsForAPlace(t *testing.T) {
	h := readtest.New(t)
	id := h.Do("thread.create", "", `{}`).ThreadID
	seq := uint64(h.React(id, 1).Seq)
	waiting := make(foldsWait, 8)
	places := quota.NewPool("cold", quota.Places{Total: 1}, waiting)
	r := newColdReader(h.EventLog, h.Models, eventlog.PagesOn(h.EventLog.Streams()), places, 0)
	leave, err := places.Try("noisy")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	type read struct {
		thread *coldThread
		err    error
	}
	first, second := make(chan read), make(chan read)
	ask := func(ctx context.Context, to chan read) {
		got, err := r.Read(ctx, documents.ThreadName(readtest.Acme, id), seq)
		to <- read{got, err}
	}
	go ask(ctx, first)
	select {
	case <-waiting:
	case got := <-first:
		t.Fatalf("it was folded without a place: %+v", got)
	}
	gone := errors.New("no longer interested")
	cancel(gone)
	if got := <-first; !errors.Is(got.err, gone) {
		t.Fatalf("while no place is free: %+v", got)
	}
	go ask(t.Context(), second)
	leave()
	got := <-second
	if got.err != nil || len(got.thread.All(documents.Items)) != 2 {
		t.Fatalf("%+v", got)
	}
	leave, err = places.Try("noisy")
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	if again, err := r.Read(t.Context(), documents.ThreadName(readtest.Acme, id), seq); err != nil || again != got.thread {
		t.Errorf("it was folded again: %v", err)
	}
}

// A fold is bound to a sequence: what was written later is not in it, and a log that does not
// show it yet is refused.
func TestReader_BoundToSequence(t *testing.T) {
	h := readtest.New(t)
	id := h.Do("thread.create", "", `{}`).ThreadID
	one := uint64(h.React(id, 1).Seq)
	two := uint64(h.React(id, 2).Seq)
	r := newColdReader(h.EventLog, h.Models, eventlog.PagesOn(h.EventLog.Streams()), nil, 1)
	for seq, items := range map[uint64]int{one: 2, two: 4} {
		if got, err := r.Read(t.Context(), documents.ThreadName(readtest.Acme, id), seq); err != nil || len(got.All(documents.Items)) != items {
			t.Errorf("at %d: %+v, %v", seq, got, err)
		}
	}
	if _, err := r.Read(t.Context(), documents.ThreadName(readtest.Acme, id), two+1); !errors.Is(err, &events.Error{Code: events.ProjectionBehind}) {
		t.Errorf("after the end: %v", err)
	}
}
