package query

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/readtest"
	"github.com/skein-threads/skein/projections"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
	"github.com/skein-threads/skein/projections/rebuild"
)

// whole reads an item as the read model has it.
func (a *asker) whole(id, item string) *events.Item {
	a.Helper()
	got, err := (&live{q: a.q}).get(a.Context(), documents.Place{Kind: documents.Items, Thread: documents.ThreadName(acme, id), ID: item})
	if err != nil || got[0].doc == nil {
		a.Fatalf("item %s: %v", item, err)
	}
	return got[0].doc.(*events.Item)
}

// A document that is larger than a message is shown as the log has it, after every change
// and by every runner; a query returns it within the limits of an answer, at the version
// that it named.
func TestLargeDocument_IsShown(t *testing.T) {
	if raceDetector {
		t.Skip("one goroutine encodes megabytes again and again: make test runs it")
	}
	t.Parallel()
	h := newHouse(t)
	r, stop := h.Run(projections.Config{})
	a := h.asker(Config{})
	in, id, version := h.LargeItem()
	shows := func() {
		t.Helper()
		h.AwaitRunner(r)
		slot := h.Folded(in, documents.Until{}).Slot(documents.Place{Kind: documents.Items, Thread: documents.ThreadName(acme, in), ID: id})
		if have, want := readtest.Encode(h, a.whole(in, id)), readtest.Encode(h, slot.Doc); have != want {
			t.Fatalf("it is shown with %d bytes, not as the log says, with %d", len(have), len(want))
		}
	}
	shows()
	got := ask[events.Item](a, "item.get", fmt.Sprintf(`{"threadId":%q,"itemId":%q,"minVersion":%d}`, in, id, version))
	if got.Version > version || got.Version < version-3 || !strings.Contains(string(got.Content), "left out: 2560") {
		t.Errorf("at version %d of %d: %.300s", got.Version, version, got.Content)
	}
	page := ask[events.ItemList](a, "item.list", `{"threadId":"`+in+`"}`)
	page = ask[events.ItemList](a, "item.list", `{"threadId":"`+in+`","cursor":"`+page.NextCursor+`"}`)
	if len(page.Items) != 1 || page.Items[0].Version != got.Version {
		t.Errorf("%d items are listed", len(page.Items))
	}
	// Another runner continues with it.
	stop()
	r, _ = h.Run(projections.Config{})
	h.Do("message.edit", in, fmt.Sprintf(`{"itemId":%q,"metadata":{"more":true}}`, id))
	h.Do("message.edit", in, fmt.Sprintf(`{"itemId":%q,"metadata":{"more":false}}`, id))
	shows()
	if report, err := rebuild.Verify(t.Context(), h.EventLog, rebuild.Scope{}); err != nil || report.Found != 0 {
		t.Errorf("a verification finds %+v, %v", report.Differences, err)
	}
	// Unchanged values were not written again.
	pieces, documentBytes := 0, 0
	for key, doc := range h.Live(h.Models.Of(documents.Items)) {
		if _, ok := documents.ParsePiece(key); ok {
			pieces++
		} else {
			documentBytes += len(doc)
		}
	}
	if pieces > 24 || documentBytes > 8<<10 {
		t.Errorf("there are %d pieces, and %d bytes besides", pieces, documentBytes)
	}
}

// A document with a missing piece is not returned without it: reads say that the read
// model is behind, the audit finds it, and a rebuild repairs it.
func TestLargeDocument_PieceMissing(t *testing.T) {
	if raceDetector {
		t.Skip("one goroutine encodes megabytes again and again: make test runs it")
	}
	t.Parallel()
	h := newHouse(t)
	r, _ := h.Run(projections.Config{})
	a := h.asker(Config{})
	in, id, _ := h.LargeItem()
	h.AwaitRunner(r)
	bucket := h.Models.Of(documents.Items).Bucket
	stream, err := h.EventLog.JetStream().Stream(t.Context(), "KV_"+h.EventLog.Config().Names.Bucket(bucket))
	if err != nil {
		t.Fatal(err)
	}
	for key := range h.Live(h.Models.Of(documents.Items)) {
		if _, ok := documents.ParsePiece(key); ok {
			if err := stream.Purge(t.Context(), jetstream.WithPurgeSubject(h.EventLog.Bucket(bucket).Subject(key))); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	query := fmt.Sprintf(`{"threadId":%q,"itemId":%q}`, in, id)
	a.refused(events.ProjectionBehind, "item.get", query)
	if report, err := rebuild.Verify(t.Context(), h.EventLog, rebuild.Scope{}); err != nil || report.Found != 1 || report.Differences[0].Kind != rebuild.Different {
		t.Errorf("a verification finds %+v, %v", report.Differences, err)
	}
	if report, err := rebuild.Repair(t.Context(), h.EventLog); err != nil || report.Repaired != 1 {
		t.Errorf("a rebuild repairs %d, %v", report.Repaired, err)
	}
	ask[events.Item](a, "item.get", query)
}

// A document that is too large for its read model is not shown, and its reads and
// the audit say so; what an older Skein stored in one message is read as it is.
func TestLargeDocument_UnstoredAndOld(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r, stop := h.Run(projections.Config{})
	a := h.asker(Config{})
	in, id, _ := h.LargeItem()
	h.AwaitRunner(r)
	stop()
	p := h.Models.Of(documents.Items)
	place := documents.Place{Kind: documents.Items, Thread: documents.ThreadName(acme, in), ID: id}
	put := func(header nats.Header, data []byte) {
		t.Helper()
		header.Set(jetstream.MsgIDHeader, rand.Text())
		if _, err := h.EventLog.JetStream().PublishMsg(t.Context(), &nats.Msg{Subject: h.EventLog.Bucket(p.Bucket).Subject(place.Key()), Header: header, Data: data}); err != nil {
			t.Fatal(err)
		}
	}
	item := *a.whole(in, id)
	var parts []events.JSON
	if err := json.Unmarshal(item.Content, &parts); err != nil {
		t.Fatal(err)
	}
	item.Content, _ = json.Marshal(parts[:8])
	old, err := documents.Encode(&item)
	if err != nil || len(old) < buckets.LargeDocument {
		t.Fatalf("%d bytes, %v", len(old), err)
	}
	put(nats.Header{}, old)
	if got := a.whole(in, id); !bytes.Equal(got.Content, item.Content) {
		t.Error("a document in one message is not read as it is")
	}

	large := buckets.StubOf(documents.Threads, 7, old, int64(len(old))) // of a read model whose documents are in one message each
	if large == nil || !large.Unstored || large.Seq != 7 {
		t.Fatalf("%+v", large)
	}
	raw, err := large.Encode()
	if err != nil {
		t.Fatal(err)
	}
	put(large.Header(), raw)
	query := fmt.Sprintf(`{"threadId":%q,"itemId":%q}`, in, id)
	if e := a.refused(events.ProjectionBehind, "item.get", query); !strings.Contains(e.Message, "cannot be shown") {
		t.Error(e)
	}
	if report, err := rebuild.Verify(t.Context(), h.EventLog, rebuild.Scope{}); err != nil || report.Found != 1 {
		t.Errorf("a verification finds %+v, %v", report.Differences, err)
	}
}

// After a rewrite of everything, values that a document has lost are gone, and those that
// it has are there.
func TestLargeDocument_RewriteRemovesOldPieces(t *testing.T) {
	if raceDetector {
		t.Skip("one goroutine encodes megabytes again and again: make test runs it")
	}
	t.Parallel()
	h := newHouse(t)
	r, _ := h.Run(projections.Config{})
	a := h.asker(Config{})
	in, id, _ := h.LargeItem()
	other, kept, _ := h.LargeItem()
	h.Do("message.edit", in, fmt.Sprintf(`{"itemId":%q,"content":[{"type":"output_text","text":"short"}]}`, id))
	h.AwaitRunner(r)
	if report, err := rebuild.Progress(nil).Rewrite(t.Context(), h.EventLog); err != nil || report.Found != 0 {
		t.Fatalf("%+v, %v", report.Differences, err)
	}
	for key := range h.Live(h.Models.Of(documents.Items)) {
		if thread, ok := documents.ParsePiece(key); ok && thread == documents.ThreadName(acme, in) {
			t.Errorf("%s is still there", key)
		}
	}
	if got := a.whole(other, kept); len(got.Content) < 20*(250<<10) {
		t.Errorf("%d bytes are left of another item", len(got.Content))
	}
}
