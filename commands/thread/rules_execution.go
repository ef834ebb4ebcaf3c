package thread

import (
	"errors"

	"github.com/skein-threads/skein/events"
)

func (r rules) ExecutionCreated(e *events.Event, d events.ExecutionCreated) error {
	_, taken := r.state.execution(d.ID)
	return firstFault(
		about(e, d.ID, d.ID), isNew(taken, "execution", d.ID), r.needContext(d.ContextID), r.needItem(d.TriggerItemID),
		unless(d.ReactionItemID != "", "it has no reaction item"),
		unless(d.Status == events.ExecutionMachine().Initial(), "an execution begins as %q, and not as %.40q", events.ExecutionMachine().Initial(), d.Status),
	)
}

func (r rules) ExecutionStatusChanged(e *events.Event, d events.ExecutionStatusChanged) error {
	x, ok := r.state.execution(e.Subject)
	return firstFault(
		about(e, e.Subject, e.Subject), exists(ok, "execution", e.Subject),
		unless(d.From == x.Status, "the execution is %s, and not %.40q", x.Status, d.From),
		events.ExecutionMachine().Check(e.Subject, d.From, d.To),
		r.showsIn(d.ReactionItemID, x, d.To == events.ExecutionFailed),
	)
}

// showsIn checks the item that an event marks as failed or not.
func (r rules) showsIn(item string, x executionState, failed bool) error {
	if item == "" {
		return nil
	}
	i, _ := r.state.item(item)
	return firstFault(r.needItem(item),
		unless(item == x.Reaction, "the execution writes item %.80q, and not %.80q", x.Reaction, item),
		unless(i.Failed != failed, "item %.80q shows so already", item))
}

func (r rules) StepCreated(e *events.Event, d events.StepCreated) error {
	_, taken := r.state.step(d.ID)
	x, ok := r.state.execution(d.ExecutionID)
	return firstFault(
		about(e, d.ID, d.ExecutionID), isNew(taken, "step", d.ID), exists(ok, "execution", d.ExecutionID),
		ofSession(d.SessionID, x.Session),
		unless(d.EventID != "", "it names no item"),
		unless(d.Status == events.StepMachine().Initial(), "a step begins as %q, and not as %.40q", events.StepMachine().Initial(), d.Status),
	)
}

func (r rules) StepStatusChanged(e *events.Event, d events.StepStatusChanged) error {
	t, ok := r.state.step(e.Subject)
	x, _ := r.state.execution(t.Execution)
	return firstFault(
		exists(ok, "step", e.Subject), about(e, e.Subject, t.Execution),
		unless(d.ExecutionID == t.Execution, "the step is of execution %.80q, and not of %.80q", t.Execution, d.ExecutionID),
		unless(d.From == t.Status, "the step is %s, and not %.40q", t.Status, d.From),
		events.StepMachine().Check(e.Subject, d.From, d.To),
		unless(d.ReactionItemID == "" || d.To == events.StepFailed, "a step that did not fail changes no item"),
		r.showsIn(d.ReactionItemID, x, true),
	)
}

func (r rules) PartCreated(e *events.Event, d events.PartCreated) error {
	return r.part(e, d.Key, d.StepID, d.Idx, false)
}

func (r rules) PartUpdated(e *events.Event, d events.PartUpdated) error {
	return r.part(e, d.Key, d.StepID, d.Idx, true)
}

func (r rules) part(e *events.Event, key, step string, idx int64, had bool) error {
	t, ok := r.state.step(step)
	return firstFault(
		exists(ok, "step", step),
		unless(key == events.PartKey(step, idx), "the part's key is %.80q", events.PartKey(step, idx)),
		about(e, key, t.Execution),
		unless(t.Parts.has(idx) == had, "the step has that part, or has it not, against what it says"),
	)
}

// ChunkEmitted is transient.
func (r rules) ChunkEmitted(*events.Event, events.ChunkEmitted) error {
	return errors.New("it is transient and never in the log")
}

func (r rules) TraceRecorded(e *events.Event, d events.TraceRecorded) error {
	subject := d.ExecutionID
	if subject == "" {
		subject = e.ThreadID
	}
	session := d.SessionID
	if d.ExecutionID != "" {
		x, _ := r.state.execution(d.ExecutionID)
		session = x.Session
	}
	return firstFault(about(e, subject, d.ExecutionID), r.needExecution(d.ExecutionID), ofSession(d.SessionID, session))
}
