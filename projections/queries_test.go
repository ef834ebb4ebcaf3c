package projections

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

// The queries are what the query service serves.
var _ commands.Handler = (*Queries)(nil).Handle

// asker asks the queries of a house.
type asker struct {
	*house
	q *Queries
}

func (h *house) asker(cfg QueryConfig) *asker {
	h.Helper()
	log := h.newLog()
	q := NewQueries(log, h.validator, cfg, zerolog.New(zerolog.NewTestWriter(h)), nil)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = q.Run(ctx)
	}()
	h.Cleanup(func() {
		cancel()
		<-done
	})
	return &asker{h, q}
}

// ask asks a query that must be answered.
func ask[T any](a *asker, name, body string) *T {
	a.Helper()
	out, err := a.q.Handle(a.Context(), acme, name, []byte(body), commands.Meta{})
	if err != nil {
		a.Fatalf("%s %s: %v", name, body, err)
	}
	return out.(*T)
}

// refused asks a query that must be refused with a code.
func (a *asker) refused(code events.Code, name, body string) *events.Error {
	a.Helper()
	out, err := a.q.Handle(a.Context(), acme, name, []byte(body), commands.Meta{})
	var e *events.Error
	if !errors.As(err, &e) || e.Code != code {
		a.Errorf("%s %s: %v, %v; want %s", name, body, out, err, code)
		return &events.Error{Details: &events.ErrorDetails{}}
	}
	if e.Details == nil {
		e.Details = &events.ErrorDetails{}
	}
	return e
}

func seqOf(r *events.Reply) string { return fmt.Sprintf(`"minSeq":%d`, r.Seq) }

// TestQueries asks the queries of the contract one by one. It shows EK-15..EK-30,
// EK-33..EK-37, EK-51..EK-80, EK-151..EK-156 and EK-160..EK-164 as documents have
// them.
func TestQueries(t *testing.T) {
	h := newHouse(t)
	h.run(Config{})
	a := h.asker(QueryConfig{})
	made := h.do("thread.create", "", `{"key":"support/42","title":"Zoë","userId":"u-1","agentId":"triage","metadata":{"n":1},"context":{"a":1}}`)
	id := made.ThreadID

	doc := ask[events.Thread](a, "thread.get", `{"threadId":"`+id+`",`+seqOf(made)+`}`)
	if doc.ID != id || *doc.Key != "support/42" || doc.Status != "open" || doc.UpdatedAt != "" || doc.Version != 3 || doc.Seq != made.Seq ||
		!events.Pattern(events.PatternTime).MatchString(doc.CreatedAt) || len(doc.CreatedAt) != 24 || doc.Title != "Zoë" {
		t.Errorf("thread.get: %+v", doc)
	}
	if got := encode(t, doc); strings.Contains(got, "updatedAt") || !strings.Contains(got, `"key":"support/42"`) {
		t.Errorf("absent is not absent: %s", got)
	}
	byKey := ask[events.Thread](a, "thread.get", `{"data":{"threadId":"key:support/42"}}`)
	if byKey.ID != id {
		t.Errorf("by key: %+v", byKey)
	}

	last := h.react(id, 1)
	ref := `"threadId":"` + id + `",` + seqOf(last)
	doc = ask[events.Thread](a, "thread.get", `{`+ref+`}`)
	if doc.Version != 15 || doc.UpdatedAt == "" || doc.Items != 2 || doc.ItemTypes.Message != 2 || doc.NextItem != 2 {
		t.Errorf("after a turn: %+v", doc)
	}
	def := ask[events.Context](a, "context.get", `{`+ref+`}`)
	if def.ID != doc.ContextID || def.ThreadID != id || def.Key != nil || def.Status != "open" || !strings.Contains(string(def.Content), `"last"`) || def.ItemTypes.Message != 2 {
		t.Errorf("the default context: %+v", def)
	}
	if got := ask[events.Context](a, "context.get", `{"contextId":"`+def.ID+`"}`); got.ThreadID != id {
		t.Errorf("a context without its thread: %+v", got)
	}
	other := h.do("context.create", id, `{"key":"notes"}`)
	list := ask[events.ContextList](a, "context.list", `{"data":{"threadId":"`+id+`"},`+seqOf(other)+`}`)
	if len(list.Contexts) != 2 || list.Contexts[0].ID != def.ID || *list.Contexts[1].Key != "notes" || string(list.Contexts[1].Content) != "null" {
		t.Errorf("context.list: %+v", list)
	}

	items := ask[events.ItemList](a, "item.list", `{`+ref+`}`)
	if len(items.Items) != 2 || items.Total != 2 || items.NextCursor != "" || items.Items[0].Role != "user" || items.Items[1].Role != "assistant" {
		t.Fatalf("item.list: %+v", items)
	}
	for _, i := range items.Items {
		if i.ThreadID != id || i.ContextID != def.ID || i.Status != "completed" || i.UpdatedAt == "" || i.Type != "message" {
			t.Errorf("an item: %+v", i)
		}
		if got := ask[events.Item](a, "item.get", `{"itemId":"`+i.ID+`"}`); encode(t, got) != encode(t, i) {
			t.Errorf("item.get: %+v", got)
		}
	}
	runs := ask[events.ExecutionList](a, "execution.list", `{`+ref+`,"status":"completed","contextId":"`+def.ID+`"}`)
	if len(runs.Executions) != 1 || runs.Executions[0].TriggerItemID != items.Items[0].ID || runs.Executions[0].ReactionItemID != items.Items[1].ID {
		t.Fatalf("execution.list: %+v", runs)
	}
	if got := ask[events.ExecutionList](a, "execution.list", `{`+ref+`,"status":"failed"}`); len(got.Executions) != 0 || got.Executions == nil {
		t.Errorf("none failed: %+v", got)
	}
	exe := runs.Executions[0].ID
	if got := ask[events.Execution](a, "execution.get", `{"executionId":"`+exe+`"}`); got.Status != "completed" || got.ContextID != def.ID {
		t.Errorf("execution.get: %+v", got)
	}
	for _, body := range []string{`{"executionId":"` + exe + `"}`, `{` + ref + `,"executionId":"` + exe + `"}`} {
		steps := ask[events.StepList](a, "step.list", body)
		if len(steps.Steps) != 1 || steps.Steps[0].ExecutionID != exe || steps.Steps[0].Status != "completed" || *steps.Steps[0].ContinueLoop || steps.Steps[0].EventID != items.Items[1].ID {
			t.Fatalf("step.list: %+v", steps)
		}
		stp := steps.Steps[0].ID
		parts := ask[events.PartList](a, "part.list", strings.Replace(body, `"executionId":"`+exe, `"stepId":"`+stp, 1))
		if len(parts.Parts) != 1 || parts.Parts[0].Key != stp+":0" || parts.Parts[0].StepID != stp || parts.Parts[0].UpdatedAt != "" {
			t.Errorf("part.list: %+v", parts)
		}
	}
	page := ask[events.EventList](a, "event.list", `{`+ref+`,"limit":2,"types":["item.*","thread.created"]}`)
	if len(page.Events) != 2 || page.NextVersion == 0 {
		t.Fatalf("event.list: %+v", page)
	}
	first, err := events.DecodeEvent(page.Events[0])
	if err != nil || first.Type != events.ThreadCreatedType || first.Version != 1 {
		t.Errorf("the first event: %+v, %v", first, err)
	}
	rest := ask[events.EventList](a, "event.list", fmt.Sprintf(`{%s,"fromVersion":%d,"types":["item.*"]}`, ref, page.NextVersion))
	if len(rest.Events) != 3 || rest.NextVersion != 0 {
		t.Errorf("the rest: %d events, next %d", len(rest.Events), rest.NextVersion)
	}
	threads := ask[events.ThreadList](a, "thread.list", `{`+seqOf(last)+`}`)
	if len(threads.Threads) != 1 || threads.Threads[0].ID != id {
		t.Errorf("thread.list: %+v", threads)
	}
}

// TestQueriesThatAreRefused shows EK-180 and EK-181 for queries: no tenant but
// the one in the subject, and none to fall back on.
func TestQueriesThatAreRefused(t *testing.T) {
	h := newHouse(t)
	r, _ := h.run(Config{})
	a := h.asker(QueryConfig{Wait: 50 * time.Millisecond})
	made := h.do("thread.create", "", `{"key":"a"}`)
	h.await(r)
	id := made.ThreadID
	const nobody = "T-00000000-0000-7000-8000-000000000000"
	for _, c := range []struct {
		code       events.Code
		name, body string
	}{
		{events.NotFound, "thread.fetch", `{}`},
		{events.InvalidRequest, "thread.get", `{}`},
		{events.InvalidRequest, "thread.get", `[]`},
		{events.InvalidRequest, "thread.get", `{"threadId":`},
		{events.InvalidRequest, "thread.get", `{"data":{"threadId":1}}`},
		{events.InvalidRequest, "thread.get", `{"data":[]}`},
		{events.InvalidRequest, "thread.get", `{"threadId":"` + id + `","data":{"threadId":"` + id + `"}}`},
		{events.InvalidRequest, "thread.get", `{"threadId":"` + id + `","colour":"red"}`},
		{events.InvalidRequest, "thread.get", `{"threadId":"` + id + `","data":{}} more`},
		{events.InvalidRequest, "thread.get", `{"threadId":"` + id + `","at":{"version":1,"time":"2026-01-01T00:00:00Z"}}`},
		{events.InvalidRequest, "context.get", `{}`},
		{events.InvalidRequest, "item.get", `{"itemId":"x","at":{"version":1}}`},
		{events.InvalidRequest, "item.get", `{"itemId":"x","minVersion":1}`},
		{events.InvalidRequest, "item.list", `{"threadId":"` + id + `","cursor":"nonsense"}`},
		{events.InvalidRequest, "item.list", `{"threadId":"` + id + `","limit":0}`},
		{events.InvalidRequest, "item.list", `{"threadId":"` + id + `","order":"up"}`},
		{events.InvalidRequest, "thread.list", `{"cursor":"nonsense"}`},
		{events.InvalidRequest, "thread.list", `{"minVersion":1}`},
		{events.InvalidRequest, "thread.list", `{"updatedAfter":"2026-02-30T00:00:00Z"}`},
		{events.NotFound, "thread.get", `{"threadId":"` + nobody + `"}`},
		{events.NotFound, "thread.get", `{"threadId":"` + nobody + `","minVersion":3}`},
		{events.NotFound, "thread.get", `{"threadId":"key:nobody"}`},
		{events.NotFound, "thread.get", `{"threadId":"` + id + `","at":{"version":4}}`},
		{events.NotFound, "thread.get", `{"threadId":"` + id + `","at":{"time":"2001-01-01T00:00:00Z"}}`},
		{events.NotFound, "context.list", `{"threadId":"` + nobody + `"}`},
		{events.NotFound, "execution.list", `{"threadId":"` + nobody + `"}`},
		{events.NotFound, "item.list", `{"threadId":"` + nobody + `"}`},
		{events.NotFound, "item.list", `{"threadId":"` + id + `","contextId":"nope"}`},
		{events.NotFound, "event.list", `{"threadId":"` + nobody + `"}`},
		{events.NotFound, "event.list", `{"threadId":"` + nobody + `","fromVersion":100000}`},
		{events.NotFound, "item.get", `{"itemId":"nope"}`},
		{events.NotFound, "item.get", `{"threadId":"` + id + `","itemId":"nope"}`},
		{events.NotFound, "step.list", `{"executionId":"nope"}`},
		{events.NotFound, "step.list", `{"threadId":"` + id + `","executionId":"nope"}`},
		{events.NotFound, "part.list", `{"stepId":"nope"}`},
		{events.NotFound, "part.list", `{"threadId":"` + id + `","stepId":"nope"}`},
		{events.ProjectionBehind, "thread.get", `{"threadId":"` + id + `","minVersion":4}`},
		{events.ProjectionBehind, "thread.get", `{"threadId":"` + id + `","minSeq":999}`},
		{events.ProjectionBehind, "thread.list", `{"minSeq":999}`},
		{events.ProjectionBehind, "item.get", `{"itemId":"x","minSeq":999}`},
		{events.ProjectionBehind, "event.list", `{"threadId":"` + id + `","minSeq":999}`},
		{events.ProjectionBehind, "thread.get", `{"threadId":"` + id + `","minSeq":999,"at":{"version":1}}`},
	} {
		a.refused(c.code, c.name, c.body)
	}
	if e := a.refused(events.InvalidRequest, "thread.get", `{"data":{"threadId":"?"}}`); e.Details.Path != "/data/threadId" {
		t.Errorf("the path is %q", e.Details.Path)
	}
	if e := a.refused(events.InvalidRequest, "thread.get", `{"threadId":"?"}`); e.Details.Path != "/threadId" {
		t.Errorf("the path is %q", e.Details.Path)
	}
	if e := a.refused(events.NotFound, "item.get", `{"threadId":"`+id+`","itemId":"nope"}`); e.Details.Entity != "item" || e.Details.ID != "nope" {
		t.Errorf("what is not there: %+v", e.Details)
	}
	if e := a.refused(events.ProjectionBehind, "thread.get", `{"threadId":"`+id+`","minSeq":999}`); e.Details.Seq < made.Seq {
		t.Errorf("how far: %+v", e.Details)
	}
	for _, tenant := range []string{"", "a b", "*", ">", "beta"} {
		_, err := a.q.Handle(t.Context(), tenant, "thread.get", []byte(`{"threadId":"`+id+`"}`), commands.Meta{})
		if err == nil {
			t.Errorf("the tenant %q sees acme's thread", tenant)
		}
	}
	if got, err := a.q.Handle(t.Context(), "beta", "thread.list", nil, commands.Meta{}); err != nil || len(got.(*events.ThreadList).Threads) != 0 {
		t.Errorf("another tenant lists %v, %v", got, err)
	}
}

// TestWaiting: a query that names a sequence or a version waits for it.
func TestWaiting(t *testing.T) {
	h := newHouse(t)
	a := h.asker(QueryConfig{Wait: 20 * time.Second})
	made := h.do("thread.create", "", `{}`)
	answers := make(chan error, 3)
	for _, c := range []struct{ name, body string }{
		{"thread.get", `{"threadId":"` + made.ThreadID + `",` + seqOf(made) + `}`},
		{"context.get", `{"threadId":"` + made.ThreadID + `","minVersion":2}`},
		{"thread.list", `{` + seqOf(made) + `}`},
	} {
		go func() {
			_, err := a.q.Handle(t.Context(), acme, c.name, []byte(c.body), commands.Meta{})
			answers <- err
		}()
	}
	// From the log itself it is answered at once, without any read model.
	past := ask[events.Thread](a, "thread.get", `{"threadId":"`+made.ThreadID+`","at":{"version":1},`+seqOf(made)+`}`)
	if past.Version != 1 || len(answers) != 0 {
		t.Errorf("%+v, and %d were answered without a runner", past, len(answers))
	}
	h.run(Config{})
	for range 3 {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
}

// TestReadYourWrites: what a reply named is what the next query shows.
func TestReadYourWrites(t *testing.T) {
	h := newHouse(t)
	shared := NewProgress()
	h.run(Config{Progress: shared})
	a, b := h.asker(QueryConfig{Progress: shared}), h.asker(QueryConfig{})
	id := h.do("thread.create", "", `{}`).ThreadID
	for n := range 50 {
		r := h.react(id, n)
		for _, a := range []*asker{a, b} {
			doc := ask[events.Thread](a, "thread.get", fmt.Sprintf(`{"threadId":%q,"minVersion":%d}`, id, r.Version))
			if doc.Version < r.Version {
				t.Fatalf("version %d after a reply with %d", doc.Version, r.Version)
			}
			items := ask[events.ItemList](a, "item.list", `{"threadId":"`+id+`",`+seqOf(r)+`,"order":"desc","limit":1}`)
			if items.Total != int64(2*n+2) || items.Items[0].Index != int64(2*n+1) {
				t.Fatalf("%d items, the last %d, after %d turns", items.Total, items.Items[0].Index, n+1)
			}
			threads := ask[events.ThreadList](a, "thread.list", `{`+seqOf(r)+`}`)
			if threads.Threads[0].Version < r.Version {
				t.Fatalf("the list shows version %d after %d", threads.Threads[0].Version, r.Version)
			}
		}
	}
}

// TestAtEveryVersion compares what each query shows of each version of a thread
// with what the log folds to, and with what the live documents were then.
func TestAtEveryVersion(t *testing.T) {
	h := newHouse(t)
	r, _ := h.run(Config{})
	a := h.asker(QueryConfig{})
	au := newAuthor(h, 3)
	au.write(40)
	thread := au.threads[0]
	type moment struct {
		version int64
		at      string
		thread  string
		items   string
	}
	var moments []moment
	for range 60 {
		au.step(thread)
		h.await(r)
		got, err := a.q.Handle(t.Context(), acme, "thread.get", []byte(`{"threadId":"`+thread+`"}`), commands.Meta{})
		if err != nil {
			break // it was deleted
		}
		doc := got.(*events.Thread)
		m := moment{version: doc.Version, at: doc.UpdatedAt, thread: encode(t, doc)}
		m.items = encode(t, ask[events.ItemList](a, "item.list", `{"threadId":"`+thread+`","limit":1000}`))
		moments = append(moments, m)
	}
	for i, m := range moments {
		body := fmt.Sprintf(`{"threadId":%q,"at":{"version":%d}}`, thread, m.version)
		if got := encode(t, ask[events.Thread](a, "thread.get", body)); got != m.thread {
			t.Errorf("version %d:\nthen %s\nnow  %s", m.version, m.thread, got)
		}
		body = fmt.Sprintf(`{"threadId":%q,"limit":1000,"at":{"version":%d}}`, thread, m.version)
		if got := encode(t, ask[events.ItemList](a, "item.list", body)); got != m.items {
			t.Errorf("version %d:\nthen %s\nnow  %s", m.version, m.items, got)
		}
		if i+1 < len(moments) && (m.at == "" || moments[i+1].at == m.at) {
			continue // two changes within a millisecond
		}
		body = fmt.Sprintf(`{"threadId":%q,"at":{"time":%q}}`, thread, m.at)
		if got := encode(t, ask[events.Thread](a, "thread.get", body)); got != m.thread {
			t.Errorf("at %s:\nthen %s\nnow  %s", m.at, m.thread, got)
		}
	}
	if len(moments) < 2 {
		t.Fatalf("only %d versions were seen", len(moments))
	}
}

// TestItemPages pages over 1,200 items of two contexts, from both ends, with
// filters, some of them deleted.
func TestItemPages(t *testing.T) {
	h := newHouse(t)
	r, _ := h.run(Config{})
	a := h.asker(QueryConfig{})
	id := h.do("thread.create", "", `{}`).ThreadID
	side := h.do("context.create", id, `{"key":"side"}`).Result.ContextID
	var want []events.Item
	for n := 0; n < 1200; n += 100 {
		var list []string
		for i := n; i < n+100; i++ {
			in := ""
			if i%7 == 0 {
				in = `"contextId":"` + side + `",`
			}
			kind := `"type":"message","role":"user","content":[]`
			if i%5 == 0 {
				kind = `"type":"action_result","content":{"callId":"c","output":1}`
			}
			list = append(list, fmt.Sprintf(`{"command":"item.create","data":{%s"item":{"id":"i%d",%s}}}`, in, i, kind))
		}
		h.do("thread.commit", id, `{"commands":[`+strings.Join(list, ",")+`]}`)
	}
	for i := 3; i < 1200; i += 11 {
		h.do("message.delete", id, fmt.Sprintf(`{"itemId":"i%d"}`, i))
	}
	h.append(id, events.Event{Type: events.HistoryTruncatedType, Data: events.HistoryTruncated{FromIndex: 1150}})
	h.await(r)
	h.same(id)
	for _, s := range h.folded(id, documents.Until{}).All(documents.Mask(0).With(documents.Items)) {
		want = append(want, *s.Doc.(*events.Item))
	}
	slices.SortFunc(want, func(a, b events.Item) int { return int(a.Index - b.Index) })
	for _, c := range []struct {
		filter string
		fits   func(events.Item) bool
	}{
		{``, func(events.Item) bool { return true }},
		{`,"type":"action_result"`, func(i events.Item) bool { return i.Type == "action_result" }},
		{`,"contextId":"` + side + `"`, func(i events.Item) bool { return i.ContextID == side }},
		{`,"contextId":"` + side + `","type":"action_result"`, func(i events.Item) bool { return i.ContextID == side && i.Type == "action_result" }},
		{`,"type":"item_reference"`, func(events.Item) bool { return false }},
	} {
		var match []string
		for _, i := range want {
			if c.fits(i) {
				match = append(match, i.ID)
			}
		}
		for _, order := range []string{"asc", "desc"} {
			for _, limit := range []int{1000, 97, 64} {
				var got []string
				cursor := ""
				for {
					body := fmt.Sprintf(`{"threadId":%q,"limit":%d,"order":%q%s%s}`, id, limit, order, c.filter, cursor)
					page := ask[events.ItemList](a, "item.list", body)
					if page.Total != int64(len(match)) || len(page.Items) > limit {
						t.Fatalf("%s: total %d, want %d; %d items", body, page.Total, len(match), len(page.Items))
					}
					for _, i := range page.Items {
						got = append(got, i.ID)
					}
					if page.NextCursor == "" {
						break
					}
					cursor = `,"cursor":"` + page.NextCursor + `"`
				}
				if order == "desc" {
					slices.Reverse(got)
				}
				if !slices.Equal(got, match) {
					t.Errorf("%s %s %d: %d items, want %d", c.filter, order, limit, len(got), len(match))
				}
			}
		}
	}
	// A cursor is of one query.
	page := ask[events.ItemList](a, "item.list", `{"threadId":"`+id+`","limit":1}`)
	a.refused(events.InvalidRequest, "item.list", `{"threadId":"`+id+`","order":"desc","cursor":"`+page.NextCursor+`"}`)
	// A list that is read through more than 1,024 keys.
	all := ask[events.EventList](a, "event.list", `{"threadId":"`+id+`","limit":1000,"fromVersion":1100}`)
	first, err := events.DecodeEvent(all.Events[0])
	if err != nil || first.Version != 1100 {
		t.Errorf("fromVersion 1100 begins at %d, %v", first.Version, err)
	}
}

// TestManyUnderOne: more parts under one step than one read can give.
func TestManyUnderOne(t *testing.T) {
	h := newHouse(t)
	r, _ := h.run(Config{})
	a := h.asker(QueryConfig{})
	id := h.do("thread.create", "", `{}`).ThreadID
	h.react(id, 0)
	h.await(r)
	step := ask[events.StepList](a, "step.list", `{"executionId":"`+ask[events.ExecutionList](a, "execution.list", `{"threadId":"`+id+`"}`).Executions[0].ID+`"}`).Steps[0].ID
	for n := 1; n < 1300; n += 100 {
		var list []string
		for i := n; i < n+100; i++ {
			list = append(list, fmt.Sprintf(`{"command":"part.put","data":{"stepId":%q,"idx":%d,"part":%d}}`, step, i, i))
		}
		h.do("thread.commit", id, `{"commands":[`+strings.Join(list, ",")+`]}`)
	}
	h.await(r)
	parts := ask[events.PartList](a, "part.list", `{"stepId":"`+step+`"}`).Parts
	if len(parts) != 1301 {
		t.Fatalf("%d parts, want 1301", len(parts))
	}
	for i, p := range parts {
		if p.Idx != int64(i) {
			t.Fatalf("part %d is at place %d", p.Idx, i)
		}
	}
	if report := h.rebuild(true); report.Found != 0 {
		t.Errorf("a verification says %+v", report)
	}
}

// TestLargeAnswers: more than fits in one message is cut where there is a cursor,
// and refused where there is none.
func TestLargeAnswers(t *testing.T) {
	h := newHouse(t)
	r, _ := h.run(Config{CacheBytes: 1})
	a := h.asker(QueryConfig{})
	id := h.do("thread.create", "", `{}`).ThreadID
	text := strings.Repeat("x", 400<<10)
	for i := range 20 {
		h.do("item.create", id, fmt.Sprintf(`{"item":{"id":"i%d","type":"message","role":"user","content":[{"type":"input_text","text":%q}]}}`, i, text))
		if i < 12 {
			h.do("context.create", id, fmt.Sprintf(`{"content":{"text":%q}}`, text))
		}
	}
	h.await(r)
	page := ask[events.ItemList](a, "item.list", `{"threadId":"`+id+`"}`)
	if len(page.Items) == 0 || len(page.Items) > 10 || page.Total != 20 || page.NextCursor == "" {
		t.Fatalf("%d items of %d, cursor %q", len(page.Items), page.Total, page.NextCursor)
	}
	next := ask[events.ItemList](a, "item.list", `{"threadId":"`+id+`","cursor":"`+page.NextCursor+`"}`)
	if next.Items[0].Index != int64(len(page.Items)) {
		t.Errorf("the next page begins at %d, not %d", next.Items[0].Index, len(page.Items))
	}
	a.refused(events.PayloadTooLarge, "context.list", `{"threadId":"`+id+`"}`)
	list := ask[events.EventList](a, "event.list", `{"threadId":"`+id+`"}`)
	if len(list.Events) == 0 || list.NextVersion == 0 {
		t.Errorf("%d events, next %d", len(list.Events), list.NextVersion)
	}
}

// TestDeletedThread: it is gone from every query but those that look back.
func TestDeletedThread(t *testing.T) {
	h := newHouse(t)
	r, _ := h.run(Config{})
	a := h.asker(QueryConfig{})
	id := h.do("thread.create", "", `{"key":"k"}`).ThreadID
	last := h.react(id, 0)
	h.await(r)
	item := ask[events.ItemList](a, "item.list", `{"threadId":"`+id+`"}`).Items[0].ID
	exe := ask[events.ExecutionList](a, "execution.list", `{"threadId":"`+id+`"}`).Executions[0].ID
	end := h.do("thread.delete", id, `{}`)
	for name, body := range map[string]string{
		"thread.get": `"threadId":"` + id + `"`, "context.get": `"threadId":"` + id + `"`, "context.list": `"threadId":"` + id + `"`,
		"item.get": `"itemId":"` + item + `"`, "item.list": `"threadId":"` + id + `"`, "execution.get": `"executionId":"` + exe + `"`,
		"execution.list": `"threadId":"` + id + `"`, "step.list": `"executionId":"` + exe + `"`,
	} {
		a.refused(events.NotFound, name, `{`+body+`,`+seqOf(end)+`}`)
	}
	a.refused(events.NotFound, "thread.get", `{"threadId":"key:k"}`)
	if got := ask[events.ThreadList](a, "thread.list", `{`+seqOf(end)+`}`); len(got.Threads) != 0 {
		t.Errorf("it is listed: %+v", got)
	}
	then := ask[events.Thread](a, "thread.get", fmt.Sprintf(`{"threadId":%q,"at":{"version":%d}}`, id, last.Version))
	if then.Items != 2 {
		t.Errorf("as it was: %+v", then)
	}
	// Its key may be taken again.
	again := h.do("thread.create", "", `{"key":"k"}`)
	if got := ask[events.Thread](a, "thread.get", `{"threadId":"key:k",`+seqOf(again)+`}`); got.ID != again.ThreadID {
		t.Errorf("the key leads to %s", got.ID)
	}
}
