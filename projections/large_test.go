package projections

import (
	"errors"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
	"github.com/skein-threads/skein/projections/query"
	"github.com/skein-threads/skein/service"
)

// A document that is too large is stored as such, and the runner continues.
func TestLargeDocument_TooLargeIsTold(t *testing.T) {
	h := newHouse(t)
	r := New(h.NewLog(), Config{}, zerolog.Nop(), nil)
	s, err := r.newSession(t.Context(), t.Context())
	if err != nil {
		t.Fatal(err)
	}
	in := h.Do("thread.create", "", `{}`).ThreadID
	n := s.cache.node(documents.Place{Kind: documents.Items, Thread: documents.ThreadName(acme, in), ID: "itm_1"})
	n.slot.Seq = 1
	n.slot.Doc = &events.Item{ID: "itm_1", Content: events.JSON(`"` + strings.Repeat("x", buckets.LargestDocument) + `"`), Stamp: events.Stamp{Seq: 1}}
	s.dirty = append(s.dirty, n)
	if err := s.store(t.Context(), &batch{end: 1}); err != nil {
		t.Fatal(err)
	}
	if count, seq, err := buckets.Broken(t.Context(), h.EventLog); count != 1 || seq != 1 || err != nil {
		t.Errorf("%d are told of, at %d, %v", count, seq, err)
	}
	other := h.Do("thread.create", "", `{}`).ThreadID
	running, _ := h.run(Config{})
	h.await(running)
	q := query.New(h.NewLog(), h.Validator, query.Config{}, zerolog.Nop(), nil)
	if got, err := q.Handle(t.Context(), acme, "item.get", []byte(`{"threadId":"`+in+`","itemId":"itm_1"}`), service.Meta{}); !errors.Is(err, &events.Error{Code: events.ProjectionBehind}) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := q.Handle(t.Context(), acme, "thread.get", []byte(`{"threadId":"`+other+`"}`), service.Meta{}); err != nil {
		t.Error(err)
	}
}

// The pieces of a thread's documents are deleted with it.
func TestLargeDocument_GoesWithItsThread(t *testing.T) {
	h := newHouse(t)
	r, _ := h.run(Config{})
	in, _, _ := h.LargeItem()
	h.await(r)
	h.Do("thread.delete", in, `{}`)
	h.await(r)
	for key := range h.Live(h.Models.Of(documents.Items)) {
		t.Errorf("%s is still there", key)
	}
}
