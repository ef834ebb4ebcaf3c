package thread

import (
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// forged is what a forger could add to a thread: an event, and what is wrong with
// it.
type forged struct {
	typ         events.Type
	subject     string
	correlation string
	data        any
	says        string // part of the fault
}

// held returns the fault of one event after the story.
func held(k *story, f forged) error {
	e := events.Event{
		ID: events.EventID(tenant, k.thread, "forged", 0), Type: f.typ, Time: k.now + 1000, Subject: f.subject, Correlation: f.correlation,
		Tenant: tenant, ThreadID: k.thread, Version: k.state.Version + 1, CommandID: "forged", Data: f.data,
	}
	return holds(k.state, []events.Event{e})
}

// What no decision would have made is refused by the event's precondition, and
// the fault says why.
func TestHolds_RefusesWhatCouldNotFollow(t *testing.T) {
	k := begun(t)
	k.do(stored("/d/f", "x"))
	k.do(events.CreateDirectory{Path: "/e"})
	for name, f := range map[string]forged{
		"a grant without a request":     {events.ApprovalGrantedType, "call_1", "exe_1", events.ApprovalGranted{CallID: "call_1"}, "not run by Skein"},
		"a claim of no run":             {events.RunClaimedType, "exe_9", "exe_9", events.RunClaimed{Worker: "w", Token: 1}, "not in the thread"},
		"a file that is not there":      {events.FileDeletedType, threadID, "", events.FileDeleted{Path: "/nothing"}, "no file"},
		"a full directory":              {events.DirectoryRemovedType, threadID, "", events.DirectoryRemoved{Path: "/d"}, "holds 1"},
		"a directory that is not there": {events.DirectoryRemovedType, threadID, "", events.DirectoryRemoved{Path: "/x"}, "no directory"},
		"a path that goes back":         {events.DirectoryCreatedType, threadID, "", events.DirectoryCreated{Path: "/d/../e"}, ".."},
		"a key that is not held":        {events.KeyReleasedType, threadID, "", events.KeyReleased{Key: "k", ThreadID: threadID}, "does not hold"},
		"an effect never scheduled":     {events.EffectStartedType, effectID, effectID, events.EffectStarted{Firing: 1, Attempt: 1, Claim: 1}, "not in the thread"},
		"an index used twice":           {events.ItemCreatedType, "itm_9", "", events.ItemCreated{ID: "itm_9", ContextID: k.state.Default, Index: 0, Type: "message", Status: "stored"}, "its place is 0"},
		"an unknown parent":             {events.ItemCreatedType, "itm_9", "", events.ItemCreated{ID: "itm_9", ContextID: k.state.Default, Index: 1, Type: "message", Status: "stored", ParentItemID: "itm_8"}, "itm_8"},
		"a second default context":      {events.ContextCreatedType, "ctx_9", "", events.ContextCreated{ID: "ctx_9", Status: "open", Default: true, Content: raw("null")}, "no other"},
		"a definition on a thread":      {events.DefinitionChangedType, "agent/a", "", events.DefinitionChanged{Kind: "agent", Name: "a", Version: 1}, "tenant's own"},
		"a chunk":                       {events.ChunkEmittedType, "exe_1", "exe_1", events.ChunkEmitted{ExecutionID: "exe_1", Attempt: 1, Type: "finish"}, "never in the log"},
		"a steering of no run":          {events.ItemCreatedType, "itm_9", "", events.ItemCreated{ID: "itm_9", ContextID: k.state.Default, Index: k.state.NextItem, Type: "message", Status: "stored", ReactionItemID: "itm_8"}, "answers with"},
		"a queued id that is taken":     {events.QueuePushedType, "q-9", "", events.QueuePushed{ID: "q-9", Item: raw(`{"type":"message"}`), MessageID: k.state.Messages, ExecutionID: "exe_1", ReactionItemID: "itm_9"}, "exists already"},
		"a removal of nothing":          {events.QueueRemovedType, "q-9", "", events.QueueRemoved{ID: "q-9"}, "does not wait"},
		"an edit of nothing":            {events.QueueEditedType, "q-9", "", events.QueueEdited{ID: "q-9", Item: raw(`{"type":"message"}`)}, "does not wait"},
		"a move of nothing":             {events.QueueMovedType, "q-9", "", events.QueueMoved{ID: "q-9"}, "does not wait"},
		"an end that keeps what runs":   {events.LifecycleDeletedType, threadID, "", events.LifecycleDeleted{}, "in progress"},
	} {
		if err := held(k, f); err == nil || !strings.Contains(err.Error(), f.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An event's id, time and command are held to the command that made it.
func TestHolds_Envelope(t *testing.T) {
	k := begun(t)
	c := k.command(message("itm_a", "a"), message("itm_b", "b"))
	for name, change := range map[string]func(list []events.Event){
		"another id":          func(list []events.Event) { list[1].ID = list[0].ID },
		"another time":        func(list []events.Event) { list[1].Time++ },
		"another actor":       func(list []events.Event) { list[1].Actor = "user:eve" },
		"another cause":       func(list []events.Event) { list[1].Causation = list[0].ID },
		"no place in a list":  func(list []events.Event) { list[1].CommandIndex = 0 },
		"an earlier place":    func(list []events.Event) { list[0].CommandIndex = 3 },
		"no command":          func(list []events.Event) { list[0].CommandID = "" },
		"a subject of others": func(list []events.Event) { list[0].Subject = "itm_user" },
	} {
		made, err := Decide(k.state, c)
		if err != nil {
			t.Fatal(err)
		}
		if err := holds(k.state, made); err != nil {
			t.Fatal(err)
		}
		if change(made); holds(k.state, made) == nil {
			t.Errorf("%s was let pass", name)
		}
	}
}

// A command that was done before is found where it is done again, within the 24
// hours for which the thread remembers it.
func TestLedger_CommandTwice(t *testing.T) {
	k := begun(t)
	c, err := events.NewCommit(k.state.Chain, []events.Event{{
		ID: events.EventID(tenant, threadID, "cmd-1", 0), Type: events.ProfileChangedType, Time: k.now + 1000, Subject: threadID,
		Tenant: tenant, ThreadID: threadID, Version: k.state.Version + 1, CommandID: "cmd-1", Data: events.ProfileChanged{Title: to("x")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var faults []error
	k.ledger.Commit(c, func(_ *events.Event, err error) { faults = append(faults, err) })
	if len(faults) != 1 || !strings.Contains(faults[0].Error(), "done before") {
		t.Errorf("faults %v", faults)
	}
}
