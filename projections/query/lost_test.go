package query

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
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

// An item that its thread's index has and the bucket of items has not is not left out of a list.
func TestLists_ItemIsMissing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r, _ := h.Run(projections.Config{})
	a := h.asker(Config{Wait: time.Second})
	id := h.Do("thread.create", "", `{}`).ThreadID
	for n := range 3 {
		h.React(id, n)
	}
	h.AwaitRunner(r)
	items := ask[events.ItemList](a, "item.list", `{"threadId":"`+id+`"}`).Items
	bucket := h.EventLog.Bucket(h.Models.Of(documents.Items).Bucket)
	place := documents.Place{Kind: documents.Items, Thread: documents.ThreadName(acme, id), ID: items[2].ID}
	stream, err := h.EventLog.JetStream().Stream(t.Context(), bucket.Stream())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(t.Context(), jetstream.WithPurgeSubject(bucket.Subject(place.Key()))); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, body string }{
		{"item.list", `{"threadId":"` + id + `"}`}, {"item.list", `{"threadId":"` + id + `","order":"desc","limit":4}`}, {"message.list", `{"threadId":"` + id + `"}`},
	} {
		if e := a.refused(events.ProjectionBehind, c.name, c.body); !strings.Contains(e.Message, items[2].ID) {
			t.Errorf("%s: %v", c.name, e)
		}
	}
	if n := len(ask[events.ItemList](a, "item.list", `{"threadId":"`+id+`","limit":2}`).Items); n != 2 {
		t.Errorf("%d items before it", n)
	}
	h.Do("message.delete", id, `{"itemId":"`+items[2].ID+`"}`)
	h.AwaitRunner(r)
	if n := len(ask[events.ItemList](a, "item.list", `{"threadId":"`+id+`","minVersion":1}`).Items); n != len(items)-1 {
		t.Errorf("%d items after it was hidden", n)
	}
}
