package query

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/readtest"
	"github.com/skein-threads/skein/internal/readtest/running"
	"github.com/skein-threads/skein/projections"
	"github.com/skein-threads/skein/service"
)

// The queries are what the query service serves.
var _ service.Handler = (*Queries)(nil).Handle

// asker sends queries to a house.
type asker struct {
	*house
	q *Queries
}

const acme = readtest.Acme

// house is a house whose tests send queries.
type house struct{ *running.House }

func newHouse(t testing.TB) *house { return &house{running.New(t)} }

// asker returns an asker whose queries wait as long as a test does, unless cfg says
// otherwise.
func (h *house) asker(cfg Config) *asker {
	h.Helper()
	if cfg.Wait == 0 {
		cfg.Wait = time.Minute
	}
	log := h.NewLog()
	q := New(log, h.Validator, cfg, zerolog.New(zerolog.NewTestWriter(h)), nil)
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

// ask sends a query that must be answered.
func ask[T any](a *asker, name, body string) *T {
	a.Helper()
	out, err := a.q.Handle(a.Context(), acme, name, []byte(body), service.Meta{})
	if err != nil {
		a.Fatalf("%s %s: %v", name, body, err)
	}
	return out.(*T)
}

// refused sends a query that must be refused with a code.
func (a *asker) refused(code events.Code, name, body string) *events.Error {
	a.Helper()
	out, err := a.q.Handle(a.Context(), acme, name, []byte(body), service.Meta{})
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

// The queries of the contract, one by one. EK-16..EK-20, EK-22..EK-26 and EK-151..EK-156.
func TestQueries(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.Run(projections.Config{})
	a := h.asker(Config{})
	made := h.Do("thread.create", "", `{"key":"support/42","title":"Zoë","userId":"u-1","agentId":"triage","metadata":{"n":1},"context":{"a":1}}`)
	id := made.ThreadID

	doc := ask[events.Thread](a, "thread.get", `{"threadId":"`+id+`",`+seqOf(made)+`}`)
	if doc.ID != id || *doc.Key != "support/42" || doc.Status != "open" || doc.UpdatedAt != "" || doc.Version != 3 || doc.Seq != made.Seq ||
		!events.Pattern(events.PatternTime).MatchString(doc.CreatedAt) || len(doc.CreatedAt) != 24 || doc.Title != "Zoë" {
		t.Errorf("thread.get: %+v", doc)
	}
	if got := readtest.Encode(t, doc); strings.Contains(got, "updatedAt") || !strings.Contains(got, `"key":"support/42"`) {
		t.Errorf("absent is not absent: %s", got)
	}
	byKey := ask[events.Thread](a, "thread.get", `{"data":{"threadId":"key:support/42"}}`)
	if byKey.ID != id {
		t.Errorf("by key: %+v", byKey)
	}

	last := h.React(id, 1)
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
	other := h.Do("context.create", id, `{"key":"notes"}`)
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
		if got := ask[events.Item](a, "item.get", `{"itemId":"`+i.ID+`"}`); readtest.Encode(t, got) != readtest.Encode(t, i) {
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
	early := ask[events.EventList](a, "event.list", fmt.Sprintf(`{%s,"toVersion":%d,"types":["item.*","thread.created"]}`, ref, page.NextVersion-1))
	if fmt.Sprint(early.Events) != fmt.Sprint(page.Events) || early.NextVersion != 0 {
		t.Errorf("up to version %d: %d events, next %d", page.NextVersion-1, len(early.Events), early.NextVersion)
	}
	threads := ask[events.ThreadList](a, "thread.list", `{`+seqOf(last)+`}`)
	if len(threads.Threads) != 1 || threads.Threads[0].ID != id {
		t.Errorf("thread.list: %+v", threads)
	}
}

// EK-180 and EK-181 for queries: no tenant but the one in the subject, and no default.
func TestQueriesThatAreRefused(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r, _ := h.Run(projections.Config{})
	a, hurried := h.asker(Config{}), h.asker(Config{Wait: 50 * time.Millisecond})
	made := h.Do("thread.create", "", `{"key":"a"}`)
	h.AwaitRunner(r)
	id := made.ThreadID
	h.Until(func() bool { // it waits too shortly to be sure of what is there
		_, err := hurried.q.Handle(t.Context(), acme, "thread.get", []byte(`{"threadId":"`+id+`",`+seqOf(made)+`}`), service.Meta{})
		return err == nil
	}, "the queries never show the thread")
	const missing = "T-00000000-0000-7000-8000-000000000000"
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
		{events.NotFound, "thread.get", `{"threadId":"` + missing + `"}`},
		{events.NotFound, "thread.get", `{"threadId":"` + missing + `","minVersion":3}`},
		{events.NotFound, "thread.get", `{"threadId":"key:missing"}`},
		{events.NotFound, "thread.get", `{"threadId":"` + id + `","at":{"version":4}}`},
		{events.NotFound, "thread.get", `{"threadId":"` + id + `","at":{"time":"2001-01-01T00:00:00Z"}}`},
		{events.NotFound, "context.list", `{"threadId":"` + missing + `"}`},
		{events.NotFound, "execution.list", `{"threadId":"` + missing + `"}`},
		{events.NotFound, "item.list", `{"threadId":"` + missing + `"}`},
		{events.NotFound, "item.list", `{"threadId":"` + id + `","contextId":"nope"}`},
		{events.NotFound, "event.list", `{"threadId":"` + missing + `"}`},
		{events.NotFound, "event.list", `{"threadId":"` + missing + `","fromVersion":100000}`},
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
		if c.code == events.ProjectionBehind {
			hurried.refused(c.code, c.name, c.body)
			continue
		}
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
	if e := hurried.refused(events.ProjectionBehind, "thread.get", `{"threadId":"`+id+`","minSeq":999}`); e.Details.Seq < made.Seq {
		t.Errorf("how far: %+v", e.Details)
	}
	for _, tenant := range []string{"", "a b", "*", ">", "beta"} {
		_, err := a.q.Handle(t.Context(), tenant, "thread.get", []byte(`{"threadId":"`+id+`"}`), service.Meta{})
		if err == nil {
			t.Errorf("the tenant %q sees acme's thread", tenant)
		}
	}
	if got, err := a.q.Handle(t.Context(), "beta", "thread.list", nil, service.Meta{}); err != nil || len(got.(*events.ThreadList).Threads) != 0 {
		t.Errorf("another tenant lists %v, %v", got, err)
	}
}
