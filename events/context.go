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
	Content JSON          `json:"content" schema:"required" doc:"The state itself."`
}

// ContextResolved records that a context was found or created for what follows.
type ContextResolved struct {
	Key     *string `json:"key" schema:"required,nullable,pattern=key" doc:"The key; null for the default context."`
	Created bool    `json:"created" schema:"required" doc:"This command created the context."`
}

// ContextStatusChanged records a move of the context's state machine.
type ContextStatusChanged struct {
	From ContextStatus `json:"from" schema:"required" doc:"The state before."`
	To   ContextStatus `json:"to" schema:"required" doc:"The state after."`
}

// StateChanged records a change of a context's content: to Content, by Patch (a JSON Merge
// Patch, RFC 7396) or, of a thread's key-value state, by Operations. Exactly one of the three
// is present.
type StateChanged struct {
	Content    JSON             `json:"content,omitzero" doc:"The whole new content."`
	Patch      JSON             `json:"patch,omitzero" doc:"What changed, as a JSON Merge Patch."`
	Operations []StateOperation `json:"operations,omitempty" doc:"What changed, as operations on a key-value state."`

	Life  int64 `json:"life,omitzero" schema:"minimum=1" doc:"Of a key-value state: its life."`
	Size  int64 `json:"size,omitzero" schema:"minimum=0" doc:"Of a key-value state: the number of its keys after the change."`
	Bytes int64 `json:"bytes,omitzero" schema:"minimum=0" doc:"Of a key-value state: the bytes of its JSON after the change."`
}

// After returns a context's content after the change.
func (d StateChanged) After(content JSON) (JSON, error) {
	switch {
	case d.Operations != nil:
		after, _, err := ApplyOperations(content, d.Operations)
		return after, err
	case d.Patch != nil:
		return MergePatch(content, d.Patch)
	}
	return d.Content, nil
}

// StateClosed records that a life of a key-value state was cleared.
type StateClosed struct {
	Reason string `json:"reason,omitzero" schema:"maxLength=1024" doc:"expired or destroyed."`
	Life   int64  `json:"life,omitzero" schema:"minimum=1" doc:"The life."`
}

type contextRules interface {
	ContextCreated(e *Event, d ContextCreated) error
	ContextResolved(e *Event, d ContextResolved) error
	ContextStatusChanged(e *Event, d ContextStatusChanged) error
	StateChanged(e *Event, d StateChanged) error
	StateClosed(e *Event, d StateClosed) error
}

func contextEvents() []Row {
	return []Row{
		row(ContextCreatedType, 1, "A context was created on a thread.",
			ContextCreated{ID: exampleContext, Status: ContextOpen, Default: true, Content: JSON(`{"turns":0}`)}, Rules.ContextCreated),
		row(ContextResolvedType, 1, "A context was found, or created, for what follows.", ContextResolved{Created: false}, Rules.ContextResolved),
		row(ContextStatusChangedType, 1, "The state of the context changed.",
			ContextStatusChanged{From: ContextOpen, To: ContextStreaming}, Rules.ContextStatusChanged),
		row(StateChangedType, 1, "A context's content changed.", StateChanged{Patch: JSON(`{"turns":1}`)}, Rules.StateChanged),
		row(StateClosedType, 1, "A life of a key-value state was cleared.", StateClosed{Reason: "expired", Life: 1}, Rules.StateClosed),
	}
}

// CreateContext makes another context on a thread.
type CreateContext struct {
	ID      string `json:"id,omitzero" schema:"pattern=id" doc:"The id, if the caller chooses it."`
	Key     string `json:"key,omitzero" schema:"pattern=key" doc:"Its name, unique in the thread."`
	Type    string `json:"type,omitzero" schema:"pattern=name" doc:"The definition of kind context that its content must fit."`
	Content JSON   `json:"content,omitzero" doc:"Its first content, which its type must allow."`
}

// ResolveContext finds the context of a key, or creates it; without a key, the default
// context.
type ResolveContext struct {
	Key string `json:"key,omitzero" schema:"pattern=key" doc:"The context's name in the thread."`
}

// SetContextStatus moves a context's state machine.
type SetContextStatus struct {
	ContextID string        `json:"contextId,omitzero" schema:"pattern=id" doc:"The context; the default one if absent."`
	To        ContextStatus `json:"to" schema:"required" doc:"The state to move to."`
}

// SetContext replaces or patches a context's content: exactly one of the two.
type SetContext struct {
	ContextID string `json:"contextId,omitzero" schema:"pattern=id" doc:"The context; the default one if absent."`
	Content   JSON   `json:"content,omitzero" doc:"The whole new content."`
	Patch     JSON   `json:"patch,omitzero" doc:"A JSON Merge Patch (RFC 7396) of it."`
}

// Check validates what spans more than one field.
func (c SetContext) Check() error {
	if (c.Content == nil) == (c.Patch == nil) {
		return Invalid("", "exactly one of content and patch is needed")
	}
	return nil
}

// Constraint returns the rules of Check as JSON Schema.
func (SetContext) Constraint() string {
	return `{"oneOf":[{"required":["content"]},{"required":["patch"]}]}`
}

func contextCommands() []Command {
	return []Command{
		command("context.create", "Creates another context on a thread.",
			CreateContext{Key: "cart", Content: JSON(`{"items":[]}`)}, ContextCreatedType),
		command("context.resolve", "Finds the context of a key, or creates it.",
			ResolveContext{Key: "cart"}, ContextResolvedType, ContextCreatedType),
		command("context.status", "Changes the state of a context.", SetContextStatus{To: ContextStreaming}, ContextStatusChangedType),
		command("context.set", "Replaces or patches a context's content.", SetContext{Patch: JSON(`{"turns":1}`)}, StateChangedType),
	}
}
