package events

import (
	"github.com/go-json-experiment/json"
)

// The events of a step.
const (
	StepCreatedType       Type = "step.created"
	StepStatusChangedType Type = "step.status.changed"
)

// StepCreated records that a step of an execution started.
type StepCreated struct {
	ID          string     `json:"id" schema:"required,pattern=id" doc:"The step's id."`
	ExecutionID string     `json:"executionId" schema:"required,pattern=id" doc:"The execution it belongs to."`
	Iteration   int64      `json:"iteration" schema:"required,minimum=0" doc:"Its place in the execution, from 0."`
	EventID     string     `json:"eventId" schema:"required,pattern=id" doc:"The id of the item that the step writes."`
	Status      StepStatus `json:"status" schema:"required" doc:"Its first state."`
	Side        Side       `json:"side,omitzero" doc:"The side of a dual_ai agent."`
	SessionID   string     `json:"sessionId,omitzero" schema:"pattern=session" doc:"The session of its execution."`
	Place       *int64     `json:"place,omitzero" schema:"minimum=0" doc:"Of a step whose item does not exist yet: the place that is kept for it."`
	SteeredBy   string     `json:"steeredBy,omitzero" schema:"pattern=id" doc:"Of a step that begins another item: the steering message that the item answers."`
}

// StepStatusChanged records a move of the step's state machine, and the step's result.
type StepStatusChanged struct {
	ExecutionID          string     `json:"executionId" schema:"required,pattern=id" doc:"The execution it belongs to."`
	From                 StepStatus `json:"from" schema:"required" doc:"The state before."`
	To                   StepStatus `json:"to" schema:"required" doc:"The state after."`
	ToolCalls            JSON       `json:"toolCalls,omitzero" doc:"The calls that the reactor asked for."`
	ToolExecutionResults JSON       `json:"toolExecutionResults,omitzero" doc:"What the tools answered."`
	ContinueLoop         *bool      `json:"continueLoop,omitzero" doc:"Whether another step follows."`
	ErrorText            string     `json:"errorText,omitzero" schema:"maxLength=65536" doc:"Why it failed."`
	ReactionItemID       string     `json:"reactionItemId,omitzero" schema:"pattern=id" doc:"The execution's item, where this changes how it shows."`
}

type stepRules interface {
	StepCreated(e *Event, d StepCreated) error
	StepStatusChanged(e *Event, d StepStatusChanged) error
}

func stepEvents() []Row {
	return []Row{
		row(StepCreatedType, 1, "A step of an execution was created.",
			StepCreated{ID: exampleStep, ExecutionID: exampleExecution, EventID: exampleAnswer, Status: StepRunning}, Rules.StepCreated),
		row(StepStatusChangedType, 2, "The state of the step changed, with its outcome.", StepStatusChanged{
			ExecutionID: exampleExecution, From: StepRunning, To: StepCompleted,
			ToolCalls:            JSON(`[{"toolCallId":"tc_1","name":"find_order","input":{"order":42}}]`),
			ToolExecutionResults: JSON(`[{"toolCallId":"tc_1","output":{"status":"shipped"}}]`),
			ContinueLoop:         new(true),
		}, Rules.StepStatusChanged,
			Upcast{From: 1, Doc: "error was renamed errorText.", Make: stepErrorText}),
	}
}

// stepErrorText upcasts version 1 by renaming the field error.
func stepErrorText(raw JSON) (JSON, error) {
	var old struct {
		StepStatusChanged
		Error string `json:"error,omitzero"`
	}
	if err := json.Unmarshal(raw, &old); err != nil {
		return nil, err
	}
	old.ErrorText = old.Error
	return json.Marshal(old.StepStatusChanged)
}
