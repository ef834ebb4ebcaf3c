package thread

import (
	"slices"
	"testing"

	"github.com/skein-threads/skein/events"
)

// moves takes a machine through commands from every state to every state, and
// checks that exactly the allowed moves are done: with an event that says from
// and to, or with a refusal that lists what is allowed, and with the state as
// it was. reach takes a new story's entity to a state.
func moves[S ~string](t *testing.T, m events.Machine[S], id string, reach func(*story, S), ask func(to S) any, tell func(from, to S) fact) {
	t.Helper()
	for _, from := range m.States {
		for _, target := range m.States {
			k := begun(t)
			reach(k, from)
			may := slices.Contains(m.Transitions, events.Transition[S]{From: from, To: target})
			if may {
				want(t, k.do(ask(target)), tell(from, target))
				continue
			}
			details := events.ErrorDetails{Entity: m.Entity, ID: id, From: string(from), To: string(target), Allowed: allowed(m, from)}
			wantRefusal(t, k.refuse(ask(target)), events.IllegalTransition, details)
			for _, next := range m.Allowed(from) { // the refused move has changed nothing
				want(t, k.do(ask(next)), tell(from, next))
				break
			}
		}
	}
}

// EK-81..EK-86, EK-150.
func TestMoves_Thread(t *testing.T) {
	ask := func(to events.ThreadStatus) any { return events.SetThreadStatus{To: to, Reason: "why"} }
	moves(t, events.ThreadMachine(), threadID,
		func(k *story, s events.ThreadStatus) {
			if s != events.ThreadOpen {
				k.do(ask(events.ThreadStreaming))
			}
			if s == events.ThreadClosed || s == events.ThreadFailed {
				k.do(ask(s))
			}
		}, ask,
		func(from, to events.ThreadStatus) fact {
			return fact{events.ThreadStatusChangedType, threadID, "", events.ThreadStatusChanged{From: from, To: to, Reason: "why"}}
		})
}

// EK-87..EK-91, EK-150.
func TestMoves_Context(t *testing.T) {
	ask := func(to events.ContextStatus) any { return events.SetContextStatus{ContextID: "ctx_a", To: to} }
	moves(t, events.ContextMachine(), "ctx_a",
		func(k *story, s events.ContextStatus) {
			k.do(events.CreateContext{ID: "ctx_a"})
			if s != events.ContextOpen {
				k.do(ask(s))
			}
		}, ask,
		func(from, to events.ContextStatus) fact {
			return fact{events.ContextStatusChangedType, "ctx_a", "", events.ContextStatusChanged{From: from, To: to}}
		})
}

// A context that is not named is the default one.
func TestMoves_DefaultContext(t *testing.T) {
	k := begun(t)
	want(t, k.do(events.SetContextStatus{To: events.ContextStreaming}), fact{events.ContextStatusChangedType, k.state.ContextID(), "",
		events.ContextStatusChanged{From: events.ContextOpen, To: events.ContextStreaming}})
}

// EK-92..EK-94, EK-150.
func TestMoves_Execution(t *testing.T) {
	ask := func(to events.ExecutionStatus) any { return events.SetExecutionStatus{ExecutionID: "exe_1", To: to} }
	moves(t, events.ExecutionMachine(), "exe_1",
		func(k *story, s events.ExecutionStatus) {
			if s != events.Executing {
				k.do(ask(s))
			}
		}, ask,
		func(from, to events.ExecutionStatus) fact {
			return fact{events.ExecutionStatusChangedType, "exe_1", "exe_1", events.ExecutionStatusChanged{From: from, To: to}}
		})
}

// EK-95..EK-97, EK-150.
func TestMoves_Step(t *testing.T) {
	ask := func(to events.StepStatus) any { return events.SetStepStatus{StepID: "stp_1", To: to} }
	moves(t, events.StepMachine(), "stp_1",
		func(k *story, s events.StepStatus) {
			if s != events.StepRunning {
				k.do(ask(s))
			}
		}, ask,
		func(from, to events.StepStatus) fact {
			return fact{events.StepStatusChangedType, "stp_1", "exe_1", events.StepStatusChanged{ExecutionID: "exe_1", From: from, To: to}}
		})
}

// EK-98, EK-99, EK-100, EK-101, EK-150. An item may be made in any of its states.
func TestMoves_Item(t *testing.T) {
	ask := func(to events.ItemStatus) any { return events.SetItemStatus{ItemID: "itm_a", To: to} }
	moves(t, events.ItemMachine(), "itm_a",
		func(k *story, s events.ItemStatus) {
			item := message("itm_a", "x")
			item.Item.Status = s
			k.do(item)
		}, ask,
		func(from, to events.ItemStatus) fact {
			return fact{events.ItemStatusChangedType, "itm_a", "", events.ItemStatusChanged{From: from, To: to}}
		})
}
