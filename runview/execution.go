package runview

import (
	"slices"

	"github.com/skein-threads/skein/events"
)

// ExecutionTypes are the types of the events that change the document of an execution after
// execution.created, which makes it.
func ExecutionTypes() []events.Type {
	return []events.Type{
		events.ExecutionStatusChangedType, events.ThreadFinishedType, events.StepCreatedType, events.RunRequestedType, events.RunClaimedType,
		events.RunAwaitedType, events.RunParkedType, events.RunStoppedType, events.ApprovalRequestedType, events.ApprovalGrantedType,
		events.ApprovalDeniedType, events.ApprovalResolvedType, events.TraceRecordedType,
	}
}

// NewExecution returns the document of an execution that an event has created.
func NewExecution(thread string, e *events.Event, d events.ExecutionCreated) *events.Execution {
	return &events.Execution{
		ID: d.ID, ThreadID: thread, ContextID: d.ContextID, TriggerItemID: d.TriggerItemID,
		ReactionItemID: d.ReactionItemID, WorkflowRunID: d.WorkflowRunID, SessionID: d.SessionID, Status: d.Status, CreatedAt: e.Time.ISO(),
	}
}

// ExecutionOf returns the id of the execution whose document an event of [ExecutionTypes] changes, and
// reports whether it changes one.
func ExecutionOf(e *events.Event) (id string, changes bool) {
	switch d := e.Data.(type) {
	case events.ExecutionStatusChanged, events.RunRequested, events.RunClaimed, events.RunAwaited, events.RunParked, events.RunStopped:
		return e.Subject, true
	case events.ThreadFinished:
		return d.ExecutionID, true
	case events.StepCreated:
		return d.ExecutionID, true
	case events.ApprovalRequested, events.ApprovalGranted, events.ApprovalDenied, events.ApprovalResolved:
		return e.Correlation, true
	case events.TraceRecorded: // of a call of a model
		return d.ExecutionID, d.ExecutionID != "" && (d.Usage != nil || d.Shown != nil)
	}
	return "", false
}

// Execute applies an event to the document of the execution that [ExecutionOf] names. The stamp stays as
// it is.
func Execute(x *events.Execution, e *events.Event) {
	switch d := e.Data.(type) {
	case events.ExecutionStatusChanged:
		x.Status, x.ErrorText, x.ErrorCode, x.UpdatedAt, x.WaitingFor = d.To, d.ErrorText, d.ErrorCode, e.Time.ISO(), nil
		for i := range x.Approvals { // they can no longer be answered
			answered(&x.Approvals[i], e, events.ApprovalWithdrawn)
		}
	case events.ThreadFinished:
		x.Finished, x.UpdatedAt = true, e.Time.ISO()
	case events.StepCreated:
		countStep(x, d)
	case events.RunRequested:
		x.AgentID, x.Waiting, x.Parent = d.AgentID, nil, d.Parent
		if d.RetryOf != "" {
			x.RetryOf = d.RetryOf
		}
		if d.Settings != nil { // a run that goes on has those that it began with
			x.Settings = d.Settings
		}
	case events.RunClaimed:
		x.Worker, x.Token, x.Definitions, x.Waiting, x.WaitingFor = d.Worker, d.Token, d.Definitions, nil, nil
	case events.RunAwaited:
		x.WaitingFor = d.For
	case events.RunParked:
		x.Waiting = d.Calls
	case events.RunStopped:
		x.Stopped = true
		if d.By != "" {
			x.StoppedBy = d.By
		}
	case events.ApprovalRequested:
		x.Approvals = append(x.Approvals, d.Waiting(e.Time.ISO()))
	case events.ApprovalGranted:
		answer(x, e, d.CallID, events.ApprovalGrant)
	case events.ApprovalDenied:
		answer(x, e, d.CallID, events.ApprovalDenial)
	case events.ApprovalResolved:
		answer(x, e, d.CallID, events.ApprovalResult)
	case events.TraceRecorded:
		x.FinishReason = EarlyFinish(d.Data)
		x.Usage = events.AddUsage(x.Usage, d.Usage)
	}
}

// countStep notes a step in the document of its execution.
func countStep(x *events.Execution, d events.StepCreated) {
	x.StepCount++
	if d.EventID != x.LastItem() {
		x.LaterItems = append(slices.Clip(x.LaterItems), events.LaterItem{ItemID: d.EventID, SteeredBy: d.SteeredBy})
	}
	switch d.Side {
	case events.SideA:
		x.SideASteps++
	case events.SideB:
		x.SideBSteps++
	}
}

// answer records the answer to the request for approval of a waiting call.
func answer(x *events.Execution, e *events.Event, call string, as events.ApprovalStatus) {
	for i := range x.Approvals {
		if x.Approvals[i].CallID == call {
			answered(&x.Approvals[i], e, as)
		}
	}
}

// answered records the outcome of a pending request.
func answered(one *events.CallApproval, e *events.Event, as events.ApprovalStatus) {
	if one.Status != events.ApprovalWaiting {
		return
	}
	one.Status, one.AnsweredAt, one.Arguments, one.Answer = as, e.Time.ISO(), nil, nil
	if as != events.ApprovalWithdrawn {
		one.AnsweredBy = e.Actor
	}
}
