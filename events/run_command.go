package events

import (
	"slices"
)

// ReactThread asks an agent to answer an item, or a text: exactly one of the two. The reply comes
// when the request is durable, and the run depends on no caller. The result's executionId is the
// run that will answer, and its queuedId is there if the message waits in the queue of the agent,
// as the policy says. The error is queue_full if too many wait.
type ReactThread struct {
	ContextID      string   `json:"contextId,omitzero" schema:"pattern=id" doc:"The context; the default one if absent."`
	Item           *NewItem `json:"item,omitzero" doc:"The trigger: what is to be answered."`
	Text           *string  `json:"text,omitzero" schema:"maxLength=524288" doc:"Instead of item: what the user says."`
	AgentID        string   `json:"agentId,omitzero" schema:"pattern=name" doc:"The agent; the thread's own if absent."`
	Policy         Policy   `json:"policy,omitzero" doc:"What happens to it during a run; absent: the thread's policy, or else the running agent's."`
	ExecutionID    string   `json:"executionId,omitzero" schema:"pattern=id" doc:"The execution's id, if the caller chooses it."`
	ReactionItemID string   `json:"reactionItemId,omitzero" schema:"pattern=id" doc:"The id of the item that answers; allotted if absent."`
	SessionID      string   `json:"sessionId,omitzero" schema:"pattern=session" doc:"The request's session; a message that steers keeps the run's."`

	Settings *RunSettings `json:"settings,omitzero" doc:"The settings of the run; with them a message waits instead of steering."`
}

// Check validates what spans more than one field.
func (d ReactThread) Check() error {
	said := d.Text != nil && *d.Text != ""
	switch {
	case d.Item == nil && !said:
		return Invalid("/item", "an item or a text is needed")
	case d.Item != nil && said:
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
	By          Side   `json:"by,omitzero" doc:"Which side stops it by its own tool or hook; a for an ai_human agent."`
	Reason      string `json:"reason,omitzero" schema:"maxLength=1024" doc:"The reason."`
	Now         bool   `json:"now,omitzero" doc:"Interrupt the model; its text so far is the answer. Calls of tools that have begun are waited for."`
}

// CancelRun ends a run at once, abandoning its current step.
type CancelRun struct {
	ExecutionID string `json:"executionId,omitzero" schema:"pattern=id" doc:"The execution; the current one if absent."`
	Reason      string `json:"reason,omitzero" schema:"maxLength=1024" doc:"The reason."`
	Discard     bool   `json:"discard,omitzero" doc:"Discard what was streamed of the current step, instead of marking it as interrupted."`
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
	CallID    string `json:"callId,omitzero" schema:"pattern=id" doc:"A new id for the call, if the caller chooses it."`
	AgentID   string `json:"agentId,omitzero" schema:"pattern=name" doc:"The agent that continues from there; the thread's own if absent."`
	Once      bool   `json:"once,omitzero" doc:"The call gets its own run after the current one; that run ends with the call."`
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
			slices.Concat(starts, []Type{QueuePushedType, RunStoppedType, RunLimitedType})...),
		command("run.stop", "Ends a run after its current work.",
			StopRun{Reason: "the user has what they need"}, slices.Concat([]Type{RunStoppedType}, ends)...),
		command("run.cancel", "Interrupts a run.",
			CancelRun{ExecutionID: exampleExecution}, slices.Concat([]Type{RunStoppedType}, ends)...),
		command("run.retry", "Retries a failed run: another execution answers the same item, and continues from what the failed one achieved.",
			RetryRun{}, starts...),
		command("run.turn", "Chooses the side of a dual_ai agent that has the next turn.", TurnRun{Side: SideB}, RunTurnedType),
		command("approval.grant", "Grants a call of a tool that waits for approval.",
			GrantApproval{CallID: "call_7", Comment: "go ahead"}, ApprovalGrantedType, RunLimitedType, RunRequestedType),
		command("approval.resolve", "Answers a request for an approval: with a grant, a refusal, or the result of the call, which is then not made.",
			ResolveApproval{CallID: "call_7", Result: JSON(`{"refunded":true}`)},
			ApprovalGrantedType, ApprovalDeniedType, ApprovalResolvedType, RunLimitedType, RunRequestedType),
		command("approval.deny", "Refuses a call of a tool that waits.",
			DenyApproval{CallID: "call_7", Comment: "too expensive"}, ApprovalDeniedType, RunLimitedType, RunRequestedType),
		command("tool.queue", "Queues a call of a tool, for the current run or for one of its own.",
			QueueTool{Name: "find_order", Arguments: JSON(`{"id":42}`)},
			slices.Concat(starts, []Type{QueuePushedType, QueueDrainedType})...),
		command("agent.assign", "Hands the thread over to another agent.",
			AssignAgent{AgentID: "billing", Reason: "a question about an invoice"}, AgentAssignedType),
	}
}

// RunSettings are the settings of one run: they add to those of its agent, or replace them.
type RunSettings struct {
	Instructions    string       `json:"instructions,omitzero" schema:"maxLength=262144" doc:"What the model is told for this run, after the agent's prompt."`
	Tools           []CallerTool `json:"tools,omitempty" schema:"maxItems=128" doc:"The caller's tools. A call of one ends the run; the next run answers its result, an action_result."`
	MaxOutputTokens int64        `json:"maxOutputTokens,omitzero" schema:"minimum=1,maximum=1000000000" doc:"The cap on the run's output tokens in all steps, besides the thread's."`
	Temperature     *float64     `json:"temperature,omitzero" schema:"minimum=0,maximum=2" doc:"How freely the model answers, instead of what its definition says."`
	Params          JSON         `json:"params,omitzero" schema:"object" doc:"What else the provider gets, in place of the definition's fields. No secrets."`
	Metadata        JSON         `json:"metadata,omitzero" schema:"object" doc:"The caller's own fields, which the execution keeps and the reactor receives."`
}

// CallerTool is a tool that the caller of a run executes by itself.
type CallerTool struct {
	Name        string `json:"name" schema:"required,pattern=tool" doc:"The name, as the model calls it. No tool of the agent may have it."`
	Description string `json:"description,omitzero" schema:"maxLength=16384" doc:"What it does and when to use it."`
	Parameters  JSON   `json:"parameters,omitzero" schema:"object" doc:"The JSON Schema of its arguments, an object; any object if absent."`
	Strict      bool   `json:"strict,omitzero" doc:"The endpoint holds the arguments to the schema."`
}

// CheckTools refuses two tools with one name, which no schema can.
func (s *RunSettings) CheckTools() error {
	if s == nil {
		return nil
	}
	for i, t := range s.Tools {
		if slices.ContainsFunc(s.Tools[:i], func(o CallerTool) bool { return o.Name == t.Name }) {
			return Invalid("/settings/tools", "two tools have the name %s", t.Name)
		}
	}
	return nil
}

// CallerState is the state of a part of type tool-NAME whose call the caller of the run
// executes: it has no output, and never gets one. The result is an item of its own.
const CallerState = "input-available"
