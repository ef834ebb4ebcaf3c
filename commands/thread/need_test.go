package thread

import (
	"errors"
	"reflect"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/events"
)

// What a command must know of the tenant's definitions is asked for, each once,
// and nothing more.
func TestNeeds(t *testing.T) {
	k := newStory(t)
	for _, data := range []any{events.CreateThread{AgentID: "triage", ContextType: "cart"}, events.CreateContext{ID: "ctx_t", Type: "profile"}} {
		c := k.command(data)
		fits := func(events.JSON) error { return nil }
		c.Types = map[string]func(events.JSON) error{"cart": fits, "profile": fits}
		if _, err := k.try(c); err != nil {
			t.Fatal(err)
		}
	}
	react := events.ReactThread{Text: to("hello")}
	type row struct {
		name string
		data []any
		want Need
	}
	check := func(list []row) {
		t.Helper()
		for _, c := range list {
			if got := NewDraft(k.state).Needs(k.command(c.data...)); !reflect.DeepEqual(got, c.want) {
				t.Errorf("%s needs %+v, want %+v", c.name, got, c.want)
			}
		}
	}
	types := func(names ...string) Need { return Need{Types: names} }
	asks := func(name string) Need { return Need{Asked: []Asked{{Name: name}}} }
	check([]row{
		{"a thread with a type", []any{events.CreateThread{ContextType: "cart"}}, types("cart")},
		{"a thread without", []any{events.CreateThread{}}, Need{}},
		{"a resolved thread", []any{events.ResolveThread{Key: "k", ContextType: "cart"}}, types("cart")},
		{"a context", []any{events.CreateContext{Type: "profile"}}, types("profile")},
		{"the content of a context", []any{events.SetContext{ContextID: "ctx_t", Content: raw(`1`)}}, types("profile")},
		{"that of the default one", []any{events.SetContext{Content: raw(`1`)}}, types("cart")},
		{"that of none", []any{events.SetContext{ContextID: "ctx_9", Content: raw(`1`)}}, Need{}},
		{"each type once", []any{events.CreateContext{Type: "cart"}, events.SetContext{Content: raw(`1`)}, events.CreateContext{Type: "profile"}}, types("cart", "profile")},
		{"a message at rest", []any{react}, asks("triage")},
		{"a message for an agent", []any{events.ReactThread{Text: to("x"), AgentID: "billing"}}, asks("billing")},
		{"one after the thread was handed over", []any{react, events.AssignAgent{AgentID: "sales"}, react}, Need{Asked: []Asked{{Name: "triage"}, {Name: "sales", Part: 2}}}},
		{"something else", []any{events.UpdateThread{Title: to("x")}}, Need{}},
	})
	w := k.reacting("billing")
	check([]row{
		{"a message while an agent works", []any{react}, Need{Agent: "billing", Asked: asks("triage").Asked}},
		{"one that says its policy", []any{events.ReactThread{Text: to("x"), Policy: events.Steer}}, asks("triage")},
	})
	w.do(events.UpdateThread{Policy: to(events.Reject)})
	check([]row{{"one to a thread with a policy", []any{react}, asks("triage")}})

	rush := func(parts ...Asked) Need { return Need{Modes: true, Asked: parts} }
	k = newStory(t)
	k.do(events.CreateThread{AgentID: "triage"})
	k.do(events.UpdateThread{AgentMode: to("rush")})
	check([]row{
		{"a message in a mode", []any{react}, rush(Asked{Name: "triage", Mode: "rush"})},
		{"one for an agent in a mode", []any{events.ReactThread{Text: to("x"), AgentID: "billing"}}, asks("billing")},
		{"one in a mode that an earlier part sets", []any{events.UpdateThread{AgentMode: to("smart")}, react}, rush(Asked{Name: "triage", Mode: "smart", Part: 1})},
		{"one after the mode was cleared", []any{events.UpdateThread{AgentMode: to("")}, react}, Need{Asked: []Asked{{Name: "triage", Part: 1}}}},
		{"a message of another thread in a mode", []any{ReactFor{ReactThread: react}}, rush()},
		{"something else in a mode", []any{events.StopRun{}}, Need{}},
	})
	k.do(events.UpdateThread{Draft: to("later"), AutoSubmitDraft: to(true)})
	check([]row{{"the end of a run that sends a draft", []any{events.StopRun{}}, rush()}})

	k = asking(t).story
	called := Need{Called: []Called{{Agent: "triage", Tool: "find"}}}
	check([]row{
		{"a grant", []any{events.GrantApproval{CallID: "call_1"}}, Need{}},
		{"a grant with arguments", []any{events.GrantApproval{CallID: "call_1", Arguments: raw(`{}`)}}, called},
		{"an answer with arguments", []any{events.ResolveApproval{CallID: "call_1", Grant: true, Arguments: raw(`{}`)}}, called},
		{"each tool once", []any{events.GrantApproval{CallID: "call_1", Arguments: raw(`{}`)}, events.GrantApproval{CallID: "call_2", Arguments: raw(`{}`)}}, called},
		{"one of no call", []any{events.GrantApproval{CallID: "call_9", Arguments: raw(`{}`)}}, Need{}},
	})

	k = newStory(t)
	k.do(events.CreateThread{AgentID: "triage"})
	k.do(events.SetThreadStatus{To: events.ThreadStreaming})
	check([]row{{"a message while somebody outside works", []any{react}, Need{Agent: "triage", Asked: asks("triage").Asked}}})
}

// typed makes a command that knows one type of contexts, which takes numbers.
func (k *story) typed(data any) *Command {
	c := k.command(data)
	c.Types = map[string]func(events.JSON) error{"count": func(v events.JSON) error {
		if jsontext.Value(v).Kind() != '0' {
			return errors.New("it is no number")
		}
		return nil
	}}
	return c
}

// The content of a context fits its type, from its first content on; the place at
// fault is named, and without the type nothing is written.
func TestTypedContext(t *testing.T) {
	k := newStory(t)
	try := func(data any, code events.Code, path string) {
		t.Helper()
		if code == "" {
			if _, err := k.try(k.typed(data)); err != nil {
				t.Errorf("%+v: %v", data, err)
			}
			return
		}
		_, err := k.try(k.typed(data))
		if err == nil {
			t.Fatalf("%+v was done", data)
		}
		wantRefusal(t, events.AsError(err), code, events.ErrorDetails{Path: path})
	}
	const bad = events.InvalidRequest
	try(events.CreateThread{ContextType: "count", Context: raw(`"x"`)}, bad, "/data/context")
	try(events.CreateThread{ContextType: "count"}, bad, "/data/context") // nothing is null, which is no number
	try(events.CreateThread{ContextType: "other", Context: raw(`1`)}, bad, "/data")
	try(events.CreateThread{ContextType: "count", Context: raw(`1`)}, "", "")
	try(events.SetContext{Content: raw(`"x"`)}, bad, "/data/content")
	try(events.SetContext{Patch: raw(`{"a":1}`)}, bad, "/data/patch")
	try(events.SetContext{Content: raw(`2`)}, "", "")
	try(events.CreateContext{ID: "ctx_a", Type: "count", Content: raw(`[]`)}, bad, "/data/content")
	try(events.CreateContext{ID: "ctx_a", Type: "other", Content: raw(`3`)}, bad, "/data")
	try(events.CreateContext{ID: "ctx_a", Type: "count", Content: raw(`3`)}, "", "")
	try(events.SetContext{ContextID: "ctx_a", Content: raw(`null`)}, bad, "/data/content")
	try(events.CreateContext{ID: "ctx_b", Content: raw(`"anything"`)}, "", "")
	if c, _ := k.state.context("ctx_a"); c.Type != "count" || string(c.Content) != "3" {
		t.Errorf("the context is %+v", c)
	}
}
