package documents

import "github.com/skein-threads/skein/events"

// items returns the read model of items. A hidden item has no document.
func items() Projection {
	type T = events.Item
	return Projection{
		Kind: Items, Name: "items", Version: 3, Bucket: "thread_items",
		new:   func() any { return new(T) },
		stamp: func(doc any) *events.Stamp { return &doc.(*T).Stamp },
		reactions: []reaction{
			makes(events.ItemCreatedType, subject, func(c *change, d events.ItemCreated) *T {
				return pointer(d.Item(c.commit.Thread, c.event.Time))
			}),
			on(events.ItemStatusChangedType, subject, func(c *change, doc *T, d events.ItemStatusChanged) {
				doc.Status, doc.UpdatedAt = d.To, c.time()
			}),
			on(events.MessageEditedType, subject, func(c *change, doc *T, d events.MessageEdited) {
				doc.UpdatedAt = c.time()
				doc.Edit(d)
			}),
			on(events.ExecutionStatusChangedType, func(_ *change, d events.ExecutionStatusChanged) (string, bool) {
				return d.ReactionItemID, d.ReactionItemID != ""
			}, func(c *change, doc *T, d events.ExecutionStatusChanged) {
				doc.Failed, doc.UpdatedAt = d.To == events.ExecutionFailed, c.time()
			}),
			on(events.StepStatusChangedType, func(_ *change, d events.StepStatusChanged) (string, bool) {
				return d.ReactionItemID, d.ReactionItemID != ""
			}, func(c *change, doc *T, d events.StepStatusChanged) {
				doc.Failed, doc.UpdatedAt = d.To == events.StepFailed, c.time()
			}),
			together(events.MessageDeletedType),
			together(events.HistoryTruncatedType),
			together(events.LifecycleDeletedType),
		},
	}
}

// given returns a time that the event holds, or the event's own.
func (c *change) given(at string) events.Time {
	if at != "" {
		if t, err := events.ParseTime(at); err == nil {
			return t
		}
	}
	return c.event.Time
}
