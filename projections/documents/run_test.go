package documents

import (
	"testing"

	"github.com/skein-threads/skein/events"
)

// TestExecution_ShowsItsRun: who runs an execution, what it waits for, who stopped it.
func TestExecution_ShowsItsRun(t *testing.T) {
	h := newHistory(t, 20)
	h.do(events.CreateThread{})
	ctx := h.state.Default
	h.do(message("i1", "x"))
	h.do(events.CreateExecution{ID: "e", TriggerItemID: "i1", ReactionItemID: "r"})
	run := func(typ events.Type, d any) {
		h.add(events.Event{Type: typ, Subject: "e", Correlation: "e", Data: d})
	}
	is := func(fields string) {
		t.Helper()
		shows(t, h, map[Place]string{{Kind: Executions, ID: "e"}: `{"id":"e","threadId":"$T","contextId":"` + ctx + `","triggerItemId":"i1","reactionItemId":"r","status":"executing",
			"createdAt":` + at + `3.123Z",` + fields + `}`})
	}
	parent := events.Parent{ThreadID: h.id, ExecutionID: "p", CallID: "c"}
	run(events.RunRequestedType, events.RunRequested{AgentID: "a", RetryOf: "e0", Parent: &parent})
	run(events.RunClaimedType, events.RunClaimed{Worker: "w", Token: 1, Definitions: []events.DefinitionVersion{{Kind: events.AgentKind, Name: "a", Version: 2}}})
	const asked = `"agentId":"a","retryOf":"e0","parent":{"threadId":"$T","executionId":"p","callId":"c"}`
	const claimed = `"worker":"w","token":1,"definitions":[{"kind":"agent","name":"a","version":2}]`
	is(asked + `,` + claimed + `,"version":6,"seq":15`)
	run(events.RunAwaitedType, events.RunAwaited{For: []events.WaitFor{{Kind: events.ToolWorker, Name: "t", CallID: "c1"}}})
	is(asked + `,` + claimed + `,"waitingFor":[{"kind":"tool","name":"t","callId":"c1"}],"version":7,"seq":18`)
	run(events.RunParkedType, events.RunParked{Token: 1, Calls: []string{"c1", "c2"}})
	is(asked + `,` + claimed + `,"waitingFor":[{"kind":"tool","name":"t","callId":"c1"}],"waiting":["c1","c2"],"version":8,"seq":21`)
	// What a retry continues stays, when it is requested again.
	run(events.RunRequestedType, events.RunRequested{AgentID: "b"})
	is(`"agentId":"b","retryOf":"e0",` + claimed + `,"waitingFor":[{"kind":"tool","name":"t","callId":"c1"}],"version":9,"seq":24`)
	run(events.RunClaimedType, events.RunClaimed{Worker: "v", Token: 2})
	is(`"agentId":"b","retryOf":"e0","worker":"v","token":2,"version":10,"seq":27`)
	run(events.RunStoppedType, events.RunStopped{By: events.SideB})
	run(events.RunStoppedType, events.RunStopped{Abort: true})
	is(`"agentId":"b","retryOf":"e0","worker":"v","token":2,"stopped":true,"stoppedBy":"b","version":12,"seq":33`)
}

// TestExecution_CountsStepsOfBothSides: a dual_ai agent's steps, by side.
func TestExecution_CountsStepsOfBothSides(t *testing.T) {
	h := newHistory(t, 21)
	h.do(events.CreateThread{})
	h.do(message("i1", "x"), events.CreateExecution{ID: "e", TriggerItemID: "i1"})
	for i, side := range []events.Side{events.SideA, events.SideB, events.SideA, "", events.SideA} {
		id := "s" + PageID(int64(i))
		h.add(events.Event{Type: events.StepCreatedType, Subject: id, Data: events.StepCreated{ID: id, ExecutionID: "e", Iteration: int64(i), EventID: "r", Side: side}})
	}
	e := fold(t, h, Until{}).Get(Place{Kind: Executions, Thread: ThreadName(tenant, h.id), ID: "e"}).(*events.Execution)
	if e.StepCount != 5 || e.SideASteps != 3 || e.SideBSteps != 1 {
		t.Errorf("%d steps, %d of side a, %d of side b", e.StepCount, e.SideASteps, e.SideBSteps)
	}
}

// TestExecution_Approvals: each answer is shown with the request that it answers, and the
// first one stands. What was not answered when the run ends is withdrawn by nobody.
func TestExecution_Approvals(t *testing.T) {
	h := newHistory(t, 22)
	h.do(events.CreateThread{})
	h.do(message("i1", "x"), events.CreateExecution{ID: "e", TriggerItemID: "i1"})
	do := func(typ events.Type, actor string, d any) {
		h.add(events.Event{Type: typ, Subject: "e", Correlation: "e", Actor: actor, Data: d})
	}
	for _, call := range []string{"c1", "c2", "c3", "c4"} {
		do(events.ApprovalRequestedType, "worker", events.ApprovalRequested{CallID: call, StepID: "s", Name: "pay", Arguments: raw(`{"n":1}`), Reason: events.ApprovalManual})
	}
	do(events.ApprovalGrantedType, "ann", events.ApprovalGranted{CallID: "c1"})
	do(events.ApprovalDeniedType, "bob", events.ApprovalDenied{CallID: "c2"})
	do(events.ApprovalResolvedType, "cy", events.ApprovalResolved{CallID: "c3", Result: raw(`1`)})
	do(events.ApprovalDeniedType, "eve", events.ApprovalDenied{CallID: "c1"})
	e := func() *events.Execution {
		return fold(t, h, Until{}).Get(Place{Kind: Executions, Thread: ThreadName(tenant, h.id), ID: "e"}).(*events.Execution)
	}
	second := func(n int64) string { return (h.now - events.Time(n)*1000_000).ISO() }
	check := func(now events.ApprovalStatus, at, args string) {
		t.Helper()
		since := int64(h.n) - 10 // commits after the last answer
		want := []events.CallApproval{
			{CallID: "c1", Status: events.ApprovalGrant, RequestedAt: second(7 + since), AnsweredAt: second(3 + since), AnsweredBy: "ann"},
			{CallID: "c2", Status: events.ApprovalDenial, RequestedAt: second(6 + since), AnsweredAt: second(2 + since), AnsweredBy: "bob"},
			{CallID: "c3", Status: events.ApprovalResult, RequestedAt: second(5 + since), AnsweredAt: second(1 + since), AnsweredBy: "cy"},
			{CallID: "c4", Status: now, RequestedAt: second(4 + since), AnsweredAt: at, Arguments: raw(args)},
		}
		got := e().Approvals
		if len(got) != len(want) {
			t.Fatalf("%d approvals, want %d", len(got), len(want))
		}
		for i, w := range want {
			g := got[i]
			if g.CallID != w.CallID || g.StepID != "s" || g.Name != "pay" || g.Reason != events.ApprovalManual || g.Status != w.Status ||
				g.RequestedAt != w.RequestedAt || g.AnsweredAt != w.AnsweredAt || g.AnsweredBy != w.AnsweredBy || string(g.Arguments) != string(w.Arguments) {
				t.Errorf("%+v, want %+v", g, w)
			}
		}
	}
	check(events.ApprovalWaiting, "", `{"n":1}`)
	h.do(events.SetExecutionStatus{ExecutionID: "e", To: events.ExecutionFailed})
	check(events.ApprovalWithdrawn, second(0), "")
}

// TestThread_CountsWhatWaits: the queue's length never falls below 0, whatever is said.
func TestThread_CountsWhatWaits(t *testing.T) {
	h := newHistory(t, 23)
	h.do(events.CreateThread{})
	for _, step := range []struct {
		typ  events.Type
		data any
		want int64
	}{
		{events.QueuePushedType, events.QueuePushed{ID: "a", Item: raw(`{}`)}, 1},
		{events.QueuePushedType, events.QueuePushed{ID: "b", Item: raw(`{}`)}, 2},
		{events.QueuePushedType, events.QueuePushed{ID: "c", Item: raw(`{}`)}, 3},
		{events.QueuePushedType, events.QueuePushed{ID: "d", Item: raw(`{}`)}, 4},
		{events.QueueEditedType, events.QueueEdited{ID: "d", Item: raw(`{}`)}, 4},
		{events.QueueMovedType, events.QueueMoved{ID: "d", Before: "a"}, 4},
		{events.QueueDrainedType, events.QueueDrained{IDs: []string{"d", "a"}}, 2},
		{events.QueueRemovedType, events.QueueRemoved{ID: "b"}, 1},
		{events.QueueDrainedType, events.QueueDrained{IDs: []string{"c", "x"}}, 0},
		{events.QueueRemovedType, events.QueueRemoved{ID: "c"}, 0},
	} {
		h.add(events.Event{Type: step.typ, Data: step.data})
		doc := fold(t, h, Until{}).Get(Place{Thread: ThreadName(tenant, h.id)}).(*events.Thread)
		if doc.Queued != step.want {
			t.Errorf("after %s of %+v: %d wait, want %d", step.typ, step.data, doc.Queued, step.want)
		}
	}
}

// TestTimes: each event of a commit shows its own time, and what is made and ends in the
// same commit took the time between them.
func TestTimes(t *testing.T) {
	h := newHistory(t, 24)
	h.do(events.CreateThread{})
	h.do(message("i1", "x"))
	h.do(events.CreateExecution{ID: "e", TriggerItemID: "i1", ReactionItemID: "r"})
	h.add(
		events.Event{Type: events.StepCreatedType, Subject: "s", Time: h.now + 1_500_000, Data: events.StepCreated{ID: "s", ExecutionID: "e", EventID: "r", Status: events.StepRunning}},
		events.Event{Type: events.StepStatusChangedType, Subject: "s", Time: h.now + 1_502_009, Data: events.StepStatusChanged{ExecutionID: "e", From: events.StepRunning, To: events.StepCompleted}},
	)
	shows(t, h, map[Place]string{
		{Kind: TraceSpans, ID: "e.s"}: `{"id":"s","runId":"e","threadId":"$T","name":"step 0","status":"completed","startedAt":` + at + `4.623Z",
			"endedAt":` + at + `4.625Z","micros":2009,"version":6,"seq":12}`,
		{Kind: Steps, ID: "e.s"}: `{"id":"s","threadId":"$T","executionId":"e","iteration":0,"status":"completed","eventId":"r","createdAt":` + at + `4.623Z",
			"updatedAt":` + at + `4.625Z","version":6,"seq":12}`,
	})
	// The first microsecond of all is a time too.
	c := &events.Commit{Tenant: tenant, Thread: h.id, Seq: 1, Version: 1, Events: []events.Event{{
		Type: events.ThreadCreatedType, Subject: h.id, Version: 1, Data: events.ThreadCreated{Status: events.ThreadOpen},
	}}}
	s := NewModels().NewMemory(nil)
	if err := s.Apply(c); err != nil {
		t.Fatal(err)
	}
	if doc := s.Get(Place{Thread: ThreadName(tenant, h.id)}).(*events.Thread); doc.CreatedAt != "1970-01-01T00:00:00.000Z" {
		t.Errorf("made at %q", doc.CreatedAt)
	}
}

// TestEffect_NotMadeDoesNotCount: an attempt that nobody took is not one.
func TestEffect_NotMadeDoesNotCount(t *testing.T) {
	h := newHistory(t, 25)
	h.do(events.CreateThread{})
	h.do(events.ScheduleEffect{ID: anEffect(1), Name: "remind", DelayMs: to(int64(0)), Retries: to(int64(2))})
	effect := func(typ events.Type, d any) { h.add(events.Event{Type: typ, Subject: anEffect(1), Data: d}) }
	next := (h.now + 60_000_000).ISO()
	for _, step := range []struct {
		notMade bool
		want    int64
	}{{true, 0}, {false, 1}, {true, 1}} {
		effect(events.EffectStartedType, events.EffectStarted{Firing: 1, Attempt: step.want + map[bool]int64{true: 1}[step.notMade]})
		effect(events.EffectFailedType, events.EffectFailed{Firing: 1, ErrorText: "no", NotMade: step.notMade, Next: next})
		doc := fold(t, h, Until{}).Get(Place{Kind: Effects, Thread: ThreadName(tenant, h.id), ID: anEffect(1)}).(*events.ScheduledEffect)
		if doc.Attempt != step.want || doc.Running {
			t.Errorf("after an attempt that was not made (%v): attempt %d, want %d; runs: %v", step.notMade, doc.Attempt, step.want, doc.Running)
		}
	}
}
