package thread

import (
	"testing"

	"github.com/skein-threads/skein/events"
)

// An execution has a context, a trigger that is there and the id of its
// reaction, allotted before the item exists (EK-54, EK-55, EK-56, EK-58, EK-162).
func TestCreateExecution(t *testing.T) {
	k := begun(t)
	k.do(events.CreateContext{ID: "ctx_a"})
	item := message("itm_a", "x")
	item.ContextID = "ctx_a"
	k.do(item)
	main := k.state.ContextID()
	want(t, k.do(events.CreateExecution{ID: "exe_a", ContextID: main, TriggerItemID: "itm_a", ReactionItemID: "itm_r", WorkflowRunID: "run-7"}),
		fact{events.ExecutionCreatedType, "exe_a", "exe_a", events.ExecutionCreated{
			ID: "exe_a", ContextID: main, TriggerItemID: "itm_a", ReactionItemID: "itm_r", WorkflowRunID: "run-7", Status: events.Executing,
		}})
	made := k.do(events.CreateExecution{TriggerItemID: "itm_a"})
	id := events.DeriveID(events.ExecutionPrefix, k.now, tenant, threadID, made[0].CommandID, 1)
	reaction := events.DeriveID(events.ItemPrefix, k.now, tenant, threadID, made[0].CommandID, 2)
	want(t, made, fact{events.ExecutionCreatedType, id, id, events.ExecutionCreated{
		ID: id, ContextID: "ctx_a", TriggerItemID: "itm_a", ReactionItemID: reaction, Status: events.Executing,
	}})
	wantRefusal(t, k.refuse(events.CreateExecution{ID: "exe_a", TriggerItemID: "itm_a"}), events.AlreadyExists,
		events.ErrorDetails{Entity: "execution", ID: "exe_a"})
}

func TestSetExecutionStatus(t *testing.T) {
	k := begun(t)
	want(t, k.do(events.SetExecutionStatus{ExecutionID: "exe_1", To: events.ExecutionFailed, ErrorText: "away"}),
		fact{events.ExecutionStatusChangedType, "exe_1", "exe_1",
			events.ExecutionStatusChanged{From: events.Executing, To: events.ExecutionFailed, ErrorText: "away"}})
}

// Steps count from 0, and write the reaction's item unless told otherwise
// (EK-64, EK-65, EK-66).
func TestCreateStep(t *testing.T) {
	k := begun(t)
	step := func(c events.CreateStep, iteration int64, event string) {
		t.Helper()
		want(t, k.do(c), fact{events.StepCreatedType, c.ID, "exe_1", events.StepCreated{
			ID: c.ID, ExecutionID: "exe_1", Iteration: iteration, EventID: event, Status: events.StepRunning,
		}})
	}
	step(events.CreateStep{ID: "stp_2", ExecutionID: "exe_1"}, 1, "itm_reply")
	step(events.CreateStep{ID: "stp_3", ExecutionID: "exe_1", EventID: "itm_e"}, 2, "itm_e")
	step(events.CreateStep{ID: "stp_4", ExecutionID: "exe_1", Iteration: to(int64(7))}, 7, "itm_reply")
	step(events.CreateStep{ID: "stp_5", ExecutionID: "exe_1"}, 8, "itm_reply")
	made := k.do(events.CreateStep{ExecutionID: "exe_1"})
	if id := events.DeriveID(events.StepPrefix, k.now, tenant, threadID, made[0].CommandID, 1); made[0].Subject != id {
		t.Errorf("its id is %s, want %s", made[0].Subject, id)
	}
	wantRefusal(t, k.refuse(events.CreateStep{ID: "stp_1", ExecutionID: "exe_1"}), events.AlreadyExists, events.ErrorDetails{Entity: "step", ID: "stp_1"})
}

// What came of a step stands on its last event (EK-67..EK-70).
func TestSetStepStatus(t *testing.T) {
	k := begun(t)
	set := events.SetStepStatus{
		StepID: "stp_1", ExecutionID: "exe_1", To: events.StepFailed, ToolCalls: raw(`[1]`), ToolExecutionResults: raw(`[2]`),
		ContinueLoop: to(false), ErrorText: "no",
	}
	want(t, k.do(set), fact{events.StepStatusChangedType, "stp_1", "exe_1", events.StepStatusChanged{
		ExecutionID: "exe_1", From: events.StepRunning, To: events.StepFailed, ToolCalls: raw(`[1]`), ToolExecutionResults: raw(`[2]`),
		ContinueLoop: to(false), ErrorText: "no",
	}})
}

// A part is created once at its place and replaced there from then on; its key
// is the step and the place (EK-73, EK-75, EK-145, EK-146, EK-177).
func TestPutPart(t *testing.T) {
	k := begun(t)
	part := raw(`{"type":"codex-event","state":"output-available","output":{"threadId":"t1","turnId":"turn1"}}`)
	for _, idx := range []int64{3, 1, 99999, 2} {
		key := events.PartKey("stp_1", idx)
		put := events.PutPart{StepID: "stp_1", ExecutionID: "exe_1", Idx: to(idx), Key: key, Type: "codex-event", Part: part}
		want(t, k.do(put), fact{events.PartCreatedType, key, "exe_1", events.PartCreated{Key: key, StepID: "stp_1", Idx: idx, Type: "codex-event", Part: part}})
		want(t, k.do(put), fact{events.PartUpdatedType, key, "exe_1", events.PartUpdated{Key: key, StepID: "stp_1", Idx: idx, Type: "codex-event", Part: part}})
	}
	for _, key := range []string{"stp_1:1", "stp_2:0", "0:stp_1"} {
		wantRefusal(t, k.refuse(events.PutPart{StepID: "stp_1", Idx: to(int64(0)), Key: key}), events.InvalidRequest, events.ErrorDetails{Path: "/data/key"})
	}
}

// The item of an execution shows that it failed, from its first failed step on, and
// no more when it completes after all; each change is said once.
func TestExecution_ShowsInItsItem(t *testing.T) {
	shows := func(made []events.Event) string {
		switch d := made[0].Data.(type) {
		case events.StepStatusChanged:
			return d.ReactionItemID
		case events.ExecutionStatusChanged:
			return d.ReactionItemID
		}
		return "?"
	}
	step := func(k *story, id string, to events.StepStatus) string {
		return shows(k.do(events.SetStepStatus{StepID: id, To: to}))
	}
	for _, c := range []struct {
		to          events.ExecutionStatus
		says, item  string
		failed      bool
		failedSteps bool
	}{
		{events.ExecutionCompleted, "itm_reply", "itm_reply", false, true},
		{events.ExecutionFailed, "", "itm_reply", true, true},
		{events.ExecutionCompleted, "", "itm_reply", false, false},
		{events.ExecutionFailed, "itm_reply", "itm_reply", true, false},
		{events.ExecutionFailed, "", "itm_other", false, false}, // its item is not there
	} {
		k := begun(t)
		k.do(message(c.item, "x"))
		k.do(events.CreateStep{ID: "stp_2", ExecutionID: "exe_1"})
		k.do(events.CreateStep{ID: "stp_3", ExecutionID: "exe_1"})
		if c.failedSteps {
			if first, second := step(k, "stp_1", events.StepFailed), step(k, "stp_2", events.StepFailed); first != "itm_reply" || second != "" {
				t.Errorf("failed steps say %q and %q", first, second)
			}
		}
		if got := step(k, "stp_3", events.StepCompleted); got != "" {
			t.Errorf("a step that did not fail says %q", got)
		}
		if got := shows(k.do(events.SetExecutionStatus{ExecutionID: "exe_1", To: c.to})); got != c.says {
			t.Errorf("%+v: it says %q", c, got)
		}
		if i, _ := k.state.item(c.item); i.Failed != c.failed {
			t.Errorf("%+v: the item shows failed %v", c, i.Failed)
		}
	}
	k := begun(t) // what has ended does not show otherwise, whatever its steps come to
	k.do(message("itm_reply", "x"))
	k.do(events.SetExecutionStatus{ExecutionID: "exe_1", To: events.ExecutionCompleted})
	if got := step(k, "stp_1", events.StepFailed); got != "" {
		t.Errorf("a step of an execution that is over says %q", got)
	}
	k = begun(t)
	k.do(message("itm_reply", "x"))
	k.do(events.DeleteMessage{ItemID: "itm_reply"})
	if got := step(k, "stp_1", events.StepFailed); got != "" {
		t.Errorf("a step whose item is gone says %q", got)
	}
}

// What somebody outside does next to a run of the runtime does not touch it.
func TestRun_NextToForeignExecutions(t *testing.T) {
	w := atWork(t)
	w.do(events.CreateExecution{ID: "exe_b", TriggerItemID: w.trigger("exe_a"), ReactionItemID: "itm_b"})
	w.do(events.CreateStep{ID: "stp_b", ExecutionID: "exe_b"})
	w.do(events.SetStepStatus{StepID: "stp_b", To: events.StepFailed})
	step := w.run().StepID
	w.do(events.SetExecutionStatus{ExecutionID: "exe_b", To: events.ExecutionFailed})
	if w.state.Active() != "exe_a" || step == "" || w.state.head.Failed != "" {
		t.Errorf("%q is active at step %q, and %q has failed", w.state.Active(), step, w.state.head.Failed)
	}
	w.do(events.CreateStep{ID: "stp_a", ExecutionID: "exe_a"}) // a step of the run itself, which is the open one from now on
	w.do(events.SetStepStatus{StepID: step, To: events.StepCompleted})
	if got := w.run().StepID; got != "stp_a" {
		t.Errorf("the open step is %q", got)
	}
}
