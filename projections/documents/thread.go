package documents

import "github.com/skein-threads/skein/events"

// threads returns the read model of threads. A document changes with every commit of its thread.
func threads() Projection {
	type T = events.Thread
	return Projection{
		Kind: Threads, Name: "threads", Version: 7, Bucket: "thread_threads",
		new:   func() any { return new(T) },
		stamp: func(doc any) *events.Stamp { return &doc.(*T).Stamp },
		reactions: append(ofThreadRun(),
			makes(events.ThreadCreatedType, own, func(c *change, d events.ThreadCreated) *T {
				return &T{
					ID: c.commit.Thread, Key: d.Key, Status: d.Status, CreatedAt: c.time(), AgentID: d.AgentID, UserID: d.UserID,
					Title: d.Title, Metadata: d.Metadata, Env: d.Env, MainThreadID: d.MainThreadID,
					OriginThreadID: d.OriginThreadID, ForkPointIndex: d.ForkPointIndex, CreatedAtMicros: int64(c.event.Time),
				}
			}),
			on(events.ThreadStatusChangedType, own, func(_ *change, doc *T, d events.ThreadStatusChanged) { doc.Status = d.To }),
			on(events.ProfileChangedType, own, func(_ *change, doc *T, d events.ProfileChanged) { setProfile(doc, d) }),
			on(events.SkillActivatedType, own, func(_ *change, doc *T, d events.SkillActivated) {
				doc.ActivatedSkills = append(doc.ActivatedSkills, events.ActivatedSkill(d))
			}),
			on(events.QueuePushedType, own, func(_ *change, doc *T, d events.QueuePushed) {
				doc.Queued++
				if !d.IsCall() {
					doc.NextMessageID = max(doc.NextMessageID, d.MessageID+1)
				}
			}),
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
			on(events.ItemCreatedType, own, func(c *change, doc *T, d events.ItemCreated) {
				doc.Items++
				*doc.ItemTypes.Of(d.Type)++
				doc.NextItem = max(doc.NextItem, d.Index+1)
				if d.MessageID != nil {
					doc.NextMessageID = max(doc.NextMessageID, *d.MessageID+1)
				} else if d.Type == events.Message {
					doc.NextMessageID++
				}
				if d.Type == events.Message && d.Role == events.User && d.Depth == 0 && !d.Silent {
					doc.UserLastInteractedAt = max(doc.UserLastInteractedAt, int64(c.given(d.CreatedAt))/1000)
				}
				if events.ShowsAlone(d.Type, d.CallOf != nil) {
					countMessage(doc, d.Index, events.MessageClass(d.Depth, d.ContextID != doc.ContextID, d.Silent), 1)
				}
			}),
			on(events.StepCreatedType, own, func(_ *change, doc *T, d events.StepCreated) {
				if d.Place != nil {
					doc.NextItem = max(doc.NextItem, *d.Place+1)
				}
			}),
			on(events.HistoryInheritedType, own, func(_ *change, doc *T, d events.HistoryInherited) {
				for _, page := range d.Pages {
					doc.Items += page.Items.Total()
					doc.ItemTypes.Add(page.Items)
					for class, n := range page.Messages {
						countMessage(doc, page.From, class, n)
					}
				}
				doc.NextItem, doc.NextMessageID = d.NextIndex, d.NextMessageID
				doc.UserLastInteractedAt = max(doc.UserLastInteractedAt, d.UserLastInteractedAt)
			}),
			on(events.RelationshipAddedType, own, func(c *change, doc *T, d events.RelationshipAdded) {
				if d.Role == events.ChildRole {
					doc.Parents = append(without(doc.Parents, d.ThreadID, d.Type), events.DocumentRelation{
						ThreadID: d.ThreadID, Type: d.Type, Role: d.Role, MessageIndex: d.MessageIndex, CreatedAt: int64(c.event.Time) / 1000, Comment: d.Comment,
					})
				}
			}),
			on(events.RelationshipRemovedType, own, func(_ *change, doc *T, d events.RelationshipRemoved) {
				if d.Role == events.ChildRole {
					doc.Parents = without(doc.Parents, d.ThreadID, d.Type)
				}
			}),
			on(events.FileWrittenType, own, func(_ *change, doc *T, d events.FileWritten) {
				if d.Since == 0 {
					countFiles(doc, events.DiffStats{Added: 1})
				} else {
					countFiles(doc, events.DiffStats{Changed: 1})
				}
			}),
			on(events.FileDeletedType, own, func(_ *change, doc *T, _ events.FileDeleted) { countFiles(doc, events.DiffStats{Deleted: 1}) }),
			together(events.MessageDeletedType),
			together(events.HistoryTruncatedType),
		),
	}
}

// without returns relationships without the one to a thread, in a list of its own: readers share
// the old one.
func without(list []events.DocumentRelation, thread string, kind events.RelationshipKind) []events.DocumentRelation {
	var rest []events.DocumentRelation
	for _, one := range list {
		if one.ThreadID != thread || one.Type != kind {
			rest = append(rest, one)
		}
	}
	return rest
}

// countFiles adds to the counts of changes of files. Readers share the old ones, so they are
// replaced.
func countFiles(doc *events.Thread, by events.DiffStats) {
	if doc.DiffStats != nil {
		by.Added += doc.DiffStats.Added
		by.Changed += doc.DiffStats.Changed
		by.Deleted += doc.DiffStats.Deleted
	}
	doc.DiffStats = &by
}

// isChange reports whether the event counts as a change of the thread: it came after the
// command that created the thread, and is more than a record of what was found or traced, of
// where the thread is stored, or of who may read or write it.
func (c *change) isChange() bool {
	switch c.event.Type {
	case events.ThreadResolvedType, events.ContextResolvedType, events.TraceRecordedType, events.CommandRejectedType, events.LifecycleArchivedType,
		events.WriterClaimedType, events.WriterRenewedType, events.WriterReleasedType, events.ShareCreatedType, events.ShareRevokedType,
		events.SessionStartedType, events.SessionCompletedType, events.SubthreadAddedType:
		return false
	}
	if c.commit.Events[0].Version != 1 {
		return true
	}
	for i := range c.commit.Events {
		if e := &c.commit.Events[i]; e.Type == events.ThreadCreatedType {
			return e.CommandID != c.event.CommandID || e.CommandIndex != c.event.CommandIndex
		}
	}
	return true
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
