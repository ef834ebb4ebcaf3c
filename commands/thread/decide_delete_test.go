package thread

import (
	"slices"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
)

// An active run is aborted in the commit that deletes its thread, and the queue is not started
// (C-6).
func TestDelete_AbortsTheRun(t *testing.T) {
	k := newStory(t)
	k.do(events.CreateThread{AgentID: "triage"})
	w := k.reacting("")
	w.do(w.reaction("call_1"))
	w.do(events.ReactThread{Text: to("and this?"), AgentID: "triage"}) // waits
	made := w.do(events.DeleteThread{Purge: true})
	wantKinds(t, made, `run.stopped part.updated item.created message.edited step.status.changed message.edited item.status.changed execution.status.changed
		thread.finished context.status.changed thread.status.changed lifecycle.deleted`)
	for i := range made {
		switch d := made[i].Data.(type) {
		case events.RunStopped:
			if !d.Abort {
				t.Error("the run is not aborted")
			}
		case events.ExecutionStatusChanged:
			if d.To != events.ExecutionFailed || d.ErrorText != Aborted {
				t.Errorf("the execution ends as %+v", d)
			}
		}
		if raw, err := made[i].Append(nil); err != nil || strings.Contains(string(raw), `hello`) {
			t.Errorf("an event of the end holds content: %s, %v", raw, err)
		}
	}
	if w.state.Exists() || w.state.Active() != "" {
		t.Error("the thread is still there")
	}
}

// An execution that somebody outside runs is ended too, with its open steps (C-6).
func TestDelete_EndsExecutionsOfClients(t *testing.T) {
	k := begun(t)
	made := k.do(events.DeleteThread{})
	want(t, made,
		fact{events.StepStatusChangedType, "stp_1", "exe_1", events.StepStatusChanged{
			ExecutionID: "exe_1", From: events.StepRunning, To: events.StepFailed, ErrorText: Aborted,
		}},
		fact{events.ExecutionStatusChangedType, "exe_1", "exe_1", events.ExecutionStatusChanged{
			From: events.Executing, To: events.ExecutionFailed, ErrorText: Aborted,
		}},
		fact{events.LifecycleDeletedType, threadID, "", events.LifecycleDeleted{}},
	)
}

// All executions and steps in progress end with their thread, those of clients too, in a fixed
// order.
func TestDelete_EndsAllExecutions(t *testing.T) {
	w := atWork(t)
	for _, id := range []string{"exe_c", "exe_b", "exe_d"} {
		w.do(events.CreateExecution{ID: id, TriggerItemID: w.trigger("exe_a"), ReactionItemID: "itm_" + id})
		for _, step := range []string{"2", "1"} {
			w.do(events.CreateStep{ID: "stp_" + id + step, ExecutionID: id})
		}
	}
	w.do(events.SetStepStatus{StepID: "stp_exe_c1", To: events.StepCompleted})
	w.do(events.SetExecutionStatus{ExecutionID: "exe_d", To: events.ExecutionCompleted})
	var ended []string
	for _, e := range w.do(events.DeleteThread{}) {
		switch d := e.Data.(type) {
		case events.StepStatusChanged:
			ended = append(ended, e.Subject+" "+string(d.To)+" "+d.ErrorText)
		case events.ExecutionStatusChanged:
			ended = append(ended, e.Subject+" "+string(d.To)+" "+d.ErrorText)
		}
	}
	step := ended[0]
	want := []string{
		step, "exe_a failed aborted", "stp_exe_b1 failed aborted", "stp_exe_b2 failed aborted", "exe_b failed aborted", "stp_exe_c2 failed aborted", "exe_c failed aborted",
	}
	if !slices.Equal(ended, want) || !strings.HasSuffix(step, " failed aborted") {
		t.Errorf("it ended %q, want %q", ended, want)
	}
}

// A run is gone with its thread, as soon as the draft has taken the command.
func TestDelete_RunsOfADraft(t *testing.T) {
	w := atWork(t)
	d := NewDraft(w.state)
	if _, err := d.Do(w.command(events.DeleteThread{})); err != nil {
		t.Fatal(err)
	}
	if r, ok := d.layer.Run("exe_a"); ok {
		t.Errorf("the run is still there: %+v", r)
	}
	if _, ok := w.state.Run("exe_a"); !ok {
		t.Error("a draft took the run away")
	}
}
