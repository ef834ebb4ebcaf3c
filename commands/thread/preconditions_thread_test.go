package thread

import (
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// after makes an event that could come next in the story.
func (k *story) after(t events.Type, subject, correlation string, data any) events.Event {
	return events.Event{
		ID: events.EventID(tenant, k.thread, "forged", 0), Type: t, Time: k.now + 1000, Subject: subject, Correlation: correlation,
		Tenant: tenant, ThreadID: k.thread, Version: k.state.Version + 1, CommandID: "forged", Data: data,
	}
}

// forgery is a change to an event that could follow, after which it could not.
type forgery struct {
	name   string
	change func(*events.Event)
	says   string // part of the fault
}

// the makes a forgery of an event's data.
func the[T any](name, says string, change func(*T)) forgery {
	return forgery{name, func(e *events.Event) {
		d := e.Data.(T)
		change(&d)
		e.Data = d
	}, says}
}

// about and of make forgeries of what an event is about, and what it belongs to.
func anotherSubject(says string) forgery {
	return forgery{"another subject", func(e *events.Event) { e.Subject = "else" }, says}
}

func anotherCorrelation(says string) forgery {
	return forgery{"another correlation", func(e *events.Event) { e.Correlation = "else" }, says}
}

// holdsBut checks that an event could follow in the story, and that none of its
// forgeries could, each for its own reason.
func holdsBut(t *testing.T, k *story, legal events.Event, list ...forgery) {
	t.Helper()
	before := encoded(t, k.state)
	if err := holds(k.state, []events.Event{legal}); err != nil {
		t.Errorf("%s: %v", legal.Type, err)
	}
	for _, f := range list {
		e := legal
		f.change(&e)
		if err := holds(k.state, []events.Event{e}); err == nil || !strings.Contains(err.Error(), f.says) {
			t.Errorf("%s with %s: %v, want %q", legal.Type, f.name, err, f.says)
		}
	}
	if string(before) != string(encoded(t, k.state)) {
		t.Errorf("checking %s changed the state", legal.Type)
	}
}

func TestHolds_Threads(t *testing.T) {
	k := newStory(t)
	created := k.after(events.ThreadCreatedType, threadID, "", events.ThreadCreated{ID: threadID, Status: events.ThreadOpen})
	ctx := k.after(events.ContextCreatedType, "ctx_d", "", events.ContextCreated{ID: "ctx_d", Status: events.ContextOpen, Default: true, Content: raw("null")})
	ctx.ID, ctx.Version = events.EventID(tenant, threadID, "forged", 1), 2
	if err := holds(k.state, []events.Event{created, ctx}); err != nil {
		t.Error(err)
	}
	for _, f := range []forgery{
		{"a later version", func(e *events.Event) { e.Version = 2 }, "created before"},
		anotherSubject("its subject should be"), anotherCorrelation("its correlation should be"),
		the("the id of another", "its subject should be", func(d *events.ThreadCreated) { d.ID = otherID }),
		{"the id and subject of another", func(e *events.Event) {
			e.Subject, e.Data = otherID, events.ThreadCreated{ID: otherID, Status: events.ThreadOpen}
		}, "it creates thread"},
		the("a state that is not the first", "begins as", func(d *events.ThreadCreated) { d.Status = events.ThreadStreaming }),
		the("a key that is not claimed", "claims its key", func(d *events.ThreadCreated) { d.Key = to("k") }),
	} {
		e := created
		f.change(&e)
		if err := holds(k.state, []events.Event{e, ctx}); err == nil || !strings.Contains(err.Error(), f.says) {
			t.Errorf("a creation with %s: %v", f.name, err)
		}
	}
	if err := holds(k.state, []events.Event{created}); err == nil || !strings.Contains(err.Error(), "default context") {
		t.Errorf("a creation without a context: %v", err)
	}

	k.do(events.CreateThread{Key: "k", AgentID: "triage"})
	again := k.after(events.ThreadCreatedType, threadID, "", events.ThreadCreated{ID: threadID, Status: events.ThreadOpen})
	if err := holds(k.state, []events.Event{again}); err == nil || !strings.Contains(err.Error(), "created before") {
		t.Errorf("a second creation: %v", err)
	}
	holdsBut(t, k, k.after(events.ThreadResolvedType, threadID, "", events.ThreadResolved{Key: "k"}),
		anotherSubject("its subject should be"), anotherCorrelation("its correlation should be"),
		the("another key", "the thread's key is", func(d *events.ThreadResolved) { d.Key = "l" }),
		the("a creation", "it says created", func(d *events.ThreadResolved) { d.Created = true }))
	holdsBut(t, k, k.after(events.ThreadStatusChangedType, threadID, "", events.ThreadStatusChanged{From: events.ThreadOpen, To: events.ThreadStreaming}),
		anotherSubject("its subject should be"), anotherCorrelation("its correlation should be"),
		the("another state before", "the thread is open", func(d *events.ThreadStatusChanged) {
			*d = events.ThreadStatusChanged{From: events.ThreadFailed, To: events.ThreadOpen}
		}),
		the("a move that there is not", "cannot become", func(d *events.ThreadStatusChanged) { d.To = events.ThreadFailed }))
	holdsBut(t, k, k.after(events.ProfileChangedType, threadID, "", events.ProfileChanged{Title: to("x")}),
		anotherSubject("its subject should be"), anotherCorrelation("its correlation should be"),
		the("nothing", "changes nothing", func(d *events.ProfileChanged) { d.Title = nil }))
	for name, one := range map[string]events.ProfileChanged{
		"archived": {Archived: to(true)}, "draft": {Draft: to("")}, "autoSubmitDraft": {AutoSubmitDraft: to(true)}, "agentMode": {AgentMode: to("")},
		"maxTokens": {MaxTokens: to(int64(1))}, "userId": {UserID: to("u")}, "metadata": {Metadata: raw(`{}`)}, "env": {Env: raw(`{}`)}, "policy": {Policy: to(events.Steer)},
	} {
		if err := holds(k.state, []events.Event{k.after(events.ProfileChangedType, threadID, "", one)}); err != nil {
			t.Errorf("a change of %s: %v", name, err)
		}
	}
	holdsBut(t, k, k.after(events.AgentAssignedType, threadID, "", events.AgentAssigned{AgentID: "billing", From: "triage"}),
		anotherSubject("its subject should be"), anotherCorrelation("its correlation should be"),
		the("no agent", "names no agent", func(d *events.AgentAssigned) { d.AgentID = "" }),
		the("another agent before", "the agent is", func(d *events.AgentAssigned) { d.From = "sales" }))
	holdsBut(t, k, k.after(events.LifecycleArchivedType, threadID, "", events.LifecycleArchived{FirstSeq: 3, LastSeq: 3}),
		anotherSubject("its subject should be"), anotherCorrelation("its correlation should be"),
		the("an end before the beginning", "archives commits 3 to 2", func(d *events.LifecycleArchived) { d.LastSeq = 2 }))
	holdsBut(t, k, k.after(events.CommandRejectedType, threadID, "", events.CommandRejected{Command: "x.y", Code: events.NotFound, ThreadID: threadID}),
		anotherSubject("its subject should be"),
		the("no command", "names no command", func(d *events.CommandRejected) { d.Command = "" }),
		the("no code", "no code", func(d *events.CommandRejected) { d.Code = "" }),
		the("another thread", "the command was for", func(d *events.CommandRejected) { d.ThreadID = otherID }))

	release := k.after(events.KeyReleasedType, threadID, "", events.KeyReleased{Key: "k", ThreadID: threadID})
	end := k.after(events.LifecycleDeletedType, threadID, "", events.LifecycleDeleted{})
	end.ID, end.Version = events.EventID(tenant, threadID, "forged", 1), end.Version+1
	if err := holds(k.state, []events.Event{release, end}); err != nil {
		t.Error(err)
	}
	for _, f := range []forgery{
		anotherSubject("its subject should be"),
		the("another key", "does not hold", func(d *events.KeyReleased) { d.Key = "l" }),
		the("another thread", "does not hold", func(d *events.KeyReleased) { d.ThreadID = otherID }),
	} {
		e := release
		f.change(&e)
		if err := holds(k.state, []events.Event{e, end}); err == nil || !strings.Contains(err.Error(), f.says) {
			t.Errorf("a release with %s: %v", f.name, err)
		}
	}
	if err := holds(k.state, []events.Event{release}); err == nil || !strings.Contains(err.Error(), "only when it is deleted") {
		t.Errorf("a release of a thread that lives: %v", err)
	}
	end.ID, end.Version = release.ID, release.Version
	if err := holds(k.state, []events.Event{end}); err == nil || !strings.Contains(err.Error(), "was not released") {
		t.Errorf("an end that keeps the key: %v", err)
	}
	late := k.after(events.KeyClaimedType, threadID, "", events.KeyClaimed{Key: "k", ThreadID: threadID})
	if err := holds(k.state, []events.Event{late}); err == nil || !strings.Contains(err.Error(), "when it is created") {
		t.Errorf("a late claim: %v", err)
	}
	plain := newStory(t)
	plain.do(events.CreateThread{})
	none := plain.after(events.KeyReleasedType, threadID, "", events.KeyReleased{ThreadID: threadID})
	if err := holds(plain.state, []events.Event{none}); err == nil || !strings.Contains(err.Error(), "does not hold") {
		t.Errorf("a release of no key: %v", err)
	}
}

// A thread claims the key with which it is created, for itself.
func TestHolds_KeyOfANewThread(t *testing.T) {
	k := newStory(t)
	made, err := Decide(k.state, k.command(events.CreateThread{Key: "k"}))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []forgery{
		anotherSubject("its subject should be"),
		the("another key", "was created with the key", func(d *events.KeyClaimed) { d.Key = "l" }),
		the("another thread", "was created with the key", func(d *events.KeyClaimed) { d.ThreadID = otherID }),
	} {
		list := append([]events.Event{}, made...)
		f.change(&list[2])
		if err := holds(k.state, list); err == nil || !strings.Contains(err.Error(), f.says) {
			t.Errorf("a claim with %s: %v", f.name, err)
		}
	}
}

// A key's own aggregate says who holds it: one at a time.
func TestHolds_Keys(t *testing.T) {
	id := events.KeyAggregate("k")
	var l Ledger
	n := 0
	next := func(typ events.Type, data any) events.Event {
		n++
		e := events.Event{Type: typ, Time: dawn + events.Time(n), Subject: id, Tenant: tenant, ThreadID: id, Version: int64(n), CommandID: "cmd-" + string(rune('a'+n)), Data: data}
		e.ID = events.EventID(tenant, id, e.CommandID, 0)
		return e
	}
	faults := func(e events.Event) string {
		c, err := events.NewCommit("", []events.Event{e})
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		l.Commit(c, func(_ *events.Event, err error) { out = append(out, err.Error()) })
		return strings.Join(out, "; ")
	}
	for _, c := range []struct {
		event events.Event
		says  string
	}{
		{next(events.KeyReleasedType, events.KeyReleased{Key: "k"}), "the key is held by"},
		{next(events.KeyClaimedType, events.KeyClaimed{Key: "k", ThreadID: threadID}), ""},
		{next(events.KeyClaimedType, events.KeyClaimed{Key: "k", ThreadID: otherID}), "the key is held by"},
		{next(events.KeyReleasedType, events.KeyReleased{Key: "k", ThreadID: threadID}), "the key is held by"}, // a fault is gone on from
		{next(events.KeyClaimedType, events.KeyClaimed{Key: "k", ThreadID: threadID}), ""},
		{next(events.KeyReleasedType, events.KeyReleased{Key: "l", ThreadID: threadID}), "belongs to another subject"},
		{next(events.KeyClaimedType, events.KeyClaimed{Key: "l", ThreadID: threadID}), "belongs to another subject"},
		{next(events.KeyReleasedType, events.KeyReleased{Key: "k", ThreadID: threadID}), ""},
		{next(events.ProfileChangedType, events.ProfileChanged{Title: to("x")}), "stands on threads only"},
		{next(events.CommandRejectedType, events.CommandRejected{Command: "x", Code: events.NotFound}), "on the tenant's own"},
		{next(events.DefinitionChangedType, events.DefinitionChanged{Kind: "tool", Name: "t", Version: 1}), "the tenant's own aggregate only"},
	} {
		got := faults(c.event)
		if (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%s %+v: %q, want %q", c.event.Type, c.event.Data, got, c.says)
		}
	}
}

func TestHolds_Tenants(t *testing.T) {
	k := newTenant(t)
	k.do(apply(model("m", "x"), tool("t")))
	def := tool("u")
	holdsBut(t, k, k.after(events.DefinitionChangedType, "tool/u", "", events.DefinitionChanged{
		Kind: def.Kind, Name: "u", Version: 1, Digest: events.DefinitionDigest(def.Definition), Definition: def.Definition,
	}),
		anotherSubject("its subject should be"), anotherCorrelation("its correlation should be"),
		the("a version too high", "is at version 0, and not at 1", func(d *events.DefinitionChanged) { d.Version = 2 }),
		the("something before it", "it replaces version 1", func(d *events.DefinitionChanged) { d.Previous = 1 }),
		the("another digest", "not what its digest says", func(d *events.DefinitionChanged) { d.Digest = strings.Repeat("a", 64) }),
		the("another definition", "is of", func(d *events.DefinitionChanged) {
			other := tool("v")
			d.Definition, d.Digest = other.Definition, events.DefinitionDigest(other.Definition)
		}),
		the("no definition of its kind", "decode definition", func(d *events.DefinitionChanged) {
			d.Definition = raw(`{"name":7}`)
			d.Digest = events.DefinitionDigest(d.Definition)
		}),
		the("nothing", "removes what is not there", func(d *events.DefinitionChanged) { d.Definition, d.Digest = nil, "" }),
	)
	was := tool("t")
	changed := define(events.ToolDefinition{Name: "t", Description: "y", Type: events.GoTool})
	holdsBut(t, k, k.after(events.DefinitionChangedType, "tool/t", "", events.DefinitionChanged{
		Kind: was.Kind, Name: "t", Version: 2, Previous: 1, Digest: events.DefinitionDigest(changed.Definition), Definition: changed.Definition,
	}),
		the("nothing before it", "it replaces version 0", func(d *events.DefinitionChanged) { d.Previous = 0 }),
		the("what it was", "is what it was", func(d *events.DefinitionChanged) {
			d.Definition, d.Digest = was.Definition, events.DefinitionDigest(was.Definition)
		}),
	)
	holdsBut(t, k, k.after(events.DefinitionChangedType, "tool/t", "", events.DefinitionChanged{Kind: was.Kind, Name: "t", Version: 2, Previous: 1}),
		the("a digest of nothing", "has a digest", func(d *events.DefinitionChanged) { d.Digest = strings.Repeat("a", 64) }))
	k.do(apply(agent("a", "m", "t")))
	gone := k.after(events.DefinitionChangedType, "tool/t", "", events.DefinitionChanged{Kind: was.Kind, Name: "t", Version: 2, Previous: 1})
	if err := holds(k.state, []events.Event{gone}); err == nil || !strings.Contains(err.Error(), `"agent/a" still refers to it`) {
		t.Errorf("a removal of what is referred to: %v", err)
	}
	lost := agent("b", "m", "u")
	refers := k.after(events.DefinitionChangedType, "agent/b", "", events.DefinitionChanged{
		Kind: lost.Kind, Name: "b", Version: 1, Digest: events.DefinitionDigest(lost.Definition), Definition: lost.Definition,
	})
	if err := holds(k.state, []events.Event{refers}); err == nil || !strings.Contains(err.Error(), `refers to "tool/u", which is not defined`) {
		t.Errorf("a definition that refers to nothing: %v", err)
	}
	claimed := k.after(events.KeyClaimedType, events.TenantAggregate, "", events.KeyClaimed{Key: "k", ThreadID: threadID})
	if err := holds(k.state, []events.Event{claimed}); err == nil || !strings.Contains(err.Error(), "on its own aggregate only") {
		t.Errorf("a key of the tenant: %v", err)
	}
	rejected := k.after(events.CommandRejectedType, events.TenantAggregate, "", events.CommandRejected{Command: "x", Code: events.NotFound, ThreadID: otherID})
	if err := holds(k.state, []events.Event{rejected}); err != nil {
		t.Errorf("a refusal on the tenant: %v", err)
	}
}
