package events

// The events of a context, and of its content.
const (
	ContextCreatedType       Type = "context.created"
	ContextResolvedType      Type = "context.resolved"
	ContextStatusChangedType Type = "context.status.changed"
	StateChangedType         Type = "state.changed"
	StateClosedType          Type = "state.closed"
)

// ContextCreated records that a context was created on a thread.
type ContextCreated struct {
	ID      string        `json:"id" schema:"required,pattern=id" doc:"The context's id."`
	Key     *string       `json:"key" schema:"required,nullable,pattern=key" doc:"Its name in the thread."`
	Status  ContextStatus `json:"status" schema:"required" doc:"Its first state."`
	Default bool          `json:"default,omitzero" doc:"It is the thread's default context."`
	Type    string        `json:"type,omitzero" schema:"pattern=name" doc:"The definition that its content must fit."`
	Content JSON          `json:"content" schema:"required" doc:"The state itself: any JSON, or null."`
}

// ContextResolved records that a context was found or created for what follows.
type ContextResolved struct {
	Key     *string `json:"key" schema:"required,nullable,pattern=key" doc:"The key that was asked for; null for the default context."`
	Created bool    `json:"created" schema:"required" doc:"This command created the context."`
}

// ContextStatusChanged records a move of the context's state machine.
type ContextStatusChanged struct {
	From ContextStatus `json:"from" schema:"required" doc:"The state before."`
	To   ContextStatus `json:"to" schema:"required" doc:"The state after."`
}

// StateChanged records a change of a context's content: to Content, or by Patch (a JSON Merge
// Patch, RFC 7396). Exactly one of the two is present.
type StateChanged struct {
	Content JSON `json:"content,omitzero" doc:"The whole new content."`
	Patch   JSON `json:"patch,omitzero" doc:"What changed, as a JSON Merge Patch."`
}

// StateClosed records that one life of a key-value state is over.
type StateClosed struct {
	Reason string `json:"reason,omitzero" schema:"maxLength=1024" doc:"expired or destroyed."`
}

func contextEvents() []Row {
	return []Row{
		row[ContextCreated](ContextCreatedType, 1, Rules.ContextCreated, "A context was created on a thread."),
		row[ContextResolved](ContextResolvedType, 1, Rules.ContextResolved, "A context was found, or created, for what follows."),
		row[ContextStatusChanged](ContextStatusChangedType, 1, Rules.ContextStatusChanged, "The state of the context changed."),
		row[StateChanged](StateChangedType, 1, Rules.StateChanged, "A context's content changed."),
		row[StateClosed](StateClosedType, 1, Rules.StateClosed, "A key-value state ended."),
	}
}
