package telemetry

import (
	"go.opentelemetry.io/otel/attribute"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runview"
)

// Limits of what is kept of one run. What exceeds them is counted and dropped.
const (
	maxSpans = 2000
	maxNotes = 128 // of one span; the SDK's own limit is the same
)

// run holds what the spans of one execution consist of, folded from its events.
type run struct {
	*runview.Tree
	notes map[*runview.Span][]note
	said  map[*runview.Span]*said // nil: content is not exported
	size  int                     // number of spans and notes
}

// note is an event of a span.
type note struct {
	at    events.Time
	name  string
	attrs []attribute.KeyValue
}

// begin returns the run of an execution.
func begin(e *events.Event, commit *events.Commit, content bool) *run {
	r := &run{Tree: runview.NewTree(e, maxSpans), notes: map[*runview.Span][]note{}, size: 1}
	if content {
		d, _ := e.Data.(events.ExecutionCreated)
		r.said = map[*runview.Span]*said{r.Own: {input: asks(commit, d.TriggerItemID)}}
	}
	return r
}

// name returns the name of the run.
func (r *run) name() name { return name{r.Tenant, r.Thread, r.ID} }

// apply folds an event of the execution. It reports whether it was the last.
func (r *run) apply(e *events.Event) (over bool) {
	added := r.Event(e)
	if added != nil {
		r.size++
	}
	switch d := e.Data.(type) {
	case events.PartCreated:
		r.says(d.StepID, d.Type, d.Part)
	case events.PartUpdated:
		r.says(d.StepID, d.Type, d.Part)
	case events.TraceRecorded:
		if d.Kind == events.TraceLog {
			r.logged(e, d)
		} else if added != nil {
			r.quote(added)
		}
	case events.ThreadFinished:
		return true
	default:
		r.happened(e)
	}
	return false
}

// happened notes what is not a span: what a run waited for, and who changed it.
func (r *run) happened(e *events.Event) {
	call := func(id string) attribute.KeyValue { return text("gen_ai.tool.call.id", id) }
	switch d := e.Data.(type) {
	case events.RunClaimed:
		if d.Token > 1 {
			r.note(r.Own, e, "skein.run.claimed", attribute.Int64("skein.run.token", d.Token), text("skein.run.worker", d.Worker))
		}
	case events.ApprovalRequested:
		r.note(r.At(d.StepID), e, "skein.approval.requested", call(d.CallID), text("gen_ai.tool.name", d.Name))
	case events.ApprovalGranted:
		r.note(r.At(""), e, "skein.approval.granted", call(d.CallID), text("skein.actor", e.Actor))
	case events.ApprovalDenied:
		r.note(r.At(""), e, "skein.approval.denied", call(d.CallID), text("skein.actor", e.Actor))
	case events.ApprovalResolved:
		r.note(r.At(""), e, "skein.approval.resolved", call(d.CallID), text("skein.actor", e.Actor))
	case events.RunSuspended:
		r.note(r.At(""), e, "skein.run.suspended", calls(d.Calls))
	case events.RunResumed:
		r.note(r.At(""), e, "skein.run.resumed", calls(d.Calls))
	case events.RunParked:
		r.note(r.Own, e, "skein.run.parked", calls(d.Calls))
	case events.RunStopped:
		r.note(r.Own, e, "skein.run.stopped", attribute.Bool("skein.run.abort", d.Abort))
	case events.RunTurned:
		r.note(r.Own, e, "skein.run.turned", text("skein.side", string(d.Side)))
	case events.AgentAssigned:
		r.note(r.Own, e, "skein.handoff", text("skein.handoff.from", d.From), text("skein.handoff.to", d.AgentID))
	}
}

// logged notes a line of a log.
func (r *run) logged(e *events.Event, d events.TraceRecorded) {
	line := []attribute.KeyValue{text("skein.log.level", d.Level), text("skein.log.text", d.Text)}
	if said := runview.ReadRecord(d.Data); said.Attempt > 0 {
		r.note(r.At(d.SpanID), e, "skein.retry", append(line, attribute.Int64("skein.attempt", said.Attempt))...)
		return
	}
	r.note(r.At(d.SpanID), e, "skein.log", line...)
}

func (r *run) note(s *runview.Span, e *events.Event, what string, attrs ...attribute.KeyValue) {
	if len(r.notes[s]) < maxNotes {
		r.notes[s] = append(r.notes[s], note{e.Time, what, attrs})
		r.size++
	}
}
