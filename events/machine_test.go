package events

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The moves that EK 5 allows, copied from the specification rather than from the tables.
// Everything else is forbidden, including staying in a state.
const specified = `
thread     open       streaming
thread     streaming  open
thread     streaming  closed
thread     streaming  failed
thread     failed     open
context    open       streaming
context    streaming  open
context    open       closed
context    streaming  closed
execution  executing  completed
execution  executing  failed
step       running    completed
step       running    failed
item       stored     pending
item       stored     completed
item       pending    completed
`

// specifiedMoves returns the moves of one entity, from -> to, in EK's order.
func specifiedMoves(entity string) map[string][]string {
	moves := map[string][]string{}
	for line := range strings.Lines(specified) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == entity {
			moves[f[1]] = append(moves[f[1]], f[2])
		}
	}
	return moves
}

// The machines of EK 5, every state by every state: EK-81..EK-101. The states are those of
// EK-15, EK-21, EK-36, EK-51, EK-61, the initial ones those of EK-18, EK-25, EK-58, EK-65.
func TestMachines_AllowedMoves(t *testing.T) {
	testMachine(t, ThreadMachine(), "open", "streaming", "closed", "failed")
	testMachine(t, ContextMachine(), "open", "streaming", "closed")
	testMachine(t, ExecutionMachine(), "executing", "completed", "failed")
	testMachine(t, StepMachine(), "running", "completed", "failed")
	testMachine(t, ItemMachine(), "stored", "pending", "completed")
}

func testMachine[S ~string](t *testing.T, m Machine[S], states ...S) {
	t.Run(m.Entity, func(t *testing.T) {
		if !slices.Equal(m.States, states) {
			t.Fatalf("states %q, want %q", m.States, states)
		}
		if m.Initial() != states[0] {
			t.Errorf("begins as %q, want %q", m.Initial(), states[0])
		}
		moves := specifiedMoves(m.Entity)
		// A state that no machine has is refused like a forbidden one.
		for _, from := range append(states, "", "archived") {
			allowed := moves[string(from)]
			if got := m.Allowed(from); fmt.Sprint(got) != fmt.Sprint(allowed) {
				t.Errorf("from %q: allowed %q, want %q", from, got, allowed)
			}
			for _, to := range append(states, "", "archived") {
				err := m.Check("x_1", from, to)
				if want := slices.Contains(allowed, string(to)); (err == nil) != want {
					t.Errorf("%q -> %q: %v, allowed must be %v", from, to, err, want)
				}
				if err == nil {
					continue
				}
				var refused *TransitionError
				if !errors.As(err, &refused) || refused.Entity != m.Entity || refused.ID != "x_1" || refused.From != string(from) ||
					refused.To != string(to) || !slices.Equal(refused.Allowed, allowed) || refused.Allowed == nil {
					t.Errorf("%q -> %q: %#v", from, to, err)
				}
			}
		}
		checkDrawing(t, m.Mermaid(), string(m.Initial()), moves, m.States)
	})
}

// checkDrawing requires each move in the drawing once, and an end at each terminal state.
func checkDrawing[S ~string](t *testing.T, drawing, initial string, moves map[string][]string, states []S) {
	t.Helper()
	want := []string{"stateDiagram-v2", "[*] --> " + initial}
	for _, s := range states {
		for _, to := range moves[string(s)] {
			want = append(want, string(s)+" --> "+to)
		}
		if len(moves[string(s)]) == 0 {
			want = append(want, string(s)+" --> [*]")
		}
	}
	var got []string
	for line := range strings.Lines(drawing) {
		got = append(got, strings.TrimSpace(line))
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("drawing:\n%s\nwant the lines %q", drawing, want)
	}
}

// EK-86, EK-91, EK-94, EK-97, EK-101: the terminal states.
func TestMachines_TerminalStates(t *testing.T) {
	for name, allowed := range map[string]int{
		"thread closed":    len(ThreadMachine().Allowed(ThreadClosed)),
		"context closed":   len(ContextMachine().Allowed(ContextClosed)),
		"execution done":   len(ExecutionMachine().Allowed(ExecutionCompleted)),
		"execution failed": len(ExecutionMachine().Allowed(ExecutionFailed)),
		"step done":        len(StepMachine().Allowed(StepCompleted)),
		"step failed":      len(StepMachine().Allowed(StepFailed)),
		"item done":        len(ItemMachine().Allowed(ItemCompleted)),
	} {
		if allowed != 0 {
			t.Errorf("%s can be left", name)
		}
	}
}

func TestTransitionErrorText(t *testing.T) {
	for want, err := range map[string]error{
		"thread T-1 is open and cannot become closed; allowed: streaming; a thread on which nothing runs is put away with thread.update and archived true, or removed with thread.delete; only a run closes its thread": ThreadMachine().Check("T-1", ThreadOpen, ThreadClosed),
		"thread T-1 is streaming and cannot become streaming; allowed: open, closed, failed":                                                                                                                            ThreadMachine().Check("T-1", ThreadStreaming, ThreadStreaming),
		"item itm_1 is completed, which is final, and cannot become stored":                                                                                                                                             ItemMachine().Check("itm_1", ItemCompleted, ItemStored),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// The schemas use the states that Enum lists.
func TestEnum_ListsMachineStates(t *testing.T) {
	for _, c := range []struct{ got, want []string }{
		{ThreadOpen.Enum(), []string{"open", "streaming", "closed", "failed"}},
		{ContextOpen.Enum(), []string{"open", "streaming", "closed"}},
		{Executing.Enum(), []string{"executing", "completed", "failed"}},
		{StepRunning.Enum(), []string{"running", "completed", "failed"}},
		{ItemStored.Enum(), []string{"stored", "pending", "completed"}},
		{Message.Enum(), []string{"message", "action_execute", "action_result", "item_reference"}}, // EK-9, EK-31
		{User.Enum(), []string{"user", "assistant", "system", "developer"}},                        // EK-7, EK-32
		{Web.Enum(), []string{"web", "whatsapp", "email"}},                                         // EK-37
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
