package thread

import (
	"errors"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// atWork is a thread whose run has an open step.
func atWork(t *testing.T) *work {
	t.Helper()
	k := newStory(t)
	k.do(events.CreateThread{AgentID: "triage"})
	k.do(events.ReactThread{Text: to("hello"), ExecutionID: "exe_a", ReactionItemID: "itm_a"})
	w := &work{story: k, execution: "exe_a"}
	w.claim()
	return w
}

// rest returns the events that close a run in the thread's default context, in the order of
// EK-119, after its step and its item.
func (w *work) rest(to events.ExecutionStatus, text, reason string, end events.ThreadStatus) []fact {
	ctx := w.state.ContextID()
	shown := ""
	if to == events.ExecutionFailed {
		shown = "itm_a"
	}
	return []fact{
		{events.ExecutionStatusChangedType, "exe_a", "exe_a", events.ExecutionStatusChanged{From: events.Executing, To: to, ErrorText: text, ReactionItemID: shown}},
		{events.ThreadFinishedType, threadID, "exe_a", events.ThreadFinished{ExecutionID: "exe_a", Status: to, Reason: reason}},
		{events.ContextStatusChangedType, ctx, "exe_a", events.ContextStatusChanged{From: events.ContextStreaming, To: events.ContextOpen}},
		{events.ThreadStatusChangedType, threadID, "", events.ThreadStatusChanged{From: events.ThreadStreaming, To: end}},
	}
}

func (w *work) stepEnds(step string, to events.StepStatus, goes bool, text, calls, results string) fact {
	d := events.StepStatusChanged{ExecutionID: "exe_a", From: events.StepRunning, To: to, ContinueLoop: &goes, ErrorText: text}
	if calls != "" {
		d.ToolCalls = raw(calls)
	}
	if results != "" {
		d.ToolExecutionResults = raw(results)
	}
	return fact{events.StepStatusChangedType, step, "exe_a", d}
}

func itemEnds() fact {
	return fact{events.ItemStatusChangedType, "itm_a", "exe_a", events.ItemStatusChanged{From: events.ItemPending, To: events.ItemCompleted}}
}

func errorNote(place int64, text string) fact {
	return fact{events.MessageEditedType, "itm_a", "exe_a", events.MessageEdited{Parts: []events.PlacedPart{{Place: place, Part: raw(`{"type":"error","errorText":"` + text + `"}`)}}}}
}

// A run whose reactor has nothing to do ends with what it said.
func TestRunEnds_Completed(t *testing.T) {
	w := atWork(t)
	step := w.run().StepID
	made := w.do(w.reaction())
	item := made[1].Data.(events.ItemCreated)
	if item.ID != "itm_a" || item.Role != events.Assistant || item.Status != events.ItemPending || string(item.Content) != `[`+string(text("so"))+`]` {
		t.Errorf("it answers with %+v", item)
	}
	want(t, made[2:], append([]fact{w.stepEnds(step, events.StepCompleted, false, "", "", ""), itemEnds()},
		w.rest(events.ExecutionCompleted, "", "", events.ThreadOpen)...)...)
}

// A step that ends names its calls, and of those that were made the part that
// holds the result; the next step follows.
func TestRunContinues_AfterCalls(t *testing.T) {
	w := atWork(t)
	step := w.run().StepID
	w.do(w.reaction("call_1", "call_2"))
	w.do(w.results("call_1"))
	made := w.do(w.results("call_2"))
	one, two := `{"callId":"call_1","name":"find","key":"`+step+`:1"}`, `{"callId":"call_2","name":"find","key":"`+step+`:2"}`
	next := w.run().StepID
	want(t, made[3:], w.stepEnds(step, events.StepCompleted, true, "", "["+one+","+two+"]", "["+one+","+two+"]"),
		fact{events.StepCreatedType, next, "exe_a", events.StepCreated{ID: next, ExecutionID: "exe_a", Iteration: 1, EventID: "itm_a", Status: events.StepRunning}})
}

// What a later step adds to the run's item goes to the places after those that are
// there, and each result to the place of its call; a result's item names the call.
func TestRunContinues_PlacesOfParts(t *testing.T) {
	w := atWork(t)
	w.do(w.reaction("call_1"))
	w.do(w.results("call_1"))
	d := w.reaction("call_2", "call_3")
	step := d.StepID
	made := w.do(d)
	want(t, made[3:4], fact{events.MessageEditedType, "itm_a", "exe_a", events.MessageEdited{Parts: []events.PlacedPart{
		{Place: 2, Part: d.Parts[0]}, {Place: 3, Part: d.Parts[1]}, {Place: 4, Part: d.Parts[2]},
	}}})
	for i, e := range made[4:] {
		c := e.Data.(events.ItemCreated)
		content := `{"callId":"` + d.Calls[i].CallID + `","name":"find","arguments":{"n":1}}`
		if c.Type != events.ActionExecute || c.ParentItemID != "itm_a" || c.Status != events.ItemCompleted || string(c.Content) != content || c.CallOf == nil {
			t.Errorf("call %d is %+v", i, c)
		}
	}
	results := w.results("call_3", "call_2")
	results.Results[0].IsError = true
	made = w.do(results)
	for i, call := range []string{"call_3", "call_2"} {
		place := int64(2 - i) // in the step
		key := events.PartKey(step, place)
		want(t, made[2*i:2*i+1], fact{events.PartUpdatedType, key, "exe_a", events.PartUpdated{
			Key: key, StepID: step, Idx: place, Type: "tool-find", Part: results.Results[i].Part,
		}})
		r := made[2*i+1].Data.(events.ItemCreated)
		isError := ""
		if i == 0 {
			isError = `"isError":true,`
		}
		if r.Type != events.ActionResult || r.ParentItemID != "itm_a" || r.Status != events.ItemCompleted || string(r.Content) != `{"callId":"`+call+`","output":{"ok":true},`+isError+`"name":"find"}` {
			t.Errorf("the result of %s is %+v: %s", call, r, r.Content)
		}
	}
	want(t, made[4:5], fact{events.MessageEditedType, "itm_a", "exe_a", events.MessageEdited{Parts: []events.PlacedPart{
		{Place: 4, Part: results.Results[0].Part}, {Place: 3, Part: results.Results[1].Part},
	}}})
}

// Each step adds its parts to the run's item after those of the steps before it, until somebody
// says something: then the next step begins an item.
func TestRunContinues_StepAfterStep(t *testing.T) {
	w := atWork(t)
	place := int64(0)
	for range 3 {
		d := w.reaction()
		d.Continue = true
		d.Parts, d.Types = append(d.Parts, text("and"), text("so")), append(d.Types, "output_text", "output_text")
		for _, e := range w.do(d) {
			if edit, ok := e.Data.(events.MessageEdited); ok && edit.Parts[0].Place != place {
				t.Errorf("the parts go to the place %d, not %d", edit.Parts[0].Place, place)
			}
		}
		place += 3
		if x, _ := w.state.execution("exe_a"); x.Run.Place != place || x.writes() != "itm_a" {
			t.Errorf("the item %s has %d parts, not %d", x.writes(), x.Run.Place, place)
		}
	}
	w.do(events.ReactThread{Text: to("in Oslo"), Policy: events.Steer})
	for range 2 { // the step that was open, and the first after the message
		d := w.reaction()
		d.Continue = true
		w.do(d)
	}
	if x, _ := w.state.execution("exe_a"); x.Run.Place != 1 || x.writes() == "itm_a" {
		t.Errorf("after a message the item %s has %d parts", x.writes(), x.Run.Place)
	}
}

// deletedBefore deletes the answer of a run as an older version did, which did not refuse it.
func (w *work) deletedBefore(item string) {
	i, _ := w.state.item(item)
	e := w.after(events.MessageDeletedType, item, "", events.MessageDeleted{ContextID: i.Context, Type: i.Type, Index: i.Index})
	draft := NewDraft(w.state)
	draft.events = []events.Event{e}
	Evolve(draft.layer, &e)
	w.store(draft)
}

// Calls of a run whose item was deleted stand alone, and results without a result
// edit nothing.
func TestRunContinues_WithoutItsItem(t *testing.T) {
	w := atWork(t)
	w.do(w.reaction("call_1"))
	if made := w.do(EndCalls{ExecutionID: "exe_a", Token: 1, StepID: w.run().StepID}); len(made) != 0 {
		t.Errorf("no results made %s", kinds(made))
	}
	w.deletedBefore("itm_a")
	made := w.do(w.results("call_1"))
	if r := made[1].Data.(events.ItemCreated); r.Type != events.ActionResult || r.ParentItemID != "" {
		t.Errorf("the result is %+v", r)
	}
	made = w.do(w.reaction("call_2"))
	if c := made[len(made)-1].Data.(events.ItemCreated); c.Type != events.ActionExecute || c.ParentItemID != "" || c.CallOf != nil {
		t.Errorf("the call is %+v", c)
	}
}

// A run that fails says so in its step, its item and its execution; calls that
// were not made are not among the results.
func TestRunEnds_Failed(t *testing.T) {
	w := atWork(t)
	step := w.run().StepID
	w.do(w.reaction("call_1", "call_2"))
	w.do(w.results("call_2"))
	one, two := `{"callId":"call_1","name":"find","key":"`+step+`:1"}`, `{"callId":"call_2","name":"find","key":"`+step+`:2"}`
	made := w.do(FailRun{ExecutionID: "exe_a", Token: 1, ErrorText: "the model is away"})
	ends := w.stepEnds(step, events.StepFailed, false, "the model is away", "["+one+","+two+"]", "["+two+"]")
	d := ends.Data.(events.StepStatusChanged)
	d.ReactionItemID = "itm_a"
	ends.Data = d
	rest := w.rest(events.ExecutionFailed, "the model is away", "", events.ThreadFailed)
	changed := rest[0].Data.(events.ExecutionStatusChanged)
	changed.ReactionItemID = "" // its step has said so
	rest[0].Data = changed
	wantKinds(t, made[:3], "part.updated item.created message.edited") // call_1 has no result
	want(t, made[3:], append([]fact{ends, errorNote(3, "the model is away"), itemEnds()}, rest...)...)
	if w.state.head.Failed != "exe_a" {
		t.Errorf("the failed run is %q", w.state.head.Failed)
	}
}

// What a step gave before it failed is kept, once: not if it had reacted.
func TestFailRun_KeepsPartialOutput(t *testing.T) {
	fail := FailRun{ExecutionID: "exe_a", Token: 1, ErrorText: "no", Parts: []events.JSON{text("so far")}, Types: []string{"output_text"}}
	w := atWork(t)
	wantKinds(t, w.do(fail), `part.created item.created step.status.changed message.edited item.status.changed execution.status.changed
		thread.finished context.status.changed thread.status.changed`)
	w = atWork(t)
	w.do(w.reaction("call_1"))
	wantKinds(t, w.do(fail), `part.updated item.created message.edited step.status.changed message.edited item.status.changed execution.status.changed
		thread.finished context.status.changed thread.status.changed`)
	long := strings.Repeat("x", 4096)
	for text, kept := range map[string]string{long: long, long + "y": long + "... (4097 bytes)"} {
		w := atWork(t)
		fail := FailRun{ExecutionID: "exe_a", Token: 1, ErrorText: text, Records: []events.TraceRecorded{{Kind: events.TraceLog, Text: "why"}}}
		made := w.do(fail)
		want(t, made[:1], fact{events.TraceRecordedType, "exe_a", "exe_a", events.TraceRecorded{Kind: events.TraceLog, Text: "why", ExecutionID: "exe_a"}})
		for _, e := range made {
			if d, ok := e.Data.(events.ExecutionStatusChanged); ok && d.ErrorText != kept {
				t.Errorf("an error of %d bytes is recorded as %d", len(text), len(d.ErrorText))
			}
		}
	}
}

// A limit ends a run that would go on as failed, and no other.
func TestRunEnds_AtItsLimit(t *testing.T) {
	w := atWork(t)
	last := w.reaction()
	last.Limit = "the agent may make one step"
	wantKinds(t, w.do(last), `part.created item.created step.status.changed item.status.changed execution.status.changed
		thread.finished context.status.changed thread.status.changed`)
	if w.state.Status != events.ThreadOpen {
		t.Errorf("the thread is %s", w.state.Status)
	}
	w = atWork(t)
	last = w.reaction()
	last.Limit, last.Continue = "the agent may make one step", true
	made := w.do(last)
	if w.state.Status != events.ThreadFailed || w.state.Active() != "" {
		t.Errorf("the thread is %s", w.state.Status)
	}
	if d := made[2].Data.(events.StepStatusChanged); d.To != events.StepFailed || d.ErrorText != last.Limit {
		t.Errorf("its step ends as %+v", d)
	}
}

// A run continues because of what arrived during its step: a message that its reactor did not
// receive, or a call that joins it; not because of what the reactor received, or a call with a
// run of its own.
func TestRunContinues_ForNewMessages(t *testing.T) {
	for name, c := range map[string]struct {
		came  any
		shown bool
		goes  bool
	}{
		"nothing":                  {nil, false, false},
		"a message":                {events.ReactThread{Text: to("and?"), Policy: events.Steer}, false, true},
		"a message that was shown": {events.ReactThread{Text: to("and?"), Policy: events.Steer}, true, false},
		"a call":                   {events.QueueTool{Name: "find"}, false, true},
		"a call of its own":        {events.QueueTool{Name: "find", Once: true}, false, false},
		"a message that waits":     {events.ReactThread{Text: to("and?")}, false, false},
	} {
		w := atWork(t)
		d := w.reaction()
		if c.came != nil {
			w.do(c.came)
		}
		if c.shown { // by the step after it
			w.do(d)
			d = w.reaction()
		}
		made := kinds(w.do(d))
		if goes := !strings.Contains(made, "execution.status.changed"); goes != c.goes {
			t.Errorf("%s: it made %s", name, made)
		}
	}
}

// Who stopped a run, and why, stands in its stop and at its end; what was
// cancelled leaves the thread open.
func TestStopRun_Events(t *testing.T) {
	w := atWork(t)
	want(t, w.do(events.StopRun{By: events.SideB, Reason: "enough", Now: true}),
		fact{events.RunStoppedType, "exe_a", "exe_a", events.RunStopped{By: events.SideB, Reason: "enough", Now: true}})
	if r := w.run(); !r.Stop || r.Abort || r.StoppedBy != events.SideB {
		t.Errorf("the run is %+v", r)
	}
	step := w.run().StepID
	one := `[{"callId":"call_1","name":"find","key":"` + step + `:1"}]`
	made := w.do(w.reaction("call_1"))
	wantKinds(t, made[4:7], "part.updated item.created message.edited") // the call has no result
	want(t, made[7:], append([]fact{w.stepEnds(step, events.StepCompleted, false, "", one, ""), itemEnds()},
		w.rest(events.ExecutionCompleted, "", "enough", events.ThreadOpen)...)...)

	w = atWork(t)
	want(t, w.do(events.CancelRun{ExecutionID: "exe_a", Reason: "wrong", Discard: true}),
		fact{events.RunStoppedType, "exe_a", "exe_a", events.RunStopped{Abort: true, Reason: "wrong", Discard: true}})
	w.do(events.StopRun{Reason: "and stop"}) // what is cancelled stays so
	step = w.run().StepID
	made = w.do(FailRun{ExecutionID: "exe_a", Token: 1, ErrorText: "whatever"})
	if d := made[0].Data.(events.StepStatusChanged); d.To != events.StepFailed || d.ErrorText != Aborted || made[0].Subject != step {
		t.Errorf("its step ends as %+v", d)
	}
	if w.state.Status != events.ThreadOpen {
		t.Errorf("the thread of a cancelled run is %s", w.state.Status)
	}
	// One that nobody has claimed has no step to end.
	k := newStory(t)
	k.do(events.CreateThread{AgentID: "triage"})
	k.do(events.ReactThread{Text: to("hello"), ExecutionID: "exe_a"})
	wantKinds(t, k.do(events.StopRun{}), `run.stopped item.created item.status.changed execution.status.changed thread.finished context.status.changed thread.status.changed`)
}

// A worker that claims a run which was told to stop ends it.
func TestClaimRun_OfAStoppedRun(t *testing.T) {
	w := atWork(t)
	w.do(events.StopRun{})
	wantKinds(t, w.claim(), `run.claimed step.status.changed item.created item.status.changed execution.status.changed
		thread.finished context.status.changed thread.status.changed`)
}

// The side that stops a run with its step ends it, and is named.
func TestReactStep_StoppedByItsSide(t *testing.T) {
	w := atWork(t)
	d := w.reaction()
	d.Continue, d.StopBy = true, events.SideA
	made := w.do(d)
	want(t, made[2:3], fact{events.RunStoppedType, "exe_a", "exe_a", events.RunStopped{By: events.SideA, Reason: "stopped by side a"}})
	if w.state.Active() != "" || w.state.Status != events.ThreadOpen {
		t.Errorf("afterwards the thread is %s, %q active", w.state.Status, w.state.Active())
	}
	w = atWork(t)
	w.do(events.StopRun{Reason: "a person"})
	d = w.reaction()
	d.StopBy = events.SideA
	if made := w.do(d); strings.Contains(kinds(made), "run.stopped") {
		t.Errorf("it was stopped twice: %s", kinds(made))
	}
}

// The run that a command means: the one that it names, or the active one. One that has ended,
// or that a client runs, is refused.
func TestStopRun_FindsTheActiveRun(t *testing.T) {
	w := atWork(t)
	w.do(w.reaction())
	for _, d := range []any{
		events.StopRun{ExecutionID: "exe_a"}, events.CancelRun{ExecutionID: "exe_a"}, events.TurnRun{ExecutionID: "exe_a", Side: events.SideA},
	} {
		wantRefusal(t, w.refuse(d), events.IllegalTransition, events.ErrorDetails{Entity: "execution", ID: "exe_a", From: "completed", To: "completed", Allowed: []string{}})
	}
	w.do(events.CreateExecution{ID: "exe_b", TriggerItemID: w.trigger("exe_a")})
	for _, id := range []string{"exe_b", "exe_9"} {
		wantRefusal(t, w.refuse(events.StopRun{ExecutionID: id}), events.NotFound, events.ErrorDetails{Entity: "run of execution", ID: id})
		for _, d := range []any{ClaimRun{ExecutionID: id}, RecordRun{ExecutionID: id}} {
			wantRefusal(t, w.refuse(d), events.NotFound, events.ErrorDetails{Entity: "run of execution", ID: id})
		}
	}
	if e := w.refuse(events.CancelRun{}); e.Code != events.NotFound || !strings.Contains(e.Message, "no active run") {
		t.Errorf("refused with %v", e)
	}
}

// The next turn is a side's only where there are sides, and counts for one step.
func TestTurnRun(t *testing.T) {
	w := atWork(t)
	wantRefusal(t, w.refuse(events.TurnRun{Side: events.SideB}), events.InvalidRequest, events.ErrorDetails{Path: "/data/side"})

	k := newStory(t)
	k.do(events.CreateThread{AgentID: "duet"})
	k.do(events.ReactThread{Text: to("hello")})
	w = &work{story: k, execution: k.state.Active(), token: 1}
	k.do(ClaimRun{ExecutionID: w.execution, Worker: "w-1", Side: events.SideA})
	want(t, k.do(events.TurnRun{Side: events.SideA}), fact{events.RunTurnedType, w.execution, w.execution, events.RunTurned{Side: events.SideA}})
	for i, side := range []events.Side{events.SideA, events.SideB, events.SideB} { // the first was turned
		d := w.reaction()
		d.After = After{Continue: true, Side: events.SideB}
		made := w.do(d)
		if got := made[len(made)-1].Data.(events.StepCreated).Side; got != side {
			t.Errorf("step %d is of %s, not of %s", i+1, got, side)
		}
	}
	if r := w.run(); r.Side != events.SideB || r.Steps != 4 || r.SideASteps != 2 || r.SideBSteps != 2 {
		t.Errorf("the run is %+v", r)
	}
}

// What a lost claim is refused with says whether the run has ended.
func TestLostRunError(t *testing.T) {
	w := atWork(t)
	w.do(ClaimRun{ExecutionID: "exe_a", Worker: "w-2"})
	lost := func(d any) *LostRunError {
		t.Helper()
		var e *LostRunError
		if _, err := w.try(w.command(d)); !errors.As(err, &e) {
			t.Fatalf("%T was answered with %v", d, err)
		}
		return e
	}
	if e := lost(w.reaction()); *e != (LostRunError{ExecutionID: "exe_a", Token: 1, Now: 2}) || e.Error() != "execution exe_a was taken over by another worker" {
		t.Errorf("%+v: %v", *e, e)
	}
	w.token = 2
	w.do(w.reaction())
	if e := lost(RecordRun{ExecutionID: "exe_a", Token: 2}); *e != (LostRunError{ExecutionID: "exe_a", Token: 2, Now: 2, Ended: true}) || e.Error() != "execution exe_a has ended" {
		t.Errorf("%+v: %v", *e, e)
	}
	if e := lost(ClaimRun{ExecutionID: "exe_a"}); *e != (LostRunError{ExecutionID: "exe_a", Now: 2, Ended: true}) {
		t.Errorf("%+v", *e)
	}
}

// A reactor answers an open step once, and calls end once, of the open step.
func TestSteps_RefuseRepeats(t *testing.T) {
	w := atWork(t)
	d := w.reaction("call_1")
	other := d
	other.StepID = "stp_9"
	wantRefusal(t, w.refuse(other), events.InvalidRequest, events.ErrorDetails{Path: "/data/stepId"})
	results := w.results("call_1")
	wantRefusal(t, w.refuse(results), events.InvalidRequest, events.ErrorDetails{Path: "/data/results"})
	w.do(d)
	wantRefusal(t, w.refuse(d), events.InvalidRequest, events.ErrorDetails{Path: "/data/stepId"})
	late := results
	late.StepID = "stp_9"
	wantRefusal(t, w.refuse(late), events.InvalidRequest, events.ErrorDetails{Path: "/data/stepId"})
	wantRefusal(t, w.refuse(HoldCalls{ExecutionID: "exe_a", Token: 1, StepID: "stp_9"}), events.InvalidRequest, events.ErrorDetails{Path: "/data/stepId"})
}

// An agent that takes the thread over does so with the call that hands it over;
// one that has it already does not.
func TestEndCalls_AssignsAgent(t *testing.T) {
	w := atWork(t)
	w.do(w.reaction("call_1"))
	d := w.results("call_1")
	d.Agent, d.Records = "billing", []events.TraceRecorded{{Kind: events.TraceUsage}}
	made := w.do(d)
	want(t, made[3:5],
		fact{events.TraceRecordedType, "exe_a", "exe_a", events.TraceRecorded{Kind: events.TraceUsage, ExecutionID: "exe_a"}},
		fact{events.AgentAssignedType, threadID, "exe_a", events.AgentAssigned{AgentID: "billing", From: "triage", Reason: "handoff"}})
	if w.run().Agent != "billing" || w.state.AgentID() != "billing" {
		t.Errorf("the run's agent is %s, the thread's %s", w.run().Agent, w.state.AgentID())
	}
	w.do(w.reaction("call_2"))
	d = w.results("call_2")
	d.Agent = "billing"
	if made := kinds(w.do(d)); strings.Contains(made, "agent.assigned") {
		t.Errorf("it made %s", made)
	}
}

// The item of a run is completed at its end, unless somebody has completed or
// deleted it.
func TestRunEnds_ItemCompletedByAnother(t *testing.T) {
	for name, c := range map[string]struct {
		before func(w *work)
		says   bool
	}{
		"nobody":      {func(*work) {}, true},
		"a completer": {func(w *work) { w.do(events.SetItemStatus{ItemID: "itm_a", To: events.ItemCompleted}) }, false},
		"a deleter":   {func(w *work) { w.deletedBefore("itm_a") }, false},
	} {
		w := atWork(t)
		w.do(w.reaction("call_1"))
		c.before(w)
		w.do(w.results("call_1"))
		if made := kinds(w.do(w.reaction())); strings.Contains(made, "item.status.changed") != c.says {
			t.Errorf("with %s: %s", name, made)
		}
	}
}

// A call whose part has a state was made by its provider, and is not made again.
func TestReactStep_SkipsCallsOfTheProvider(t *testing.T) {
	w := atWork(t)
	d := w.reaction("call_1")
	d.Parts = append(d.Parts, raw(`{"type":"tool-search","toolCallId":"call_p","state":"output-available","output":1}`), raw(`{"type":"tool-search","toolCallId":7}`))
	d.Types = append(d.Types, "tool-search", "tool-search")
	w.do(d)
	if calls := w.run().Calls; len(calls) != 1 || calls[0].CallID != "call_1" || calls[0].Name != "find" {
		t.Errorf("the calls to make are %+v", calls)
	}
}

// The commit of a call's end holds a large output once: in the call's part, and not in the item
// of the result, nor in the answer. Nor does it hold a large text of the answer twice.
func TestEndCalls_LargeOutputs(t *testing.T) {
	w := atWork(t)
	large := `"` + strings.Repeat("x", 2*events.ShareBytes) + `"`
	w.do(w.reaction("call_1", "call_2"))
	once := func(made []events.Event) {
		t.Helper()
		c, err := events.NewCommit("", made)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(c.Body), large); n != 1 {
			t.Errorf("the commit holds the output %d times", n)
		}
	}
	d := w.results("call_1", "call_2")
	d.Results[0].Output = raw(large)
	d.Results[0].Part = raw(`{"type":"tool-find","toolCallId":"call_1","state":"output-available","input":{"n":1},"output":` + large + `}`)
	once(w.do(d))
	next := w.reaction()
	next.Continue = true
	next.Parts = append(next.Parts, raw(`{"type":"output_text","text":`+large+`}`))
	next.Types = append(next.Types, "output_text")
	once(w.do(next))
}
