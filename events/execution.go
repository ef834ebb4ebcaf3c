package events

// The events of an execution.
const (
	ExecutionCreatedType       Type = "execution.created"
	ExecutionStatusChangedType Type = "execution.status.changed"
)

// ExecutionCreated records that a react started. The reaction item's id is allotted here; the
// item follows.
type ExecutionCreated struct {
	ID             string          `json:"id" schema:"required,pattern=id" doc:"The execution's id."`
	ContextID      string          `json:"contextId" schema:"required,pattern=id" doc:"The context it works in."`
	TriggerItemID  string          `json:"triggerItemId" schema:"required,pattern=id" doc:"The item that it answers."`
	ReactionItemID string          `json:"reactionItemId" schema:"required,pattern=id" doc:"The item that it writes."`
	WorkflowRunID  string          `json:"workflowRunId,omitzero" schema:"maxLength=256" doc:"The id of the durable run behind it."`
	Status         ExecutionStatus `json:"status" schema:"required" doc:"Its first state."`
	SessionID      string          `json:"sessionId,omitzero" schema:"pattern=session" doc:"The request's session."`
}

// FailureCode says why a run failed, where the endpoint of its model has said so.
type FailureCode string

// The codes, in the words of OpenAI's endpoint.
const (
	FailedRateLimit FailureCode = "rate_limit_exceeded"
	FailedQuota     FailureCode = "insufficient_quota"
	FailedPolicy    FailureCode = "content_policy_violation"
	FailedKey       FailureCode = "invalid_api_key"
)

// Enum lists the codes.
func (FailureCode) Enum() []string {
	return []string{string(FailedRateLimit), string(FailedQuota), string(FailedPolicy), string(FailedKey)}
}

// ExecutionStatusChanged records a move of the execution's state machine.
type ExecutionStatusChanged struct {
	From      ExecutionStatus `json:"from" schema:"required" doc:"The state before."`
	To        ExecutionStatus `json:"to" schema:"required" doc:"The state after."`
	ErrorText string          `json:"errorText,omitzero" schema:"maxLength=65536" doc:"Why it failed."`
	ErrorCode FailureCode     `json:"errorCode,omitzero" doc:"Why it failed, if its model's endpoint said one of these."`
	// A message is shown as failed if its execution failed.
	ReactionItemID string `json:"reactionItemId,omitzero" schema:"pattern=id" doc:"The execution's item, where this changes how it shows."`
}

type executionRules interface {
	ExecutionCreated(e *Event, d ExecutionCreated) error
	ExecutionStatusChanged(e *Event, d ExecutionStatusChanged) error
}

func executionEvents() []Row {
	return []Row{
		row(ExecutionCreatedType, 1, "An execution was created.",
			ExecutionCreated{ID: exampleExecution, ContextID: exampleContext, TriggerItemID: exampleQuestion, ReactionItemID: exampleAnswer, Status: Executing}, Rules.ExecutionCreated),
		row(ExecutionStatusChangedType, 1, "The state of the execution changed.",
			ExecutionStatusChanged{From: Executing, To: ExecutionCompleted}, Rules.ExecutionStatusChanged),
	}
}

// CreateExecution creates an execution.
type CreateExecution struct {
	ID             string `json:"id,omitzero" schema:"pattern=id" doc:"The id, if the caller chooses it."`
	ContextID      string `json:"contextId,omitzero" schema:"pattern=id" doc:"The context; the trigger item's if absent."`
	TriggerItemID  string `json:"triggerItemId" schema:"required,pattern=id" doc:"The item that it answers, which must be there."`
	ReactionItemID string `json:"reactionItemId,omitzero" schema:"pattern=id" doc:"The id of the item that it writes; allotted if absent."`
	WorkflowRunID  string `json:"workflowRunId,omitzero" schema:"maxLength=256" doc:"The id of the durable run behind it."`
	SessionID      string `json:"sessionId,omitzero" schema:"pattern=session" doc:"The request's session."`
}

// SetExecutionStatus moves an execution's state machine.
type SetExecutionStatus struct {
	ExecutionID string          `json:"executionId" schema:"required,pattern=id" doc:"The execution."`
	To          ExecutionStatus `json:"to" schema:"required" doc:"The state to move to."`
	ErrorText   string          `json:"errorText,omitzero" schema:"maxLength=65536" doc:"Why it failed."`
	ErrorCode   FailureCode     `json:"errorCode,omitzero" doc:"Why it failed, if it is one of these."`
}

// CreateStep creates a step of an execution.
type CreateStep struct {
	ID          string `json:"id,omitzero" schema:"pattern=id" doc:"The id, if the caller chooses it."`
	ExecutionID string `json:"executionId" schema:"required,pattern=id" doc:"The execution."`
	Iteration   *int64 `json:"iteration,omitzero" schema:"minimum=0" doc:"Its place in the execution; the next one if absent."`
	EventID     string `json:"eventId,omitzero" schema:"pattern=id" doc:"The id of the item that the step writes; the reaction item's if absent."`
}

// SetStepStatus moves a step's state machine and records its result.
type SetStepStatus struct {
	StepID               string     `json:"stepId" schema:"required,pattern=id" doc:"The step."`
	ExecutionID          string     `json:"executionId,omitzero" schema:"pattern=id" doc:"The step's execution; checked if present."`
	To                   StepStatus `json:"to" schema:"required" doc:"The state to move to."`
	ToolCalls            JSON       `json:"toolCalls,omitzero" doc:"The calls that the reactor asked for."`
	ToolExecutionResults JSON       `json:"toolExecutionResults,omitzero" doc:"What the tools answered."`
	ContinueLoop         *bool      `json:"continueLoop,omitzero" doc:"Whether another step follows."`
	ErrorText            string     `json:"errorText,omitzero" schema:"maxLength=65536" doc:"Why it failed."`
}

// PutPart creates or replaces a part of a step.
type PutPart struct {
	StepID      string `json:"stepId" schema:"required,pattern=id" doc:"The step."`
	ExecutionID string `json:"executionId,omitzero" schema:"pattern=id" doc:"The step's execution; checked if present."`
	Idx         *int64 `json:"idx" schema:"required,minimum=0,maximum=99999" doc:"The part's place in the step, from 0."`
	Key         string `json:"key,omitzero" schema:"pattern=partKey" doc:"stepId:idx; checked if present."`
	Type        string `json:"type,omitzero" schema:"maxLength=128" doc:"What kind of part it is."`
	Part        JSON   `json:"part,omitzero" doc:"The part itself, stored unchanged."`
}

func executionCommands() []Command {
	return []Command{
		command("execution.create", "Creates an execution.", CreateExecution{TriggerItemID: exampleQuestion}, ExecutionCreatedType),
		command("execution.status", "Changes the state of an execution.",
			SetExecutionStatus{ExecutionID: exampleExecution, To: ExecutionFailed, ErrorText: "the model did not answer"}, ExecutionStatusChangedType),
		command("step.create", "Creates a step of an execution.", CreateStep{ExecutionID: exampleExecution}, StepCreatedType),
		command("step.status", "Changes the state of a step.",
			SetStepStatus{StepID: exampleStep, To: StepCompleted, ContinueLoop: new(false)}, StepStatusChangedType),
		command("part.put", "Creates or replaces a part of a step.",
			PutPart{StepID: exampleStep, Idx: new(int64(0)), Type: OutputText, Part: JSON(`{"type":"output_text","text":"It was shipped today."}`)}, PartCreatedType, PartUpdatedType),
	}
}

// Side is one of the two sides of a conversation between two agents.
type Side string

// The sides. A conversation that is not between two agents is all on side a.
const (
	SideA Side = "a"
	SideB Side = "b"
)

// Enum lists the sides.
func (Side) Enum() []string { return []string{string(SideA), string(SideB)} }

// ExecutionState is an execution as its tools and hooks see it. It is read-only except for the
// two methods that steer it. Outside an execution it is nil.
type ExecutionState interface {
	FlowID() string                  // the execution's id
	CurrentSide() Side               // whose turn it is
	StepCount() int64                // steps whose reactor ran
	SideAStepCount() int64           // those of side a
	SideBStepCount() int64           // those of side b
	Stopped() bool                   // it was asked to stop
	StoppedBy() Side                 // the side that asked; empty if none did
	MessageHistory() []ThreadMessage // oldest first
	AbortSignal() <-chan struct{}    // closed when in-flight work is to be abandoned; the context.Context of a call ends then too

	ForceTurn(side Side) error // the next turn is that side's; an error if there is only one side
	Stop()                     // nothing starts after the current work
}
