package thread

import (
	"testing"

	"github.com/skein-threads/skein/events"
)

// What belongs to another thread is not found, by any command that could link
// to it: a context (EK-160), an item (EK-161), an execution (EK-162), a step
// (EK-163) and its parts (EK-164).
func TestLinks_OtherThreadsAreNotFound(t *testing.T) {
	mine, other := begun(t), newStory(t)
	other.thread = otherID
	other.do(events.CreateThread{})
	other.do(events.CreateContext{ID: "ctx_o", Key: "o"})
	other.do(message("itm_o", "x"))
	other.do(events.CreateExecution{ID: "exe_o", TriggerItemID: "itm_o"})
	other.do(events.CreateStep{ID: "stp_o", ExecutionID: "exe_o"})
	in := message("", "x")
	in.ContextID = "ctx_o"
	of := message("", "x")
	of.Item.ParentItemID = "itm_o"
	idx := to(int64(0))
	for _, c := range []struct {
		data   any
		entity string
		id     string
	}{
		{in, "context", "ctx_o"},
		{events.SetContext{ContextID: "ctx_o", Content: raw(`1`)}, "context", "ctx_o"},
		{events.SetContextStatus{ContextID: "ctx_o", To: events.ContextClosed}, "context", "ctx_o"},
		{events.CreateExecution{ContextID: "ctx_o", TriggerItemID: "itm_user"}, "context", "ctx_o"},
		{of, "item", "itm_o"},
		{events.SetItemStatus{ItemID: "itm_o", To: events.ItemCompleted}, "item", "itm_o"},
		{events.EditMessage{ItemID: "itm_o", Silent: to(true)}, "item", "itm_o"},
		{events.DeleteMessage{ItemID: "itm_o"}, "item", "itm_o"},
		{events.CreateExecution{TriggerItemID: "itm_o"}, "item", "itm_o"},
		{events.SetExecutionStatus{ExecutionID: "exe_o", To: events.ExecutionFailed}, "execution", "exe_o"},
		{events.CreateStep{ExecutionID: "exe_o"}, "execution", "exe_o"},
		{events.FinishThread{ExecutionID: "exe_o"}, "execution", "exe_o"},
		{events.SetStepStatus{StepID: "stp_o", To: events.StepFailed}, "step", "stp_o"},
		{events.PutPart{StepID: "stp_o", Idx: idx}, "step", "stp_o"},
	} {
		wantRefusal(t, mine.refuse(c.data), events.NotFound, events.ErrorDetails{Entity: c.entity, ID: c.id})
	}
	made := mine.do(events.ResolveContext{Key: "o"})
	if len(made) != 2 || made[1].Subject == "ctx_o" {
		t.Errorf("the key of another thread's context was resolved to it: %+v", facts(made))
	}
}

// A step is of the execution that it was made for, and of no other of the same
// thread (EK-163).
func TestLinks_StepOfAnotherExecution(t *testing.T) {
	k := begun(t)
	k.do(events.CreateExecution{ID: "exe_2", TriggerItemID: "itm_user"})
	for _, data := range []any{
		events.SetStepStatus{StepID: "stp_1", ExecutionID: "exe_2", To: events.StepCompleted},
		events.PutPart{StepID: "stp_1", ExecutionID: "exe_2", Idx: to(int64(1))},
	} {
		wantRefusal(t, k.refuse(data), events.NotFound, events.ErrorDetails{Entity: "step", ID: "stp_1"})
	}
	made := k.do(events.CreateStep{ID: "stp_2", ExecutionID: "exe_2"})
	if first := made[0].Data.(events.StepCreated).Iteration; first != 0 {
		t.Errorf("the other execution's first step has iteration %d", first)
	}
}
