package events

// CreateContext makes another context on a thread.
type CreateContext struct {
	ID      string `json:"id,omitzero" schema:"pattern=id" doc:"The id, if the caller chooses it."`
	Key     string `json:"key,omitzero" schema:"pattern=key" doc:"Its name, unique in the thread."`
	Type    string `json:"type,omitzero" schema:"pattern=name" doc:"The definition of kind context that its content must fit."`
	Content JSON   `json:"content,omitzero" doc:"Its first content: any JSON that its type allows."`
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
	Content   JSON   `json:"content,omitzero" doc:"The whole new content: any JSON."`
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
