package events

// CreateThread creates a thread (thread.create), or returns the thread of a key and creates it
// if there is none (thread.resolve, where the key is required).
type CreateThread struct {
	Key          string `json:"key,omitzero" schema:"pattern=key" doc:"The public name, unique in the tenant."`
	AgentID      string `json:"agentId,omitzero" schema:"pattern=name" doc:"The agent in charge."`
	UserID       string `json:"userId,omitzero" schema:"maxLength=256" doc:"The user it belongs to."`
	Title        string `json:"title,omitzero" schema:"maxLength=1024" doc:"A title for lists."`
	Metadata     JSON   `json:"metadata,omitzero" schema:"object" doc:"The caller's own fields."`
	Env          JSON   `json:"env,omitzero" schema:"object" doc:"What is known of the workspace."`
	Context      JSON   `json:"context,omitzero" doc:"The first content of the default context: any JSON."`
	ContextType  string `json:"contextType,omitzero" schema:"pattern=name" doc:"The definition of kind context that the content of the default context must fit."`
	MainThreadID string `json:"mainThreadId,omitzero" schema:"pattern=thread" doc:"The thread that this one works for."`
}

// ResolveThread returns the thread of a key, and creates it if there is none.
type ResolveThread struct {
	Key          string `json:"key" schema:"required,pattern=key" doc:"The public name, unique in the tenant."`
	AgentID      string `json:"agentId,omitzero" schema:"pattern=name" doc:"If the thread is created: the agent in charge."`
	UserID       string `json:"userId,omitzero" schema:"maxLength=256" doc:"If the thread is created: the user it belongs to."`
	Title        string `json:"title,omitzero" schema:"maxLength=1024" doc:"If the thread is created: a title for lists."`
	Metadata     JSON   `json:"metadata,omitzero" schema:"object" doc:"If the thread is created: the caller's own fields."`
	Env          JSON   `json:"env,omitzero" schema:"object" doc:"If the thread is created: what is known of the workspace."`
	Context      JSON   `json:"context,omitzero" doc:"If the thread is created: the first content of the default context, any JSON."`
	ContextType  string `json:"contextType,omitzero" schema:"pattern=name" doc:"If the thread is created: the definition of kind context that the content of the default context must fit."`
	MainThreadID string `json:"mainThreadId,omitzero" schema:"pattern=thread" doc:"If the thread is created: the thread that it works for."`
}

// SetThreadStatus moves the thread's state machine.
type SetThreadStatus struct {
	To     ThreadStatus `json:"to" schema:"required" doc:"The state to move to."`
	Reason string       `json:"reason,omitzero" schema:"maxLength=1024" doc:"The reason."`
}

// UpdateThread changes a thread's description. At least one field must be set; an empty string
// clears a field.
type UpdateThread struct {
	Title           *string `json:"title,omitzero" schema:"maxLength=1024" doc:"A title for lists."`
	Archived        *bool   `json:"archived,omitzero" doc:"Hidden from the main list."`
	Draft           *string `json:"draft,omitzero" schema:"maxLength=65536" doc:"An unsent message."`
	AutoSubmitDraft *bool   `json:"autoSubmitDraft,omitzero" doc:"The draft is sent by itself when a run has completed and nothing waits in the queue; then both are cleared."`
	AgentMode       *string `json:"agentMode,omitzero" schema:"maxLength=128" doc:"The mode. It picks the agent by the tenant's policy modes, and the reactor is told."`
	MaxTokens       *int64  `json:"maxTokens,omitzero" schema:"minimum=1" doc:"The cap on the output tokens of a run, all of its steps together."`
	UserID          *string `json:"userId,omitzero" schema:"maxLength=256" doc:"The user it belongs to."`
	Metadata        JSON    `json:"metadata,omitzero" schema:"object" doc:"The caller's own fields, all of them."`
	Env             JSON    `json:"env,omitzero" schema:"object" doc:"What is known of the workspace."`
	Policy          *Policy `json:"policy,omitzero" doc:"What happens to a message that arrives during a run; if never set, the policy of the running agent's definition, or else enqueue."`
}

// DeleteThread deletes a thread permanently.
type DeleteThread struct {
	Purge bool `json:"purge,omitzero" doc:"Also erase its events; the tombstone stays."`
}

// CommitThread runs several commands in one atomic commit, or none of them.
type CommitThread struct {
	Commands []SubCommand `json:"commands" schema:"required,minItems=1,maxItems=200" doc:"The commands, in order. Each sees what those before it did."`
}

// SubCommand is one command of a thread.commit.
type SubCommand struct {
	Command string `json:"command" schema:"required,pattern=name" doc:"The command, noun.verb."`
	Data    JSON   `json:"data,omitzero" schema:"object" doc:"What it takes."`
}

// FinishThread records that a react is over, once for each execution.
type FinishThread struct {
	ExecutionID string `json:"executionId" schema:"required,pattern=id" doc:"The execution, which must have ended."`
	Reason      string `json:"reason,omitzero" schema:"maxLength=1024" doc:"The reason."`
}

func threadCommands() []Command {
	create := command("thread.create", "Creates a thread with its default context.",
		CreateThread{Key: "support/42", AgentID: "triage", UserID: "ada", Context: JSON(`{"turns":0}`)}, ThreadCreatedType, ContextCreatedType, KeyClaimedType)
	create.Creates = true
	resolve := command("thread.resolve", "Finds the thread of a key, or creates it.",
		ResolveThread{Key: "support/42"}, ThreadResolvedType, ThreadCreatedType, ContextCreatedType, KeyClaimedType)
	resolve.Creates, resolve.Single = true, true
	remove := command("thread.delete", "Deletes a thread for good, and the threads that work for it. What runs is aborted first.",
		DeleteThread{Purge: true},
		LifecycleDeletedType, KeyReleasedType, RunStoppedType, StepStatusChangedType, ItemCreatedType, MessageEditedType, ItemStatusChangedType,
		ExecutionStatusChangedType, ThreadFinishedType, ContextStatusChangedType, ThreadStatusChangedType)
	remove.Single = true
	commit := command("thread.commit", "Executes several commands in one atomic commit, or none.",
		CommitThread{Commands: []SubCommand{
			{Command: "item.create", Data: JSON(`{"item":{"id":"itm_u1","type":"message","role":"user","content":[{"type":"input_text","text":"Where is my order?"}]}}`)},
			{Command: "execution.create", Data: JSON(`{"triggerItemId":"itm_u1"}`)},
		}})
	commit.Creates, commit.Single = true, true
	return append([]Command{
		create, resolve,
		command("thread.status", "Changes the state of a thread.", SetThreadStatus{To: ThreadStreaming}, ThreadStatusChangedType),
		command("thread.update", "Changes a thread's title, metadata, flags and the like.",
			UpdateThread{Title: new("Order 42"), Archived: new(true)}, ProfileChangedType),
		command("thread.finish", "Records that a run is over.", FinishThread{ExecutionID: exampleExecution}, ThreadFinishedType),
		remove, commit,
	}, shareCommands()...)
}
