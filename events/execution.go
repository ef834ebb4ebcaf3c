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
}

// ExecutionStatusChanged records a move of the execution's state machine.
type ExecutionStatusChanged struct {
	From      ExecutionStatus `json:"from" schema:"required" doc:"The state before."`
	To        ExecutionStatus `json:"to" schema:"required" doc:"The state after."`
	ErrorText string          `json:"errorText,omitzero" schema:"maxLength=65536" doc:"Why it failed."`
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
