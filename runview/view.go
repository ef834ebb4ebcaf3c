package runview

import (
	"cmp"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// View folds one run into frames. Events are passed in the order of the thread, and chunks in the
// order of the run. How the two interleave changes when something is shown, and not what is shown
// in the end.
type View struct {
	execution string
	appends   bool // the reader cannot take back what it was shown
	attempts  bool // each attempt is shown whole
	steps     map[string]*step
	open      *step // the newest
	calls     map[string]*call

	history bool    // the events so far happened before the reader came
	asked   []*call // in the history, by which approvals
	quiet   bool    // the reader has all of this: until one of the answers
	answers map[string]bool

	reason   string // why the model's last answer ended early, "" if it did not
	failure  string // why the execution failed
	usage    *events.Usage
	aborted  *events.RunStopped
	finished *events.ThreadFinished
	waiting  bool
	ended    bool
}

// New returns the View of an execution.
func New(execution string) *View {
	return &View{execution: execution, steps: map[string]*step{}, calls: map[string]*call{}}
}

// AppendOnly makes the View end what a step has shown, and show again what differs, for a reader
// that cannot take anything back.
func (v *View) AppendOnly() { v.appends = true }

// WholeAttempts makes the View show each attempt of a reactor from its beginning, after a StepReset,
// for a reader that is not to wait for what differs. By default only that is shown.
func (v *View) WholeAttempts() { v.attempts = true }

// History says that the events until Live happened before the reader came: an approval that was
// asked for and answered among them is not shown.
func (v *View) History() { v.history = true }

// Live ends the history. It returns the approvals for which the run waits now.
func (v *View) Live() []Frame {
	var out []Frame
	for _, c := range v.asked {
		if c.waits && v.finished == nil {
			out = append(out, Asked{c.Call, c.request})
		}
	}
	v.history, v.asked = false, nil
	return out
}

// ResumeAfter makes the View continue for a reader that has everything up to where these calls
// wait, and that has answered them: nothing is shown until an event has one of the answers, and a
// run that still waits for another answer is not Waiting.
func (v *View) ResumeAfter(calls []string) {
	v.quiet, v.answers = true, map[string]bool{}
	for _, id := range calls {
		v.answers[id] = true
	}
}

// Quiet reports whether nothing is shown yet, since the reader has what was before its answers.
func (v *View) Quiet() bool { return v.quiet }

// Ended reports whether the run has ended, and everything was shown.
func (v *View) Ended() bool { return v.ended }

// Waiting reports whether the run waits for people only, as far as its events are known.
func (v *View) Waiting() bool { return v.waiting }

// Usage returns the sum of what the run's calls of models used, nil if they used nothing.
func (v *View) Usage() *events.Usage { return v.usage }

// Pause ends what is open of a run that is Waiting, for a reader that leaves now.
func (v *View) Pause() []Frame {
	if v.open == nil {
		return nil
	}
	return v.open.finish(events.StepRunning)
}

// EventTypes are the types of the events that a View uses.
func EventTypes() []string {
	var names []string
	for _, t := range []events.Type{
		events.ExecutionCreatedType, events.ExecutionStatusChangedType, events.ThreadFinishedType, events.LifecycleDeletedType,
		events.RunRequestedType, events.RunStoppedType, events.RunParkedType, events.QueueRemovedType, events.TraceRecordedType,
		events.StepCreatedType, events.StepStatusChangedType, events.PartCreatedType, events.PartUpdatedType,
		events.ApprovalRequestedType, events.ApprovalGrantedType, events.ApprovalDeniedType, events.ApprovalResolvedType,
	} {
		names = append(names, string(t))
	}
	return names
}

// Event folds an event of the thread. Events of other runs are skipped.
func (v *View) Event(e *events.Event) []Frame {
	if v.ended {
		return nil
	}
	if call := answeredCall(e); v.answers[call] {
		v.quiet = false
		delete(v.answers, call)
	}
	out := v.event(e)
	if v.quiet && !v.ended {
		v.waiting = false
		return nil
	}
	return out
}

func (v *View) event(e *events.Event) []Frame {
	switch d := e.Data.(type) {
	case events.PartCreated:
		return v.part(d.StepID, d.Key, d.Part)
	case events.PartUpdated:
		return v.part(d.StepID, d.Key, d.Part)
	case events.StepCreated:
		return v.stepCreated(d)
	case events.StepStatusChanged:
		if s := v.steps[e.Subject]; s != nil {
			return v.closeStep(s, d.To)
		}
	case events.ApprovalRequested:
		return v.approvalRequested(d)
	case events.ApprovalGranted:
		return v.approvalGranted(d)
	case events.ApprovalDenied:
		return v.approvalDenied(d)
	case events.ApprovalResolved:
		if c := v.calls[d.CallID]; c != nil {
			c.waits = false
		}
	case events.RunParked:
		if e.Subject == v.execution {
			v.waiting = awaitsPeople(d.Calls, len(d.Unmade) > 0, v.awaits)
		}
	case events.RunRequested:
		if e.Subject == v.execution {
			v.waiting = false
		}
	default:
		return v.ending(e)
	}
	return nil
}

// awaits reports whether a call waits for a person whose answer is not on its way.
func (v *View) awaits(id string) bool {
	c := v.calls[id]
	return c != nil && c.waits && !v.answers[id]
}

// ending folds the events that end a run.
func (v *View) ending(e *events.Event) []Frame {
	switch d := e.Data.(type) {
	case events.TraceRecorded:
		if d.ExecutionID == v.execution && (d.Usage != nil || d.Shown != nil) {
			v.reason = EarlyFinish(d.Data)
			v.usage = events.AddUsage(v.usage, d.Usage)
		}
	case events.ExecutionStatusChanged:
		if e.Subject == v.execution {
			v.failure = d.ErrorText
		}
	case events.RunStopped:
		if e.Subject == v.execution && d.Abort {
			v.aborted = &d
		}
	case events.ThreadFinished:
		if d.ExecutionID == v.execution {
			v.finished = &d
		}
	case events.QueueRemoved:
		if d.ExecutionID == v.execution {
			v.ended = true
			return []Frame{Removed{}}
		}
	case events.LifecycleDeleted:
		v.ended = true
		return []Frame{Deleted{}}
	}
	return nil
}

// EarlyFinish returns why a model's answer ended early, as the record of the call has it; empty if
// it did not.
func EarlyFinish(record events.JSON) string {
	var of struct {
		Reason string `json:"finishReason"`
	}
	if record == nil || json.Unmarshal(record, &of) != nil || of.Reason == events.FinishStop || of.Reason == events.FinishToolCalls {
		return ""
	}
	return of.Reason
}

// Takes reports whether a chunk can be taken now. One that cannot belongs to a step, or to an end,
// whose event is still to come: take it again after the next event.
func (v *View) Takes(c *events.ChunkEmitted) bool {
	switch {
	case v.ended, v.finished != nil:
		return true
	case c.Type == events.ChunkFinish:
		return false
	}
	return c.StepID == "" || v.steps[c.StepID] != nil
}

// Chunk folds a chunk of the run. Chunks of a step whose parts are known show nothing.
func (v *View) Chunk(c *events.ChunkEmitted) []Frame {
	if v.ended || c.ExecutionID != v.execution {
		return nil
	}
	if c.Type == events.ChunkFinish {
		var how events.Finish
		if json.Unmarshal(c.Data, &how) != nil || how.Reason == "" {
			how.Reason = events.FinishOther
		}
		return v.finish(how)
	}
	s := v.steps[c.StepID]
	if s == nil || s.settled || s != v.open {
		return nil
	}
	out := v.stepChunk(s, c)
	if v.quiet {
		return nil
	}
	return out
}

// Finish ends the frames of a run that has ended, for a reader without chunks. It returns nil while
// the run lasts.
func (v *View) Finish() []Frame {
	if v.ended || v.finished == nil {
		return nil
	}
	return v.finish(events.FinishOf(v.finished.Status, v.failure))
}

func (v *View) finish(how events.Finish) []Frame {
	var out []Frame
	if v.open != nil {
		out = v.closeStep(v.open, events.StepStatus(v.finished.Status))
	}
	v.ended, v.waiting = true, false
	end := Finished{Status: v.finished.Status, Reason: events.FinishReason(how.Reason), Aborted: v.aborted}
	if v.reason != "" && end.Status == events.ExecutionCompleted && end.Reason == events.FinishStop { // it was derived
		end.Reason = events.FinishReason(v.reason)
	}
	if end.Status == events.ExecutionFailed && v.aborted == nil {
		end.ErrorText = cmp.Or(v.failure, how.ErrorText, "the run failed")
	}
	return append(out, end)
}
