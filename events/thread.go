package events

// The events of a thread.
const (
	ThreadCreatedType       Type = "thread.created"
	ThreadResolvedType      Type = "thread.resolved"
	ThreadStatusChangedType Type = "thread.status.changed"
	ThreadFinishedType      Type = "thread.finished"
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
	ForkPointIndex *int64 `json:"forkPointIndex,omitzero" schema:"minimum=0" doc:"Of a fork: the last message that was copied, counted from 0."`
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

type threadRules interface {
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
