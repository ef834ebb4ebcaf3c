package thread

import (
	"strconv"
	"testing"

	"github.com/skein-threads/skein/events"
)

// turn is what a react of one step does, as the parts of a thread.commit.
func turn() []any {
	idx := to(int64(0))
	return []any{
		message("itm_u", "Where is my order?"),
		events.SetThreadStatus{To: events.ThreadStreaming},
		events.SetContextStatus{To: events.ContextStreaming},
		events.CreateExecution{ID: "exe_t", TriggerItemID: "itm_u", ReactionItemID: "itm_r"},
		events.CreateStep{ID: "stp_t", ExecutionID: "exe_t"},
		events.PutPart{StepID: "stp_t", Idx: idx, Part: raw(`{"type":"output_text","text":"On its way."}`)},
		message("itm_r", "On its way."),
		events.SetStepStatus{StepID: "stp_t", To: events.StepCompleted},
		events.SetItemStatus{ItemID: "itm_r", To: events.ItemCompleted},
		events.SetExecutionStatus{ExecutionID: "exe_t", To: events.ExecutionCompleted},
		events.SetThreadStatus{To: events.ThreadOpen},
		events.SetContextStatus{To: events.ContextOpen},
	}
}

// Each command of a thread.commit sees what those before it did, also where
// the first makes the thread.
func TestThreadCommit_RunsInOrder(t *testing.T) {
	k := newStory(t)
	made := k.do(append([]any{events.CreateThread{}}, turn()...)...)
	if len(made) != 14 || k.state.Version != 14 || k.seq != 1 {
		t.Fatalf("%d events in %d commits, version %d", len(made), k.seq, k.state.Version)
	}
	index := 0
	for _, e := range made {
		if e.CommandIndex < index || e.CommandIndex > index+1 {
			t.Errorf("after command %d comes an event of command %d", index, e.CommandIndex)
		}
		index = e.CommandIndex
	}
	if index != 13 {
		t.Errorf("the last event is of command %d", index)
	}
}

// Whichever command of a thread.commit is refused, nothing of it is done, and
// the refusal says which it was.
func TestThreadCommit_IsAtomic(t *testing.T) {
	for at := range turn() {
		k := begun(t)
		parts := turn()
		parts[at] = events.SetItemStatus{ItemID: "itm_nobody", To: events.ItemCompleted}
		wantRefusal(t, k.refuse(parts...), events.NotFound, events.ErrorDetails{Entity: "item", ID: "itm_nobody", Command: &at})
		parts[at] = events.UpdateThread{}
		wantRefusal(t, k.refuse(parts...), events.InvalidRequest, events.ErrorDetails{Path: "/data/commands/" + strconv.Itoa(at) + "/data", Command: &at})
	}
	k := begun(t)
	at := 2
	parts := append(turn()[:2], events.SetThreadStatus{To: events.ThreadStreaming})
	wantRefusal(t, k.refuse(parts...), events.IllegalTransition, events.ErrorDetails{
		Entity: "thread", ID: threadID, From: "streaming", To: "streaming", Allowed: []string{"open", "closed", "failed"}, Command: &at,
	})
	k.do(turn()...)
}
