package documents

import (
	"github.com/skein-threads/skein/events"
)

// contexts returns the read model of contexts.
func contexts() Projection {
	type T = events.Context
	return Projection{
		Kind: Contexts, Name: "contexts", Version: 2, Bucket: "thread_contexts",
		new:   func() any { return new(T) },
		stamp: func(doc any) *events.Stamp { return &doc.(*T).Stamp },
		reactions: []reaction{
			makes(events.ContextCreatedType, subject, func(c *change, d events.ContextCreated) *T {
				return &T{
					ID: d.ID, Key: d.Key, ThreadID: c.commit.Thread, Status: d.Status, Type: d.Type, Content: orNull(d.Content), CreatedAt: c.time(),
				}
			}),
			on(events.ContextStatusChangedType, subject, func(c *change, doc *T, d events.ContextStatusChanged) {
				doc.Status, doc.UpdatedAt = d.To, c.time()
			}),
			on(events.StateChangedType, subject, func(c *change, doc *T, d events.StateChanged) {
				doc.UpdatedAt = c.time()
				if after, err := d.After(doc.Content); err == nil {
					doc.Content = orNull(after)
				}
			}),
			on(events.StateClosedType, subject, func(c *change, doc *T, _ events.StateClosed) {
				doc.Content, doc.UpdatedAt = orNull(nil), c.time()
			}),
			on(events.ItemCreatedType, func(_ *change, d events.ItemCreated) (string, bool) { return d.ContextID, true },
				func(c *change, doc *T, d events.ItemCreated) {
					*doc.ItemTypes.Of(d.Type)++
					if c.later() {
						doc.UpdatedAt = c.time()
					}
				}),
			on(events.HistoryInheritedType, func(_ *change, d events.HistoryInherited) (string, bool) { return d.ContextID, true },
				func(c *change, doc *T, d events.HistoryInherited) {
					for _, page := range d.Pages {
						doc.ItemTypes.Add(page.Items)
					}
				}),
			together(events.MessageDeletedType),
			together(events.HistoryTruncatedType),
			together(events.LifecycleDeletedType),
		},
	}
}

func orNull(v []byte) events.JSON {
	if len(v) == 0 {
		return events.JSON("null")
	}
	return v
}
