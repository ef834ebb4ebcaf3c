package documents

import "github.com/skein-threads/skein/events"

// steps returns the read model of steps.
func steps() Projection {
	type T = events.Step
	return Projection{
		Kind: Steps, Name: "steps", Version: 2, Bucket: "thread_steps",
		new:   func() any { return new(T) },
		stamp: func(doc any) *events.Stamp { return &doc.(*T).Stamp },
		reactions: []reaction{
			makes(events.StepCreatedType, stepMade, func(c *change, d events.StepCreated) *T {
				return &T{
					ID: d.ID, ThreadID: c.commit.Thread, ExecutionID: d.ExecutionID, Iteration: d.Iteration, Status: d.Status,
					EventID: d.EventID, Side: d.Side, CreatedAt: c.time(),
				}
			}),
			on(events.StepStatusChangedType, stepMoved, func(c *change, doc *T, d events.StepStatusChanged) {
				doc.Status, doc.UpdatedAt = d.To, c.time()
				doc.ToolCalls, doc.ToolExecutionResults = d.ToolCalls, d.ToolExecutionResults
				doc.ContinueLoop, doc.ErrorText = d.ContinueLoop, d.ErrorText
			}),
			together(events.LifecycleDeletedType),
		},
	}
}

func stepMade(_ *change, d events.StepCreated) (string, bool) {
	return d.ExecutionID + "." + d.ID, d.ExecutionID != "" && d.ID != ""
}

func stepMoved(c *change, d events.StepStatusChanged) (string, bool) {
	return d.ExecutionID + "." + c.event.Subject, d.ExecutionID != "" && c.event.Subject != ""
}
