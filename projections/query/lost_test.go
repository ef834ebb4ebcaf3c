package query

import (
	"testing"

	"github.com/rs/zerolog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/readtest"
	"github.com/skein-threads/skein/projections"
	"github.com/skein-threads/skein/projections/documents"
)

// Whole buckets are lost, checkpoints included: until they are filled again no query
// reports progress, and new commits are folded correctly.
func TestLostBucket(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string][]documents.Kind{
		"threads and parts": {documents.Threads, documents.Parts}, "items": {documents.Items}, "the index": {documents.Index},
		"contexts and the index": {documents.Contexts, documents.Index},
	} {
		t.Run(name, func(t *testing.T) { lose(t, lost) })
	}
}

func lose(t *testing.T, lost []documents.Kind) {
	h := newHouse(t)
	h.Fill(100, 2)
	r, stop := h.Run(projections.Config{})
	a := readtest.NewAuthor(h.House.House, 12)
	a.Write(200)
	h.AwaitRunner(r)
	stop()
	for _, k := range lost {
		if err := h.EventLog.JetStream().DeleteStream(t.Context(), "KV_"+h.Models.Of(k).Bucket); err != nil {
			t.Fatal(err)
		}
	}
	r = projections.New(h.NewLog(), projections.Config{}, zerolog.Nop(), nil)
	if err := r.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.Write(100) // to be folded without what was lost
	thread := a.Threads[len(a.Threads)-1]
	asked := h.asker(Config{})
	h.StartRunner(r)
	for _, id := range []string{"T-00000000-0000-7000-8000-000000000099", "T-00000000-0000-7000-8000-000000000000"} {
		doc := ask[events.Thread](asked, "thread.get", `{"threadId":"`+id+`","minSeq":1}`)
		items := ask[events.ItemList](asked, "item.list", `{"threadId":"`+id+`","minSeq":1}`)
		if doc.Items != 4 || len(items.Items) != 4 {
			t.Errorf("%s shows %d of %d items", id, len(items.Items), doc.Items)
		}
	}
	h.Append(thread, events.Event{Type: events.HistoryTruncatedType, Data: events.HistoryTruncated{FromIndex: 2}})
	a.Write(100)
	h.AwaitRunner(r)
	h.Same(append(h.FilledIDs(100), a.Threads...)...)
}
