package events

// The events of a thread.
const (
	ThreadCreatedType       Type = "thread.created"
	ThreadResolvedType      Type = "thread.resolved"
	ThreadStatusChangedType Type = "thread.status.changed"
	ThreadFinishedType      Type = "thread.finished"
	SubthreadAddedType      Type = "subthread.added"
)

// ThreadCreated is the first event of a thread.
type ThreadCreated struct {
	ID           string       `json:"id" schema:"required,pattern=thread" doc:"The thread's id."`
	Key          *string      `json:"key" schema:"required,nullable,pattern=key" doc:"Its public name, unique in the tenant."`
	Status       ThreadStatus `json:"status" schema:"required" doc:"Its first state."`
	AgentID      string       `json:"agentId,omitzero" schema:"pattern=name" doc:"The agent in charge."`
	UserID       string       `json:"userId,omitzero" schema:"maxLength=256" doc:"The user it belongs to."`
	Title        string       `json:"title,omitzero" schema:"maxLength=1024" doc:"A title for lists."`
	Metadata     JSON         `json:"metadata,omitzero" schema:"object" doc:"The caller's own fields."`
	Env          JSON         `json:"env,omitzero" schema:"object" doc:"What is known of the workspace."`
	MainThreadID string       `json:"mainThreadId,omitzero" schema:"pattern=thread" doc:"The thread that this one works for."`

	OriginThreadID string `json:"originThreadId,omitzero" schema:"pattern=thread" doc:"Of a fork: the thread that it was copied from."`
	ForkPointIndex *int64 `json:"forkPointIndex,omitzero" schema:"minimum=0" doc:"Of a fork: the last message that was copied, from 0."`
}

// ThreadResolved records that a thread was found by its key, or created for it.
type ThreadResolved struct {
	Key     string `json:"key" schema:"required,pattern=key" doc:"The key that was asked for."`
	Created bool   `json:"created" schema:"required" doc:"This command created the thread."`
}

// ThreadStatusChanged records a move of the thread's state machine.
type ThreadStatusChanged struct {
	From   ThreadStatus `json:"from" schema:"required" doc:"The state before."`
	To     ThreadStatus `json:"to" schema:"required" doc:"The state after."`
	Reason string       `json:"reason,omitzero" schema:"maxLength=1024" doc:"The reason."`
}

// ThreadFinished records that a react is over, once for each execution.
type ThreadFinished struct {
	ExecutionID string          `json:"executionId" schema:"required,pattern=id" doc:"The execution that ended."`
	Status      ExecutionStatus `json:"status" schema:"required" doc:"How it ended."`
	Reason      string          `json:"reason,omitzero" schema:"maxLength=1024" doc:"The reason."`
}

// SubthreadAdded records that a thread was created that works for this one, and that is deleted
// with it. It is in one atomic batch with that thread's first commit, so that none is created
// after the deletion.
type SubthreadAdded struct {
	ThreadID string `json:"threadId" schema:"required,pattern=thread" doc:"The thread that works for this one."`
}

type threadRules interface {
	SubthreadAdded(e *Event, d SubthreadAdded) error
	ThreadCreated(e *Event, d ThreadCreated) error
	ThreadResolved(e *Event, d ThreadResolved) error
	ThreadStatusChanged(e *Event, d ThreadStatusChanged) error
	ThreadFinished(e *Event, d ThreadFinished) error
}

func threadEvents() []Row {
	return []Row{
		row(ThreadCreatedType, 1, "A thread was created.",
			ThreadCreated{ID: exampleThread, Key: new("support/42"), Status: ThreadOpen, AgentID: "triage", UserID: "ada", Title: "Where is my order?"}, Rules.ThreadCreated),
		row(ThreadResolvedType, 1, "A thread was found by its key, or created for it.",
			ThreadResolved{Key: "support/42", Created: true}, Rules.ThreadResolved),
		row(ThreadStatusChangedType, 1, "The state of the thread changed.", ThreadStatusChanged{From: ThreadOpen, To: ThreadStreaming}, Rules.ThreadStatusChanged),
		row(ThreadFinishedType, 1, "A run on the thread is over.",
			ThreadFinished{ExecutionID: exampleExecution, Status: ExecutionCompleted}, Rules.ThreadFinished),
		row(SubthreadAddedType, 1, "A thread was created that works for this one.", SubthreadAdded{ThreadID: exampleChild}, Rules.SubthreadAdded),
	}
}

// ThreadRun is the current run of a thread in the thread's document. Lists of runs and metrics
// use it, so that they need not read executions that are over.
type ThreadRun struct {
	ExecutionID string    `json:"executionId" schema:"required,pattern=id" doc:"The execution."`
	WaitingFor  []RunWait `json:"waitingFor,omitempty" doc:"What it waits for now."`
	Parked      bool      `json:"parked,omitzero" doc:"It waits without a worker."`
	Until       string    `json:"until,omitzero" schema:"pattern=time" doc:"When the wait for a worker ends."`
}

// CreateThread creates a thread (thread.create), or returns the thread of a key and creates it
// if there is none (thread.resolve, where the key is required).
type CreateThread struct {
	Key          string `json:"key,omitzero" schema:"pattern=key" doc:"The public name, unique in the tenant."`
	AgentID      string `json:"agentId,omitzero" schema:"pattern=name" doc:"The agent in charge."`
	UserID       string `json:"userId,omitzero" schema:"maxLength=256" doc:"The user it belongs to."`
	Title        string `json:"title,omitzero" schema:"maxLength=1024" doc:"A title for lists."`
	Metadata     JSON   `json:"metadata,omitzero" schema:"object" doc:"The caller's own fields."`
	Env          JSON   `json:"env,omitzero" schema:"object" doc:"What is known of the workspace."`
	Context      JSON   `json:"context,omitzero" doc:"The first content of the default context."`
	ContextType  string `json:"contextType,omitzero" schema:"pattern=name" doc:"The definition of kind context that the content of the default context must fit."`
	MainThreadID string `json:"mainThreadId,omitzero" schema:"pattern=thread" doc:"The thread that this one works for, and with which it is deleted."`
}

// ResolveThread returns the thread of a key, and creates it if there is none.
type ResolveThread struct {
	Key          string `json:"key" schema:"required,pattern=key" doc:"The public name, unique in the tenant."`
	AgentID      string `json:"agentId,omitzero" schema:"pattern=name" doc:"The agent in charge."`
	UserID       string `json:"userId,omitzero" schema:"maxLength=256" doc:"The user it belongs to."`
	Title        string `json:"title,omitzero" schema:"maxLength=1024" doc:"A title for lists."`
	Metadata     JSON   `json:"metadata,omitzero" schema:"object" doc:"The caller's own fields."`
	Env          JSON   `json:"env,omitzero" schema:"object" doc:"What is known of the workspace."`
	Context      JSON   `json:"context,omitzero" doc:"The first content of the default context."`
	ContextType  string `json:"contextType,omitzero" schema:"pattern=name" doc:"The definition of kind context that the content of the default context must fit."`
	MainThreadID string `json:"mainThreadId,omitzero" schema:"pattern=thread" doc:"The thread that this one works for, and with which it is deleted."`
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
	AutoSubmitDraft *bool   `json:"autoSubmitDraft,omitzero" doc:"The draft is sent when a run has completed and nothing waits; then both are cleared."`
	AgentMode       *string `json:"agentMode,omitzero" schema:"maxLength=128" doc:"Picks the agent, by the policy modes."`
	MaxTokens       *int64  `json:"maxTokens,omitzero" schema:"minimum=1" doc:"The cap on a run's output tokens in all steps."`
	UserID          *string `json:"userId,omitzero" schema:"maxLength=256" doc:"The user it belongs to."`
	Metadata        JSON    `json:"metadata,omitzero" schema:"object" doc:"The caller's own fields, all of them."`
	Env             JSON    `json:"env,omitzero" schema:"object" doc:"What is known of the workspace."`
	Policy          *Policy `json:"policy,omitzero" doc:"What happens to a message during a run; if never set, the running agent's policy, or else enqueue."`
}

// DeleteThread deletes a thread permanently.
type DeleteThread struct {
	Purge bool `json:"purge,omitzero" doc:"Also erase its events; the tombstone stays."`
}

// CommitThread runs several commands in one atomic commit, or none of them.
type CommitThread struct {
	Commands []SubCommand `json:"commands" schema:"required,minItems=1,maxItems=200" doc:"In order: each sees what those before it did."`
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
		CreateThread{Key: "support/42", AgentID: "triage", UserID: "ada", Context: JSON(`{"turns":0}`)}, ThreadCreatedType, ContextCreatedType, KeyClaimedType, SubthreadAddedType).relating(Relates{Threads: []string{"mainThreadId"}, User: "userId"})
	create.Creates = true
	resolve := command("thread.resolve", "Finds the thread of a key, or creates it with the other fields.",
		ResolveThread{Key: "support/42"}, ThreadResolvedType, ThreadCreatedType, ContextCreatedType, KeyClaimedType, SubthreadAddedType).relating(Relates{Threads: []string{"mainThreadId"}, Finds: "key", User: "userId"})
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
		command("thread.status", "Changes the state of a thread on which Skein executes no run. Closing it removes what waits for the agent.", SetThreadStatus{To: ThreadStreaming}, ThreadStatusChangedType),
		command("thread.update", "Changes a thread's title, metadata, flags and the like.",
			UpdateThread{Title: new("Order 42"), Archived: new(true)}, ProfileChangedType).relating(Relates{User: "userId"}),
		command("thread.finish", "Records that a run is over.", FinishThread{ExecutionID: exampleExecution}, ThreadFinishedType),
		remove, commit,
	}, shareCommands()...)
}
