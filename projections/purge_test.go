package projections

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
)

// Documents of ended threads that a server has restored are removed before anything
// starts: also those of more threads, and more documents, than one read returns.
func TestEnsure_RemovesDocumentsOfEndedThreads(t *testing.T) {
	h := newHouse(t)
	r, stop := h.run(Config{})
	id, docs := h.FullThread(r.Progress())
	other, otherDocs := h.FullThread(r.Progress())
	h.Do("thread.delete", other, `{}`)
	large := map[string]string{}
	for n := range 1500 {
		large[fmt.Sprintf("%s.%s.ctx_%d", acme, id, n)] = `{"id":"x"}`
	}
	h.Do("thread.delete", id, `{}`)
	for range 257 { // more than one read of a bucket looks for
		h.Do("thread.delete", h.Do("thread.create", "", `{}`).ThreadID, `{}`)
	}
	kept := h.Do("thread.create", "", `{}`).ThreadID
	h.React(kept, 2)
	h.await(r)
	h.Until(func() bool { return h.CountMessages("$KV.thread_threads._.deletion.>") == 0 }, "the notes of the deletions are still there")
	stop()
	h.Same(kept)
	h.BringBack(docs)
	h.BringBack(otherDocs)
	h.BringBack(map[documents.Kind]map[string]string{documents.Contexts: large})
	var said bytes.Buffer
	if err := New(h.NewLog(), Config{}, zerolog.New(&said), nil).Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(said.String(), "removed again"); n != 1 || !strings.Contains(said.String(), `"threads":2,`) {
		t.Errorf("%d lines, want one of two threads: %s", n, &said)
	}
	h.Same(kept)
	for kind := range docs {
		if n := h.CountMessages("$KV." + h.Models.Of(kind).Bucket + "." + acme + "." + id + ".>"); n != 0 {
			t.Errorf("%d messages are left of the thread in the bucket %s", n, h.Models.Of(kind).Bucket)
		}
	}
	next, _ := h.run(Config{}) // it continues after the swept ones
	h.React(kept, 3)
	h.await(next)
	h.Same(kept)
}

// The documents of a thread that ends are replaced by markers before they are purged: a
// recovery that has lost the purge finds the markers.
func TestEndThread_MarkersComeBeforeThePurge(t *testing.T) {
	h := newHouse(t)
	r, _ := h.run(Config{})
	id, _ := h.FullThread(r.Progress())
	sub, err := h.NC.SubscribeSync("$KV.*." + acme + "." + id + ".>")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.NC.Flush(); err != nil {
		t.Fatal(err)
	}
	end := h.Do("thread.delete", id, `{}`)
	h.await(r)
	if err := h.NC.Flush(); err != nil { // what was stored before has arrived here
		t.Fatal(err)
	}
	marked := map[string]bool{}
	for {
		pending, _, err := sub.Pending()
		if err != nil {
			t.Fatal(err)
		}
		if pending == 0 {
			break
		}
		m, err := sub.NextMsg(0)
		if err != nil {
			t.Fatal(err)
		}
		if seq, removed := buckets.MarkerSeq(m.Header); removed && seq == uint64(end.Seq) {
			marked[m.Subject] = true
		}
	}
	if len(marked) < 12 {
		t.Errorf("%d documents were replaced by markers: %v", len(marked), marked)
	}
}
