package documents

import "github.com/skein-threads/skein/events"

// relationships returns the read model of relationships: a document for each one that a thread
// records and did not remove.
func relationships() Projection {
	type T = events.Relationship
	return Projection{
		Kind: Relationships, Name: "relationships", Version: 1, Bucket: "thread_relationships",
		new:   func() any { return new(T) },
		stamp: func(doc any) *events.Stamp { return &doc.(*T).Stamp },
		reactions: []reaction{
			puts(events.RelationshipAddedType, func(_ *change, d events.RelationshipAdded) (string, bool) {
				return relationshipID(d.ThreadID, d.Type, d.Role), true
			}, func(c *change, _ *T, d events.RelationshipAdded) *T {
				return &T{
					ThreadID: d.ThreadID, Type: d.Type, Role: d.Role, MessageIndex: d.MessageIndex, ItemID: d.ItemID,
					CreatedAt: c.time(), Comment: d.Comment,
				}
			}),
			removes(events.RelationshipRemovedType, func(_ *change, d events.RelationshipRemoved) (string, bool) {
				return relationshipID(d.ThreadID, d.Type, d.Role), true
			}),
			together(events.LifecycleDeletedType),
		},
	}
}

func relationshipID(thread string, kind events.RelationshipKind, role events.RelationshipRole) string {
	return thread + "." + string(kind) + "." + string(role)
}
