package documents

import (
	"slices"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runview"
)

// executions returns the read model of executions.
func executions() Projection {
	type T = events.Execution
	return Projection{
		Kind: Executions, Name: "executions", Version: 6, Bucket: "thread_executions",
		new:   func() any { return new(T) },
		stamp: func(doc any) *events.Stamp { return &doc.(*T).Stamp },
		reactions: []reaction{
			makes(events.ExecutionCreatedType, subject, func(c *change, d events.ExecutionCreated) *T {
				return &T{
					ID: d.ID, ThreadID: c.commit.Thread, ContextID: d.ContextID, TriggerItemID: d.TriggerItemID,
					ReactionItemID: d.ReactionItemID, WorkflowRunID: d.WorkflowRunID, SessionID: d.SessionID, Status: d.Status, CreatedAt: c.time(),
				}
			}),
			on(events.ExecutionStatusChangedType, subject, func(c *change, doc *T, d events.ExecutionStatusChanged) {
				doc.Status, doc.ErrorText, doc.ErrorCode, doc.UpdatedAt, doc.WaitingFor = d.To, d.ErrorText, d.ErrorCode, c.time(), nil
				for i := range doc.Approvals { // they can no longer be answered
					answered(c, &doc.Approvals[i], events.ApprovalWithdrawn)
				}
			}),
			on(events.ThreadFinishedType, func(_ *change, d events.ThreadFinished) (string, bool) { return d.ExecutionID, true },
				func(c *change, doc *T, _ events.ThreadFinished) { doc.Finished, doc.UpdatedAt = true, c.time() }),
			on(events.StepCreatedType, func(_ *change, d events.StepCreated) (string, bool) { return d.ExecutionID, true },
				func(_ *change, doc *T, d events.StepCreated) {
					doc.StepCount++
					if d.EventID != doc.LastItem() {
						doc.LaterItems = append(slices.Clip(doc.LaterItems), events.LaterItem{ItemID: d.EventID, SteeredBy: d.SteeredBy})
					}
					switch d.Side {
					case events.SideA:
						doc.SideASteps++
					case events.SideB:
						doc.SideBSteps++
					}
				}),
			on(events.RunRequestedType, subject, func(_ *change, doc *T, d events.RunRequested) {
				doc.AgentID, doc.Waiting, doc.Parent = d.AgentID, nil, d.Parent
				if d.RetryOf != "" {
					doc.RetryOf = d.RetryOf
				}
				if d.Settings != nil { // a run that goes on has those that it began with
					doc.Settings = d.Settings
				}
			}),
			on(events.RunClaimedType, subject, func(_ *change, doc *T, d events.RunClaimed) {
				doc.Worker, doc.Token, doc.Definitions, doc.Waiting, doc.WaitingFor = d.Worker, d.Token, d.Definitions, nil, nil
			}),
			on(events.RunAwaitedType, subject, func(_ *change, doc *T, d events.RunAwaited) { doc.WaitingFor = d.For }),
			on(events.RunParkedType, subject, func(_ *change, doc *T, d events.RunParked) { doc.Waiting = d.Calls }),
			on(events.ApprovalRequestedType, ofRun, func(c *change, doc *T, d events.ApprovalRequested) {
				doc.Approvals = append(doc.Approvals, d.Waiting(c.time()))
			}),
			on(events.ApprovalGrantedType, ofRun, func(c *change, doc *T, d events.ApprovalGranted) { answer(c, doc, d.CallID, events.ApprovalGrant) }),
			on(events.ApprovalDeniedType, ofRun, func(c *change, doc *T, d events.ApprovalDenied) { answer(c, doc, d.CallID, events.ApprovalDenial) }),
			on(events.ApprovalResolvedType, ofRun, func(c *change, doc *T, d events.ApprovalResolved) { answer(c, doc, d.CallID, events.ApprovalResult) }),
			on(events.RunStoppedType, subject, func(_ *change, doc *T, d events.RunStopped) {
				doc.Stopped = true
				if d.By != "" {
					doc.StoppedBy = d.By
				}
			}),
			on(events.TraceRecordedType, usedBy, func(_ *change, doc *T, d events.TraceRecorded) {
				doc.FinishReason = runview.EarlyFinish(d.Data)
				doc.Usage = events.AddUsage(doc.Usage, d.Usage)
			}),
			together(events.LifecycleDeletedType),
		},
	}
}

// usedBy returns the execution whose model a record is about: that of a call of a reactor.
func usedBy(_ *change, d events.TraceRecorded) (string, bool) {
	return d.ExecutionID, d.ExecutionID != "" && (d.Usage != nil || d.Shown != nil)
}

// ofRun returns the execution that an event belongs to.
func ofRun[E any](c *change, _ E) (string, bool) { return c.event.Correlation, true }

// answer records the answer to the request for approval of a waiting call.
func answer(c *change, doc *events.Execution, call string, as events.ApprovalStatus) {
	for i := range doc.Approvals {
		if doc.Approvals[i].CallID == call {
			answered(c, &doc.Approvals[i], as)
		}
	}
}

// answered records the outcome of a pending request.
func answered(c *change, one *events.CallApproval, as events.ApprovalStatus) {
	if one.Status != events.ApprovalWaiting {
		return
	}
	one.Status, one.AnsweredAt, one.Arguments, one.Answer = as, c.time(), nil, nil
	if as != events.ApprovalWithdrawn {
		one.AnsweredBy = c.event.Actor
	}
}
