package commands

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/quota"
)

// say adds a message and returns its item's id.
func say(t testing.TB, d *Dispatcher, id, role, text string) string {
	t.Helper()
	return must(t, d, "item.create", on(id, `{"item":{"type":"message","role":"`+role+`","content":[{"type":"input_text","text":"`+text+`"}]}}`)).Result.ItemID
}

// first returns the events of a thread's first commit.
func (w *world) first(id string) []events.Event { return w.commits(id)[0].Events }

// AM-32, AM-42, AM-46, AM-48..AM-53, C-31: a fork copies the messages up to one as they are now,
// the environment, the files and the context, and nothing else; both threads record it.
func TestFork_CopiesTheHistory(t *testing.T) {
	w := newWorld(t, Config{})
	made := must(t, w.d, "thread.create", `{"data":{"title":"Order 42","agentId":"triage","userId":"ada","env":{"initial":{"tags":["a"]}},"metadata":{"m":1},"context":{"n":1}}}`)
	id := made.ThreadID
	must(t, w.d, "thread.update", on(id, `{"draft":"later","agentMode":"rush","maxTokens":7,"archived":true,"env":{"initial":{"tags":["b"]}}}`))
	one := say(t, w.d, id, "user", "one")
	gone := say(t, w.d, id, "user", "gone")
	hidden := must(t, w.d, "item.create", on(id, strings.Replace(hello, `"type":"message"`, `"type":"message","silent":true`, 1))).Result.ItemID
	two := must(t, w.d, "message.add", on(id, `{"role":"assistant","content":"two","toolCalls":"[{\"id\":\"c\",\"function\":{\"name\":\"n\",\"arguments\":\"\"}}]"}`)).Result.ItemID
	three := say(t, w.d, id, "user", "three")
	must(t, w.d, "message.edit", on(id, `{"itemId":"`+one+`","content":[{"type":"input_text","text":"changed"}]}`))
	must(t, w.d, "message.delete", on(id, `{"itemId":"`+gone+`"}`))
	must(t, w.d, "context.set", on(id, `{"patch":{"n":2}}`))
	must(t, w.d, "file.write", on(id, `{"path":"/d/x","external":"https://example.org/x"}`))
	version := w.commits(id)[len(w.commits(id))-1].Version
	request := with("c-1", id, `{"messageIndex":1,"key":"fork"}`)
	reply := must(t, w.d, "thread.fork", request)
	if reply.ThreadID != id || reply.Version != version+1 || reply.Result == nil || !events.ValidThreadID(reply.Result.ChildID) {
		t.Fatalf("answered with %+v", reply)
	}
	child := reply.Result.ChildID
	w.twins(id, child)
	if first := w.commits(child)[0].Seq; first >= uint64(reply.Seq) { // AM-52
		t.Errorf("the fork was stored at %d, and its parent, which the reply names, at %d", first, reply.Seq)
	}
	for _, side := range []struct{ thread, name string }{{id, "fork parent " + child}, {child, "fork child " + id}} {
		if d := w.relations(side.thread)[side.name]; d.MessageIndex == nil || *d.MessageIndex != 1 || side.thread == id && d.ItemID != two {
			t.Errorf("%s: %+v", side.name, d)
		}
	}
	var items []events.ItemCreated
	for _, e := range w.first(child) {
		switch d := e.Data.(type) {
		case events.ThreadCreated:
			if d.Title != "Forked: Order 42" || d.OriginThreadID != id || d.ForkPointIndex == nil || *d.ForkPointIndex != 1 || *d.Key != "fork" ||
				string(d.Env) != `{"initial":{"tags":["b"]}}` || d.Metadata != nil || d.MainThreadID != "" || d.AgentID != "triage" || d.UserID != "ada" {
				t.Errorf("created as %+v", d)
			}
		case events.ContextCreated:
			if string(d.Content) != `{"n":2}` || d.ID == made.Result.ContextID {
				t.Errorf("its context: %+v", d)
			}
		case events.ItemCreated:
			items = append(items, d)
		case events.ProfileChanged:
			t.Errorf("it has a profile: %+v", d)
		}
	}
	var from []string
	for i, d := range items {
		from = append(from, d.SourceItemID)
		if d.ID == d.SourceItemID || d.Status != events.ItemCompleted || d.Index != int64(i) || d.CreatedAt == "" {
			t.Errorf("copied as %+v", d)
		}
	}
	if len(items) != 4 || from[0] != one || from[1] != hidden || from[2] != two || !items[1].Silent || items[3].CallOf == nil || items[3].ParentItemID != items[2].ID {
		t.Fatalf("copied %v of %s, %s and %s; not %s", from, one, hidden, two, three)
	}
	if !strings.Contains(string(items[0].Content), "changed") {
		t.Errorf("copied as it was: %s", items[0].Content)
	}
	if again := must(t, w.another(Config{}), "thread.fork", request); fmt.Sprint(*again.Result) != fmt.Sprint(*reply.Result) {
		t.Errorf("the repeat made %+v", again.Result)
	}
	// Later changes of one do not show in the other, and numbers go on after the copies.
	must(t, w.d, "message.edit", on(id, `{"itemId":"`+one+`","content":[]}`))
	must(t, w.d, "thread.delete", on(id, `{"purge":true}`))
	say(t, w.d, "key:fork", "user", "on")
	w.sameAsLog(w.d, child)
	if err := w.d.Look(t.Context(), tenant, child, func(s *thread.State) {
		if s.Messages != 4 || s.NextItem != 5 || s.NumFiles != 2 {
			t.Errorf("the next message has number %d, the next item %d; %d files", s.Messages, s.NextItem, s.NumFiles)
		}
	}); err != nil {
		t.Fatal(err)
	}
	// A fork of a fork: relationships are not copied (AM-113).
	grand := must(t, w.d, "thread.fork", on(child, `{"itemId":"`+items[0].ID+`","title":"mine"}`)).Result.ChildID
	if d := w.first(grand)[0].Data.(events.ThreadCreated); d.Title != "mine" || d.OriginThreadID != child || *d.ForkPointIndex != 0 || len(w.relations(grand)) != 1 {
		t.Errorf("created as %+v, with %+v", d, w.relations(grand))
	}
}

// A fork by version has what the thread was then, also what was deleted or changed since.
func TestFork_AtAVersion(t *testing.T) {
	w := newWorld(t, Config{})
	id := create(t, w.d)
	one := say(t, w.d, id, "user", "one")
	then := must(t, w.d, "item.create", on(id, hello)).Version
	must(t, w.d, "message.edit", on(id, `{"itemId":"`+one+`","content":[]}`))
	must(t, w.d, "thread.truncate", on(id, `{"messageIndex":0}`))
	child := must(t, w.d, "thread.fork", on(id, fmt.Sprintf(`{"version":%d}`, then))).Result.ChildID
	made := w.first(child)
	items := slices.DeleteFunc(made, func(e events.Event) bool { return e.Type != events.ItemCreatedType })
	if len(items) != 2 || !strings.Contains(string(items[0].Data.(events.ItemCreated).Content), "one") {
		t.Errorf("%d items; the first is %s", len(items), items[0].Data.(events.ItemCreated).Content)
	}
	w.twins(id, child)
	empty := must(t, w.d, "thread.fork", on(id, `{"version":2}`)).Result.ChildID
	if d := w.first(empty)[0].Data.(events.ThreadCreated); d.ForkPointIndex != nil {
		t.Errorf("of no message: %+v", d)
	}
	w.twins(id, child, empty)
	// Also amid a commit.
	other := create(t, w.d)
	const add = `{"command":"item.create","data":` + hello + `}`
	last := must(t, w.d, "thread.commit", on(other, `{"commands":[`+add+`,`+add+`]}`)).Version
	child = must(t, w.d, "thread.fork", on(other, fmt.Sprintf(`{"version":%d}`, last-1))).Result.ChildID
	if items := slices.DeleteFunc(w.first(child), func(e events.Event) bool { return e.Type != events.ItemCreatedType }); len(items) != 1 {
		t.Errorf("amid a commit it has %d items, want 1", len(items))
	}
}

// AM-47, AM-54: what cannot be forked, and the words of the refusal.
func TestFork_Refused(t *testing.T) {
	w := newWorld(t, Config{})
	id := create(t, w.d)
	say(t, w.d, id, "user", "one")
	must(t, w.d, "thread.create", `{"data":{"key":"taken"}}`)
	gone := create(t, w.d)
	must(t, w.d, "thread.delete", on(gone, `{}`))
	foreign, err := w.d.Do(t.Context(), "other", "thread.create", []byte(`{}`), Meta{})
	if err != nil {
		t.Fatal(err)
	}
	before := w.lastSeq()
	for _, c := range []struct {
		name, thread, data string
		code               events.Code
		says               string
	}{
		{"a deleted thread", gone, `{"messageIndex":0}`, events.NotFound, "Thread " + gone + " not found"},
		{"a thread of another tenant", foreign.ThreadID, `{"version":2}`, events.NotFound, "Thread " + foreign.ThreadID + " not found"},
		{"an unknown key", "key:nobody", `{"version":2}`, events.NotFound, "Thread key:nobody not found"},
		{"beyond the last message", id, `{"messageIndex":1}`, events.InvalidRequest, "from 0 to 0"},
		{"before the first", id, `{"messageIndex":-1}`, events.InvalidRequest, ""},
		{"far beyond it", id, `{"messageIndex":1000000000000000000}`, events.InvalidRequest, ""},
		{"an unknown item", id, `{"itemId":"itm_9"}`, events.InvalidRequest, "itm_9"},
		{"a version to come", id, `{"version":77}`, events.InvalidRequest, "no version 77"},
		{"no point", id, `{}`, events.InvalidRequest, "exactly one"},
		{"two points", id, `{"messageIndex":0,"version":2}`, events.InvalidRequest, "exactly one"},
		{"a key that is taken", id, `{"messageIndex":0,"key":"taken"}`, events.AlreadyExists, "taken"},
	} {
		if e := refused(t, w.d, c.code, "thread.fork", on(c.thread, c.data)); !strings.Contains(e.Message, c.says) {
			t.Errorf("%s: %s", c.name, e.Message)
		}
	}
	if w.lastSeq() != before {
		t.Errorf("refusals wrote %d commits", w.lastSeq()-before)
	}
	for range 3 {
		say(t, w.d, id, "user", strings.Repeat("x", 200<<10))
	}
	// A long history is inherited by pages, which this process cannot store.
	if e := refused(t, w.d, events.Unavailable, "thread.fork", on(id, `{"messageIndex":3}`)); !strings.Contains(e.Message, "stores no pages") {
		t.Errorf("too long: %s", e.Message)
	}
	must(t, w.d, "thread.fork", on(id, `{"messageIndex":2}`))
}

// A fork of a thread that another process writes has exactly what the parent had before it.
func TestFork_OfABusyThread(t *testing.T) {
	w := newWorld(t, Config{})
	ds := []*Dispatcher{w.d, w.another(Config{})}
	id := create(t, w.d)
	say(t, w.d, id, "user", "first")
	const n = 40
	got := together(t, n, func(i int) (*events.Reply, *events.Error) {
		if i%4 == 0 {
			return ask(t, ds[i/4%2], "thread.fork", with("c-"+strconv.Itoa(i), id, `{"version":1}`))
		}
		if i%4 == 1 {
			return ask(t, ds[i/4%2], "thread.fork", with("c-"+strconv.Itoa(i), id, `{"messageIndex":0}`))
		}
		return ask(t, ds[i%2], "item.create", with("c-"+strconv.Itoa(i), id, hello))
	})
	ids := []string{id}
	for i, a := range got {
		if a.err != nil {
			t.Fatalf("%d: %v (%v)", i, a.err, a.err.Cause)
		}
		if a.reply.Result.ChildID != "" {
			ids = append(ids, a.reply.Result.ChildID)
		}
	}
	w.twins(ids...)
	if len(ids) != n/2+1 || len(w.relations(id)) != n/2 {
		t.Errorf("%d forks, %d records", len(ids)-1, len(w.relations(id)))
	}
	for _, d := range ds {
		w.sameAsLog(d, id)
	}
}

// AM-45, AM-112: a truncation hides the messages after one, and removes what was related at
// them, on both threads.
func TestTruncate_HidesLaterMessages(t *testing.T) {
	w := newWorld(t, Config{})
	id, other, gone := create(t, w.d), create(t, w.d), create(t, w.d)
	for i := range 4 {
		say(t, w.d, id, "user", strconv.Itoa(i))
	}
	early := must(t, w.d, "thread.fork", on(id, `{"messageIndex":1}`)).Result.ChildID
	late := must(t, w.d, "thread.fork", on(id, `{"messageIndex":2}`)).Result.ChildID
	must(t, w.d, "thread.mention", on(id, `{"mentionedId":"`+other+`"}`))
	must(t, w.d, "thread.mention", on(id, `{"mentionedId":"`+gone+`","messageIndex":3}`))
	must(t, w.d, "thread.mention", on(other, `{"mentionedId":"`+id+`"}`))
	must(t, w.d, "thread.delete", on(gone, `{}`))
	for _, index := range []string{"4", "-1", "1000000000000000000"} {
		refused(t, w.d, events.InvalidRequest, "thread.truncate", on(id, `{"messageIndex":`+index+`}`))
	}
	if r := must(t, w.d, "thread.truncate", on(id, `{"messageIndex":3}`)); len(r.Events) != 0 {
		t.Errorf("a truncation after the last message: %+v", r)
	}
	before := w.lastSeq()
	request := with("c-1", id, `{"messageIndex":1}`)
	reply := must(t, w.d, "thread.truncate", request)
	if want := []events.Type{events.HistoryTruncatedType, events.RelationshipRemovedType, events.RelationshipRemovedType, events.RelationshipRemovedType}; !slices.Equal(typesOf(reply), want) {
		t.Errorf("made %v", typesOf(reply))
	}
	if w.lastSeq() != before+3 {
		t.Errorf("the log grew by %d commits", w.lastSeq()-before)
	}
	if again := must(t, w.another(Config{}), "thread.truncate", request); fmt.Sprint(*again) != fmt.Sprint(*reply) {
		t.Errorf("the repeat was answered with %+v", again)
	}
	w.twins(id, other, early, late)
	mine := w.relations(id)
	if _, kept := mine["fork parent "+early]; !kept || len(mine) != 2 || len(w.relations(late)) != 0 || len(w.relations(other)) != 1 {
		t.Errorf("left: %+v, %+v, %+v", mine, w.relations(late), w.relations(other))
	}
	refused(t, w.d, events.InvalidRequest, "thread.mention", on(id, `{"mentionedId":"`+late+`","messageIndex":2}`))
	must(t, w.d, "thread.mention", on(id, `{"mentionedId":"`+other+`","messageIndex":1}`)) // again, as the first is gone
	w.twins(id, other, early, late)
	for _, one := range []string{id, other, early, late} {
		w.sameAsLog(w.d, one)
	}
}

// AM-112: what runs is not truncated, unless it is to be interrupted; what waits stays, and
// A truncation is the first command of a commit, whose other commands see the thread without
// what it hides, on every thread that it concerns; or none of them is done.
func TestTruncate_InACommit(t *testing.T) {
	w := newWorld(t, Config{})
	id, other := create(t, w.d), create(t, w.d)
	say(t, w.d, id, "user", "one")
	say(t, w.d, id, "user", "two")
	must(t, w.d, "thread.mention", on(id, `{"mentionedId":"`+other+`","messageIndex":1}`))
	const cut, add = `{"command":"thread.truncate","data":{"messageIndex":0}}`, `{"command":"item.create","data":{"item":{"id":"new","type":"message","role":"user","content":[]}}}`
	if e := refused(t, w.d, events.InvalidRequest, "thread.commit", on(id, `{"commands":[`+add+`,`+cut+`]}`)); !strings.Contains(e.Message, "first") {
		t.Errorf("refused with %v", e)
	}
	refused(t, w.d, events.NotFound, "thread.commit", on(id, `{"commands":[`+cut+`,{"command":"message.delete","data":{"itemId":"nobody"}}]}`))
	before := len(w.commits(other))
	must(t, w.d, "thread.commit", on(id, `{"commands":[`+cut+`,`+add+`]}`))
	all := w.commits(id)
	var types []events.Type
	for _, e := range all[len(all)-1].Events {
		types = append(types, e.Type)
	}
	if want := []events.Type{events.HistoryTruncatedType, events.RelationshipRemovedType, events.ItemCreatedType}; !slices.Equal(types, want) {
		t.Errorf("%v", types)
	}
	if got := w.commits(other); len(got) != before+1 || got[before].Events[0].Type != events.RelationshipRemovedType {
		t.Errorf("the other thread has %d commits of %d", len(got), before)
	}
}

// starts after the cut.
func TestTruncate_WhatRuns(t *testing.T) {
	w := newWorld(t, Config{})
	id := must(t, w.d, "thread.create", `{"data":{"agentId":"triage"}}`).ThreadID
	say(t, w.d, id, "user", "first")
	must(t, w.d, "thread.react", on(id, `{"text":"hello","executionId":"exe_1"}`))
	waiting := must(t, w.d, "thread.react", on(id, `{"text":"and?","executionId":"exe_2"}`)).Result
	if e := refused(t, w.d, events.VersionConflict, "thread.truncate", on(id, `{"messageIndex":0}`)); e.Code.Status() != 409 || !strings.Contains(e.Message, "interrupt") {
		t.Errorf("refused with %v", e)
	}
	must(t, w.d, "thread.truncate", on(id, `{"messageIndex":0,"interrupt":true}`))
	last := w.commits(id)[len(w.commits(id))-1]
	var types []events.Type
	for i := range last.Events {
		types = append(types, last.Events[i].Type)
	}
	cut, started := slices.Index(types, events.HistoryTruncatedType), slices.Index(types, events.ExecutionCreatedType)
	if cut < 0 || started < cut || !slices.Contains(types[:cut], events.ThreadFinishedType) || waiting.ExecutionID != last.Events[started].Subject {
		t.Errorf("made %v", types)
	}
	w.sameAsLog(w.d, id)
}

// A tenant whose forks hold its places waits for them, and neither its other commands nor the forks
// of other tenants do.
func TestFork_OneTenantLeavesPlaces(t *testing.T) {
	places := quota.NewPool("forks", quota.Places{Total: 2, Tenant: 1}, nil)
	w := newWorld(t, Config{Forks: places})
	id := create(t, w.d)
	must(t, w.d, "item.create", on(id, hello))
	foreign, err := w.d.Do(t.Context(), "globex", "thread.create", []byte(`{"data":{}}`), Meta{})
	if err != nil {
		t.Fatal(err)
	}
	leave, err := places.Try(tenant)
	if err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer end()
	request := []byte(on(id, `{"version":2}`))
	if _, err := w.d.Do(ended, tenant, "thread.fork", request, Meta{}); events.AsError(err).Code != events.Unavailable {
		t.Errorf("a fork without a place: %v", err)
	}
	must(t, w.d, "item.create", on(id, hello))
	if _, err := w.d.Do(t.Context(), "globex", "thread.fork", []byte(on(foreign.ThreadID, `{"version":2}`)), Meta{}); err != nil {
		t.Errorf("a fork of another tenant: %v", err)
	}
	leave()
	must(t, w.d, "thread.fork", string(request))
	must(t, w.d, "thread.fork", string(request)) // each has left its place
}

// The pages of a long history become longer, so that 2,000 of them hold a million short items, and
// forks at different places share all whole pages before the first of these.
func TestHistory_PagesGrow(t *testing.T) {
	const items = 60_000
	h := newHistory(historyOf{tenant: "acme", thread: "T-1"})
	contents := map[string][]byte{}
	read := func(parts ...events.HistoryPart) ([]*events.HistoryPage, error) {
		var pages []*events.HistoryPage
		for _, p := range parts {
			page, err := events.DecodeHistoryPage(contents[p.Digest], p.Digest)
			if err != nil {
				return nil, err
			}
			pages = append(pages, page)
		}
		return pages, nil
	}
	for n := range int64(items) {
		d := events.ItemCreated{ID: fmt.Sprintf("itm_%d", n), Index: n, Type: events.Message, Role: events.User, Content: events.JSON(`[]`)}
		if err := h.fold(&events.Event{Type: events.ItemCreatedType, Time: 1, Data: d}); err != nil {
			t.Fatal(err)
		}
		maps.Copy(contents, h.fresh)
		clear(h.fresh)
	}
	for n, p := range h.pages {
		if p.Size > int64(pageBytes(n)) || n >= 2*doublePages && n < len(h.pages)-1 && p.Items.Message != events.HistoryBlock {
			t.Errorf("page %d has %d items and %d bytes", n, p.Items.Message, p.Size)
		}
	}
	if last := len(h.pages) - 1; pageBytes(0) != minPageBytes || pageBytes(maxPages) != maxPageBytes || last > items/events.HistoryBlock+doublePages/2 {
		t.Errorf("%d items have %d pages", items, len(h.pages))
	}
	forks := map[int64][]events.HistoryPart{}
	for _, end := range []int64{20_000, 50_000, items} {
		c := &thread.Copied{}
		if err := h.take(c, end, read); err != nil || c.Inherited == nil {
			t.Fatal(end, err)
		}
		maps.Copy(contents, h.fresh)
		forks[end] = c.Inherited.Pages
		pages, err := read(c.Inherited.Pages...)
		if err != nil {
			t.Fatal(err)
		}
		at := int64(0)
		for n, page := range pages {
			for _, item := range page.Items {
				if item.Index != at || item.Index < c.Inherited.Pages[n].From {
					t.Fatalf("the fork of %d items has %d where %d is due", end, item.Index, at)
				}
				at++
			}
		}
		if at != end {
			t.Errorf("the fork of %d items has %d", end, at)
		}
	}
	for _, short := range []int64{20_000, 50_000} {
		whole := forks[short][:len(forks[short])-1]
		if !slices.EqualFunc(whole, forks[items][:len(whole)], func(a, b events.HistoryPart) bool { return a.Digest == b.Digest }) {
			t.Errorf("the fork of %d items has other pages", short)
		}
	}
}
