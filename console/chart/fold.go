package chart

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// maxSpans limits the bars that are kept of one run; those beyond are counted.
const maxSpans = 10_000

// Run is an execution of a thread, with all that it consisted of.
type Run struct {
	ID, Thread string
	Agent      string
	Status     events.ExecutionStatus
	Error      string
	RetryOf    string         // the failed run that it takes up again
	Parent     *events.Parent // the call, on another thread, that waits for it
	Begun      events.Time
	Ended      events.Time // 0: it lasts
	Usage      events.Usage
	Claims     int64 // how often a worker took it
	Bars       []Bar // the first one is the run's own
	Left       int   // bars that were not kept

	byID map[string]int
	step string            // the newest
	open map[string]string // waits that last, by what they wait for: their bars
}

// Fold returns the runs of a thread, in the order in which they began. The events are the
// thread's, in their order; unknown ones are ignored.
func Fold(list []events.Event) []*Run {
	f := fold{runs: map[string]*Run{}}
	for i := range list {
		f.apply(&list[i])
	}
	return f.order
}

type fold struct {
	order []*Run
	runs  map[string]*Run
}

func (f *fold) apply(e *events.Event) {
	if d, ok := e.Data.(events.ExecutionCreated); ok && f.runs[d.ID] == nil {
		r := &Run{
			ID: d.ID, Thread: e.ThreadID, Status: d.Status, Begun: e.Time,
			byID: map[string]int{}, open: map[string]string{},
		}
		f.order, f.runs[d.ID] = append(f.order, r), r
		r.add(Bar{ID: r.ID, Kind: RunBar, Name: "run", Begun: e.Time, Version: e.Version})
		return
	}
	r := f.runs[e.Correlation]
	if r == nil {
		if r = f.runs[e.Subject]; r == nil {
			return
		}
	}
	r.apply(e)
}

func (r *Run) apply(e *events.Event) {
	switch d := e.Data.(type) {
	case events.StepCreated:
		r.step = d.ID
		name := fmt.Sprintf("step %d", d.Iteration+1)
		if d.Side != "" {
			name += ", side " + string(d.Side)
		}
		r.add(Bar{ID: d.ID, Parent: r.ID, Kind: StepBar, Name: name, Begun: e.Time, Version: e.Version})
	case events.StepStatusChanged:
		if b := r.bar(e.Subject); b != nil && d.To != events.StepRunning {
			b.Ended, b.Failed, b.Detail = e.Time, d.To == events.StepFailed, d.ErrorText
		}
	case events.TraceRecorded:
		r.recorded(e, d)
	case events.ExecutionStatusChanged:
		r.Status, r.Error = d.To, cmp.Or(d.ErrorText, r.Error)
		if d.To != events.Executing {
			r.finish(e.Time)
		}
	case events.ThreadFinished:
		r.Status = d.Status
		r.finish(e.Time)
	default:
		r.claimed(e)
		r.waits(e)
	}
}

// claimed folds who runs it.
func (r *Run) claimed(e *events.Event) {
	switch d := e.Data.(type) {
	case events.RunRequested:
		r.Agent, r.Parent, r.RetryOf = cmp.Or(r.Agent, d.AgentID), cmp.Or(r.Parent, d.Parent), cmp.Or(r.RetryOf, d.RetryOf)
		if r.Agent != "" {
			r.Bars[0].Name = r.Agent
		}
		r.release("parked", e.Time)
	case events.RunClaimed:
		if r.Claims = d.Token; d.Token > 1 && len(r.open) == 0 {
			r.mark(e, "taken up again", "by "+d.Worker)
		}
		r.release("parked", e.Time)
		r.release("worker", e.Time)
	case events.RunStopped:
		r.mark(e, "asked to stop", d.Reason)
	case events.AgentAssigned:
		r.mark(e, "handed to "+d.AgentID, "")
	}
}

// waits folds what it waited for.
func (r *Run) waits(e *events.Event) {
	switch d := e.Data.(type) {
	case events.ApprovalRequested:
		what := "approval of " + d.Name
		if d.Reason == events.ApprovalQuestion {
			what = "an answer to " + d.Name
		}
		r.wait("approval "+d.CallID, Bar{Parent: cmp.Or(d.StepID, r.step), Name: what, Call: d.CallID}, e)
	case events.ApprovalGranted:
		r.answered(d.CallID, "granted by "+e.Actor, false, e.Time)
	case events.ApprovalDenied:
		r.answered(d.CallID, "denied by "+e.Actor, true, e.Time)
	case events.ApprovalResolved:
		r.answered(d.CallID, "answered by "+e.Actor, false, e.Time)
	case events.RunSuspended:
		r.suspended(d.Calls, e)
	case events.RunParked:
		r.suspended(d.Calls, e)
		if len(d.Unmade) > 0 {
			r.wait("parked", Bar{Parent: r.step, Name: "workers of tools"}, e)
		}
	case events.RunResumed:
		for _, call := range d.Calls {
			r.release("call "+call, e.Time)
		}
	case events.RunAwaited:
		r.release("worker", e.Time)
		if len(d.For) > 0 {
			r.wait("worker", Bar{Parent: cmp.Or(r.step, r.ID), Name: "a worker for " + names(d.For)}, e)
		}
	}
}

func names(list []events.WaitFor) string {
	var all []string
	for _, w := range list {
		all = append(all, string(w.Kind)+" "+w.Name)
	}
	return strings.Join(all, ", ")
}

// suspended opens a wait for each call that waits for another thread. Of one that waits for a
// person the approval is shown.
func (r *Run) suspended(calls []string, e *events.Event) {
	for _, call := range calls {
		if r.open["approval "+call] != "" || r.open["call "+call] != "" {
			continue
		}
		r.wait("call "+call, Bar{
			Parent: r.step, Name: "another thread", Call: call,
			Thread: events.DeriveThreadID(e.Tenant, e.ThreadID+"\x00"+r.ID+"\x00"+call),
		}, e)
	}
}

func (r *Run) wait(key string, b Bar, e *events.Event) {
	b.ID, b.Kind, b.Begun, b.Version = "wait "+e.ID+" "+key, WaitBar, e.Time, e.Version
	if r.open[key] == "" && r.add(b) {
		r.open[key] = b.ID
	}
}

func (r *Run) answered(call, how string, denied bool, at events.Time) {
	if b := r.bar(r.open["approval "+call]); b != nil {
		b.Detail, b.Failed = strings.TrimSuffix(how, " by "), denied
	}
	r.release("approval "+call, at)
}

// release ends a wait.
func (r *Run) release(key string, at events.Time) {
	if b := r.bar(r.open[key]); b != nil {
		b.Ended = at
	}
	delete(r.open, key)
}

// finish ends the run, and whatever of it still lasts.
func (r *Run) finish(at events.Time) {
	r.Ended = at
	for i := range r.Bars {
		if r.Bars[i].Ended == 0 {
			r.Bars[i].Ended = at
		}
	}
	clear(r.open)
	own := &r.Bars[0]
	own.Ended, own.Failed, own.Detail, own.Usage = at, r.Status == events.ExecutionFailed, r.Error, r.Usage
}

func (r *Run) mark(e *events.Event, name, detail string) {
	r.add(Bar{ID: "mark " + e.ID, Parent: cmp.Or(r.step, r.ID), Kind: MarkBar, Name: name, Detail: detail, Begun: e.Time, Ended: e.Time, Version: e.Version})
}

// recorded folds a span, the usage of a model, or an attempt that failed.
func (r *Run) recorded(e *events.Event, d events.TraceRecorded) {
	var data struct {
		CallID   string `json:"callId"`
		Status   string `json:"status"`
		Model    string `json:"model"`
		Attempt  int64  `json:"attempt"`
		Attempts int64  `json:"attempts"`
	}
	if json.Unmarshal(d.Data, &data) != nil { // in another writer's form, or none
		data.CallID, data.Status, data.Model, data.Attempt, data.Attempts = "", "", "", 0, 0
	}
	if d.Usage != nil {
		r.Usage = r.Usage.Add(*d.Usage)
		r.Bars[0].Usage = r.Usage
		r.Bars[0].use(*d.Usage)
	}
	if d.Kind == events.TraceLog {
		if data.Attempt > 0 {
			r.mark(e, fmt.Sprintf("attempt %d failed", data.Attempt), d.Text)
		}
		return
	}
	if d.Kind != events.TraceSpanKind || d.SpanID == "" {
		return
	}
	b := Bar{ID: d.SpanID, Parent: cmp.Or(d.ParentID, r.step), Kind: OtherBar, Name: d.Name, Begun: e.Time, Ended: e.Time, Call: data.CallID, Shown: d.Shown, Version: e.Version}
	if began, err := events.ParseTime(d.StartedAt); err == nil {
		b.Begun = min(began, e.Time)
	}
	if d.Usage != nil {
		b.Usage = *d.Usage
	}
	if tool, is := strings.CutPrefix(d.Name, "tool "); is {
		b.Kind, b.Name, b.Failed = ToolBar, tool, data.Status == "error"
	} else if d.Name == "reactor" {
		b.Kind, b.Name = ModelBar, cmp.Or(data.Model, b.Usage.Model, "reactor")
	}
	if data.Attempts > 1 {
		b.Detail = fmt.Sprintf("%d attempts", data.Attempts)
	}
	r.add(b)
}

func (r *Run) bar(id string) *Bar {
	if i, ok := r.byID[id]; ok && id != "" {
		return &r.Bars[i]
	}
	return nil
}

// add keeps a bar, the first with its id, and reports whether it did.
func (r *Run) add(b Bar) bool {
	if _, known := r.byID[b.ID]; known {
		return false
	}
	if len(r.Bars) >= maxSpans {
		r.Left++
		return false
	}
	r.byID[b.ID] = len(r.Bars)
	r.Bars = append(r.Bars, b)
	return true
}
