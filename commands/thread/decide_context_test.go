package thread

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// A context may bring its id, key and content; both names are its own in the
// thread (EK-22, EK-23, EK-26).
func TestCreateContext(t *testing.T) {
	k := begun(t)
	want(t, k.do(events.CreateContext{ID: "ctx_a", Key: "a", Content: raw(`[1]`)}),
		fact{events.ContextCreatedType, "ctx_a", "", events.ContextCreated{ID: "ctx_a", Key: to("a"), Status: events.ContextOpen, Content: raw(`[1]`)}})
	made := k.do(events.CreateContext{})
	id := events.DeriveID(events.ContextPrefix, k.now, tenant, threadID, made[0].CommandID, 1)
	want(t, made, fact{events.ContextCreatedType, id, "", events.ContextCreated{ID: id, Status: events.ContextOpen, Content: raw(`null`)}})
	wantRefusal(t, k.refuse(events.CreateContext{Key: "a"}), events.AlreadyExists, events.ErrorDetails{Entity: "context key", ID: "a"})
	wantRefusal(t, k.refuse(events.CreateContext{ID: "ctx_a"}), events.AlreadyExists, events.ErrorDetails{Entity: "context", ID: "ctx_a"})
	wantRefusal(t, k.refuse(events.CreateContext{ID: "ctx_b", Key: "b"}, events.CreateContext{Key: "b"}),
		events.AlreadyExists, events.ErrorDetails{Entity: "context key", ID: "b", Command: to(1)})
}

// A context is found by its key, or made; without a key it is the default one
// (EK-110, EK-134).
func TestResolveContext(t *testing.T) {
	k := begun(t)
	want(t, k.do(events.ResolveContext{}), fact{events.ContextResolvedType, k.state.ContextID(), "", events.ContextResolved{}})
	made := k.do(events.ResolveContext{Key: "a"})
	id := made[0].Subject
	want(t, made,
		fact{events.ContextCreatedType, id, "", events.ContextCreated{ID: id, Key: to("a"), Status: events.ContextOpen, Content: raw(`null`)}},
		fact{events.ContextResolvedType, id, "", events.ContextResolved{Key: to("a"), Created: true}},
	)
	want(t, k.do(events.ResolveContext{Key: "a"}), fact{events.ContextResolvedType, id, "", events.ContextResolved{Key: to("a")}})
}

func TestSetContext(t *testing.T) {
	k := begun(t)
	main := k.state.ContextID()
	k.do(events.CreateContext{ID: "ctx_a", Content: raw(`{"n":1}`)})
	for _, c := range []struct {
		set   events.SetContext
		id    string
		after string
	}{
		{events.SetContext{Content: raw(`{"a":1.50,"b":[null]}`)}, main, `{"a":1.50,"b":[null]}`},
		{events.SetContext{Patch: raw(`{"a":null}`)}, main, `{"b":[null]}`},
		{events.SetContext{ContextID: main, Patch: raw(`{"c":{"d":null,"e":1}}`)}, main, `{"b":[null],"c":{"e":1}}`},
		{events.SetContext{ContextID: "ctx_a", Patch: raw(`{"n":2}`)}, "ctx_a", `{"n":2}`},
		{events.SetContext{ContextID: "ctx_a", Content: raw(`null`)}, "ctx_a", ``},
		{events.SetContext{ContextID: "ctx_a", Patch: raw(`"text"`)}, "ctx_a", `"text"`},
	} {
		want(t, k.do(c.set), fact{events.StateChangedType, c.id, "", events.StateChanged{Content: c.set.Content, Patch: c.set.Patch}})
		if after, _ := k.state.context(c.id); string(after.Content) != c.after {
			t.Errorf("after %+v the content is %s, want %s", c.set, after.Content, c.after)
		}
	}
	wantRefusal(t, k.refuse(events.SetContext{ContextID: "ctx_b", Content: raw(`1`)}), events.NotFound, events.ErrorDetails{Entity: "context", ID: "ctx_b"})
	wantRefusal(t, k.refuse(events.SetContext{Patch: raw(`{"broken"`)}), events.InvalidRequest, events.ErrorDetails{Path: "/data/patch"})
}

// What a context holds is at most 1 MiB, however it grows (C-16).
func TestContext_ContentIsBounded(t *testing.T) {
	k := begun(t)
	half := `"` + strings.Repeat("x", events.MaxStateBytes/2-20) + `"`
	k.do(events.SetContext{Patch: raw(`{"a":` + half + `}`)})
	k.do(events.SetContext{Patch: raw(`{"b":` + half + `}`)})
	full, _ := k.state.context(k.state.ContextID())
	room := events.MaxStateBytes - len(full.Content) // for ,"c":"..."
	fill := func(n int) events.SetContext {
		return events.SetContext{Patch: raw(`{"c":"` + strings.Repeat("x", n-len(`,"c":""`)) + `"}`)}
	}
	refusal := k.refuse(fill(room + 1))
	wantRefusal(t, refusal, events.PayloadTooLarge, events.ErrorDetails{Size: events.MaxStateBytes + 1, Limit: events.MaxStateBytes})
	k.do(fill(room))
	if full, _ = k.state.context(k.state.ContextID()); len(full.Content) != events.MaxStateBytes {
		t.Errorf("it holds %d bytes", len(full.Content))
	}
	wantRefusal(t, k.refuse(events.SetContext{Content: raw(`"` + strings.Repeat("x", events.MaxStateBytes-1) + `"`)}),
		events.PayloadTooLarge, events.ErrorDetails{Size: events.MaxStateBytes + 1, Limit: events.MaxStateBytes})
}

// The examples of RFC 7396, appendix A, as patches of a context.
func TestMergePatch(t *testing.T) {
	for _, c := range [][3]string{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"b"}`, `["c"]`, `["c"]`},
		{`{"a":"foo"}`, `null`, `null`},
		{`{"a":"foo"}`, `"bar"`, `"bar"`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
	} {
		k := newStory(t)
		k.do(events.CreateThread{Context: raw(c[0])})
		k.do(events.SetContext{Patch: raw(c[1])})
		after, _ := k.state.context(k.state.ContextID())
		if !sameJSON(t, orNull(after.Content), []byte(c[2])) {
			t.Errorf("%s patched by %s is %s, want %s", c[0], c[1], after.Content, c[2])
		}
	}
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal(a, &x); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &y); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(x, y)
}

// A closed context refuses whatever would write into it, and says what to do
// instead; its key is free for the next context (AG-90).
func TestClosedContext_RefusesWritesAndFreesItsKey(t *testing.T) {
	k := begun(t)
	k.do(events.CreateContext{ID: "ctx_a", Key: "a", Content: raw(`{"n":1}`)})
	k.do(userSays("itm_a", "ctx_a"))
	k.do(events.SetContextStatus{ContextID: "ctx_a", To: events.ContextClosed})
	version := k.state.Version
	hi := "hi"
	for name, d := range map[string]any{
		"set":       events.SetContext{ContextID: "ctx_a", Content: raw(`1`)},
		"patch":     events.SetContext{ContextID: "ctx_a", Patch: raw(`{"n":2}`)},
		"item":      userSays("itm_b", "ctx_a"),
		"execution": events.CreateExecution{TriggerItemID: "itm_a"},
		"react":     events.ReactThread{ContextID: "ctx_a", Text: &hi, AgentID: "helper"},
	} {
		refusal := k.refuse(d)
		wantRefusal(t, refusal, events.IllegalTransition, events.ErrorDetails{Entity: "context", ID: "ctx_a", From: "closed", Allowed: []string{}})
		if text := events.AsError(refusal).Message; !strings.Contains(text, "context.create") {
			t.Errorf("%s: the refusal does not say what to do instead: %s", name, text)
		}
	}
	if k.state.Version != version {
		t.Fatal("a closed context was written")
	}
	made := k.do(events.ResolveContext{Key: "a"})
	if id := made[0].Subject; id == "ctx_a" || made[0].Type != events.ContextCreatedType {
		t.Fatalf("the key of a closed context leads to %s", id)
	}
	wantRefusal(t, k.refuse(events.CreateContext{Key: "a"}), events.AlreadyExists, events.ErrorDetails{Entity: "context key", ID: "a"})
	// Within one commit too: what an earlier part closed is closed for the next.
	k.do(events.SetContextStatus{ContextID: made[0].Subject, To: events.ContextClosed}, events.CreateContext{ID: "ctx_c", Key: "a"})
	if id, _ := k.state.contextByKey("a"); id != "ctx_c" {
		t.Fatalf("the key leads to %q", id)
	}
}

func userSays(id, context string) events.CreateItem {
	return events.CreateItem{ContextID: context, Item: events.NewItem{
		ID: id, Type: events.Message, Role: events.User, Content: raw(`[{"type":"input_text","text":"hi"}]`),
	}}
}
