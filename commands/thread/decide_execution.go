package thread

import (
	"github.com/skein-threads/skein/events"
)

func (m *decider) createExecution(d events.CreateExecution) error {
	trigger, err := m.itemOf(d.TriggerItemID)
	if err != nil {
		return err
	}
	ctx := d.ContextID
	if ctx == "" {
		ctx = trigger.Context
	}
	if ctx, _, err = m.writable(ctx); err != nil {
		return err
	}
	id := m.id(d.ID, events.ExecutionPrefix)
	if err := m.executionIsNew(id); err != nil {
		return err
	}
	reaction := m.id(d.ReactionItemID, events.ItemPrefix)
	m.emit(events.ExecutionCreatedType, id, id, events.ExecutionCreated{
		ID: id, ContextID: ctx, TriggerItemID: d.TriggerItemID, ReactionItemID: reaction,
		WorkflowRunID: d.WorkflowRunID, Status: events.ExecutionMachine().Initial(), SessionID: d.SessionID,
	})
	return nil
}

func (m *decider) setExecutionStatus(d events.SetExecutionStatus) error {
	x, ok := m.state.execution(d.ExecutionID)
	if !ok {
		return events.Missing("execution", d.ExecutionID)
	}
	if err := events.ExecutionMachine().Check(d.ExecutionID, x.Status, d.To); err != nil {
		return err
	}
	m.emit(events.ExecutionStatusChangedType, d.ExecutionID, d.ExecutionID, events.ExecutionStatusChanged{
		From: x.Status, To: d.To, ErrorText: d.ErrorText, ErrorCode: d.ErrorCode,
		ReactionItemID: m.shownBy(x, d.To == events.ExecutionFailed),
	})
	return nil
}

// shownBy returns the reaction item of an execution if the item's failed flag must change to
// failed; otherwise, or if there is no item, "".
func (m *decider) shownBy(x executionState, failed bool) string {
	if i, ok := m.state.item(x.writes()); ok && !i.Deleted && i.Failed != failed && (failed || x.Stumbled) {
		return x.writes()
	}
	return ""
}

func (m *decider) createStep(d events.CreateStep) error {
	x, ok := m.state.execution(d.ExecutionID)
	if !ok {
		return events.Missing("execution", d.ExecutionID)
	}
	id := m.id(d.ID, events.StepPrefix)
	if _, taken := m.state.step(id); taken {
		return events.Taken("step", id)
	}
	created := events.StepCreated{
		ID: id, ExecutionID: d.ExecutionID, Iteration: x.Steps, EventID: d.EventID, Status: events.StepMachine().Initial(), SessionID: x.Session,
	}
	if d.Iteration != nil {
		created.Iteration = *d.Iteration
	}
	if d.EventID == "" {
		created.EventID = x.Reaction
	}
	m.emit(events.StepCreatedType, id, d.ExecutionID, created)
	return nil
}

// stepOf returns a step, which must belong to execution unless execution is empty.
func (m *decider) stepOf(id, execution string) (stepState, error) {
	t, ok := m.state.step(id)
	if !ok || execution != "" && execution != t.Execution {
		return t, events.Missing("step", id)
	}
	return t, nil
}

func (m *decider) setStepStatus(d events.SetStepStatus) error {
	t, err := m.stepOf(d.StepID, d.ExecutionID)
	if err != nil {
		return err
	}
	if err := events.StepMachine().Check(d.StepID, t.Status, d.To); err != nil {
		return err
	}
	changed := events.StepStatusChanged{
		ExecutionID: t.Execution, From: t.Status, To: d.To, ToolCalls: d.ToolCalls,
		ToolExecutionResults: d.ToolExecutionResults, ContinueLoop: d.ContinueLoop, ErrorText: d.ErrorText,
	}
	if x, _ := m.state.execution(t.Execution); d.To == events.StepFailed && x.Status == events.Executing {
		changed.ReactionItemID = m.shownBy(x, true)
	}
	m.emit(events.StepStatusChangedType, d.StepID, t.Execution, changed)
	return nil
}

func (m *decider) putPart(d events.PutPart) error {
	idx := *d.Idx
	key := events.PartKey(d.StepID, idx)
	if d.Key != "" && d.Key != key {
		return events.Invalid("/key", "a part's key is its step and place: %s, not %s", key, d.Key)
	}
	t, err := m.stepOf(d.StepID, d.ExecutionID)
	if err != nil {
		return err
	}
	if t.Parts.has(idx) {
		m.emit(events.PartUpdatedType, key, t.Execution,
			events.PartUpdated{Key: key, StepID: d.StepID, Idx: idx, Type: d.Type, Part: d.Part})
		return nil
	}
	m.emit(events.PartCreatedType, key, t.Execution,
		events.PartCreated{Key: key, StepID: d.StepID, Idx: idx, Type: d.Type, Part: d.Part})
	return nil
}
