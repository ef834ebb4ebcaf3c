package documents

import (
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runview"
)

// executions returns the read model of executions, which package runview folds.
func executions() Projection {
	type T = events.Execution
	p := Projection{
		Kind: Executions, Name: "executions", Version: 6, Bucket: "thread_executions",
		new:   func() any { return new(T) },
		stamp: func(doc any) *events.Stamp { return &doc.(*T).Stamp },
		reactions: []reaction{
			makes(events.ExecutionCreatedType, subject, func(c *change, d events.ExecutionCreated) *T {
				return runview.NewExecution(c.commit.Thread, c.event, d)
			}),
			together(events.LifecycleDeletedType),
		},
	}
	for _, t := range runview.ExecutionTypes() {
		p.reactions = append(p.reactions, reaction{
			on: t,
			id: func(c *change) (string, bool) { return runview.ExecutionOf(c.event) },
			fold: func(c *change, doc any) any {
				if x, ok := doc.(*T); ok && x != nil {
					runview.Execute(x, c.event)
				}
				return doc
			},
		})
	}
	return p
}
