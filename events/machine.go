package events

import (
	"fmt"
	"slices"
	"strings"
)

// ThreadStatus is a thread's state.
type ThreadStatus string

// ContextStatus is a context's state.
type ContextStatus string

// ExecutionStatus is an execution's state.
type ExecutionStatus string

// StepStatus is a step's state.
type StepStatus string

// ItemStatus is an item's state.
type ItemStatus string

// The states of the five machines.
const (
	ThreadOpen      ThreadStatus = "open"
	ThreadStreaming ThreadStatus = "streaming"
	ThreadClosed    ThreadStatus = "closed"
	ThreadFailed    ThreadStatus = "failed"

	ContextOpen      ContextStatus = "open"
	ContextStreaming ContextStatus = "streaming"
	ContextClosed    ContextStatus = "closed"

	Executing          ExecutionStatus = "executing"
	ExecutionCompleted ExecutionStatus = "completed"
	ExecutionFailed    ExecutionStatus = "failed"

	StepRunning   StepStatus = "running"
	StepCompleted StepStatus = "completed"
	StepFailed    StepStatus = "failed"

	ItemStored    ItemStatus = "stored"
	ItemPending   ItemStatus = "pending"
	ItemCompleted ItemStatus = "completed"
)

// Transition is one allowed move of a machine.
type Transition[S ~string] struct{ From, To S }

// Machine is a state machine as data: its states, the initial one first, and the moves that it
// allows. A move that is not listed is refused, including staying in a state. A state without
// a move out is terminal.
type Machine[S ~string] struct {
	Entity      string
	States      []S
	Transitions []Transition[S]
	Advice      []Advice[S] // for moves that callers attempt and that are refused
}

// Advice says what to do instead of a refused move.
type Advice[S ~string] struct {
	Transition[S]

	Instead string
}

// ThreadMachine returns the machine of a thread.
func ThreadMachine() Machine[ThreadStatus] {
	return Machine[ThreadStatus]{
		Entity: "thread",
		States: []ThreadStatus{ThreadOpen, ThreadStreaming, ThreadClosed, ThreadFailed},
		Transitions: []Transition[ThreadStatus]{
			{ThreadOpen, ThreadStreaming},
			{ThreadStreaming, ThreadOpen},
			{ThreadStreaming, ThreadClosed},
			{ThreadStreaming, ThreadFailed},
			{ThreadFailed, ThreadOpen},
		},
		Advice: []Advice[ThreadStatus]{
			{Transition[ThreadStatus]{ThreadOpen, ThreadClosed}, idleClose},
			{Transition[ThreadStatus]{ThreadFailed, ThreadClosed}, idleClose},
		},
	}
}

// idleClose is advice for closing a thread that has no run.
const idleClose = "a thread on which nothing runs is put away with thread.update and archived true, or removed with thread.delete; " +
	"only a run closes its thread"

// ContextMachine returns the machine of a context.
func ContextMachine() Machine[ContextStatus] {
	return Machine[ContextStatus]{
		Entity: "context",
		States: []ContextStatus{ContextOpen, ContextStreaming, ContextClosed},
		Transitions: []Transition[ContextStatus]{
			{ContextOpen, ContextStreaming},
			{ContextStreaming, ContextOpen},
			{ContextOpen, ContextClosed},
			{ContextStreaming, ContextClosed},
		},
	}
}

// ExecutionMachine returns the machine of an execution.
func ExecutionMachine() Machine[ExecutionStatus] {
	return Machine[ExecutionStatus]{
		Entity:      "execution",
		States:      []ExecutionStatus{Executing, ExecutionCompleted, ExecutionFailed},
		Transitions: []Transition[ExecutionStatus]{{Executing, ExecutionCompleted}, {Executing, ExecutionFailed}},
	}
}

// StepMachine returns the machine of a step.
func StepMachine() Machine[StepStatus] {
	return Machine[StepStatus]{
		Entity:      "step",
		States:      []StepStatus{StepRunning, StepCompleted, StepFailed},
		Transitions: []Transition[StepStatus]{{StepRunning, StepCompleted}, {StepRunning, StepFailed}},
	}
}

// ItemMachine returns the machine of an item.
func ItemMachine() Machine[ItemStatus] {
	return Machine[ItemStatus]{
		Entity: "item",
		States: []ItemStatus{ItemStored, ItemPending, ItemCompleted},
		Transitions: []Transition[ItemStatus]{
			{ItemStored, ItemPending},
			{ItemStored, ItemCompleted},
			{ItemPending, ItemCompleted},
		},
	}
}

// Enum lists the states, for the JSON Schemas.
func (ThreadStatus) Enum() []string { return names(ThreadMachine()) }

// Enum lists the states, for the JSON Schemas.
func (ContextStatus) Enum() []string { return names(ContextMachine()) }

// Enum lists the states, for the JSON Schemas.
func (ExecutionStatus) Enum() []string { return names(ExecutionMachine()) }

// Enum lists the states, for the JSON Schemas.
func (StepStatus) Enum() []string { return names(StepMachine()) }

// Enum lists the states, for the JSON Schemas.
func (ItemStatus) Enum() []string { return names(ItemMachine()) }

func names[S ~string](m Machine[S]) []string {
	out := make([]string, len(m.States))
	for i, s := range m.States {
		out[i] = string(s)
	}
	return out
}

// Initial returns the state in which an entity is created.
func (m Machine[S]) Initial() S { return m.States[0] }

// Allowed returns the states that may follow from, in the table's order.
func (m Machine[S]) Allowed(from S) []S {
	var out []S
	for _, t := range m.Transitions {
		if t.From == from {
			out = append(out, t.To)
		}
	}
	return out
}

// Check returns nil if the move is allowed, and a *TransitionError if not.
func (m Machine[S]) Check(id string, from, to S) error {
	if slices.Contains(m.Transitions, Transition[S]{from, to}) {
		return nil
	}
	allowed := []string{}
	for _, s := range m.Allowed(from) {
		allowed = append(allowed, string(s))
	}
	e := &TransitionError{Entity: m.Entity, ID: id, From: string(from), To: string(to), Allowed: allowed}
	for _, a := range m.Advice {
		if a.From == from && a.To == to {
			e.Instead = a.Instead
		}
	}
	return e
}

// Mermaid returns the machine as a Mermaid state diagram.
func (m Machine[S]) Mermaid() string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n")
	fmt.Fprintf(&b, "    [*] --> %s\n", m.Initial())
	for _, t := range m.Transitions {
		fmt.Fprintf(&b, "    %s --> %s\n", t.From, t.To)
	}
	for _, s := range m.States {
		if len(m.Allowed(s)) == 0 {
			fmt.Fprintf(&b, "    %s --> [*]\n", s)
		}
	}
	return b.String()
}

// TransitionError is the error of a move that a machine does not allow. Nothing changed.
// Allowed lists the moves that are possible; it is empty if the state is terminal.
type TransitionError struct {
	Entity, ID string
	From, To   string
	Allowed    []string
	Instead    string // what to do instead, if there is advice
}

func (e *TransitionError) Error() string {
	text := e.refusal()
	if e.Instead != "" {
		text += "; " + e.Instead
	}
	return text
}

func (e *TransitionError) refusal() string {
	if len(e.Allowed) == 0 {
		return fmt.Sprintf("%s %s is %s, which is final, and cannot become %s", e.Entity, e.ID, e.From, e.To)
	}
	return fmt.Sprintf("%s %s is %s and cannot become %s; allowed: %s", e.Entity, e.ID, e.From, e.To, strings.Join(e.Allowed, ", "))
}
