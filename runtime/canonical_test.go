package runtime

import (
	"github.com/go-json-experiment/json/jsontext"

	"context"
	"maps"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

// The canonical turn of EK 14, field by field, at each boundary: EK-187, EK-188,
// EK-189, EK-190, EK-191, EK-120, EK-121, EK-122, EK-110, EK-111, EK-112, EK-115.
func TestCanonicalTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	plan := tool{ToolSpec{Name: "plan_writer"}, func(context.Context, *ToolInput) (ToolResult, error) {
		return Done(events.JSON(`{"ok":true}`)), nil
	}}
	a := w.agent("planner", script(&Reaction{
		AssistantEvent: Assistant{Content: []events.JSON{
			events.JSON(`{"type":"output_text","text":"I will build the plan in phases."}`),
			events.JSON(`{"type":"tool-plan_writer","toolCallId":"tc_1","input":{"scope":"full"}}`),
		}},
		ToolCalls: []ToolCall{call("tc_1", "plan_writer", `{"scope":"full"}`)},
	}), plan)
	a.Continue = func(o Outcome) bool { return false }
	w.work(Config{})
	id := w.must("thread.create", "", events.CreateThread{AgentID: "planner"}).ThreadID
	created := time.Date(2026, 2, 20, 12, 0, 0, 0, time.UTC)
	w.must("thread.react", id, events.ReactThread{ExecutionID: "exe_1", ReactionItemID: "itm_a1", Item: &events.NewItem{
		ID: "itm_u1", Type: events.Message, Role: events.User, CreatedAt: events.TimeOf(created).ISO(),
		Content: events.JSON(`[{"type":"input_text","text":"Create a project plan."}]`),
	}})
	w.finished(id, "exe_1")

	models := documents.NewModels()
	name := documents.ThreadName(tenant, id)
	shown := models.NewMemory(nil)
	holds := func(when string, kind documents.Kind, key, want string) {
		t.Helper()
		raw, err := json.Marshal(shown.Get(documents.Place{Kind: kind, Thread: name, ID: key}))
		if err != nil {
			t.Fatal(err)
		}
		var is, should map[string]events.JSON
		if json.Unmarshal(raw, &is) != nil || json.Unmarshal([]byte(want), &should) != nil {
			t.Fatalf("%s: %s", when, raw)
		}
		for field, value := range should {
			if !within(is[field], value) {
				t.Errorf("%s: %s is %s, not %s", when, field, is[field], value)
			}
		}
	}
	ends := maps.Collect(func(yield func(events.Type, bool) bool) { yield(events.ThreadFinishedType, true) })
	for c, err := range w.log.Thread(t.Context(), tenant, id, 1) {
		if err != nil {
			t.Fatal(err)
		}
		if err := shown.Apply(c); err != nil {
			t.Fatal(err)
		}
		last := c.Events[len(c.Events)-1].Type
		switch {
		case last == events.RunRequestedType: // 1 and 2
			holds("trigger", documents.Items, "itm_u1", `{"id":"itm_u1","type":"message","role":"user","createdAt":"2026-02-20T12:00:00.000Z",
				"content":[{"type":"input_text","text":"Create a project plan."}]}`)
			holds("execution", documents.Executions, "exe_1", `{"id":"exe_1","status":"executing","triggerItemId":"itm_u1","reactionItemId":"itm_a1"}`)
			holds("thread", documents.Threads, "", `{"status":"streaming"}`)
		case c.Events[0].Type == events.PartCreatedType: // 3
			holds("reaction", documents.Items, "itm_a1", `{"id":"itm_a1","type":"message","role":"assistant","status":"pending","content":[
				{"type":"output_text","text":"I will build the plan in phases."},
				{"type":"tool-plan_writer","toolCallId":"tc_1","input":{"scope":"full"}}]}`)
		}
		for i := range c.Events {
			delete(ends, c.Events[i].Type)
		}
	}
	if len(ends) > 0 {
		t.Error("the run did not end")
	}
	holds("merged", documents.Items, "itm_a1", `{"id":"itm_a1","status":"completed","content":[
		{"type":"output_text","text":"I will build the plan in phases."},
		{"type":"tool-plan_writer","toolCallId":"tc_1","state":"output-available","output":{"ok":true}}]}`)
	holds("execution", documents.Executions, "exe_1", `{"status":"completed","finished":true,"stepCount":1}`)
	holds("thread", documents.Threads, "", `{"status":"open"}`)
	var contexts []events.ContextStatus
	for _, slot := range shown.All(documents.AllKinds) {
		if c, ok := slot.Doc.(*events.Context); ok {
			contexts = append(contexts, c.Status)
		}
	}
	if len(contexts) != 1 || contexts[0] != events.ContextOpen {
		t.Errorf("the contexts are %v, and not one that is open", contexts)
	}
}

// within reports whether a value contains everything of another one: objects may have
// more fields (C-42), everything else must be equal.
func within(is, should events.JSON) bool {
	switch jsontext.Value(should).Kind() {
	case '{':
		var a, b map[string]events.JSON
		if json.Unmarshal(is, &a) != nil || json.Unmarshal(should, &b) != nil {
			return false
		}
		for k, v := range b {
			if !within(a[k], v) {
				return false
			}
		}
		return true
	case '[':
		var a, b []events.JSON
		if json.Unmarshal(is, &a) != nil || json.Unmarshal(should, &b) != nil || len(a) != len(b) {
			return false
		}
		for i := range b {
			if !within(a[i], b[i]) {
				return false
			}
		}
		return true
	}
	return string(is) == string(should)
}
