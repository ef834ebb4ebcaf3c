package runview

import "github.com/skein-threads/skein/events"

// The names of the spans that Skein's own workers record: of a call of a model, and, before the
// tool's name, of a call of a tool.
const (
	ReactorSpanName = "reactor"
	ToolSpanPrefix  = "tool "
)

// SpanKind is what a [Span] is.
type SpanKind uint8

// The kinds of spans.
const (
	RunSpan   SpanKind = iota // an execution
	StepSpan                  // one turn of its loop
	ModelSpan                 // a call of a reactor
	ToolSpan                  // a call of a tool
	WaitSpan                  // for a person, a worker or another thread
	OtherSpan                 // that somebody else recorded
)

// WaitFor is what a run waits for.
type WaitFor uint8

// What runs wait for.
const (
	ForApproval WaitFor = iota + 1 // of a call
	ForAnswer                      // to a question
	ForThread                      // that works for a call
	ForTools                       // workers of tools, which make calls
	ForWorker                      // that offers what the run needs
)

// Span is something of a run that took time.
type Span struct {
	ID        string
	Parent    string // as it was recorded; empty, or of a span that is not there: the run
	Step      string // of a recorded span: the newest step then
	Kind      SpanKind
	For       WaitFor // of a wait
	Name      string  // of a tool, of what is waited for, or as it was recorded
	Begun     events.Time
	Ended     events.Time // 0: it lasts
	Failed    bool
	Detail    string // why it failed, or who answered
	Iteration int64  // of a step, from 0
	Side      events.Side
	Usage     *events.Usage
	Model     string // that was requested
	Call      string // of a tool
	Attempts  int64
	Thread    string        // that works for the run
	Shown     *events.Shown // to a model
	Version   int64         // of the thread, where it was recorded
}
