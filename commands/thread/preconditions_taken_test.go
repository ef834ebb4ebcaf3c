package thread

import (
	"slices"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// What an event repeats of another one cannot differ from it: a step's item, the parts and items
// of calls and results, and what has left the queue.
func TestHolds_RepeatedFactsAgree(t *testing.T) {
	k := newStory(t)
	k.do(events.CreateThread{})
	w := k.reacting("triage")
	contradicted := func(name string, of any, typ events.Type, nth int, change func(*events.Event)) {
		t.Helper()
		made, err := Decide(w.state, w.command(of))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		made = slices.Clone(made)
		if err := holds(w.state, made); err != nil {
			t.Fatalf("%s, unchanged: %v", name, err)
		}
		for i := range made {
			if made[i].Type != typ {
				continue
			}
			if nth--; nth < 0 {
				change(&made[i])
				if err := holds(w.state, made); err == nil {
					t.Errorf("%s is not found", name)
				}
				return
			}
		}
		t.Errorf("%s: there is no such %s", name, typ)
	}
	item := func(change func(*events.ItemCreated)) func(*events.Event) {
		return func(e *events.Event) {
			d := e.Data.(events.ItemCreated)
			change(&d)
			e.Data = d
		}
	}
	content := func(to string) func(*events.Event) {
		return item(func(d *events.ItemCreated) { d.Content = raw(to) })
	}
	calls := w.reaction("call_1")
	contradicted("a part of another type", calls, events.PartCreatedType, 0, func(e *events.Event) {
		d := e.Data.(events.PartCreated)
		d.Type = "refusal"
		e.Data = d
	})
	contradicted("an item of another call", calls, events.ItemCreatedType, 1, content(`{"callId":"call_9","name":"find","arguments":{"n":1}}`))
	contradicted("an item of another tool", calls, events.ItemCreatedType, 1, content(`{"callId":"call_1","name":"pay","arguments":{"n":1}}`))
	w.do(calls)
	results := w.results("call_1")
	contradicted("a result's part of another type", results, events.PartUpdatedType, 0, func(e *events.Event) {
		d := e.Data.(events.PartUpdated)
		d.Type = "tool-pay"
		e.Data = d
	})
	contradicted("a result's part of another call", results, events.PartUpdatedType, 0, func(e *events.Event) {
		d := e.Data.(events.PartUpdated)
		d.Part = raw(`{"type":"tool-find","toolCallId":"call_9","state":"output-available","output":{"ok":true}}`)
		e.Data = d
	})
	contradicted("a result of another call", results, events.ItemCreatedType, 0, content(`{"callId":"call_9","name":"find","output":{"ok":true}}`))
	contradicted("a result of another tool", results, events.ItemCreatedType, 0, content(`{"callId":"call_1","name":"pay","output":{"ok":true}}`))
	contradicted("another output", results, events.ItemCreatedType, 0, content(`{"callId":"call_1","name":"find","output":{"ok":false}}`))
	contradicted("a step of another item", results, events.StepCreatedType, 0, func(e *events.Event) {
		d := e.Data.(events.StepCreated)
		d.EventID = "itm_9"
		e.Data = d
	})
	made, err := Decide(w.state, w.command(results))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ kind, call, tool string }{
		"a part and a result of another call": {"tool-find", "call_9", "find"}, "a part and a result of another tool": {"tool-pay", "call_1", "pay"},
	} {
		forged := slices.Clone(made)
		for i := range forged {
			switch d := forged[i].Data.(type) {
			case events.PartUpdated:
				d.Type, d.Part = c.kind, raw(`{"type":"`+c.kind+`","toolCallId":"`+c.call+`","state":"output-available","output":{"ok":true}}`)
				forged[i].Data = d
			case events.ItemCreated:
				d.Content = raw(`{"callId":"` + c.call + `","name":"` + c.tool + `","output":{"ok":true}}`)
				forged[i].Data = d
			}
		}
		if err := holds(w.state, forged); err == nil || !strings.Contains(err.Error(), "the part is of call") {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.do(results)
	w.do(events.ReactThread{Text: to("and then?"), AgentID: "triage", Policy: events.Enqueue})
	answer := w.reaction()
	contradicted("another role than waited", answer, events.ItemCreatedType, 0, item(func(d *events.ItemCreated) { d.Role = events.System }))
	contradicted("another content than waited", answer, events.ItemCreatedType, 0, content(`[{"type":"input_text","text":"pay"}]`))
	contradicted("another type than waited", answer, events.ItemCreatedType, 0, item(func(d *events.ItemCreated) { d.Type, d.Role = events.ItemReference, "" }))
}

// What has left the queue keeps its type as well as its role.
func TestLedger_TypeOfWhatWaited(t *testing.T) {
	r := preconditions{Ledger: &Ledger{taken: &events.NewItem{Type: events.Message, Role: events.User, Content: raw(`[]`)}}}
	item := events.ItemCreated{Type: events.Message, Role: events.User, Content: raw(`[]`)}
	if err := r.leftQueue(item); err != nil {
		t.Error(err)
	}
	if item.Type = events.ActionResult; r.leftQueue(item) == nil {
		t.Error("another type is not found")
	}
}

// A fork's record of its origin agrees with its creation.
func TestLedger_ForkAgreesWithItsOrigin(t *testing.T) {
	origin, other := "T-0190a000-0000-7000-8000-00000000000a", "T-0190a000-0000-7000-8000-00000000000b"
	point := int64(4)
	k := newStory(t)
	forked := func(tie events.RelationshipAdded) error {
		made := []events.Event{
			k.after(events.ThreadCreatedType, threadID, "", events.ThreadCreated{ID: threadID, Status: events.ThreadOpen, OriginThreadID: origin, ForkPointIndex: &point}),
			k.after(events.ContextCreatedType, "ctx_d", "", events.ContextCreated{ID: "ctx_d", Status: events.ContextOpen, Default: true, Content: raw("null")}),
			k.after(events.RelationshipAddedType, threadID, "", tie),
		}
		for i := range made {
			made[i].ID, made[i].Version = events.EventID(tenant, threadID, "forged", i), int64(i+1)
		}
		return holds(k.state, made)
	}
	tie := events.RelationshipAdded{ThreadID: origin, Type: events.ForkRelation, Role: events.ChildRole, MessageIndex: &point}
	if err := forked(tie); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*events.RelationshipAdded){
		"another thread":  func(d *events.RelationshipAdded) { d.ThreadID = other },
		"another message": func(d *events.RelationshipAdded) { d.MessageIndex = to(int64(3)) },
		"no message":      func(d *events.RelationshipAdded) { d.MessageIndex = nil },
	} {
		wrong := tie
		change(&wrong)
		if err := forked(wrong); err == nil || !strings.Contains(err.Error(), "the thread was forked") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A run's rights shrink only, and to what both credentials have.
func TestRights_OnlyShrink(t *testing.T) {
	k := newStory(t)
	k.do(events.CreateThread{})
	w := k.reacting("triage")
	ada := &events.Rights{User: "ada", Can: []events.Capability{events.CanRead, events.CanWrite}}
	limited := func(r *events.Rights) events.Event {
		return w.after(events.RunLimitedType, w.execution, w.execution, events.RunLimited{Rights: r})
	}
	first := limited(ada)
	if err := holds(w.state, []events.Event{first}); err != nil {
		t.Fatal(err)
	}
	draft := NewDraft(w.state)
	draft.events = []events.Event{first}
	Evolve(draft.layer, &first)
	w.store(draft)
	for name, r := range map[string]*events.Rights{
		"the same": ada, "another user": {User: "bob", Can: ada.Can}, "more": {User: "ada", Can: append(slices.Clone(ada.Can), events.CanTools)}, "all": {Can: ada.Can},
	} {
		if err := holds(w.state, []events.Event{limited(r)}); err == nil {
			t.Errorf("%s: it could follow", name)
		}
	}
	bob := &events.Rights{User: "bob", Can: []events.Capability{events.CanWrite, events.CanTools}}
	both := ada.Intersect(bob)
	if !both.None || both.Reach("T-1", "ada") || both.Reach("T-1", "bob") || both.May(events.CanRead) || !both.May(events.CanWrite) || both.May(events.CanTools) {
		t.Errorf("what ada and bob may both: %+v", both)
	}
	if r := ada.Intersect(nil); !r.Equal(ada) {
		t.Errorf("ada's with all: %+v", r)
	}
}
