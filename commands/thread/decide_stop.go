package thread

import (
	"slices"

	"github.com/skein-threads/skein/events"
)

// activeRun returns the named run, or the current one.
func (m *decider) activeRun(execution string) (string, executionState, error) {
	if execution == "" {
		if execution = m.state.head.Active; execution == "" {
			return "", executionState{}, events.Errorf(events.NotFound, "the thread has no active run")
		}
	}
	x, ok := m.state.execution(execution)
	if !ok || x.Run == nil {
		return "", x, events.Missing("run of execution", execution)
	}
	if x.Status != events.Executing {
		return "", x, events.ExecutionMachine().Check(execution, x.Status, events.ExecutionCompleted)
	}
	return execution, x, nil
}

func (m *decider) stopRun(d events.StopRun) error {
	id, _, err := m.activeRun(d.ExecutionID)
	if err != nil {
		return err
	}
	return m.stop(id, events.RunStopped{By: d.By, Reason: d.Reason, Now: d.Now})
}

func (m *decider) cancelRun(d events.CancelRun) error {
	id, _, err := m.activeRun(d.ExecutionID)
	if err != nil {
		return err
	}
	return m.stop(id, events.RunStopped{Abort: true, Reason: d.Reason, Discard: d.Discard})
}

// stop asks a run to stop. A run that no worker holds ends at once. The exception is a run that is
// not aborted and waits for runs on other threads: it ends when they have ended.
func (m *decider) stop(id string, d events.RunStopped) error {
	if id == "" { // a client runs the execution, and has to end it
		return nil
	}
	m.emit(events.RunStoppedType, id, id, d)
	switch x, _ := m.state.execution(id); {
	case (x.Run.Parked || x.Run.Token == 0) && x.Run.mustEnd():
		return m.finishStopped(id)
	case x.Run.missingServer() && x.Run.left(callEnded) > 0: // their results are recorded first
		return m.unpark(id)
	}
	return nil
}

func (m *decider) turnRun(d events.TurnRun) error {
	id, x, err := m.activeRun(d.ExecutionID)
	if err != nil {
		return err
	}
	if x.Run.Side == "" {
		return events.Invalid("/side", "only a dual_ai agent has sides")
	}
	m.emit(events.RunTurnedType, id, id, events.RunTurned{Side: d.Side})
	return nil
}

// approval finds the run and the call that wait for approval.
func (m *decider) approval(call string) (string, *callState, error) {
	id := m.state.head.Active
	if x, _ := m.state.execution(id); x.Run != nil {
		switch c := x.Run.call(call); {
		case c == nil:
		case c.Is == callWaits && x.Run.Stop:
			return "", nil, events.Errorf(events.NotFound, "call %.100s is not made any more: its run is to stop, and waits for other work alone", call)
		case c.Is == callWaits:
			return id, c, nil
		case c.Is == callThread:
			return "", nil, events.Invalid("/callId", "call %.100s waits for another agent, on a thread of its own, and for nobody's approval; to end it, stop or cancel the run of that thread", call)
		}
	}
	return "", nil, events.Missing("waiting call", call)
}

func (m *decider) grantApproval(d events.GrantApproval) error {
	id, c, err := m.approval(d.CallID)
	if err != nil {
		return m.checkAnswered(events.ResolveApproval{CallID: d.CallID, Grant: true, Arguments: d.Arguments, Reason: d.Comment}, err)
	}
	if c.Asks {
		return events.Invalid("/callId", "call %.100s is a question, and not a call that could be made; answer it with approval.resolve and a result, or deny it", d.CallID)
	}
	if err := m.checkArguments(d); err != nil {
		return err
	}
	m.emit(events.ApprovalGrantedType, d.CallID, id, events.ApprovalGranted(d))
	if d.Arguments != nil {
		m.limit(id, m.command.Rights)
	}
	return m.unpark(id)
}

// checkArguments checks the arguments with which a person replaces those of a call, against the
// parameters of its tool. If this process does not know the parameters, the run checks the
// arguments before it makes the call.
func (m *decider) checkArguments(d events.GrantApproval) error {
	of, ok := m.state.called(d.CallID)
	takes := m.command.Takes[of]
	if d.Arguments == nil || !ok || takes == nil {
		return nil
	}
	if err := takes(d.Arguments); err != nil {
		return events.Invalid("/arguments", "the arguments for call %.100s do not fit the tool %s: %w", d.CallID, of.Tool, err)
	}
	return nil
}

// called returns the tool of a call of the current run's open step, and reports whether there is
// such a call.
func (s *State) called(call string) (Called, bool) {
	x, _ := s.execution(s.head.Active)
	if x.Run == nil {
		return Called{}, false
	}
	c := x.Run.call(call)
	if c == nil {
		return Called{}, false
	}
	return Called{Agent: x.Run.Asks, Tool: c.Name}, true
}

func (m *decider) denyApproval(d events.DenyApproval) error {
	id, _, err := m.approval(d.CallID)
	if err != nil {
		return m.checkAnswered(events.ResolveApproval{CallID: d.CallID, Deny: true, Reason: d.Comment}, err)
	}
	m.emit(events.ApprovalDeniedType, d.CallID, id, events.ApprovalDenied(d))
	if d.Comment != "" {
		m.limit(id, m.command.Rights)
	}
	return m.unpark(id)
}

// resolveApproval answers a request for approval: it grants it, denies it, or sets the result.
func (m *decider) resolveApproval(d events.ResolveApproval) error {
	switch {
	case d.Grant:
		return m.grantApproval(d.Granted())
	case d.Deny:
		return m.denyApproval(events.DenyApproval{CallID: d.CallID, Comment: d.Reason})
	}
	id, c, err := m.approval(d.CallID)
	if err != nil {
		return m.checkAnswered(d, err)
	}
	if err := m.checkAnswer(c, d.Result); err != nil {
		return err
	}
	m.emit(events.ApprovalResolvedType, d.CallID, id, events.ApprovalResolved{CallID: d.CallID, Result: d.Result})
	m.limit(id, m.command.Rights)
	return m.unpark(id)
}

// checkAnswer checks the answer to a question against the question's schema.
func (m *decider) checkAnswer(c *callState, answer events.JSON) error {
	if c.Fits == "" {
		return nil
	}
	if m.command.Fits == nil {
		return events.Errorf(events.Unavailable, "this process cannot check the answer to call %.100s against its schema; try again", c.ID)
	}
	if err := m.command.Fits(events.JSON(c.Fits), answer); err != nil {
		return events.Invalid("/result", "the answer to call %.100s does not fit: %w", c.ID, err)
	}
	return nil
}

// unpark lets a parked run continue.
func (m *decider) unpark(id string) error {
	if x, _ := m.state.execution(id); x.Run.Parked {
		m.emit(events.RunRequestedType, id, id, events.RunRequested{AgentID: x.Run.Agent})
	}
	return nil
}

// abort ends all executions of a thread. While m.ending is set, queue entries are not started.
func (m *decider) abort(reason string) error {
	m.ending = true
	for _, id := range m.state.executing() {
		x, _ := m.state.execution(id)
		if x.Run != nil {
			m.emit(events.RunStoppedType, id, id, events.RunStopped{Abort: true, Reason: reason})
			if err := m.finishStopped(id); err != nil {
				return err
			}
			continue
		}
		// A client runs it, and will find the thread deleted.
		for _, step := range m.state.running(id) {
			if err := m.setStepStatus(events.SetStepStatus{StepID: step, To: events.StepFailed, ErrorText: Aborted}); err != nil {
				return err
			}
		}
		if err := m.setExecutionStatus(events.SetExecutionStatus{ExecutionID: id, To: events.ExecutionFailed, ErrorText: Aborted}); err != nil {
			return err
		}
	}
	return nil
}

// retryRun retries a failed run. A failed execution is final, so a new one answers the same item.
// It sees all that the failed one has recorded, and continues from there.
func (m *decider) retryRun(d events.RetryRun) error {
	id := d.ExecutionID
	if id == "" {
		if id = m.state.head.Failed; id == "" {
			return events.Errorf(events.NotFound, "retry: the thread's last run did not fail")
		}
	}
	x, ok := m.state.execution(id)
	switch {
	case !ok || x.Run == nil:
		return events.Missing("run of execution", id)
	case x.Status != events.ExecutionFailed:
		return events.Invalid("/executionId", "execution %s is %s; only a failed one is retried", id, x.Status)
	case m.state.head.Failed != id:
		return events.Invalid("/executionId", "execution %s is not the thread's last one; send another message instead", id)
	case x.Run.Parent != nil:
		return events.Invalid("/executionId", "execution %s works for a call on thread %s, which has been told that it failed; retry that one", id, x.Run.Parent.ThreadID)
	}
	if _, err := m.itemOf(x.Trigger); err != nil {
		return err
	}
	ctx, open := m.openContext(x.Context)
	if !open {
		return events.ContextMachine().Check(x.Context, events.ContextClosed, events.ContextStreaming)
	}
	return m.start(begin{
		item: events.NewItem{ID: x.Trigger}, context: ctx, agent: x.Run.Agent, calls: slices.Clone(x.Run.First), once: x.Run.Once, retryOf: id, session: d.SessionID, settings: x.Run.Settings, rights: x.Run.Rights.Intersect(m.command.Rights),
	})
}

// awaitWorkers records that a run waits for workers that no process serves.
func (m *decider) awaitWorkers(d AwaitWorkers) error {
	x, err := m.claimed(d.ExecutionID, d.Token)
	if err != nil {
		return err
	}
	if slices.Equal(x.Run.Missing, d.For) {
		return nil
	}
	m.emit(events.RunAwaitedType, d.ExecutionID, d.ExecutionID, events.RunAwaited{For: d.For, Until: d.Until})
	return nil
}

// served records that a run no longer waits for the workers for which selected returns true.
func (m *decider) served(execution string, selected func(events.WaitFor) bool) {
	x, _ := m.state.execution(execution)
	left := slices.DeleteFunc(slices.Clone(x.Run.Missing), selected)
	if len(left) == len(x.Run.Missing) {
		return
	}
	m.emit(events.RunAwaitedType, execution, execution, events.RunAwaited{For: left})
}
