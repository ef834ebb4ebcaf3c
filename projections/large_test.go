package projections

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

// largeItem makes a thread on which a run writes an item whose document exceeds what
// a message takes: 20 parts of 250 KB.
func (h *house) largeItem() (id, item string, version int64) {
	h.Helper()
	id = h.do("thread.create", "", `{}`).ThreadID
	made := h.do("thread.react", id, `{"text":"look","agentId":"helper"}`).Result
	h.boundary(id, thread.ClaimRun{ExecutionID: made.ExecutionID, Worker: "w"})
	for i := range 20 {
		var run thread.Run
		if err := h.dispatcher.Look(h.Context(), acme, id, func(s *thread.State) { run, _ = s.Run(made.ExecutionID) }); err != nil {
			h.Fatal(err)
		}
		version = h.boundary(id, thread.ReactStep{
			ExecutionID: made.ExecutionID, Token: run.Token, StepID: run.StepID, Types: []string{"acme.seen"}, After: thread.After{Continue: true},
			Parts: []events.JSON{events.JSON(fmt.Sprintf(`{"type":"acme.seen","value":"%d%s"}`, i, strings.Repeat("o", 250<<10)))},
		})
	}
	return id, made.ReactionItemID, version
}

// boundary does a boundary of a run, as a worker does.
func (h *house) boundary(id string, data any) int64 {
	h.Helper()
	commit, err := h.dispatcher.Run(h.Context(), &thread.Command{ID: nuid.Next(), Tenant: acme, ThreadID: id, Parts: []thread.Part{{Name: "run.boundary", Data: data}}}, nil)
	if err != nil {
		h.Fatal(err)
	}
	return commit.Version
}

// whole reads an item as the read model has it.
func (a *asker) whole(id, item string) *events.Item {
	a.Helper()
	got, err := (&live{a.q}).get(a.Context(), documents.Place{Kind: documents.Items, Thread: documents.ThreadName(acme, id), ID: item})
	if err != nil || got[0].doc == nil {
		a.Fatalf("item %s: %v", item, err)
	}
	return got[0].doc.(*events.Item)
}

// A document that no message holds is shown as the log says, and so after every
// change, by every runner; a query gets it within the limits of an answer, at the
// version that it asked for.
func TestLargeDocument_IsShown(t *testing.T) {
	h := newHouse(t)
	r, stop := h.run(Config{})
	a := h.asker(QueryConfig{})
	in, id, version := h.largeItem()
	shows := func() {
		t.Helper()
		h.await(r)
		slot := h.folded(in, documents.Until{}).Slot(documents.Place{Kind: documents.Items, Thread: documents.ThreadName(acme, in), ID: id})
		if have, want := encode(h, a.whole(in, id)), encode(h, slot.Doc); have != want {
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
	// Another runner goes on with it.
	stop()
	r, _ = h.run(Config{})
	h.do("message.edit", in, fmt.Sprintf(`{"itemId":%q,"metadata":{"more":true}}`, id))
	h.do("message.edit", in, fmt.Sprintf(`{"itemId":%q,"metadata":{"more":false}}`, id))
	shows()
	if report, err := r.Rebuild(t.Context(), nil, true); err != nil || report.Found != 0 {
		t.Errorf("a verification finds %+v, %v", report.Differences, err)
	}
	// What did not change was not written again.
	pieces, documentBytes := 0, 0
	for key, doc := range h.live(h.models.Of(documents.Items)) {
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

// A document whose piece is missing is not answered with less: its reads say that
// the read model is behind, the audit finds it, and a rebuild mends it.
func TestLargeDocument_PieceMissing(t *testing.T) {
	h := newHouse(t)
	r, _ := h.run(Config{})
	a := h.asker(QueryConfig{})
	in, id, _ := h.largeItem()
	h.await(r)
	bucket := h.models.Of(documents.Items).Bucket
	stream, err := h.log.JetStream().Stream(t.Context(), "KV_"+h.log.Config().Names.Bucket(bucket))
	if err != nil {
		t.Fatal(err)
	}
	for key := range h.live(h.models.Of(documents.Items)) {
		if _, ok := documents.ParsePiece(key); ok {
			if err := stream.Purge(t.Context(), jetstream.WithPurgeSubject(r.subjectOf(bucket, key))); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	query := fmt.Sprintf(`{"threadId":%q,"itemId":%q}`, in, id)
	a.refused(events.ProjectionBehind, "item.get", query)
	if report, err := r.Rebuild(t.Context(), nil, true); err != nil || report.Found != 1 || report.Differences[0].Kind != Different {
		t.Errorf("a verification finds %+v, %v", report.Differences, err)
	}
	if report, err := r.Rebuild(t.Context(), nil, false); err != nil || report.Repaired != 1 {
		t.Errorf("a rebuild repairs %d, %v", report.Repaired, err)
	}
	ask[events.Item](a, "item.get", query)
}

// A document that is too large for its read model is not shown, and its reads and
// the audit say so; what an older Skein stored in one message is read as it is.
func TestLargeDocument_UnstoredAndOld(t *testing.T) {
	h := newHouse(t)
	r, stop := h.run(Config{})
	a := h.asker(QueryConfig{})
	in, id, _ := h.largeItem()
	h.await(r)
	stop()
	p := h.models.Of(documents.Items)
	place := documents.Place{Kind: documents.Items, Thread: documents.ThreadName(acme, in), ID: id}
	put := func(header nats.Header, data []byte) {
		t.Helper()
		header.Set(jetstream.MsgIDHeader, nuid.Next())
		if _, err := h.log.JetStream().PublishMsg(t.Context(), &nats.Msg{Subject: r.subjectOf(p.Bucket, place.Key()), Header: header, Data: data}); err != nil {
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
	if err != nil || len(old) < largeDocument {
		t.Fatalf("%d bytes, %v", len(old), err)
	}
	put(nats.Header{}, old)
	if got := a.whole(in, id); !bytes.Equal(got.Content, item.Content) {
		t.Error("a document in one message is not read as it is")
	}

	large := stubOf(documents.Threads, 7, old, int64(len(old))) // of a read model whose documents are in one message each
	if large == nil || !large.Unstored || large.Seq != 7 {
		t.Fatalf("%+v", large)
	}
	raw, err := large.encode()
	if err != nil {
		t.Fatal(err)
	}
	put(large.header(), raw)
	query := fmt.Sprintf(`{"threadId":%q,"itemId":%q}`, in, id)
	if e := a.refused(events.ProjectionBehind, "item.get", query); !strings.Contains(e.Message, "cannot be shown") {
		t.Error(e)
	}
	if report, err := r.Rebuild(t.Context(), nil, true); err != nil || report.Found != 1 {
		t.Errorf("a verification finds %+v, %v", report.Differences, err)
	}
}

// What the runner cannot show it writes down as such, and goes on with all else.
func TestLargeDocument_TooLargeIsTold(t *testing.T) {
	h := newHouse(t)
	r := New(h.newLog(), Config{}, zerolog.Nop(), nil)
	s, err := r.begin(t.Context(), t.Context())
	if err != nil {
		t.Fatal(err)
	}
	in := h.do("thread.create", "", `{}`).ThreadID
	n := s.cache.node(documents.Place{Kind: documents.Items, Thread: documents.ThreadName(acme, in), ID: "itm_1"})
	n.slot.Seq = 1
	n.slot.Doc = &events.Item{ID: "itm_1", Content: events.JSON(`"` + strings.Repeat("x", largestDocument) + `"`), Stamp: events.Stamp{Seq: 1}}
	s.dirty = append(s.dirty, n)
	if err := s.store(t.Context(), &batch{end: 1}); err != nil {
		t.Fatal(err)
	}
	if count, seq, err := Broken(t.Context(), h.log); count != 1 || seq != 1 || err != nil {
		t.Errorf("%d are told of, at %d, %v", count, seq, err)
	}
	other := h.do("thread.create", "", `{}`).ThreadID
	running, _ := h.run(Config{})
	h.await(running)
	a := h.asker(QueryConfig{})
	a.refused(events.ProjectionBehind, "item.get", `{"threadId":"`+in+`","itemId":"itm_1"}`)
	ask[events.Thread](a, "thread.get", `{"threadId":"`+other+`"}`)
}

// A thread that is deleted takes the pieces of its documents with it.
func TestLargeDocument_GoesWithItsThread(t *testing.T) {
	h := newHouse(t)
	r, _ := h.run(Config{})
	in, _, _ := h.largeItem()
	h.await(r)
	h.do("thread.delete", in, `{}`)
	h.await(r)
	for key := range h.live(h.models.Of(documents.Items)) {
		t.Errorf("%s is still there", key)
	}
}

// What a document no longer holds is gone when everything was written anew, and
// what it holds is there.
func TestLargeDocument_RewriteRemovesOldPieces(t *testing.T) {
	h := newHouse(t)
	r, _ := h.run(Config{})
	a := h.asker(QueryConfig{})
	in, id, _ := h.largeItem()
	other, kept, _ := h.largeItem()
	h.do("message.edit", in, fmt.Sprintf(`{"itemId":%q,"content":[{"type":"output_text","text":"short"}]}`, id))
	h.await(r)
	if report, err := r.Rewrite(t.Context(), nil); err != nil || report.Found != 0 {
		t.Fatalf("%+v, %v", report.Differences, err)
	}
	for key := range h.live(h.models.Of(documents.Items)) {
		if thread, ok := documents.ParsePiece(key); ok && thread == documents.ThreadName(acme, in) {
			t.Errorf("%s is still there", key)
		}
	}
	if got := a.whole(other, kept); len(got.Content) < 20*(250<<10) {
		t.Errorf("%d bytes are left of another item", len(got.Content))
	}
}

// Whatever a document holds, its stub and pieces make the same bytes again.
func TestStub_JoinsToTheDocument(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var value func(depth int) string
	value = func(depth int) string {
		switch rng.IntN(6) {
		case 0:
			return fmt.Sprint(rng.IntN(1000))
		case 1:
			return `"` + strings.Repeat("ä\\n", rng.IntN(40_000)) + `"`
		case 2:
			return `[]`
		}
		if depth == 0 {
			return "null"
		}
		var fields []string
		for i := range rng.IntN(8) {
			fields = append(fields, fmt.Sprintf(`"f%d":%s`, i, value(depth-1)))
		}
		if rng.IntN(2) == 0 {
			for i := range fields {
				_, fields[i], _ = strings.Cut(fields[i], ":")
			}
			return "[" + strings.Join(fields, ",") + "]"
		}
		return "{" + strings.Join(fields, ",") + "}"
	}
	many := `{"list":[` + strings.TrimSuffix(strings.Repeat(`{"n":1},`, 300_000), ",") + `]}`
	for round := range 60 {
		raw := `{"a":` + value(4) + `,"pad":"` + strings.Repeat("p", largeDocument) + `"}`
		if round == 0 {
			raw = many
		}
		const most = 256 << 10
		s := stubOf(documents.Items, 9, []byte(raw), most)
		if s == nil {
			t.Fatal("it has no stub")
		}
		encoded, err := s.encode()
		if err != nil || len(encoded) > most/2 {
			t.Fatalf("round %d: the stub of %d bytes has %d, %v", round, len(raw), len(encoded), err)
		}
		pieces := map[string]streams.Message{}
		for _, piece := range s.pieces {
			if len(piece.data) > most/2 {
				t.Fatalf("round %d: a piece has %d bytes", round, len(piece.data))
			}
			key := documents.PieceKey("acme.T-1", piece.digest)
			pieces[key] = streams.Message{Subject: key, Data: piece.data}
		}
		got, err := whole(t.Context(), documents.Place{Kind: documents.Items, Thread: "acme.T-1", ID: "i"}, streams.Message{Header: s.header(), Data: encoded},
			func(_ context.Context, keys ...string) (some []streams.Message, err error) {
				for _, k := range keys {
					some = append(some, pieces[k])
				}
				return some, nil
			})
		if err != nil || string(got) != raw {
			t.Fatalf("round %d: %d bytes came of %d, %v", round, len(got), len(raw), err)
		}
	}
}
