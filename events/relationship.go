package events

// The events of relationships between threads, and of keys.
const (
	RelationshipAddedType   Type = "relationship.added"
	RelationshipRemovedType Type = "relationship.removed"
	KeyClaimedType          Type = "key.claimed"
	KeyReleasedType         Type = "key.released"
)

// RelationshipKind says how two threads are related.
type RelationshipKind string

// Enum lists the kinds.
func (RelationshipKind) Enum() []string { return []string{"fork", "handoff", "mention"} }

// RelationshipRole is the role of the thread that holds the record.
type RelationshipRole string

// Enum lists the roles.
func (RelationshipRole) Enum() []string { return []string{"parent", "child"} }

// RelationshipAdded relates this thread to another, which holds the matching record.
type RelationshipAdded struct {
	ThreadID     string           `json:"threadId" schema:"required,pattern=thread" doc:"The other thread."`
	Type         RelationshipKind `json:"type" schema:"required" doc:"The kind of relation."`
	Role         RelationshipRole `json:"role" schema:"required" doc:"The role of the thread that holds this record."`
	MessageIndex *int64           `json:"messageIndex,omitzero" schema:"minimum=0" doc:"Where it was made."`
	ItemID       string           `json:"itemId,omitzero" schema:"pattern=id" doc:"The item at that place."`
	Comment      string           `json:"comment,omitzero" schema:"maxLength=65536" doc:"What it is for."`
}

// RelationshipRemoved removes a relationship to another thread.
type RelationshipRemoved struct {
	ThreadID string           `json:"threadId" schema:"required,pattern=thread" doc:"The other thread."`
	Type     RelationshipKind `json:"type" schema:"required" doc:"The kind of relation."`
	Role     RelationshipRole `json:"role" schema:"required" doc:"The role of the thread that held the record."`
}

// KeyClaimed records that a thread holds a key. It is written to the thread and to the key's
// own aggregate in one atomic batch, so that the key is unique.
type KeyClaimed struct {
	Key      string `json:"key" schema:"required,pattern=key" doc:"The key."`
	ThreadID string `json:"threadId" schema:"required,pattern=thread" doc:"The thread that holds it."`
}

// KeyReleased records that a key is free again.
type KeyReleased struct {
	Key      string `json:"key" schema:"required,pattern=key" doc:"The key."`
	ThreadID string `json:"threadId" schema:"required,pattern=thread" doc:"The thread that held it."`
}

type relationshipRules interface {
	RelationshipAdded(e *Event, d RelationshipAdded) error
	RelationshipRemoved(e *Event, d RelationshipRemoved) error
}

func relationshipEvents() []Row {
	return []Row{
		row(RelationshipAddedType, 1, "The thread was related to another.",
			RelationshipAdded{ThreadID: exampleChild, Type: "fork", Role: "parent", MessageIndex: new(int64(3)), ItemID: exampleAnswer}, Rules.RelationshipAdded),
		row(RelationshipRemovedType, 1, "A relation of the thread to another was removed.",
			RelationshipRemoved{ThreadID: exampleChild, Type: "fork", Role: "parent"}, Rules.RelationshipRemoved),
	}
}

type keyRules interface {
	KeyClaimed(e *Event, d KeyClaimed) error
	KeyReleased(e *Event, d KeyReleased) error
}

func keyEvents() []Row {
	return []Row{
		row(KeyClaimedType, 1, "A thread claimed a key.", KeyClaimed{Key: "support/42", ThreadID: exampleThread}, Rules.KeyClaimed),
		row(KeyReleasedType, 1, "A key was released.", KeyReleased{Key: "support/42", ThreadID: exampleThread}, Rules.KeyReleased),
	}
}
