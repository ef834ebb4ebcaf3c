package thread

import (
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// furnished is a thread with contexts, items of each kind, and executions of
// somebody outside.
func furnished(t *testing.T) *story {
	k := begun(t)
	k.do(events.CreateContext{ID: "ctx_a", Key: "a", Content: raw(`{"n":1}`)})
	k.do(events.AddMessage{ID: "itm_m", Role: events.FromAssistant, ToolCalls: twoCalls})
	k.do(message("itm_gone", "x"))
	k.do(events.DeleteMessage{ItemID: "itm_gone"})
	k.do(events.CreateExecution{ID: "exe_2", TriggerItemID: "itm_m", ReactionItemID: "itm_2"})
	return k
}

func TestHolds_Contexts(t *testing.T) {
	k := furnished(t)
	limit := raw(`"` + strings.Repeat("x", events.MaxStateBytes-2) + `"`)
	holdsBut(t, k, k.after(events.ContextCreatedType, "ctx_b", "", events.ContextCreated{ID: "ctx_b", Key: to("b"), Status: events.ContextOpen, Content: limit}),
		anotherSubject("its subject should be"), anotherCorrelation("its correlation should be"),
		forgery{"an id that is taken", func(e *events.Event) {
			e.Subject, e.Data = "ctx_a", events.ContextCreated{ID: "ctx_a", Status: events.ContextOpen}
		}, "exists already"},
		forgery{"no id", func(e *events.Event) { e.Subject, e.Data = "", events.ContextCreated{Status: events.ContextOpen} }, "has no id"},
		the("a state that is not the first", "begins as", func(d *events.ContextCreated) { d.Status = events.ContextStreaming }),
		the("the default", "no other", func(d *events.ContextCreated) { d.Default = true }),
		the("a key that is taken", "that of another context", func(d *events.ContextCreated) { d.Key = to("a") }),
		the("too much", "1048577 bytes", func(d *events.ContextCreated) { d.Content = append(limit[:len(limit):len(limit)], ' ') }))
	holdsBut(t, k, k.after(events.ContextResolvedType, "ctx_a", "", events.ContextResolved{Key: to("a")}),
		anotherSubject("not in the thread"), anotherCorrelation("its correlation should be"),
		the("another key", "the context's key is", func(d *events.ContextResolved) { d.Key = to("b") }),
		the("a creation", "it was there", func(d *events.ContextResolved) { d.Created = true }))
	holdsBut(t, k, k.after(events.ContextStatusChangedType, "ctx_a", "exe_1", events.ContextStatusChanged{From: events.ContextOpen, To: events.ContextStreaming}),
		anotherSubject("not in the thread"),
		the("another state before", "the context is open", func(d *events.ContextStatusChanged) { d.From, d.To = events.ContextStreaming, events.ContextOpen }),
		the("a move that there is not", "cannot become", func(d *events.ContextStatusChanged) { d.To = events.ContextOpen }))
	holdsBut(t, k, k.after(events.StateChangedType, "ctx_a", "", events.StateChanged{Content: limit}),
		anotherSubject("not in the thread"), anotherCorrelation("its correlation should be"),
		the("nothing", "either content or a patch", func(d *events.StateChanged) { d.Content = nil }),
		the("both", "either content or a patch", func(d *events.StateChanged) { d.Patch = raw(`{}`) }),
		the("too much", "1048577 bytes", func(d *events.StateChanged) { d.Content = append(limit[:len(limit):len(limit)], ' ') }))
	holdsBut(t, k, k.after(events.StateChangedType, "ctx_a", "", events.StateChanged{Patch: raw(`{"n":2}`)}),
		the("a patch that is none", "invalid patch", func(d *events.StateChanged) { d.Patch = raw(`{"n"`) }),
		the("a patch that is too much", "the content after it has", func(d *events.StateChanged) { d.Patch = raw(`{"m":` + string(limit) + `}`) }))
}

// Only the context that was made just before was made by the command.
func TestHolds_ResolvedContext(t *testing.T) {
	k := furnished(t)
	made, err := Decide(k.state, k.command(events.ResolveContext{Key: "c"}))
	if err != nil || len(made) != 2 {
		t.Fatal(made, err)
	}
	for _, f := range []forgery{
		{"another context", func(e *events.Event) {
			e.Subject, e.Data = "ctx_a", events.ContextResolved{Key: to("a"), Created: true}
		}, "it was there"},
		the("no key", "it was there", func(d *events.ContextResolved) { d.Key = nil }),
	} {
		list := append([]events.Event{}, made...)
		f.change(&list[1])
		if err := holds(k.state, list); err == nil || !strings.Contains(err.Error(), f.says) {
			t.Errorf("a resolution of %s: %v", f.name, err)
		}
	}
	whole := newStory(t)
	made, err = Decide(whole.state, whole.command(events.CreateThread{}))
	if err != nil {
		t.Fatal(err)
	}
	resolved := made[1]
	resolved.ID, resolved.Version = events.EventID(tenant, threadID, resolved.CommandID, 2), 3
	resolved.Type, resolved.Data = events.ContextResolvedType, events.ContextResolved{Key: to(""), Created: true}
	if err := holds(whole.state, append(made, resolved)); err == nil || !strings.Contains(err.Error(), "it was there") {
		t.Errorf("the default context is made with the thread, and not resolved: %v", err)
	}
}

func TestHolds_Items(t *testing.T) {
	k := furnished(t)
	ctx, next := k.state.ContextID(), k.state.NextItem
	m, _ := k.state.item("itm_m")
	plain := events.ItemCreated{ID: "itm_9", ContextID: ctx, Index: next, Type: events.Message, Role: events.User, Status: events.ItemStored, Content: raw(`[]`), ParentItemID: "itm_user"}
	holdsBut(t, k, k.after(events.ItemCreatedType, "itm_9", "exe_1", plain),
		anotherSubject("its subject should be"), anotherCorrelation("not in the thread"),
		forgery{"an id that is taken", func(e *events.Event) {
			d := plain
			d.ID = "itm_gone"
			e.Subject, e.Data = "itm_gone", d
		}, "exists already"},
		the("an unknown context", "not in the thread", func(d *events.ItemCreated) { d.ContextID = "ctx_9" }),
		the("a place that was given", "the next one is", func(d *events.ItemCreated) { d.Index-- }),
		the("a place left out", "the next one is", func(d *events.ItemCreated) { d.Index++ }),
		the("a parent that is gone", "not in the thread", func(d *events.ItemCreated) { d.ParentItemID = "itm_gone" }),
		the("an answer of another run", "answers with", func(d *events.ItemCreated) { d.ReactionItemID = "itm_reply" }),
		the("a message", "part of a message", func(d *events.ItemCreated) { d.CallOf = to(int64(0)) }))
	result := plain
	result.Type, result.Role, result.OutputOf = events.ActionResult, "", events.PartKey("stp_1", 0)
	for of, e := range map[string]events.Event{"none": k.after(events.ItemCreatedType, "itm_9", "", result), "somebody outside": k.after(events.ItemCreatedType, "itm_9", "exe_1", result)} {
		if err := holds(k.state, []events.Event{e}); err == nil || !strings.Contains(err.Error(), "only the result of a run's call") {
			t.Errorf("the output of a call of %s: %v", of, err)
		}
	}
	place := m.Index
	call := events.ItemCreated{ID: "itm_9", ContextID: ctx, Index: next, Type: events.ActionExecute, Status: events.ItemCompleted, ParentItemID: "itm_m", CallOf: &place}
	holdsBut(t, k, k.after(events.ItemCreatedType, "itm_9", "", call),
		the("no message", "part of a message", func(d *events.ItemCreated) { d.CallOf = nil }),
		the("another place", "its message stands at", func(d *events.ItemCreated) { d.CallOf = to(place + 1) }),
		the("another kind", "part of a message", func(d *events.ItemCreated) { d.Type = events.ActionResult }),
		the("another depth", "part of a message", func(d *events.ItemCreated) { d.Depth = 1 }),
		the("another context", "part of a message", func(d *events.ItemCreated) { d.ContextID = "ctx_a" }),
		the("a user's message", "part of a message", func(d *events.ItemCreated) { d.ParentItemID = "itm_user" }))
	holdsBut(t, k, k.after(events.ItemStatusChangedType, "itm_user", "exe_1", events.ItemStatusChanged{From: events.ItemStored, To: events.ItemPending}),
		forgery{"an item that is gone", func(e *events.Event) { e.Subject = "itm_gone" }, "not in the thread"}, anotherCorrelation("not in the thread"),
		the("another state before", "the item is stored", func(d *events.ItemStatusChanged) { d.From, d.To = events.ItemPending, events.ItemCompleted }),
		the("a move that there is not", "cannot become", func(d *events.ItemStatusChanged) { d.To = events.ItemStored }))
	holdsBut(t, k, k.after(events.MessageEditedType, "itm_m", "", events.MessageEdited{Index: m.Index, Silent: to(true), WasSilent: to(false)}),
		forgery{"an item that never was", func(e *events.Event) { e.Subject = "itm_9" }, "not in the thread"},
		forgery{"an item that is gone", func(e *events.Event) { e.Subject, e.Data = "itm_gone", events.MessageEdited{Content: raw(`[]`)} }, "not in the thread"},
		anotherCorrelation("not in the thread"),
		forgery{"an execution that answers with another item", func(e *events.Event) { e.Correlation = "exe_1" }, "writes item"},
		the("another place", "the item stands at", func(d *events.MessageEdited) { d.Index++ }),
		the("not what silent was", "the other way round", func(d *events.MessageEdited) { d.WasSilent = nil }),
		the("what silent was, and no change", "the other way round", func(d *events.MessageEdited) { d.Silent = nil }),
		the("that it was silent", "silent was false", func(d *events.MessageEdited) { d.WasSilent = to(true) }))
	holdsBut(t, k, k.after(events.MessageEditedType, "itm_m", "", events.MessageEdited{Parts: []events.PlacedPart{{}}}),
		forgery{"parts of a call", func(e *events.Event) { e.Subject = m.Calls[0] }, "which has no parts"})
	holdsBut(t, k, k.after(events.MessageEditedType, "itm_m", "", events.MessageEdited{Content: raw(`[]`)})) // old ones say no place
	holdsBut(t, k, k.after(events.MessageDeletedType, "itm_m", "", events.MessageDeleted{ContextID: ctx, Type: events.Message, Index: m.Index}),
		forgery{"an item that is gone", func(e *events.Event) { e.Subject = "itm_gone" }, "not in the thread"}, anotherCorrelation("its correlation should be"),
		the("another context", "the item is a message", func(d *events.MessageDeleted) { d.ContextID = "ctx_a" }),
		the("another kind", "the item is a message", func(d *events.MessageDeleted) { d.Type = events.ActionResult }),
		the("another place", "the item is a message", func(d *events.MessageDeleted) { d.Index++ }))
	holdsBut(t, k, k.after(events.HistoryTruncatedType, threadID, "", events.HistoryTruncated{FromIndex: next - 1}),
		anotherSubject("its subject should be"), anotherCorrelation("its correlation should be"),
		the("what is not there", "no item at", func(d *events.HistoryTruncated) { d.FromIndex = next }))
}

// What was truncated is gone for every command, in a draft as on the thread; what
// comes before it stays.
func TestHistoryTruncated_HidesItems(t *testing.T) {
	k := furnished(t)
	m, _ := k.state.item("itm_m")
	cut := k.after(events.HistoryTruncatedType, threadID, "", events.HistoryTruncated{FromIndex: m.Index})
	layer := k.state.layer()
	Evolve(layer, &cut)
	for _, s := range []*State{layer, Evolve(mustDecode(t, encoded(t, k.state)), &cut)} {
		for id, gone := range map[string]bool{"itm_user": false, "itm_m": true, "itm_gone": true} {
			if i, _ := s.item(id); i.Deleted != gone {
				t.Errorf("%s is deleted: %v", id, i.Deleted)
			}
		}
		for _, id := range m.Calls {
			if i, _ := s.item(id); !i.Deleted {
				t.Error("a call is still there")
			}
		}
		if s.NextItem != k.state.NextItem {
			t.Errorf("the next item takes the place %d", s.NextItem)
		}
	}
	if i, _ := k.state.item("itm_m"); i.Deleted {
		t.Error("a draft changed the state below")
	}
}

func TestHolds_Executions(t *testing.T) {
	k := furnished(t)
	ctx := k.state.ContextID()
	holdsBut(t, k, k.after(events.ExecutionCreatedType, "exe_9", "exe_9", events.ExecutionCreated{
		ID: "exe_9", ContextID: ctx, TriggerItemID: "itm_user", ReactionItemID: "itm_9", Status: events.Executing,
	}),
		anotherSubject("its subject should be"), anotherCorrelation("its correlation should be"),
		forgery{"an id that is taken", func(e *events.Event) {
			e.Subject, e.Correlation = "exe_1", "exe_1"
			e.Data = events.ExecutionCreated{ID: "exe_1", ContextID: ctx, TriggerItemID: "itm_user", ReactionItemID: "itm_9", Status: events.Executing}
		}, "exists already"},
		the("an unknown context", "not in the thread", func(d *events.ExecutionCreated) { d.ContextID = "ctx_9" }),
		the("a trigger that is gone", "not in the thread", func(d *events.ExecutionCreated) { d.TriggerItemID = "itm_gone" }),
		the("no reaction", "no reaction item", func(d *events.ExecutionCreated) { d.ReactionItemID = "" }),
		the("a state that is not the first", "begins as", func(d *events.ExecutionCreated) { d.Status = events.ExecutionFailed }))
	k.do(message("itm_reply", "x"))
	ended := events.ExecutionStatusChanged{From: events.Executing, To: events.ExecutionFailed, ReactionItemID: "itm_reply"}
	holdsBut(t, k, k.after(events.ExecutionStatusChangedType, "exe_1", "exe_1", ended),
		anotherCorrelation("its correlation should be"),
		forgery{"an unknown execution", func(e *events.Event) { e.Subject, e.Correlation = "exe_9", "exe_9" }, "not in the thread"},
		the("another state before", "the execution is executing", func(d *events.ExecutionStatusChanged) { d.From = events.ExecutionCompleted }),
		the("a move that there is not", "cannot become", func(d *events.ExecutionStatusChanged) { d.To = events.Executing }),
		the("another item", "writes item", func(d *events.ExecutionStatusChanged) { d.ReactionItemID = "itm_user" }),
		the("an item that never was", "not in the thread", func(d *events.ExecutionStatusChanged) { d.ReactionItemID = "itm_9" }),
		the("an item that shows so", "shows so already", func(d *events.ExecutionStatusChanged) { d.To = events.ExecutionCompleted }))
	holdsBut(t, k, k.after(events.StepCreatedType, "stp_9", "exe_1", events.StepCreated{ID: "stp_9", ExecutionID: "exe_1", EventID: "itm_e", Status: events.StepRunning}),
		anotherSubject("its subject should be"), anotherCorrelation("its correlation should be"),
		forgery{"an id that is taken", func(e *events.Event) {
			e.Subject, e.Data = "stp_1", events.StepCreated{ID: "stp_1", ExecutionID: "exe_1", EventID: "itm_e", Status: events.StepRunning}
		}, "exists already"},
		forgery{"an unknown execution", func(e *events.Event) {
			e.Correlation, e.Data = "exe_9", events.StepCreated{ID: "stp_9", ExecutionID: "exe_9", EventID: "itm_e", Status: events.StepRunning}
		}, "not in the thread"},
		the("no item", "names no item", func(d *events.StepCreated) { d.EventID = "" }),
		the("a state that is not the first", "begins as", func(d *events.StepCreated) { d.Status = events.StepFailed }))
	holdsBut(t, k, k.after(events.StepStatusChangedType, "stp_1", "exe_1", events.StepStatusChanged{ExecutionID: "exe_1", From: events.StepRunning, To: events.StepFailed, ReactionItemID: "itm_reply"}),
		anotherSubject("not in the thread"), anotherCorrelation("its correlation should be"),
		the("another execution", "the step is of execution", func(d *events.StepStatusChanged) { d.ExecutionID = "exe_2" }),
		the("another state before", "the step is running", func(d *events.StepStatusChanged) { d.From = events.StepCompleted }),
		the("a move that there is not", "cannot become", func(d *events.StepStatusChanged) { d.To = events.StepRunning }),
		the("an item, and no failure", "changes no item", func(d *events.StepStatusChanged) { d.To = events.StepCompleted }),
		the("another item", "writes item", func(d *events.StepStatusChanged) { d.ReactionItemID = "itm_user" }))
	had, fresh := events.PartKey("stp_1", 0), events.PartKey("stp_1", 1)
	holdsBut(t, k, k.after(events.PartUpdatedType, had, "exe_1", events.PartUpdated{Key: had, StepID: "stp_1", Idx: 0, Part: raw(`{}`)}),
		anotherSubject("its subject should be"), anotherCorrelation("its correlation should be"),
		the("an unknown step", "not in the thread", func(d *events.PartUpdated) { d.StepID = "stp_9" }),
		the("another key", "the part's key", func(d *events.PartUpdated) { d.Key = fresh }),
		forgery{"a part that it has not", func(e *events.Event) {
			e.Subject, e.Data = fresh, events.PartUpdated{Key: fresh, StepID: "stp_1", Idx: 1}
		}, "against what it says"})
	holdsBut(t, k, k.after(events.PartCreatedType, fresh, "exe_1", events.PartCreated{Key: fresh, StepID: "stp_1", Idx: 1, Part: raw(`{}`)}),
		anotherSubject("its subject should be"), anotherCorrelation("its correlation should be"),
		the("an unknown step", "not in the thread", func(d *events.PartCreated) { d.StepID = "stp_9" }),
		the("another key", "the part's key", func(d *events.PartCreated) { d.Key = had }),
		forgery{"a part that it has", func(e *events.Event) {
			e.Subject, e.Data = had, events.PartCreated{Key: had, StepID: "stp_1", Idx: 0}
		}, "against what it says"})
	holdsBut(t, k, k.after(events.TraceRecordedType, "exe_1", "exe_1", events.TraceRecorded{Kind: events.TraceLog, Text: "x", ExecutionID: "exe_1"}),
		anotherSubject("its subject should be"), anotherCorrelation("its correlation should be"),
		forgery{"an unknown execution", func(e *events.Event) {
			e.Subject, e.Correlation, e.Data = "exe_9", "exe_9", events.TraceRecorded{Kind: events.TraceLog, Text: "x", ExecutionID: "exe_9"}
		}, "not in the thread"})
	holdsBut(t, k, k.after(events.TraceRecordedType, threadID, "", events.TraceRecorded{Kind: events.TraceLog, Text: "x"}), anotherSubject("its subject should be"))
	holdsBut(t, k, k.after(events.SkillActivatedType, threadID, "exe_1", events.SkillActivated{Name: "refunds"}),
		anotherSubject("its subject should be"), anotherCorrelation("not in the thread"))
	finished := k.after(events.ThreadFinishedType, threadID, "exe_1", events.ThreadFinished{ExecutionID: "exe_1", Status: events.Executing})
	if err := holds(k.state, []events.Event{finished}); err == nil || !strings.Contains(err.Error(), "not over") {
		t.Errorf("an end of what executes: %v", err)
	}
	k.do(events.SetExecutionStatus{ExecutionID: "exe_1", To: events.ExecutionFailed})
	holdsBut(t, k, k.after(events.ThreadFinishedType, threadID, "exe_1", events.ThreadFinished{ExecutionID: "exe_1", Status: events.ExecutionFailed}),
		anotherSubject("its subject should be"), anotherCorrelation("its correlation should be"),
		forgery{"an unknown execution", func(e *events.Event) {
			e.Correlation, e.Data = "exe_9", events.ThreadFinished{ExecutionID: "exe_9"}
		}, "not in the thread"},
		the("another end", "not over", func(d *events.ThreadFinished) { d.Status = events.ExecutionCompleted }))
	k.do(events.FinishThread{ExecutionID: "exe_1"})
	finished = k.after(events.ThreadFinishedType, threadID, "exe_1", events.ThreadFinished{ExecutionID: "exe_1", Status: events.ExecutionFailed})
	if err := holds(k.state, []events.Event{finished}); err == nil || !strings.Contains(err.Error(), "finished twice") {
		t.Errorf("an end of what is finished: %v", err)
	}
}
