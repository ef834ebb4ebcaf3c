package events

import "github.com/go-json-experiment/json/jsontext"

// The events of what runs beside and under an execution.
const (
	EffectScheduledType   Type = "effect.scheduled"
	EffectCancelledType   Type = "effect.cancelled"
	EffectStartedType     Type = "effect.started"
	EffectCompletedType   Type = "effect.completed"
	EffectFailedType      Type = "effect.failed"
	ApprovalRequestedType Type = "approval.requested"
	ApprovalGrantedType   Type = "approval.granted"
	ApprovalDeniedType    Type = "approval.denied"
	RunRequestedType      Type = "run.requested"
	RunStoppedType        Type = "run.stopped"
	RunClaimedType        Type = "run.claimed"
	TraceRecordedType     Type = "trace.recorded"
)

// EffectScheduled says that work is to be done later, outside the conversation.
type EffectScheduled struct {
	ID          string         `json:"id" schema:"required,maxLength=64" doc:"The effect's id, a UUID."`
	Name        string         `json:"name" schema:"required,pattern=name" doc:"Which effect."`
	Args        jsontext.Value `json:"args,omitzero" schema:"object" doc:"What it is given."`
	ScheduledAt string         `json:"scheduledAt" schema:"required,pattern=time" doc:"When it is to run."`
}

// EffectCancelled says that the effect will not run.
type EffectCancelled struct {
	Reason string `json:"reason,omitzero" schema:"maxLength=1024" doc:"Why."`
}

// EffectStarted says that an attempt at the effect began.
type EffectStarted struct {
	Attempt int64 `json:"attempt" schema:"required,minimum=1" doc:"Which attempt, from 1."`
}

// EffectCompleted says that the effect was done.
type EffectCompleted struct {
	Result jsontext.Value `json:"result,omitzero" doc:"What it gave."`
}

// EffectFailed says that an attempt at the effect failed.
type EffectFailed struct {
	Attempt   int64  `json:"attempt" schema:"required,minimum=1" doc:"Which attempt, from 1."`
	ErrorText string `json:"errorText" schema:"required,maxLength=65536" doc:"Why."`
	Final     bool   `json:"final,omitzero" doc:"It is not tried again."`
}

// ApprovalRequested says that a call of a tool waits for a person.
type ApprovalRequested struct {
	CallID    string         `json:"callId" schema:"required,maxLength=256" doc:"The call that waits."`
	StepID    string         `json:"stepId,omitzero" schema:"pattern=id" doc:"The step that asked for it."`
	Name      string         `json:"name" schema:"required,maxLength=256" doc:"The tool."`
	Arguments jsontext.Value `json:"arguments,omitzero" doc:"What it would be called with."`
}

// ApprovalGranted says that the call may be made.
type ApprovalGranted struct {
	CallID    string         `json:"callId" schema:"required,maxLength=256" doc:"The call."`
	Arguments jsontext.Value `json:"arguments,omitzero" doc:"Arguments that replace those asked for."`
	Comment   string         `json:"comment,omitzero" schema:"maxLength=65536" doc:"What was said."`
}

// ApprovalDenied says that the call may not be made.
type ApprovalDenied struct {
	CallID  string `json:"callId" schema:"required,maxLength=256" doc:"The call."`
	Comment string `json:"comment,omitzero" schema:"maxLength=65536" doc:"What was said."`
}

// RunRequested says that an execution is to be run by a worker.
type RunRequested struct {
	AgentID string `json:"agentId,omitzero" schema:"pattern=name" doc:"The agent that is to run."`
}

// RunStopped says that an execution is to stop, after or amid what it does.
type RunStopped struct {
	Abort  bool   `json:"abort,omitzero" doc:"Amid what it does, and not after."`
	Reason string `json:"reason,omitzero" schema:"maxLength=1024" doc:"Why."`
}

// RunClaimed says that a worker runs the execution, with a fencing token that
// only grows.
type RunClaimed struct {
	Worker string `json:"worker" schema:"required,maxLength=256" doc:"Who runs it."`
	Token  int64  `json:"token" schema:"required,minimum=1" doc:"Which claim it is, from 1."`
}

// TraceKind says what was recorded of a run.
type TraceKind string

// The kinds of records.
const (
	TraceLog      TraceKind = "log"
	TraceUsage    TraceKind = "usage"
	TraceSpanKind TraceKind = "span"
)

// Enum lists the kinds.
func (TraceKind) Enum() []string {
	return []string{string(TraceLog), string(TraceUsage), string(TraceSpanKind)}
}

// TraceRecorded is one thing recorded of a run: a log line, what a model used,
// a span.
type TraceRecorded struct {
	Kind        TraceKind      `json:"kind" schema:"required" doc:"What was recorded."`
	ExecutionID string         `json:"executionId,omitzero" schema:"pattern=id" doc:"The run that it is part of."`
	SpanID      string         `json:"spanId,omitzero" schema:"pattern=id" doc:"The span that it is part of, or is."`
	ParentID    string         `json:"parentId,omitzero" schema:"pattern=id" doc:"The span around it."`
	Name        string         `json:"name,omitzero" schema:"maxLength=256" doc:"What was done."`
	Level       string         `json:"level,omitzero" schema:"maxLength=32" doc:"The level of a log line."`
	Text        string         `json:"text,omitzero" schema:"maxLength=65536" doc:"A log line's text."`
	StartedAt   string         `json:"startedAt,omitzero" schema:"pattern=time" doc:"When a span began."`
	Data        jsontext.Value `json:"data,omitzero" doc:"What else was recorded."`
}

func effectEvents() []Row {
	return []Row{
		row[EffectScheduled](EffectScheduledType, 1, "Work is to be done later, outside the conversation."),
		row[EffectCancelled](EffectCancelledType, 1, "The effect will not run."),
		row[EffectStarted](EffectStartedType, 1, "An attempt at the effect began."),
		row[EffectCompleted](EffectCompletedType, 1, "The effect was done."),
		row[EffectFailed](EffectFailedType, 1, "An attempt at the effect failed."),
	}
}

func approvalEvents() []Row {
	return []Row{
		row[ApprovalRequested](ApprovalRequestedType, 1, "A call of a tool waits for a person."),
		row[ApprovalGranted](ApprovalGrantedType, 1, "The call may be made."),
		row[ApprovalDenied](ApprovalDeniedType, 1, "The call may not be made."),
	}
}

func runEvents() []Row {
	return []Row{
		row[RunRequested](RunRequestedType, 1, "An execution is to be run by a worker."),
		row[RunStopped](RunStoppedType, 1, "An execution is to stop."),
		row[RunClaimed](RunClaimedType, 1, "A worker runs the execution."),
	}
}

func traceEvents() []Row {
	return []Row{row[TraceRecorded](TraceRecordedType, 1, "A log line, a model's usage or a span was recorded.")}
}
