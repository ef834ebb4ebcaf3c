package events

// Side is one of the two sides of a conversation between two agents.
type Side string

// The sides. A conversation that is not between two agents is all on side a.
const (
	SideA Side = "a"
	SideB Side = "b"
)

// Enum lists the sides.
func (Side) Enum() []string { return []string{string(SideA), string(SideB)} }

// ExecutionState is an execution as its tools and hooks see it. It is read-only except for the
// two methods that steer it. Outside an execution it is nil.
type ExecutionState interface {
	FlowID() string                  // the execution's id
	CurrentSide() Side               // whose turn it is
	StepCount() int64                // steps whose reactor ran
	SideAStepCount() int64           // those of side a
	SideBStepCount() int64           // those of side b
	Stopped() bool                   // it was asked to stop
	StoppedBy() Side                 // the side that asked; empty if none did
	MessageHistory() []ThreadMessage // oldest first
	AbortSignal() <-chan struct{}    // closed when in-flight work is to be abandoned; the context.Context of a call ends then too

	ForceTurn(side Side) error // the next turn is that side's; an error if there is only one side
	Stop()                     // nothing starts after the current work
}
