package telemetry

import (
	"github.com/go-json-experiment/json/jsontext"

	"strings"

	"github.com/go-json-experiment/json"
	"go.opentelemetry.io/otel/attribute"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
)

// Limits of what is kept of one run. What exceeds them is counted and dropped.
const (
	maxSpans = 2000
	maxNotes = 128 // of one span; the SDK's own limit is the same
)

// run holds what the spans of one execution consist of, folded from its events.
type run struct {
	name
	content     bool // whether content is kept
	traceparent string
	session     string // of the request
	agent       string
	version     int64 // of the agent's definition
	parent      *events.Parent
	status      events.ExecutionStatus
	usage       events.Usage // in total
	own         *span        // of the run itself
	spans       []*span      // in the order in which they were recorded
	byID        map[string]*span
	step        *span // the newest
	left        int   // spans that were dropped
	size        int   // number of spans and notes
}

// span is one span of a run.
type span struct {
	id, parent string
	kind       spanKind
	name       string // of a tool, or as it was recorded
	begun      events.Time
	ended      events.Time // 0 while it lasts
	failed     bool
	failure    string
	iteration  int64
	side       events.Side
	usage      *events.Usage
	model      string // that was requested
	call       string
	attempts   int64
	notes      []note
	said       // only if content is exported
}

// spanKind is the kind of a span.
type spanKind int

const (
	runSpan spanKind = iota
	stepSpan
	chatSpan
	toolSpan
	otherSpan
)

// note is an event of a span.
type note struct {
	at    events.Time
	name  string
	attrs []attribute.KeyValue
}

// begin returns the run of an execution.
func begin(e *events.Event, commit *events.Commit, content bool) *run {
	d, _ := e.Data.(events.ExecutionCreated)
	r := &run{
		name: name{e.Tenant, e.ThreadID, e.Subject}, content: content, traceparent: e.TraceParent, session: d.SessionID, status: d.Status,
		own: &span{kind: runSpan, begun: e.Time}, byID: map[string]*span{}, size: 1,
	}
	if content {
		r.own.input = asks(commit, d.TriggerItemID)
	}
	return r
}

// apply folds an event of the execution. It reports whether it was the last.
func (r *run) apply(e *events.Event) (over bool) {
	switch d := e.Data.(type) {
	case events.RunRequested:
		if r.agent == "" {
			r.agent, r.parent = d.AgentID, d.Parent
		}
	case events.RunClaimed:
		for _, v := range d.Definitions {
			if v.Kind == events.AgentKind && v.Name == r.agent {
				r.version = v.Version
			}
		}
		if d.Token > 1 {
			r.note(r.own, e, "skein.run.claimed", attribute.Int64("skein.run.token", d.Token), text("skein.run.worker", d.Worker))
		}
	case events.StepCreated:
		r.step = r.add(&span{id: d.ID, kind: stepSpan, begun: e.Time, iteration: d.Iteration, side: d.Side})
	case events.StepStatusChanged:
		if s := r.byID[e.Subject]; s != nil && d.To != events.StepRunning {
			s.ended, s.failed, s.failure = e.Time, d.To == events.StepFailed, d.ErrorText
		}
	case events.PartCreated:
		r.said(d.StepID, d.Type, d.Part)
	case events.PartUpdated:
		r.said(d.StepID, d.Type, d.Part)
	case events.TraceRecorded:
		r.recorded(e, d)
	case events.ExecutionStatusChanged:
		r.status, r.own.failed, r.own.failure = d.To, d.To == events.ExecutionFailed, d.ErrorText
	case events.ThreadFinished:
		r.status, r.own.ended = d.Status, e.Time
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
	case events.ApprovalRequested:
		r.note(r.at(d.StepID), e, "skein.approval.requested", call(d.CallID), text("gen_ai.tool.name", d.Name))
	case events.ApprovalGranted:
		r.note(r.at(""), e, "skein.approval.granted", call(d.CallID), text("skein.actor", e.Actor))
	case events.ApprovalDenied:
		r.note(r.at(""), e, "skein.approval.denied", call(d.CallID), text("skein.actor", e.Actor))
	case events.ApprovalResolved:
		r.note(r.at(""), e, "skein.approval.resolved", call(d.CallID), text("skein.actor", e.Actor))
	case events.RunSuspended:
		r.note(r.at(""), e, "skein.run.suspended", calls(d.Calls))
	case events.RunResumed:
		r.note(r.at(""), e, "skein.run.resumed", calls(d.Calls))
	case events.RunParked:
		r.note(r.own, e, "skein.run.parked", calls(d.Calls))
	case events.RunStopped:
		r.note(r.own, e, "skein.run.stopped", attribute.Bool("skein.run.abort", d.Abort))
	case events.RunTurned:
		r.note(r.own, e, "skein.run.turned", text("skein.side", string(d.Side)))
	case events.AgentAssigned:
		r.note(r.own, e, "skein.handoff", text("skein.handoff.from", d.From), text("skein.handoff.to", d.AgentID))
	}
}

// recorded adds what was recorded of the run.
func (r *run) recorded(e *events.Event, d events.TraceRecorded) {
	if d.Usage != nil {
		r.usage = r.usage.Add(*d.Usage)
	}
	var data struct {
		CallID   string            `json:"callId"`
		Status   events.ToolStatus `json:"status"`
		Model    string            `json:"model"`
		Attempt  int64             `json:"attempt"`
		Attempts int64             `json:"attempts"`
	}
	if jsontext.Value(d.Data).Kind() == '{' && json.Unmarshal(d.Data, &data) != nil {
		data.CallID, data.Status, data.Model, data.Attempt, data.Attempts = "", "", "", 0, 0 // in another writer's form
	}
	if d.Kind == events.TraceLog {
		line := []attribute.KeyValue{text("skein.log.level", d.Level), text("skein.log.text", d.Text)}
		if data.Attempt > 0 {
			r.note(r.at(d.SpanID), e, "skein.retry", append(line, attribute.Int64("skein.attempt", data.Attempt))...)
		} else {
			r.note(r.at(d.SpanID), e, "skein.log", line...)
		}
		return
	}
	if d.Kind != events.TraceSpanKind || d.SpanID == "" {
		return
	}
	if s := r.byID[d.SpanID]; s != nil && s.kind == stepSpan { // of a step's own span
		s.usage, s.model = d.Usage, data.Model
		return
	}
	s := &span{
		id: d.SpanID, parent: d.ParentID, kind: otherSpan, name: d.Name, begun: e.Time, ended: e.Time,
		usage: d.Usage, model: data.Model, call: data.CallID, attempts: data.Attempts,
	}
	if began, err := events.ParseTime(d.StartedAt); err == nil && began < e.Time {
		s.begun = began
	}
	if tool, ok := strings.CutPrefix(d.Name, runtime.ToolSpan); ok {
		s.kind, s.name, s.failed = toolSpan, tool, data.Status == runtime.Failure
	} else if d.Name == runtime.ReactorSpan {
		s.kind = chatSpan
	}
	if around := r.byID[d.ParentID]; around != nil {
		s.said = around.of(s.kind, s.call)
	}
	r.add(s)
}

// add keeps a span, the first with its id. It returns nil for one that is dropped.
func (r *run) add(s *span) *span {
	if r.byID[s.id] != nil {
		return r.byID[s.id]
	}
	if len(r.spans) >= maxSpans {
		r.left++
		return nil
	}
	r.spans, r.byID[s.id] = append(r.spans, s), s
	r.size++
	return s
}

// at returns the span with an id, or the newest step, or the run's own.
func (r *run) at(id string) *span {
	if s := r.byID[id]; s != nil {
		return s
	}
	if r.step != nil {
		return r.step
	}
	return r.own
}

func (r *run) note(s *span, e *events.Event, what string, attrs ...attribute.KeyValue) {
	if len(s.notes) < maxNotes {
		s.notes = append(s.notes, note{e.Time, what, attrs})
		r.size++
	}
}
