package events

import (
	"slices"
)

// ReactThread asks an agent to answer an item, or a text: exactly one of the two.
type ReactThread struct {
	ContextID      string   `json:"contextId,omitzero" schema:"pattern=id" doc:"The context; the default one if absent."`
	Item           *NewItem `json:"item,omitzero" doc:"The trigger: what is to be answered."`
	Text           *string  `json:"text,omitzero" schema:"maxLength=524288" doc:"Short for an item: what the user says."`
	AgentID        string   `json:"agentId,omitzero" schema:"pattern=name" doc:"The agent; the thread's own if absent."`
	Policy         Policy   `json:"policy,omitzero" doc:"What happens to it during a run; if absent, the thread's policy, or else that of the running agent."`
	ExecutionID    string   `json:"executionId,omitzero" schema:"pattern=id" doc:"The execution's id, if the caller chooses it."`
	ReactionItemID string   `json:"reactionItemId,omitzero" schema:"pattern=id" doc:"The id of the item that answers; allotted if absent."`
	SessionID      string   `json:"sessionId,omitzero" schema:"pattern=session" doc:"The session of the request that asks. A message that steers a run leaves the run's as it is."`
}

// Check validates what spans more than one field.
func (d ReactThread) Check() error {
	switch {
	case d.Item == nil && d.Text == nil:
		return Invalid("/item", "an item or a text is needed")
	case d.Item != nil && d.Text != nil:
		return Invalid("", "only one of item and text can be given")
	}
	return nil
}

// Constraint returns the rules of Check as JSON Schema.
func (ReactThread) Constraint() string {
	return `{"oneOf":[{"required":["item"],"properties":{"item":{"type":"object"}}},` +
		`{"required":["text"],"properties":{"text":{"type":"string"}}}]}`
}

// StopRun ends a run after its current step.
type StopRun struct {
	ExecutionID string `json:"executionId,omitzero" schema:"pattern=id" doc:"The execution; the current one if absent."`
	By          Side   `json:"by,omitzero" doc:"Which side of a dual_ai agent stops it."`
	Reason      string `json:"reason,omitzero" schema:"maxLength=1024" doc:"The reason."`
	Now         bool   `json:"now,omitzero" doc:"Do not wait for the current work: the model is interrupted, and its text so far is the answer. Calls of tools that have begun are still waited for."`
}

// CancelRun ends a run at once, abandoning its current step.
type CancelRun struct {
	ExecutionID string `json:"executionId,omitzero" schema:"pattern=id" doc:"The execution; the current one if absent."`
	Reason      string `json:"reason,omitzero" schema:"maxLength=1024" doc:"The reason."`
	Discard     bool   `json:"discard,omitzero" doc:"Discard what was streamed of the current step; if absent, it is kept and marked as interrupted."`
}

// TurnRun sets the side that has the next turn of a dual_ai agent.
type TurnRun struct {
	ExecutionID string `json:"executionId,omitzero" schema:"pattern=id" doc:"The execution; the current one if absent."`
	Side        Side   `json:"side" schema:"required" doc:"The side."`
}

// GrantApproval approves a call of a tool that waits for it.
type GrantApproval struct {
	CallID    string `json:"callId" schema:"required,maxLength=256" doc:"The call."`
	Arguments JSON   `json:"arguments,omitzero" schema:"object" doc:"Arguments that replace those asked for."`
	Comment   string `json:"comment,omitzero" schema:"maxLength=65536" doc:"What is to be recorded."`
}

// DenyApproval denies a call of a tool that waits. The model is told so.
type DenyApproval struct {
	CallID  string `json:"callId" schema:"required,maxLength=256" doc:"The call."`
	Comment string `json:"comment,omitzero" schema:"maxLength=65536" doc:"What the model is told."`
}

// QueueTool queues a call of a tool for the current run, or else for a run of its own. A tool
// that is an agent takes the thread over.
type QueueTool struct {
	Name      string `json:"name" schema:"required,pattern=name" doc:"The tool."`
	Arguments JSON   `json:"arguments,omitzero" schema:"object" doc:"The arguments."`
	CallID    string `json:"callId,omitzero" schema:"pattern=id" doc:"The call's id, if the caller chooses it."`
	AgentID   string `json:"agentId,omitzero" schema:"pattern=name" doc:"The agent that continues from there; the thread's own if absent."`
	Once      bool   `json:"once,omitzero" doc:"No agent continues from there: the call has a run of its own, after the current one, and that run ends with the call."`
}

// AssignAgent hands the thread over to another agent.
type AssignAgent struct {
	AgentID string `json:"agentId" schema:"required,pattern=name" doc:"The agent in charge from now on."`
	Reason  string `json:"reason,omitzero" schema:"maxLength=1024" doc:"The reason."`
}

func runCommands() []Command {
	starts := []Type{
		ContextCreatedType, ContextResolvedType, ItemCreatedType, ThreadStatusChangedType, ContextStatusChangedType,
		ExecutionCreatedType, RunRequestedType,
	}
	ends := slices.Concat([]Type{
		StepStatusChangedType, MessageEditedType, ItemStatusChangedType, ExecutionStatusChangedType, ThreadFinishedType,
		QueueDrainedType, ProfileChangedType,
	}, starts)
	return []Command{
		command("thread.react", "Asks an agent to answer an item. The run continues whether or not the caller waits.",
			ReactThread{Text: new("Where is my order?")},
			slices.Concat(starts, []Type{QueuePushedType, RunStoppedType})...),
		command("run.stop", "Ends a run after its current work.",
			StopRun{Reason: "the user has what they need"}, slices.Concat([]Type{RunStoppedType}, ends)...),
		command("run.cancel", "Interrupts a run.",
			CancelRun{ExecutionID: exampleExecution}, slices.Concat([]Type{RunStoppedType}, ends)...),
		command("run.retry", "Retries a failed run: another execution answers the same item, and continues from what the failed one achieved.",
			RetryRun{}, starts...),
		command("run.turn", "Chooses the side of a dual_ai agent that has the next turn.", TurnRun{Side: SideB}, RunTurnedType),
		command("approval.grant", "Grants a call of a tool that waits for approval.",
			GrantApproval{CallID: "call_7", Comment: "go ahead"}, ApprovalGrantedType, RunRequestedType),
		command("approval.resolve", "Answers a request for an approval: with a grant, a refusal, or the result of the call, which is then not made.",
			ResolveApproval{CallID: "call_7", Result: JSON(`{"refunded":true}`)},
			ApprovalGrantedType, ApprovalDeniedType, ApprovalResolvedType, RunRequestedType),
		command("approval.deny", "Refuses a call of a tool that waits.",
			DenyApproval{CallID: "call_7", Comment: "too expensive"}, ApprovalDeniedType, RunRequestedType),
		command("tool.queue", "Queues a call of a tool, for the current run or for one of its own.",
			QueueTool{Name: "find_order", Arguments: JSON(`{"id":42}`)},
			slices.Concat(starts, []Type{QueuePushedType, QueueDrainedType})...),
		command("agent.assign", "Hands the thread over to another agent.",
			AssignAgent{AgentID: "billing", Reason: "a question about an invoice"}, AgentAssignedType),
	}
}
