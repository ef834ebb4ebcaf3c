package query

import (
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections"
	"github.com/skein-threads/skein/projections/documents"
	"github.com/skein-threads/skein/projections/rebuild"
)

// A document that is no JSON is named and left out of the list of its tenant, while the queries run
// and when they start again, until it is made again from the log.
func TestListThreads_UnreadableDocument(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.Fill(5, 2)
	r, _ := h.Run(projections.Config{})
	h.AwaitRunner(r)
	asked := h.asker(Config{})
	id := h.FilledIDs(5)[2]
	shows := func(a *asker, want int, what string) {
		t.Helper()
		list := ask[events.ThreadList](a, "thread.list", `{"minSeq":1}`)
		if len(list.Threads) != want {
			t.Errorf("%s: the list has %d threads, not %d", what, len(list.Threads), want)
		}
	}
	shows(asked, 5, "before")
	bucket := h.EventLog.Bucket(h.Models.Of(documents.Threads).Bucket)
	subject := bucket.Subject(documents.Place{Kind: documents.Threads, Thread: documents.ThreadName("acme", id)}.Key())
	if _, err := h.EventLog.JetStream().Publish(t.Context(), subject, []byte("no JSON")); err != nil {
		t.Fatal(err)
	}
	shows(asked, 4, "while it runs")
	again := h.asker(Config{})
	shows(again, 4, "started again")
	for what, a := range map[string]*asker{"while it runs": asked, "started again": again} {
		if keys := a.q.Unreadable(); len(keys) != 1 || !strings.Contains(keys[0], id) {
			t.Errorf("%s: unreadable are %q", what, keys)
		}
	}
	if _, err := rebuild.Repair(t.Context(), h.EventLog); err != nil {
		t.Fatal(err)
	}
	shows(asked, 5, "repaired")
	if keys := asked.q.Unreadable(); len(keys) != 0 {
		t.Errorf("repaired: unreadable are %q", keys)
	}
}
