package documents

import "github.com/skein-threads/skein/events"

// threads returns the read model of threads. A document changes with every commit of its thread.
func threads() Projection {
	type T = events.Thread
	return Projection{
		Kind: Threads, Name: "threads", Version: 4, Bucket: "thread_threads",
		new:   func() any { return new(T) },
		stamp: func(doc any) *events.Stamp { return &doc.(*T).Stamp },
		reactions: append(ofThreadRun(),
			makes(events.ThreadCreatedType, own, func(c *change, d events.ThreadCreated) *T {
				return &T{
					ID: c.commit.Thread, Key: d.Key, Status: d.Status, CreatedAt: c.time(), AgentID: d.AgentID, UserID: d.UserID,
					Title: d.Title, Metadata: d.Metadata, Env: d.Env, MainThreadID: d.MainThreadID, CreatedAtMicros: int64(c.event.Time),
				}
			}),
			on(events.ThreadStatusChangedType, own, func(_ *change, doc *T, d events.ThreadStatusChanged) { doc.Status = d.To }),
			on(events.ProfileChangedType, own, func(_ *change, doc *T, d events.ProfileChanged) { setProfile(doc, d) }),
			on(events.QueuePushedType, own, func(_ *change, doc *T, _ events.QueuePushed) { doc.Queued++ }),
			on(events.QueueDrainedType, own, func(_ *change, doc *T, d events.QueueDrained) {
				doc.Queued = max(0, doc.Queued-int64(len(d.IDs)))
			}),
			on(events.QueueRemovedType, own, func(_ *change, doc *T, _ events.QueueRemoved) { doc.Queued = max(0, doc.Queued-1) }),
			on(events.AgentAssignedType, own, func(_ *change, doc *T, d events.AgentAssigned) { doc.AgentID = d.AgentID }),
			on(events.KeyClaimedType, own, func(_ *change, doc *T, d events.KeyClaimed) { doc.Key = &d.Key }),
			on(events.KeyReleasedType, own, func(_ *change, doc *T, _ events.KeyReleased) { doc.Key = nil }),
			on(events.ContextCreatedType, own, func(_ *change, doc *T, d events.ContextCreated) {
				if d.Default {
					doc.ContextID = d.ID
				}
			}),
			on(events.ItemCreatedType, own, func(_ *change, doc *T, d events.ItemCreated) {
				doc.Items++
				*doc.ItemTypes.Of(d.Type)++
				doc.NextItem = max(doc.NextItem, d.Index+1)
				if events.ShowsAlone(d.Type, d.CallOf != nil) {
					countMessage(doc, d.Index, messageClass(d.Depth, d.ContextID != doc.ContextID, d.Silent), 1)
				}
			}),
			together(events.MessageDeletedType),
			together(events.HistoryTruncatedType),
		),
	}
}

// setProfile sets the fields that the event holds. An empty string clears one.
func setProfile(doc *events.Thread, d events.ProfileChanged) {
	set(&doc.Title, d.Title)
	set(&doc.Archived, d.Archived)
	set(&doc.Draft, d.Draft)
	set(&doc.AutoSubmitDraft, d.AutoSubmitDraft)
	set(&doc.AgentMode, d.AgentMode)
	set(&doc.UserID, d.UserID)
	set(&doc.Policy, d.Policy)
	if d.MaxTokens != nil {
		doc.MaxTokens = d.MaxTokens
	}
	if d.Metadata != nil {
		doc.Metadata = d.Metadata
	}
	if d.Env != nil {
		doc.Env = d.Env
	}
}

func set[T any](to *T, value *T) {
	if value != nil {
		*to = *value
	}
}
