package runview

import "github.com/skein-threads/skein/events"

// Frame is one thing that happened in a run: one of the types below.
type Frame interface{ frame() }

// Step is one call of the reactor, with its calls of tools.
type Step struct {
	ID        string
	Iteration int64
	ItemID    string // the item that it writes
	SteeredBy string // the message that the item answers, if the run was steered
	Status    events.StepStatus
}

// Kind says what a text is.
type Kind string

// The kinds of texts.
const (
	PlainText Kind = "text"
	Reasoning Kind = "reasoning"
)

// Text is a text or a reasoning of a step.
type Text struct {
	StepID string
	Kind   Kind
	N      int         // its place among the texts and reasonings of the step, from 0
	Phase  string      // of the message, as its endpoint says; only of a text that is streamed
	Part   events.JSON // as the log has it, if nothing of it was streamed
}

// Call is a call of a tool.
type Call struct {
	StepID   string
	ID, Name string
	Input    events.JSON
	Output   events.JSON // of CallResult
	Error    string      // of CallFailed
	Part     events.JSON // as the log has it; nil: it is not recorded yet
	Question bool        // it asks a person for an answer, which is its output
}

type (
	// StepStarted begins a step.
	StepStarted struct{ Step }
	// StepReset takes back what the step has shown: its reactor was asked again, or the log has
	// something else. What follows is shown in its place.
	StepReset struct {
		Step
		Kept bool // the reader is AppendOnly: it keeps what it was shown
	}
	// StepFinished ends a step. Its status is running if the run waits in it.
	StepFinished struct{ Step }

	// TextStarted begins a text.
	TextStarted struct{ Text }
	// TextDelta is more of a text.
	TextDelta struct {
		Text
		Delta string
	}
	// TextFinished ends a text.
	TextFinished struct{ Text }
	// Sealed has what only its model can read of a reasoning. It precedes the end of the reasoning. A
	// reasoning without a text has this frame alone.
	Sealed struct {
		Text
		Bare      bool // there is no text
		Encrypted string
	}
	// Cited has the annotations of a text.
	Cited struct {
		Key         string // of the part
		Annotations []Annotation
	}

	// CallStarted says that a model begins to write a call.
	CallStarted struct{ Call }
	// CallDelta is more of the arguments of a call.
	CallDelta struct {
		Call
		Delta string
	}
	// CallWritten says that a model has written a call. It may come without a CallStarted. Whether the
	// call is made is not known yet.
	CallWritten struct{ Call }
	// CallReady says that the arguments of a call are known, or were changed by a person.
	CallReady struct {
		Call
		Changed bool
	}
	// Asked says that a call waits for a person.
	Asked struct {
		Call
		Request events.ApprovalRequested
	}
	// CallResult ends a call that returned a result.
	CallResult struct{ Call }
	// CallFailed ends a call that failed.
	CallFailed struct{ Call }
	// CallDenied ends a call that a person has denied.
	CallDenied struct{ Call }
	// CallDropped ends a call that a model began to write and that was not made.
	CallDropped struct{ Call }

	// Data is a part of a type that no frame above has, or what a reactor streams of such a type.
	Data struct {
		StepID   string
		Key      string // of the part; empty: it was streamed
		Type     string
		JSON     events.JSON
		Recorded bool // it is in the log
	}
	// Substate is what a reactor says that it does now.
	Substate struct {
		StepID string
		Name   string
	}

	// Finished ends the run.
	Finished struct {
		Status    events.ExecutionStatus
		Reason    string // one of the events.Finish reasons
		ErrorText string
		Aborted   *events.RunStopped // nil: it was not aborted
	}
	// Removed says that the run will not begin: its message was removed from the queue.
	Removed struct{}
	// Deleted says that the thread was deleted.
	Deleted struct{}
)

func (StepStarted) frame()  {}
func (StepReset) frame()    {}
func (StepFinished) frame() {}
func (TextStarted) frame()  {}
func (TextDelta) frame()    {}
func (TextFinished) frame() {}
func (Sealed) frame()       {}
func (Cited) frame()        {}
func (CallStarted) frame()  {}
func (CallDelta) frame()    {}
func (CallWritten) frame()  {}
func (CallReady) frame()    {}
func (Asked) frame()        {}
func (CallResult) frame()   {}
func (CallFailed) frame()   {}
func (CallDenied) frame()   {}
func (CallDropped) frame()  {}
func (Data) frame()         {}
func (Substate) frame()     {}
func (Finished) frame()     {}
func (Removed) frame()      {}
func (Deleted) frame()      {}
