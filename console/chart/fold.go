package chart

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runview"
)

// maxSpans limits the bars that are kept of one run, and its marks; those beyond are counted.
const maxSpans = 10_000

// Run is an execution of a thread, with the bars of all that it consisted of.
type Run struct {
	*runview.Tree
	Bars []Bar // the first one is the run's own

	marks []mark
}

// mark is a moment of a run.
type mark struct {
	Bar
	after int // how many spans were recorded before
}

// Begun returns when the run began.
func (r *Run) Begun() events.Time { return r.Own.Begun }

// Ended returns when the run ended; 0: it lasts.
func (r *Run) Ended() events.Time { return r.Own.Ended }

// Failure returns why the run failed.
func (r *Run) Failure() string { return r.Own.Detail }

// Fold returns the runs of a thread, in the order in which they began. The events are the
// thread's, in their order; unknown ones are ignored.
func Fold(list []events.Event) []*Run {
	var order []*Run
	runs := map[string]*Run{}
	for i := range list {
		e := &list[i]
		if d, ok := e.Data.(events.ExecutionCreated); ok && runs[d.ID] == nil {
			r := &Run{Tree: runview.NewTree(e, maxSpans-1)}
			order, runs[d.ID] = append(order, r), r
		} else if r := cmp.Or(runs[e.Correlation], runs[e.Subject]); r != nil {
			r.notice(e)
			r.Event(e)
		}
	}
	for _, r := range order {
		r.draw()
	}
	return order
}

// notice marks what took no time.
func (r *Run) notice(e *events.Event) {
	switch d := e.Data.(type) {
	case events.RunClaimed:
		if d.Token > 1 && !r.Waits() {
			r.mark(e, "taken up again", "by "+d.Worker)
		}
	case events.RunStopped:
		r.mark(e, "asked to stop", d.Reason)
	case events.AgentAssigned:
		r.mark(e, "handed to "+d.AgentID, "")
	case events.TraceRecorded:
		if said := runview.ReadRecord(d.Data); d.Kind == events.TraceLog && said.Attempt > 0 {
			r.mark(e, fmt.Sprintf("attempt %d failed", said.Attempt), d.Text)
		}
	}
}

func (r *Run) mark(e *events.Event, name, detail string) {
	if len(r.marks) >= maxSpans {
		r.Left++
		return
	}
	b := Bar{ID: "mark " + e.ID, Parent: r.At("").ID, Kind: MarkBar, Name: name, Detail: detail, Begun: e.Time, Ended: e.Time, Version: e.Version}
	r.marks = append(r.marks, mark{b, len(r.Spans)})
}

// draw makes the bars, in the order in which they were recorded.
func (r *Run) draw() {
	own := barOf(r.Own)
	own.Name, own.Usage, own.Models = cmp.Or(r.Agent, "run"), r.Usage, r.Models
	r.Bars = append(make([]Bar, 0, 1+len(r.Spans)+len(r.marks)), own)
	for i, s := range r.Spans {
		for len(r.marks) > 0 && r.marks[0].after <= i {
			r.Bars, r.marks = append(r.Bars, r.marks[0].Bar), r.marks[1:]
		}
		r.Bars = append(r.Bars, barOf(s))
	}
	for _, m := range r.marks {
		r.Bars = append(r.Bars, m.Bar)
	}
	r.Bars = slices.Clip(r.Bars)
}

// barOf returns the bar of a span.
func barOf(s *runview.Span) Bar {
	b := Bar{
		ID: s.ID, Parent: cmp.Or(s.Parent, s.Step), Kind: kinds(s.Kind), Name: s.Name, Detail: s.Detail, Begun: s.Begun, Ended: s.Ended,
		Failed: s.Failed, Call: s.Call, Thread: s.Thread, Shown: s.Shown, Version: s.Version,
	}
	if s.Usage != nil && s.Kind != runview.StepSpan { // whose calls have it
		b.Usage = *s.Usage
	}
	switch s.Kind {
	case runview.StepSpan:
		b.Name = fmt.Sprintf("step %d", s.Iteration+1)
		if s.Side != "" {
			b.Name += ", side " + string(s.Side)
		}
	case runview.WaitSpan:
		b.Name = waitName(s)
	case runview.ModelSpan:
		b.Name = cmp.Or(s.Model, b.Usage.Model, "reactor")
	}
	if s.Attempts > 1 {
		b.Detail = fmt.Sprintf("%d attempts", s.Attempts)
	}
	return b
}

func kinds(k runview.SpanKind) Kind {
	return [...]Kind{RunBar, StepBar, ModelBar, ToolBar, WaitBar, OtherBar}[k]
}

func waitName(s *runview.Span) string {
	switch s.For {
	case runview.ForApproval:
		return "approval of " + s.Name
	case runview.ForAnswer:
		return "an answer to " + s.Name
	case runview.ForThread:
		return "another thread"
	case runview.ForTools:
		return "workers of tools"
	default:
		return "a worker for " + s.Name
	}
}
