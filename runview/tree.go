package runview

import (
	"cmp"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// Tree is a run as what took time in it: its steps, the calls of models and of tools, other recorded
// spans, and waits. Charts and traces are made of it. What a run says is for a [View].
type Tree struct {
	Tenant, Thread, ID string
	Session            string // of the request
	TraceParent        string // of the request
	Agent              string
	AgentVersion       int64          // of the agent's definition; 0: unknown
	RetryOf            string         // the failed run that it takes up again
	Parent             *events.Parent // the call, on another thread, that waits for it
	Status             events.ExecutionStatus
	Claims             int64          // how often a worker took it
	Usage              events.Usage   // of all models
	Models             []events.Usage // of each model
	Own                *Span          // of the run itself
	Spans              []*Span        // the others, in the order in which they were recorded
	Left               int            // spans that were not kept

	most int
	kept [2]int // spans: others, and waits, which have a limit of their own
	byID map[string]*Span
	step *Span            // the newest
	open map[string]*Span // waits that last, by what they wait for
}

// NewTree returns the tree of the run that an execution.created begins, of at most that many spans
// besides the run's own, and as many waits.
func NewTree(e *events.Event, most int) *Tree {
	d, _ := e.Data.(events.ExecutionCreated)
	return &Tree{
		Tenant: e.Tenant, Thread: e.ThreadID, ID: d.ID, Session: d.SessionID, TraceParent: e.TraceParent, Status: d.Status,
		Own:  &Span{ID: d.ID, Kind: RunSpan, Begun: e.Time, Version: e.Version},
		most: most, byID: map[string]*Span{d.ID: nil}, open: map[string]*Span{},
	}
}

// Event folds an event of the run, in the order of the thread. It returns the span that the event
// adds, nil if there is none, or it is beyond the most.
func (t *Tree) Event(e *events.Event) *Span {
	switch d := e.Data.(type) {
	case events.RunRequested:
		t.Agent, t.Parent, t.RetryOf = cmp.Or(t.Agent, d.AgentID), cmp.Or(t.Parent, d.Parent), cmp.Or(t.RetryOf, d.RetryOf)
		t.release("parked", e.Time)
	case events.RunClaimed:
		t.claimed(d)
		t.release("parked", e.Time)
		t.release("worker", e.Time)
	case events.StepCreated:
		s := t.add(&Span{ID: d.ID, Parent: t.ID, Kind: StepSpan, Begun: e.Time, Iteration: d.Iteration, Side: d.Side, Version: e.Version})
		if s != nil {
			t.step = s
		}
		return s
	case events.StepStatusChanged:
		if s := t.byID[e.Subject]; s != nil && d.To != events.StepRunning {
			s.Ended, s.Failed, s.Detail = e.Time, d.To == events.StepFailed, d.ErrorText
		}
	case events.TraceRecorded:
		return t.recorded(e, d)
	case events.ExecutionStatusChanged:
		t.Status, t.Own.Detail = d.To, cmp.Or(d.ErrorText, t.Own.Detail)
		if d.To != events.Executing {
			t.finish(e.Time)
		}
	case events.ThreadFinished:
		t.Status = d.Status
		t.finish(e.Time)
	default:
		return t.waits(e)
	}
	return nil
}

// Span returns the span with an id, nil if there is none.
func (t *Tree) Span(id string) *Span { return t.byID[id] }

// At returns the span with an id or, without one, the newest step or the run's own.
func (t *Tree) At(id string) *Span {
	if s := t.byID[id]; s != nil {
		return s
	}
	return cmp.Or(t.step, t.Own)
}

// Waits reports whether the run waits for something.
func (t *Tree) Waits() bool { return len(t.open) > 0 }

func (t *Tree) claimed(d events.RunClaimed) {
	t.Claims = d.Token
	for _, v := range d.Definitions {
		if v.Kind == events.AgentKind && v.Name == t.Agent {
			t.AgentVersion = v.Version
		}
	}
}

// recorded folds a span, and what a model used.
func (t *Tree) recorded(e *events.Event, d events.TraceRecorded) *Span {
	if d.Usage != nil {
		t.use(*d.Usage)
	}
	if d.Kind != events.TraceSpanKind || d.SpanID == "" {
		return nil
	}
	data := ReadRecord(d.Data)
	if s := t.byID[d.SpanID]; s != nil && s.Kind == StepSpan { // of a step's own span
		s.Usage, s.Model = d.Usage, data.Model
		return nil
	}
	s := &Span{
		ID: d.SpanID, Parent: d.ParentID, Step: t.stepID(), Kind: OtherSpan, Name: d.Name, Begun: e.Time, Ended: e.Time, Version: e.Version,
		Usage: d.Usage, Model: data.Model, Call: data.CallID, Attempts: data.Attempts, Shown: d.Shown,
	}
	if began, err := events.ParseTime(d.StartedAt); err == nil {
		s.Begun = min(began, e.Time)
	}
	if tool, is := strings.CutPrefix(d.Name, ToolSpanPrefix); is {
		s.Kind, s.Name, s.Failed = ToolSpan, tool, data.Status == "error"
	} else if d.Name == ReactorSpanName {
		s.Kind = ModelSpan
	}
	return t.add(s)
}

// use adds what a model used.
func (t *Tree) use(u events.Usage) {
	t.Usage = t.Usage.Add(u)
	for i := range t.Models {
		if t.Models[i].Model == u.Model {
			t.Models[i] = t.Models[i].Add(u)
			return
		}
	}
	t.Models = append(t.Models, u)
}

// waits folds what the run waits for.
func (t *Tree) waits(e *events.Event) *Span {
	switch d := e.Data.(type) {
	case events.ApprovalRequested:
		what := ForApproval
		if d.Reason == events.ApprovalQuestion {
			what = ForAnswer
		}
		return t.wait("approval "+d.CallID, &Span{Parent: cmp.Or(d.StepID, t.stepID()), For: what, Name: d.Name, Call: d.CallID}, e)
	case events.ApprovalGranted:
		t.answered(d.CallID, "granted", e)
	case events.ApprovalDenied:
		t.answered(d.CallID, "denied", e)
	case events.ApprovalResolved:
		t.answered(d.CallID, "answered", e)
	case events.RunSuspended:
		t.suspended(d.Calls, e)
	case events.RunParked:
		t.suspended(d.Calls, e)
		if len(d.Unmade) > 0 {
			return t.wait("parked", &Span{Parent: t.stepID(), For: ForTools}, e)
		}
	case events.RunResumed:
		for _, call := range d.Calls {
			t.release("call "+call, e.Time)
		}
	case events.RunAwaited:
		t.release("worker", e.Time)
		if len(d.For) > 0 {
			return t.wait("worker", &Span{Parent: cmp.Or(t.stepID(), t.ID), For: ForWorker, Name: workers(d.For)}, e)
		}
	}
	return nil
}

func workers(list []events.WaitFor) string {
	var all []string
	for _, w := range list {
		all = append(all, string(w.Kind)+" "+w.Name)
	}
	return strings.Join(all, ", ")
}

// suspended opens a wait for each call that waits for another thread. Of one that waits for a
// person the approval is one.
func (t *Tree) suspended(calls []string, e *events.Event) {
	for _, call := range calls {
		if t.open["approval "+call] != nil || t.open["call "+call] != nil {
			continue
		}
		t.wait("call "+call, &Span{
			Parent: t.stepID(), For: ForThread, Call: call,
			Thread: events.DeriveThreadID(e.Tenant, e.ThreadID+"\x00"+t.ID+"\x00"+call),
		}, e)
	}
}

func (t *Tree) wait(key string, s *Span, e *events.Event) *Span {
	if t.open[key] != nil {
		return nil
	}
	s.ID, s.Kind, s.Begun, s.Version = "wait "+e.ID+" "+key, WaitSpan, e.Time, e.Version
	if s = t.add(s); s != nil {
		t.open[key] = s
	}
	return s
}

// answered ends a wait for a person, who has acted.
func (t *Tree) answered(call, how string, e *events.Event) {
	if s := t.open["approval "+call]; s != nil {
		s.Detail, s.Failed = how, how == "denied"
		if e.Actor != "" {
			s.Detail += " by " + e.Actor
		}
	}
	t.release("approval "+call, e.Time)
}

// release ends a wait.
func (t *Tree) release(key string, at events.Time) {
	if s := t.open[key]; s != nil {
		s.Ended = at
		delete(t.open, key)
	}
}

// finish ends the run, and whatever of it still lasts.
func (t *Tree) finish(at events.Time) {
	for _, s := range t.Spans {
		if s.Ended == 0 {
			s.Ended = at
		}
	}
	clear(t.open)
	t.Own.Ended, t.Own.Failed = at, t.Status == events.ExecutionFailed
}

// add keeps a span, the first with its id. It returns nil for one that is not kept.
func (t *Tree) add(s *Span) *Span {
	if _, known := t.byID[s.ID]; known {
		return nil
	}
	kept := &t.kept[0]
	if s.Kind == WaitSpan {
		kept = &t.kept[1]
	}
	if *kept >= t.most {
		t.Left++
		return nil
	}
	*kept++
	t.Spans, t.byID[s.ID] = append(t.Spans, s), s
	return s
}

func (t *Tree) stepID() string {
	if t.step == nil {
		return ""
	}
	return t.step.ID
}

// Record is what Skein's own workers say of a span or an attempt in the data of its
// trace.recorded.
type Record struct {
	CallID   string `json:"callId"`
	Status   string `json:"status"` // of a call
	Model    string `json:"model"`  // that was requested
	Attempt  int64  `json:"attempt"`
	Attempts int64  `json:"attempts"`
}

// ReadRecord returns the record in data. That in another writer's form says nothing.
func ReadRecord(data events.JSON) (r Record) {
	if json.Unmarshal(data, &r) != nil {
		return Record{}
	}
	return r
}
