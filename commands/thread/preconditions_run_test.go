package thread

import (
	"testing"

	"github.com/skein-threads/skein/events"
)

// noRun are forgeries of which run an event is about: none, one of somebody outside,
// and one that has ended.
func noRun() []forgery {
	about := func(id string) func(*events.Event) {
		return func(e *events.Event) {
			if e.Subject == e.Correlation {
				e.Subject = id
			}
			e.Correlation = id
		}
	}
	return []forgery{
		{"no execution", about("exe_9"), "not in the thread"},
		{"an execution of somebody outside", about("exe_b"), "not run by Skein"},
		{"one that has ended", about("exe_z"), "is completed"},
	}
}

// inWork is a run at work, after one that has ended, next to an execution of
// somebody outside, with calls that wait, are open and are done.
func inWork(t *testing.T) *work {
	k := newStory(t)
	k.do(events.CreateThread{AgentID: "triage"})
	k.do(events.ReactThread{Text: to("first"), ExecutionID: "exe_z", ReactionItemID: "itm_z"})
	w := &work{story: k, execution: "exe_z"}
	w.claim()
	w.do(w.reaction())
	k.do(events.CreateExecution{ID: "exe_b", TriggerItemID: w.trigger("exe_z")})
	k.do(events.ReactThread{Text: to("hello"), ExecutionID: "exe_a", ReactionItemID: "itm_a"})
	w = &work{story: k, execution: "exe_a"}
	w.claim()
	d := w.reaction("call_1", "call_2", "call_3", "call_4")
	d.Approve = []string{"call_1"}
	w.do(d)
	w.do(w.results("call_3"))
	w.do(HoldCalls{ExecutionID: "exe_a", Token: 1, StepID: d.StepID, Wait: []string{"call_4"}})
	return w
}

func TestHolds_Runs(t *testing.T) {
	w := inWork(t)
	k, step := w.story, w.run().StepID
	run := func(typ events.Type, data any) events.Event { return k.after(typ, "exe_a", "exe_a", data) }
	holdsBut(t, k, run(events.RunClaimedType, events.RunClaimed{Worker: "w", Token: 2}), append(noRun(),
		anotherCorrelation("its correlation should be"),
		the("an old token", "its token is 1", func(d *events.RunClaimed) { d.Token = 1 }),
		the("a token left out", "its token is 3", func(d *events.RunClaimed) { d.Token = 3 }))...)
	holdsBut(t, k, run(events.RunSuspendedType, events.RunSuspended{Calls: []string{"call_1", "call_2"}}), append(noRun(),
		anotherCorrelation("its correlation should be"),
		the("no call", "names no call", func(d *events.RunSuspended) { d.Calls = nil }),
		the("a call that is done", "or has ended", func(d *events.RunSuspended) { d.Calls = []string{"call_2", "call_3"} }),
		the("an unknown call", "none of the open step", func(d *events.RunSuspended) { d.Calls = []string{"call_9"} }))...)
	holdsBut(t, k, run(events.RunResumedType, events.RunResumed{Calls: []string{"call_4"}}), append(noRun(),
		anotherCorrelation("its correlation should be"),
		the("no call", "names no call", func(d *events.RunResumed) { d.Calls = nil }),
		the("a call that does not wait", "does not wait", func(d *events.RunResumed) { d.Calls = []string{"call_4", "call_2"} }),
		the("a call that waits for a person", "does not wait for another thread", func(d *events.RunResumed) { d.Calls = []string{"call_1"} }),
		the("an unknown call", "none of the open step", func(d *events.RunResumed) { d.Calls = []string{"call_9"} }))...)
	holdsBut(t, k, run(events.RunStoppedType, events.RunStopped{Abort: true, Discard: true}), append(noRun(),
		anotherCorrelation("its correlation should be"),
		the("no abort", "discards what it streamed", func(d *events.RunStopped) { d.Abort = false }),
		the("both", "not stopped, too", func(d *events.RunStopped) { d.Now = true }))...)
	holdsBut(t, k, run(events.RunStoppedType, events.RunStopped{Now: true}))
	holdsBut(t, k, run(events.RunStoppedType, events.RunStopped{Abort: true}))
	tool := func(call, name string) []events.WaitFor {
		return []events.WaitFor{{Kind: events.ToolWorker, Name: name, CallID: call}}
	}
	holdsBut(t, k, run(events.RunAwaitedType, events.RunAwaited{For: tool("call_2", "find")}), append(noRun(),
		anotherCorrelation("its correlation should be"),
		the("what it waits for already", "waits for that already", func(d *events.RunAwaited) { d.For = nil }),
		the("a call that is over", "or is over", func(d *events.RunAwaited) { d.For = tool("call_3", "find") }),
		the("an unknown call", "none of the open step", func(d *events.RunAwaited) { d.For = tool("call_9", "find") }),
		the("another tool", "none of the open step", func(d *events.RunAwaited) { d.For = tool("call_2", "pay") }),
		the("a reactor that has answered", "no step waits", func(d *events.RunAwaited) { d.For = []events.WaitFor{{Kind: events.ReactorWorker, Name: "triage"}} }))...)
	asked := events.ApprovalRequested{CallID: "call_2", StepID: step, Name: "find"}
	holdsBut(t, k, k.after(events.ApprovalRequestedType, "call_2", "exe_a", asked), append(noRun(),
		anotherSubject("its subject should be"),
		forgery{"a call that waits", func(e *events.Event) {
			e.Subject, e.Data = "call_1", events.ApprovalRequested{CallID: "call_1", Name: "find"}
		}, "waits already"},
		forgery{"a call that waits for another thread", func(e *events.Event) {
			e.Subject, e.Data = "call_4", events.ApprovalRequested{CallID: "call_4", Name: "find"}
		}, "waits already"},
		forgery{"a call that is over", func(e *events.Event) {
			e.Subject, e.Data = "call_3", events.ApprovalRequested{CallID: "call_3", Name: "find"}
		}, "is over"},
		forgery{"an unknown call", func(e *events.Event) { e.Subject, e.Data = "call_9", events.ApprovalRequested{CallID: "call_9"} }, "none of the open step"},
		the("another tool", "another tool", func(d *events.ApprovalRequested) { d.Name = "pay" }),
		the("another step", "the open step is", func(d *events.ApprovalRequested) { d.StepID = "stp_9" }))...)
	asked.StepID = ""
	holdsBut(t, k, k.after(events.ApprovalRequestedType, "call_2", "exe_a", asked))
	for typ, data := range map[events.Type]func(string) any{
		events.ApprovalGrantedType:  func(id string) any { return events.ApprovalGranted{CallID: id} },
		events.ApprovalDeniedType:   func(id string) any { return events.ApprovalDenied{CallID: id} },
		events.ApprovalResolvedType: func(id string) any { return events.ApprovalResolved{CallID: id, Result: raw(`1`)} },
	} {
		holdsBut(t, k, k.after(typ, "call_1", "exe_a", data("call_1")), append(noRun(),
			anotherSubject("its subject should be"),
			forgery{"a call that does not wait", func(e *events.Event) { e.Subject, e.Data = "call_2", data("call_2") }, "does not wait"},
			forgery{"a call that waits for another thread", func(e *events.Event) { e.Subject, e.Data = "call_4", data("call_4") }, "does not wait for a person"},
			forgery{"an unknown call", func(e *events.Event) { e.Subject, e.Data = "call_9", data("call_9") }, "does not wait"})...)
	}
	holdsBut(t, k, k.after(events.ApprovalResolvedType, "call_1", "exe_a", events.ApprovalResolved{CallID: "call_1", Result: raw(`1`)}),
		the("no result", "no result", func(d *events.ApprovalResolved) { d.Result = nil }))
	out := events.ItemCreated{ID: "itm_o", ContextID: k.state.ContextID(), Index: k.state.NextItem, Type: events.ActionResult, Status: events.ItemCompleted, OutputOf: events.PartKey(step, 1)}
	holdsBut(t, k, k.after(events.ItemCreatedType, "itm_o", "exe_a", out),
		the("another kind", "only the result of a run's call", func(d *events.ItemCreated) { d.Type = events.ActionExecute }))
	turn := run(events.RunTurnedType, events.RunTurned{Side: events.SideA})
	if err := holds(k.state, []events.Event{turn}); err == nil || !contains(err, "dual_ai") {
		t.Errorf("a turn of an agent without sides: %v", err)
	}
	early := run(events.RunParkedType, events.RunParked{Token: 1, Calls: []string{"call_1", "call_4"}})
	if err := holds(k.state, []events.Event{early}); err == nil || !contains(err, "calls are left") {
		t.Errorf("parked with an open call: %v", err)
	}
	soon := run(events.RunRequestedType, events.RunRequested{AgentID: "triage"})
	if err := holds(k.state, []events.Event{soon}); err == nil || !contains(err, "does not wait") {
		t.Errorf("asked for while it does not wait: %v", err)
	}
}

// A run at whose step nobody has answered waits for its reactor.
func TestHolds_AwaitedReactor(t *testing.T) {
	w := atWork(t)
	reactor := events.RunAwaited{For: []events.WaitFor{{Kind: events.ReactorWorker, Name: "triage"}}}
	holdsBut(t, w.story, w.after(events.RunAwaitedType, "exe_a", "exe_a", reactor))
	k := newStory(t)
	k.do(events.CreateThread{AgentID: "triage"})
	k.do(events.ReactThread{Text: to("hello"), ExecutionID: "exe_a"})
	if err := holds(k.state, []events.Event{k.after(events.RunAwaitedType, "exe_a", "exe_a", reactor)}); err == nil || !contains(err, "no step waits") {
		t.Errorf("awaited without a step: %v", err)
	}
}

func TestHolds_ParkedRuns(t *testing.T) {
	w := atWork(t)
	w.do(w.reaction("call_1", "call_2"))
	step := w.run().StepID
	for _, id := range []string{"call_1", "call_2"} { // both wait, and the run is not parked yet
		e := w.after(events.ApprovalRequestedType, id, "exe_a", events.ApprovalRequested{CallID: id, StepID: step, Name: "find"})
		Evolve(w.state, &e)
	}
	w.encoded = nil
	parked := events.RunParked{Token: 1, Calls: []string{"call_1", "call_2"}}
	holdsBut(t, w.story, w.after(events.RunParkedType, "exe_a", "exe_a", parked),
		anotherCorrelation("its correlation should be"), anotherSubject("not in the thread"),
		the("another token", "its token is", func(d *events.RunParked) { d.Token = 2 }),
		the("a call left out", "the calls that wait are", func(d *events.RunParked) { d.Calls = d.Calls[:1] }),
		the("none", "the calls that wait are", func(d *events.RunParked) { d.Calls = nil }))
	e := w.after(events.RunParkedType, "exe_a", "exe_a", parked)
	Evolve(w.state, &e)
	holdsBut(t, w.story, w.after(events.RunRequestedType, "exe_a", "exe_a", events.RunRequested{AgentID: "triage"}),
		anotherCorrelation("its correlation should be"), anotherSubject("its correlation should be"),
		the("no agent", "names no agent", func(d *events.RunRequested) { d.AgentID = "" }),
		the("another agent", "another run", func(d *events.RunRequested) { d.AgentID = "billing" }),
		the("calls", "another run", func(d *events.RunRequested) { d.Calls = []events.ToolCall{{}} }),
		the("a parent", "another run", func(d *events.RunRequested) { d.Parent = &events.Parent{} }),
		the("that it is made once", "another run", func(d *events.RunRequested) { d.Once = true }))
}

// A run without calls that wait is not parked.
func TestHolds_ParkedWithoutCalls(t *testing.T) {
	w := atWork(t)
	if err := holds(w.state, []events.Event{w.after(events.RunParkedType, "exe_a", "exe_a", events.RunParked{Token: 1})}); err == nil || !contains(err, "the calls that wait are") {
		t.Errorf("parked for nothing: %v", err)
	}
}

// The runtime takes an execution up when it is created; one that takes up a failed
// one answers the same item.
func TestHolds_StartedRuns(t *testing.T) {
	k := newStory(t)
	k.do(events.CreateThread{AgentID: "triage"})
	k.do(events.QueueTool{CallID: "call_f", Name: "find"})
	k.do(events.CancelRun{}) // exe of call_f has failed
	failed := k.state.head.Failed
	made, err := Decide(k.state, k.command(events.RetryRun{}))
	if err != nil {
		t.Fatal(err)
	}
	last := len(made) - 1
	check := func(list []events.Event, forgeries ...forgery) {
		t.Helper()
		if err := holds(k.state, list); err != nil {
			t.Error(err)
		}
		for _, f := range forgeries {
			forged := append([]events.Event{}, list...)
			f.change(&forged[len(forged)-1])
			if err := holds(k.state, forged); err == nil || !contains(err, f.says) {
				t.Errorf("a run with %s: %v", f.name, err)
			}
		}
	}
	begun := made[last-1].Data.(events.ExecutionCreated)
	check(made,
		anotherCorrelation("its correlation should be"), anotherSubject("its correlation should be"),
		forgery{"an unknown execution", func(e *events.Event) { e.Subject, e.Correlation = "exe_9", "exe_9" }, "not in the thread"},
		forgery{"an execution that is over", func(e *events.Event) { e.Subject, e.Correlation = failed, failed }, "is failed"},
		the("no agent", "names no agent", func(d *events.RunRequested) { d.AgentID = "" }),
		the("a failed one that never was", "not in the thread", func(d *events.RunRequested) { d.RetryOf = "exe_9" }),
		the("itself as the failed one", "is executing", func(d *events.RunRequested) { d.RetryOf = begun.ID }),
		the("a call of another item", "is asked for by item", func(d *events.RunRequested) {
			d.Calls = []events.ToolCall{d.Calls[0], {CallID: "call_x", ItemID: "itm_x"}}
		}))
	k.do(message("itm_u", "x"))
	outside := func(id string) []events.Event {
		c := k.command(events.CreateExecution{ID: id, TriggerItemID: "itm_u"})
		list, err := Decide(k.state, c)
		if err != nil {
			t.Fatal(err)
		}
		e := list[0]
		e.ID, e.Type, e.Version = events.EventID(tenant, threadID, c.ID, 1), events.RunRequestedType, e.Version+1
		e.Data = events.RunRequested{AgentID: "triage"}
		return append(list, e)
	}
	if err := holds(k.state, outside("exe_o")); err == nil || !contains(err, "the thread is open") {
		t.Errorf("a run of a thread that does not stream: %v", err)
	}
	k.do(events.SetThreadStatus{To: events.ThreadStreaming})
	check(outside("exe_o"),
		the("a failed one with another item", "answers item", func(d *events.RunRequested) { d.RetryOf = failed }))
	late := outside("exe_p")
	k.do(events.CreateExecution{ID: "exe_p", TriggerItemID: "itm_u"})
	late[1].ID, late[1].CommandID, late[1].Version = events.EventID(tenant, threadID, "forged", 0), "forged", k.state.Version+1
	if err := holds(k.state, late[1:]); err == nil || !contains(err, "when it is created") {
		t.Errorf("a run of what was created before: %v", err)
	}
	other := outside("exe_q")
	other[0].ID = events.EventID(tenant, threadID, other[0].CommandID, 0)
	forgedOther := other[1]
	forgedOther.Subject, forgedOther.Correlation = "exe_p", "exe_p"
	if err := holds(k.state, []events.Event{other[0], forgedOther}); err == nil || !contains(err, "when it is created") {
		t.Errorf("a run of another than was created: %v", err)
	}
	w := atWork(t) // one is active
	k = w.story
	k.do(message("itm_u", "x"))
	if err := holds(k.state, outside("exe_o")); err == nil || !contains(err, "is in progress") {
		t.Errorf("a second run: %v", err)
	}
}
