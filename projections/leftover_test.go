package projections

import (
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

// bringBack puts documents into their buckets as they were, which is what a server
// does that was killed after it purged them.
func (h *house) bringBack(docs map[documents.Kind]map[string]string) {
	h.Helper()
	for kind, list := range docs {
		bucket := h.models.Of(kind).Bucket
		for key, doc := range list {
			if _, err := h.log.JetStream().PublishMsg(h.Context(), &nats.Msg{Subject: "$KV." + bucket + "." + key, Data: []byte(doc)}); err != nil {
				h.Fatal(err)
			}
		}
	}
}

// fullThread makes a thread that has a document in every bucket, and returns its
// documents but its own.
func (h *house) fullThread(r *Runner) (id string, docs map[documents.Kind]map[string]string) {
	h.Helper()
	id = h.do("thread.create", "", `{}`).ThreadID
	h.react(id, 1)
	h.do("effect.schedule", id, `{"name":"later","delayMs":3600000}`)
	h.do("file.write", id, `{"path":"/d/a.txt","external":"https://example.com/a.txt"}`)
	for _, d := range []events.TraceRecorded{
		{Kind: "log", ExecutionID: "exe_t", Text: "line", Data: []byte(`{"level":"info"}`)},
		{Kind: "span", ExecutionID: "exe_t", SpanID: "sp", Data: []byte(`{"name":"x"}`)},
	} {
		h.append(id, events.Event{Type: events.TraceRecordedType, Correlation: "exe_t", Data: d})
	}
	h.await(r)
	docs = map[documents.Kind]map[string]string{}
	for _, p := range h.models.List() {
		if p.Kind == documents.Threads || p.Kind == documents.Definitions {
			continue
		}
		if docs[p.Kind] = h.live(p); len(docs[p.Kind]) == 0 {
			h.Fatalf("the thread has no document in the bucket of %s", p.Name)
		}
	}
	return id, docs
}

// A thread that was deleted is not there, whatever a bucket holds of it: by its name,
// and by the ids of what it held.
func TestQueries_DeletedThreadIsNotFoundWhateverABucketHolds(t *testing.T) {
	h := newHouse(t)
	r, _ := h.run(Config{})
	a := h.asker(QueryConfig{Progress: r.Progress()})
	id, docs := h.fullThread(r)
	kept := h.do("thread.create", "", `{}`).ThreadID
	h.react(kept, 2)
	end := h.do("thread.delete", id, `{}`)
	ask[events.ThreadList](a, "thread.list", `{`+seqOf(end)+`}`)
	h.bringBack(docs)

	var exe, step, item string
	for _, doc := range docs[documents.Steps] {
		var s events.Step
		unmarshal(t, doc, &s)
		step, exe = s.ID, s.ExecutionID
	}
	for _, doc := range docs[documents.Items] {
		var i events.Item
		unmarshal(t, doc, &i)
		item = i.ID
	}
	of := func(thread string) []string {
		ref := fmt.Sprintf(`"threadId":%q`, thread)
		return []string{
			`thread.get {` + ref + `}`, `context.get {` + ref + `}`, `context.list {` + ref + `}`, `item.list {` + ref + `}`,
			`message.list {` + ref + `}`, `execution.list {` + ref + `}`, `effect.list {` + ref + `}`, `log.list {` + ref + `}`,
			`file.list {` + ref + `,"path":"/"}`, `file.stats {` + ref + `}`, `file.find {` + ref + `,"pattern":"**"}`,
		}
	}
	ref := fmt.Sprintf(`"threadId":%q`, id)
	queries := append(of(id),
		`item.get {`+ref+`,"itemId":"`+item+`"}`, `item.get {"itemId":"`+item+`"}`,
		`execution.get {`+ref+`,"executionId":"`+exe+`"}`, `execution.get {"executionId":"`+exe+`"}`,
		`step.list {`+ref+`,"executionId":"`+exe+`"}`, `step.list {"executionId":"`+exe+`"}`,
		`part.list {`+ref+`,"stepId":"`+step+`"}`, `part.list {"stepId":"`+step+`"}`,
		`message.get {`+ref+`,"messageId":"`+item+`"}`,
		`file.stat {`+ref+`,"path":"/d/a.txt"}`, `file.list {`+ref+`,"path":"/d"}`,
	)
	for _, q := range queries {
		var name, body string
		if _, err := fmt.Sscanf(q, "%s", &name); err != nil {
			t.Fatal(err)
		}
		body = q[len(name)+1:]
		a.refused(events.NotFound, name, body)
	}
	for _, q := range of(kept) { // the same queries find what is there
		var name string
		if _, err := fmt.Sscanf(q, "%s", &name); err != nil {
			t.Fatal(err)
		}
		if _, err := a.q.handle(t.Context(), acme, name, []byte(q[len(name)+1:])); err != nil {
			t.Errorf("%s: %v", q, err)
		}
	}
}

// What a server has brought back of ended threads is removed before anything starts:
// also of more threads, and more documents, than one read returns.
func TestEnsure_RemovesDocumentsOfEndedThreads(t *testing.T) {
	h := newHouse(t)
	r, stop := h.run(Config{})
	id, docs := h.fullThread(r)
	large := map[string]string{}
	for n := range 1500 {
		large[fmt.Sprintf("%s.%s.ctx_%d", acme, id, n)] = `{"id":"x"}`
	}
	h.do("thread.delete", id, `{}`)
	for range sweptTogether + 1 {
		h.do("thread.delete", h.do("thread.create", "", `{}`).ThreadID, `{}`)
	}
	kept := h.do("thread.create", "", `{}`).ThreadID
	h.react(kept, 2)
	h.await(r)
	stop()
	h.same(kept)
	h.bringBack(docs)
	h.bringBack(map[documents.Kind]map[string]string{documents.Contexts: large})
	if err := r.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.same(kept)
	for kind := range docs {
		if n := h.messages("$KV." + h.models.Of(kind).Bucket + "." + acme + "." + id + ".>"); n != 0 {
			t.Errorf("%d messages are left of the thread in the bucket %s", n, h.models.Of(kind).Bucket)
		}
	}
	next, _ := h.run(Config{}) // it goes on after what was swept
	h.react(kept, 3)
	h.await(next)
	h.same(kept)
}

// The documents of a thread that ends are replaced by markers before they are purged:
// a recovery that does not know of the purge finds the markers.
func TestEndThread_MarkersComeBeforeThePurge(t *testing.T) {
	h := newHouse(t)
	r, _ := h.run(Config{})
	id, _ := h.fullThread(r)
	sub, err := h.nc.SubscribeSync("$KV.*." + acme + "." + id + ".>")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	end := h.do("thread.delete", id, `{}`)
	h.await(r)
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
		if seq, removed := markerSeq(m.Header); removed && seq == uint64(end.Seq) {
			marked[m.Subject] = true
		}
	}
	if len(marked) < 12 {
		t.Errorf("%d documents were replaced by markers: %v", len(marked), marked)
	}
}
