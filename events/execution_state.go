package events

// Side is one of the two sides of a conversation between two agents.
type Side string

// The sides. What is not such a conversation is all on side a.
const (
	SideA Side = "a"
	SideB Side = "b"
)

// Enum lists the sides.
func (Side) Enum() []string { return []string{string(SideA), string(SideB)} }

// ExecutionState is an execution as what runs in it sees it. It
// is read-only but for its two methods that steer. Outside of an execution there
// is none: a nil ExecutionState.
type ExecutionState interface {
	FlowID() string                  // the execution's id
	CurrentSide() Side               // whose turn it is
	StepCount() int64                // steps whose reactor ran
	SideAStepCount() int64           // those of side a
	SideBStepCount() int64           // those of side b
	Stopped() bool                   // it was asked to stop
	StoppedBy() Side                 // by whom; empty if nobody did
	MessageHistory() []ThreadMessage // oldest first
	AbortSignal() <-chan struct{}    // closed when work under way is to be given up; the context.Context of a call ends then too

	ForceTurn(side Side) error // the next turn is that side's; an error where there is one side only
	Stop()                     // nothing begins after what is under way
}
