package thread

import (
	"errors"
	"slices"

	"github.com/skein-threads/skein/events"
)

func (r preconditions) ExecutionCreated(e *events.Event, d events.ExecutionCreated) error {
	_, taken := r.state.execution(d.ID)
	return firstFault(
		about(e, d.ID, d.ID), isNew(taken, "execution", d.ID), r.needContext(d.ContextID), r.needItem(d.TriggerItemID),
		unless(d.ReactionItemID != "", "it has no reaction item"),
		unless(d.Status == events.ExecutionMachine().Initial(), "an execution begins as %q, and not as %.40q", events.ExecutionMachine().Initial(), d.Status),
	)
}

func (r preconditions) ExecutionStatusChanged(e *events.Event, d events.ExecutionStatusChanged) error {
	x, ok := r.state.execution(e.Subject)
	return firstFault(
		about(e, e.Subject, e.Subject), exists(ok, "execution", e.Subject),
		unless(d.From == x.Status, "the execution is %s, and not %.40q", x.Status, d.From),
		events.ExecutionMachine().Check(e.Subject, d.From, d.To),
		r.showsIn(d.ReactionItemID, x, d.To == events.ExecutionFailed),
	)
}

// showsIn checks the item that an event marks as failed or not.
func (r preconditions) showsIn(item string, x executionState, failed bool) error {
	if item == "" {
		return nil
	}
	i, _ := r.state.item(item)
	return firstFault(r.needItem(item),
		unless(item == x.writes(), "the execution writes item %.80q, and not %.80q", x.writes(), item),
		unless(i.Failed != failed, "item %.80q shows so already", item))
}

func (r preconditions) StepCreated(e *events.Event, d events.StepCreated) error {
	_, taken := r.state.step(d.ID)
	x, ok := r.state.execution(d.ExecutionID)
	return firstFault(
		about(e, d.ID, d.ExecutionID), isNew(taken, "step", d.ID), exists(ok, "execution", d.ExecutionID),
		ofSession(d.SessionID, x.Session),
		unless(d.EventID != "", "it names no item"),
		unless(!r.ofRun(e, d, x) || d.EventID == x.writes() || d.EventID == x.answersIn(e.Tenant, e.ThreadID, d.ExecutionID), "the run writes item %.80q, and not %.80q", x.writes(), d.EventID),
		unless(d.Place == nil || x.Run != nil && *d.Place == r.state.NextItem, "the next place is %d", r.state.NextItem),
		unless(d.SteeredBy == "" || x.Run != nil && d.SteeredBy == x.Run.Steers, "no message %.80q steered the run last", d.SteeredBy),
		unless(d.Status == events.StepMachine().Initial(), "a step begins as %q, and not as %.40q", events.StepMachine().Initial(), d.Status),
	)
}

// ofRun reports whether the runtime created the step, rather than a caller: then its id is derived
// from the run.
func (r preconditions) ofRun(e *events.Event, d events.StepCreated, x executionState) bool {
	return x.Run != nil && d.ID == events.DeriveID(events.StepPrefix, x.Run.Begun, e.Tenant, e.ThreadID, d.ExecutionID, int(x.Steps))
}

func (r preconditions) StepStatusChanged(e *events.Event, d events.StepStatusChanged) error {
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

func (r preconditions) PartCreated(e *events.Event, d events.PartCreated) error {
	return firstFault(r.part(e, d.Key, d.StepID, d.Idx, false), r.callPart(d.StepID, d.Idx, d.Type, d.Part))
}

func (r preconditions) PartUpdated(e *events.Event, d events.PartUpdated) error {
	return firstFault(r.part(e, d.Key, d.StepID, d.Idx, true), r.callPart(d.StepID, d.Idx, d.Type, d.Part))
}

func (r preconditions) part(e *events.Event, key, step string, idx int64, had bool) error {
	t, ok := r.state.step(step)
	return firstFault(
		exists(ok, "step", step),
		unless(key == events.PartKey(step, idx), "the part's key is %.80q", events.PartKey(step, idx)),
		about(e, key, t.Execution),
		unless(t.Parts.has(idx) == had, "the step has that part, or has it not, against what it says"),
	)
}

// ChunkEmitted is transient.
func (r preconditions) ChunkEmitted(*events.Event, events.ChunkEmitted) error {
	return errors.New("it is transient and never in the log")
}

func (r preconditions) TraceRecorded(e *events.Event, d events.TraceRecorded) error {
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

func (r preconditions) RunRequested(e *events.Event, d events.RunRequested) error {
	x, ok := r.state.execution(e.Subject)
	if err := firstFault(
		about(e, e.Subject, e.Subject), exists(ok, "execution", e.Subject),
		unless(x.Status == events.Executing, "execution %.80q is %s", e.Subject, x.Status),
		unless(d.AgentID != "", "it names no agent"),
	); err != nil {
		return err
	}
	if x.Run != nil {
		return firstFault(
			unless(x.Run.Parked, "execution %.80q does not wait", e.Subject),
			unless(d.AgentID == x.Run.Agent && len(d.Calls) == 0 && d.Parent == nil && !d.Once && d.Handoff == nil && d.Settings == nil && d.Rights == nil, "it asks for another run than the one that waits"),
		)
	}
	begun := false
	if r.before != nil {
		created, is := r.before.Data.(events.ExecutionCreated)
		begun = is && created.ID == e.Subject
	}
	faults := []error{
		unless(begun, "the runtime takes up an execution when it is created, and not later"),
		unless(r.state.head.Active == "", "execution %.80q is in progress", r.state.head.Active), r.retries(x, d.RetryOf),
		unless(r.state.Status == events.ThreadStreaming, "the thread is %s", r.state.Status),
	}
	if h := d.Handoff; h != nil {
		faults = append(faults,
			unless(events.ValidThreadID(h.ThreadID) && h.ThreadID != e.ThreadID, "it cannot be handed off to thread %.80q", h.ThreadID),
			unless(len(d.Calls) == 0 && d.Parent == nil && !d.Once && d.RetryOf == "", "a run that writes a summary does nothing else"))
	}
	for _, c := range d.Calls {
		faults = append(faults, unless(c.ItemID == x.Trigger, "call %.80q is asked for by item %.80q, and not by %.80q", c.CallID, x.Trigger, c.ItemID))
	}
	return firstFault(faults...)
}

// retries checks that failed is an execution that x can retry.
func (r preconditions) retries(x executionState, failed string) error {
	if failed == "" {
		return nil
	}
	was, ok := r.state.execution(failed)
	return firstFault(
		exists(ok, "execution", failed), unless(was.Status == events.ExecutionFailed, "execution %.80q is %s", failed, was.Status),
		unless(was.Trigger == x.Trigger, "execution %.80q answers item %.80q", failed, was.Trigger),
	)
}

func (r preconditions) RunClaimed(e *events.Event, d events.RunClaimed) error {
	x, err := r.run(e.Subject)
	if err != nil {
		return err
	}
	return firstFault(about(e, e.Subject, e.Subject), unless(d.Token == x.Run.Token+1, "its token is %d, and the last claim's is %d", d.Token, x.Run.Token))
}

func (r preconditions) RunParked(e *events.Event, d events.RunParked) error {
	x, err := r.run(e.Subject)
	if err != nil {
		return err
	}
	waits := x.Run.waiting()
	faults := []error{
		about(e, e.Subject, e.Subject),
		unless(d.Token == x.Run.Token, "its token is %d, and the last claim's is %d", d.Token, x.Run.Token),
		unless((len(waits)+len(d.Unmade) > 0 || x.Run.missingReactor() || x.Run.missingServer()) && slices.Equal(waits, d.Calls), "the calls that wait are %.200q, and not %.200q", waits, d.Calls),
		unless(x.Run.Stop || x.Run.missingServer() || x.Run.due() == len(d.Unmade), "calls are left that do not wait"), // a run that is to stop makes no others
	}
	for n, id := range d.Unmade {
		left := x.Run.missingTool(id) || x.Run.missingServer() && slices.Contains(x.Run.unmade(), id)
		faults = append(faults, unless(left && !slices.Contains(d.Unmade[:n], id), "call %.80q does not wait for its tool, or is named twice", id))
	}
	return firstFault(faults...)
}

func (r preconditions) RunSuspended(e *events.Event, d events.RunSuspended) error {
	return r.calls(e, d.Calls, func(c *callState) bool { return c.Is != callDone }, "has ended")
}

func (r preconditions) RunResumed(e *events.Event, d events.RunResumed) error {
	return r.calls(e, d.Calls, func(c *callState) bool { return c.Is == callThread }, "does not wait for another thread")
}

// calls checks calls of the open step of a run.
func (r preconditions) calls(e *events.Event, calls []string, right func(*callState) bool, wrong string) error {
	x, err := r.run(e.Subject)
	if err != nil {
		return err
	}
	faults := []error{about(e, e.Subject, e.Subject), unless(len(calls) > 0, "it names no call")}
	for _, id := range calls {
		c := x.Run.call(id)
		faults = append(faults, unless(c != nil && right(c), "call %.80q is none of the open step, or %s", id, wrong))
	}
	return firstFault(faults...)
}

func (r preconditions) RunStopped(e *events.Event, d events.RunStopped) error {
	_, err := r.run(e.Subject)
	return firstFault(
		err, about(e, e.Subject, e.Subject),
		unless(d.Abort || !d.Discard, "only a run that is cancelled discards what it streamed"),
		unless(!d.Abort || !d.Now, "a run that is cancelled is not stopped, too"),
	)
}

func (r preconditions) RunAwaited(e *events.Event, d events.RunAwaited) error {
	x, err := r.run(e.Subject)
	if err != nil {
		return err
	}
	faults := []error{about(e, e.Subject, e.Subject), unless(!slices.Equal(d.For, x.Run.Missing), "it waits for that already")}
	for _, w := range d.For {
		c := x.Run.call(w.CallID)
		switch {
		case w.IsServer():
		case w.Kind == events.ReactorWorker:
			faults = append(faults, unless(x.Run.Step != "" && !x.Run.Reacted, "no step waits for the reactor %.80q", w.Name))
		default:
			faults = append(faults, unless(c != nil && c.Is != callDone && c.Name == w.Name, "call %.80q of the tool %.80q is none of the open step, or is over", w.CallID, w.Name))
		}
	}
	return firstFault(faults...)
}

func (r preconditions) RunLimited(e *events.Event, d events.RunLimited) error {
	x, err := r.run(e.Subject)
	if err != nil {
		return err
	}
	least := x.Run.Rights.Intersect(d.Rights)
	return firstFault(about(e, e.Subject, e.Subject), unless(least.Equal(d.Rights) && !least.Equal(x.Run.Rights), "the run has other rights, or has not more than these"))
}

func (r preconditions) RunTurned(e *events.Event, _ events.RunTurned) error {
	x, err := r.run(e.Subject)
	if err != nil {
		return err
	}
	return firstFault(about(e, e.Subject, e.Subject), unless(x.Run.Side != "", "only an agent of the type dual_ai has sides"))
}

func (r preconditions) ApprovalRequested(e *events.Event, d events.ApprovalRequested) error {
	x, err := r.run(e.Correlation)
	if err != nil {
		return err
	}
	c := x.Run.call(d.CallID)
	return firstFault(
		about(e, d.CallID, e.Correlation),
		unless(c != nil && c.Is != callDone && !c.waits(), "call %.80q is none of the open step, or is over, or waits already", d.CallID),
		unless(c == nil || c.Name == d.Name, "the call is one of another tool than %.80q", d.Name),
		unless(d.StepID == "" || d.StepID == x.Run.Step, "the open step is %.80q, and not %.80q", x.Run.Step, d.StepID),
	)
}

func (r preconditions) ApprovalGranted(e *events.Event, d events.ApprovalGranted) error {
	return r.approval(e, d.CallID)
}

func (r preconditions) ApprovalDenied(e *events.Event, d events.ApprovalDenied) error {
	return r.approval(e, d.CallID)
}

func (r preconditions) ApprovalResolved(e *events.Event, d events.ApprovalResolved) error {
	return firstFault(unless(d.Result != nil, "it has no result"), r.approval(e, d.CallID))
}

// approval checks the answer to a request for approval.
func (r preconditions) approval(e *events.Event, call string) error {
	x, err := r.run(e.Correlation)
	if err != nil {
		return err
	}
	c := x.Run.call(call)
	return firstFault(about(e, call, r.state.head.Active), unless(c != nil && c.Is == callWaits, "call %.80q does not wait for a person", call))
}
