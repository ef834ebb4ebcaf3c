package events

import "cmp"

// The events of runs, effects, approvals and traces.
const (
	EffectScheduledType   Type = "effect.scheduled"
	EffectCancelledType   Type = "effect.cancelled"
	EffectStartedType     Type = "effect.started"
	EffectCompletedType   Type = "effect.completed"
	EffectFailedType      Type = "effect.failed"
	ApprovalRequestedType Type = "approval.requested"
	ApprovalGrantedType   Type = "approval.granted"
	ApprovalDeniedType    Type = "approval.denied"
	ApprovalResolvedType  Type = "approval.resolved"
	RunRequestedType      Type = "run.requested"
	RunStoppedType        Type = "run.stopped"
	RunClaimedType        Type = "run.claimed"
	RunParkedType         Type = "run.parked"
	RunSuspendedType      Type = "run.suspended"
	RunResumedType        Type = "run.resumed"
	RunTurnedType         Type = "run.turned"
	RunLimitedType        Type = "run.limited"
	TraceRecordedType     Type = "trace.recorded"
)

// EffectScheduled records that work is scheduled for later, outside the conversation.
type EffectScheduled struct {
	ID          string `json:"id" schema:"required,maxLength=64" doc:"The effect's id, a UUID."`
	Name        string `json:"name" schema:"required,pattern=name" doc:"The effect's name."`
	Args        JSON   `json:"args,omitzero" schema:"object" doc:"The arguments."`
	ScheduledAt string `json:"scheduledAt" schema:"required,pattern=time" doc:"When it is to run, for the first time if it is repeated."`
	EveryMs     int64  `json:"everyMs,omitzero" schema:"minimum=1" doc:"It is repeated after so many milliseconds, counted from scheduledAt."`
	Cron        string `json:"cron,omitzero" schema:"maxLength=256" doc:"It is repeated by this cron expression, in UTC."`
	Retries     int64  `json:"retries,omitzero" schema:"minimum=0" doc:"Attempts of a firing after its first."`
	BackoffMs   int64  `json:"backoffMs,omitzero" schema:"minimum=0" doc:"The pause before the second attempt, doubled each time."`

	Rights *Rights `json:"rights,omitzero" doc:"The rights with which it runs; absent: the whole tenant."`
}

// EffectCancelled records that an effect will not run.
type EffectCancelled struct {
	Reason string `json:"reason,omitzero" schema:"maxLength=1024" doc:"The reason."`
}

// EffectStarted records that an attempt at an effect started.
type EffectStarted struct {
	Firing  int64 `json:"firing,omitzero" schema:"minimum=1" doc:"Which firing of a repeated effect, from 1."`
	Attempt int64 `json:"attempt" schema:"required,minimum=1" doc:"Which attempt at the firing, from 1."`
	Claim   int64 `json:"claim,omitzero" schema:"minimum=0" doc:"The sequence of the timer's message that the worker holds."`
}

// EffectCompleted records that an effect completed.
type EffectCompleted struct {
	Firing  int64  `json:"firing,omitzero" schema:"minimum=1" doc:"Which firing, from 1."`
	Attempt int64  `json:"attempt,omitzero" schema:"minimum=1" doc:"Which attempt at it, from 1."`
	Result  JSON   `json:"result,omitzero" doc:"The result."`
	Next    string `json:"next,omitzero" schema:"pattern=time" doc:"When a repeated effect runs next."`
}

// EffectFailed records that an attempt at an effect failed.
type EffectFailed struct {
	Firing    int64  `json:"firing,omitzero" schema:"minimum=1" doc:"Which firing, from 1."`
	Attempt   int64  `json:"attempt" schema:"required,minimum=1" doc:"Which attempt at it, from 1."`
	ErrorText string `json:"errorText" schema:"required,maxLength=65536" doc:"The reason."`
	NotMade   bool   `json:"notMade,omitzero" doc:"No process took it: the attempt does not count."`
	Final     bool   `json:"final,omitzero" doc:"This firing has no further attempt."`
	Next      string `json:"next,omitzero" schema:"pattern=time" doc:"When it, or a repeated effect's next firing, runs."`
}

// ApprovalRequested records that a call of a tool waits for a person.
type ApprovalRequested struct {
	CallID    string         `json:"callId" schema:"required,maxLength=256" doc:"The call that waits."`
	StepID    string         `json:"stepId,omitzero" schema:"pattern=id" doc:"The step that asked for it."`
	Name      string         `json:"name" schema:"required,maxLength=256" doc:"The tool."`
	Arguments JSON           `json:"arguments,omitzero" doc:"The arguments of the call."`
	Reason    ApprovalReason `json:"reason,omitzero" doc:"Why a person is asked; absent in older logs."`
	Question  string         `json:"question,omitzero" doc:"Of a question: what is asked."`
	Answer    JSON           `json:"answer,omitzero" schema:"object" doc:"Of a question: the JSON Schema of the answer; any JSON if absent."`
}

// ApprovalGranted records that the call may be made.
type ApprovalGranted struct {
	CallID    string `json:"callId" schema:"required,maxLength=256" doc:"The call."`
	Arguments JSON   `json:"arguments,omitzero" doc:"Arguments that replace those asked for."`
	Comment   string `json:"comment,omitzero" schema:"maxLength=65536" doc:"What was said."`
}

// ApprovalDenied records that the call may not be made.
type ApprovalDenied struct {
	CallID  string `json:"callId" schema:"required,maxLength=256" doc:"The call."`
	Comment string `json:"comment,omitzero" schema:"maxLength=65536" doc:"What was said."`
}

// ApprovalResolved records that a person supplied the result of the call, which is not made.
type ApprovalResolved struct {
	CallID string `json:"callId" schema:"required,maxLength=256" doc:"The call."`
	Result JSON   `json:"result" schema:"required" doc:"The result."`
}

// RunRequested records that a worker is to run an execution: a new one, or one that waited and
// can go on.
type RunRequested struct {
	AgentID string     `json:"agentId,omitzero" schema:"pattern=name" doc:"The agent that is to run."`
	Calls   []ToolCall `json:"calls,omitempty" doc:"Calls of tools to make before the first step."`
	Parent  *Parent    `json:"parent,omitzero" doc:"The call, on another thread, that waits for it."`
	Once    bool       `json:"once,omitzero" doc:"It ends with those calls."`
	RetryOf string     `json:"retryOf,omitzero" schema:"pattern=id" doc:"The failed execution that it takes up again."`
	Handoff *Handoff   `json:"handoff,omitzero" doc:"The run writes the summary for a new thread, and no message of its own thread."`

	Settings *RunSettings `json:"settings,omitzero" doc:"The settings of the run."`
	Rights   *Rights      `json:"rights,omitzero" doc:"The rights of the credential that started it; absent: the whole tenant."`
}

// ToolCall is a call of a tool, as a reactor or a caller asks for it.
type ToolCall struct {
	CallID    string `json:"callId" schema:"required,maxLength=256" doc:"Its id, unique in its step."`
	Name      string `json:"name" schema:"required,maxLength=256" doc:"The tool."`
	Arguments JSON   `json:"arguments,omitzero" doc:"The arguments."`
	ItemID    string `json:"itemId,omitzero" schema:"pattern=id" doc:"The item that asks for it, if it exists."`
}

// RunStopped records that an execution is to stop, after its current step or at once.
type RunStopped struct {
	Abort   bool   `json:"abort,omitzero" doc:"Interrupt the current work."`
	Now     bool   `json:"now,omitzero" doc:"The model is interrupted, and its text so far is the answer."`
	Discard bool   `json:"discard,omitzero" doc:"Discard what was streamed of the current step."`
	By      Side   `json:"by,omitzero" doc:"Which side stopped it by its own tool or hook; a for an ai_human agent."`
	Reason  string `json:"reason,omitzero" schema:"maxLength=1024" doc:"The reason."`
}

// RunClaimed records that a worker runs the execution, with a fencing token that only
// increases.
type RunClaimed struct {
	Worker      string              `json:"worker" schema:"required,maxLength=256" doc:"Who runs it."`
	Token       int64               `json:"token" schema:"required,minimum=1" doc:"Which claim it is, from 1."`
	Definitions []DefinitionVersion `json:"definitions,omitempty" doc:"The definitions that it uses."`
}

// DefinitionVersion names one version of a definition.
type DefinitionVersion struct {
	Kind    DefinitionKind `json:"kind" schema:"required" doc:"What is defined."`
	Name    string         `json:"name" schema:"required,pattern=name" doc:"Its name."`
	Version int64          `json:"version" schema:"required,minimum=1" doc:"Which version of it."`
}

// RunSuspended records that calls of an execution wait for something that completes them.
// run.resumed records that it happened.
type RunSuspended struct {
	Calls []string `json:"calls" schema:"required" doc:"The calls that wait."`
}

// RunParked records that an execution waits and that no worker holds it meanwhile.
// run.requested records that it goes on.
type RunParked struct {
	Token int64    `json:"token" schema:"required,minimum=1" doc:"The claim that released it."`
	Calls []string `json:"calls" schema:"required" doc:"The calls that wait for a person or for an agent on another thread."`

	Unmade []string `json:"unmade,omitempty" doc:"The calls that were not made, because no process serves their tool."`
}

// RunResumed records that what calls waited for happened.
type RunResumed struct {
	Calls []string `json:"calls" schema:"required" doc:"The calls that waited."`
}

// Parent names the call for which an execution runs in a thread of its own.
type Parent struct {
	ThreadID    string `json:"threadId" schema:"required,pattern=thread" doc:"The thread of the call."`
	ExecutionID string `json:"executionId" schema:"required,pattern=id" doc:"The execution that waits."`
	CallID      string `json:"callId" schema:"required,maxLength=256" doc:"The call."`
}

// Other returns the other side.
func (s Side) Other() Side {
	if s == SideA {
		return SideB
	}
	return SideA
}

// RunTurned records which side of a dual_ai agent has the next turn.
type RunTurned struct {
	Side Side `json:"side" schema:"required" doc:"The side."`
}

// RunLimited records that a run has fewer rights from here on: a credential with other rights
// took part in it, with a message, a call of a tool or an answer.
type RunLimited struct {
	Rights *Rights `json:"rights" schema:"required" doc:"Its rights."`
}

// TraceKind says what a trace records.
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

// TraceRecorded is one record of a run: a log line, the usage of a model, a span.
type TraceRecorded struct {
	Kind        TraceKind `json:"kind" schema:"required" doc:"What was recorded."`
	ExecutionID string    `json:"executionId,omitzero" schema:"pattern=id" doc:"The run that it is part of."`
	SpanID      string    `json:"spanId,omitzero" schema:"pattern=id" doc:"The span that it is part of; of a span, its own id."`
	ParentID    string    `json:"parentId,omitzero" schema:"pattern=id" doc:"The parent span."`
	Name        string    `json:"name,omitzero" schema:"maxLength=256" doc:"What was done."`
	Level       string    `json:"level,omitzero" schema:"maxLength=32" doc:"The level of a log line."`
	Text        string    `json:"text,omitzero" schema:"maxLength=65536" doc:"A log line's text."`
	StartedAt   string    `json:"startedAt,omitzero" schema:"pattern=time" doc:"When a span began."`
	Usage       *Usage    `json:"usage,omitzero" doc:"What a call of a model used."`
	Shown       *Shown    `json:"shown,omitzero" doc:"What a model was shown."`
	SessionID   string    `json:"sessionId,omitzero" schema:"pattern=session" doc:"The session of its run."`
	Data        JSON      `json:"data,omitzero" doc:"What else was recorded."`
}

// Usage is what a call of a model used. Tokens are counts; latency is in milliseconds.
type Usage struct {
	Provider        string `json:"provider,omitzero" schema:"maxLength=128" doc:"Who served it."`
	Model           string `json:"model,omitzero" schema:"maxLength=256" doc:"The model, as its provider calls it."`
	InputTokens     int64  `json:"inputTokens,omitzero" schema:"minimum=0" doc:"Input tokens."`
	CachedTokens    int64  `json:"cachedTokens,omitzero" schema:"minimum=0" doc:"Input tokens that were cached."`
	OutputTokens    int64  `json:"outputTokens,omitzero" schema:"minimum=0" doc:"Output tokens."`
	ReasoningTokens int64  `json:"reasoningTokens,omitzero" schema:"minimum=0" doc:"Output tokens that were reasoning."`
	TotalTokens     int64  `json:"totalTokens,omitzero" schema:"minimum=0" doc:"The sum of both."`
	LatencyMs       int64  `json:"latencyMs,omitzero" schema:"minimum=0" doc:"How long it took, in milliseconds."`
}

// Within returns u with counts from 0 to most: a reactor may report anything.
func (u Usage) Within(most int64) Usage {
	for _, n := range []*int64{&u.InputTokens, &u.CachedTokens, &u.OutputTokens, &u.ReasoningTokens, &u.TotalTokens, &u.LatencyMs} {
		*n = min(max(*n, 0), most)
	}
	return u
}

// Tokens returns all tokens that were used, also where a reactor leaves out their sum.
func (u Usage) Tokens() int64 { return max(u.TotalTokens, u.InputTokens+u.OutputTokens) }

// Add returns the sum of u and v, with the names of v where it has them.
func (u Usage) Add(v Usage) Usage {
	v.InputTokens += u.InputTokens
	v.CachedTokens += u.CachedTokens
	v.OutputTokens += u.OutputTokens
	v.ReasoningTokens += u.ReasoningTokens
	v.TotalTokens += u.TotalTokens
	v.LatencyMs += u.LatencyMs
	return v
}

// AddUsage returns what was used so far, nil if nothing was, and u together.
func AddUsage(so *Usage, u *Usage) *Usage {
	if so == nil || u == nil {
		return cmp.Or(so, u)
	}
	return new(so.Add(*u))
}

type effectRules interface {
	EffectScheduled(e *Event, d EffectScheduled) error
	EffectCancelled(e *Event, d EffectCancelled) error
	EffectStarted(e *Event, d EffectStarted) error
	EffectCompleted(e *Event, d EffectCompleted) error
	EffectFailed(e *Event, d EffectFailed) error
}

func effectEvents() []Row {
	return []Row{
		row(EffectScheduledType, 1, "An effect was scheduled.",
			EffectScheduled{ID: exampleEffect, Name: "remind", Args: JSON(`{"about":"order 42"}`), ScheduledAt: exampleMoment, Retries: 3, BackoffMs: 1000}, Rules.EffectScheduled),
		row(EffectCancelledType, 1, "An effect was cancelled.", EffectCancelled{Reason: "answered"}, Rules.EffectCancelled),
		row(EffectStartedType, 1, "An attempt at the effect began.", EffectStarted{Firing: 1, Attempt: 1, Claim: 77}, Rules.EffectStarted),
		row(EffectCompletedType, 1, "An effect was completed.", EffectCompleted{Firing: 1, Attempt: 2}, Rules.EffectCompleted),
		row(EffectFailedType, 1, "An attempt at the effect failed.",
			EffectFailed{Firing: 1, Attempt: 1, ErrorText: "the mail server did not answer", Next: "2026-02-20T12:00:01.000Z"}, Rules.EffectFailed),
	}
}

type approvalRules interface {
	ApprovalRequested(e *Event, d ApprovalRequested) error
	ApprovalGranted(e *Event, d ApprovalGranted) error
	ApprovalResolved(e *Event, d ApprovalResolved) error
	ApprovalDenied(e *Event, d ApprovalDenied) error
}

func approvalEvents() []Row {
	return []Row{
		row(ApprovalRequestedType, 1, "A call of a tool waits for a person.",
			ApprovalRequested{CallID: "tc_1", StepID: exampleStep, Name: "refund", Arguments: JSON(`{"order":42}`)}, Rules.ApprovalRequested),
		row(ApprovalGrantedType, 1, "A call was granted.", ApprovalGranted{CallID: "tc_1", Comment: "fine"}, Rules.ApprovalGranted),
		row(ApprovalResolvedType, 1, "A person supplied the result of the call.",
			ApprovalResolved{CallID: "tc_1", Result: JSON(`{"refunded":true}`)}, Rules.ApprovalResolved),
		row(ApprovalDeniedType, 1, "A call was denied.", ApprovalDenied{CallID: "tc_1", Comment: "too much"}, Rules.ApprovalDenied),
	}
}

type runRules interface {
	RunRequested(e *Event, d RunRequested) error
	RunStopped(e *Event, d RunStopped) error
	RunClaimed(e *Event, d RunClaimed) error
	RunParked(e *Event, d RunParked) error
	RunSuspended(e *Event, d RunSuspended) error
	RunResumed(e *Event, d RunResumed) error
	RunAwaited(e *Event, d RunAwaited) error
	RunTurned(e *Event, d RunTurned) error
	RunLimited(e *Event, d RunLimited) error
}

func runEvents() []Row {
	return []Row{
		row(RunRequestedType, 1, "A worker is to run an execution.", RunRequested{AgentID: "triage"}, Rules.RunRequested),
		row(RunStoppedType, 1, "An execution is to stop.", RunStopped{Abort: true, Reason: "asked to"}, Rules.RunStopped),
		row(RunClaimedType, 1, "A worker claimed the execution.", RunClaimed{
			Worker: "worker-1", Token: 1, Definitions: []DefinitionVersion{{Kind: "agent", Name: "triage", Version: 3}},
		}, Rules.RunClaimed),
		row(RunParkedType, 1, "An execution waits, without a worker.", RunParked{Token: 1, Calls: []string{"call_7"}}, Rules.RunParked),
		row(RunSuspendedType, 1, "Calls of an execution wait for something from outside.", RunSuspended{Calls: []string{"call_7"}}, Rules.RunSuspended),
		row(RunResumedType, 1, "What the calls of an execution waited for has happened.", RunResumed{Calls: []string{"call_7"}}, Rules.RunResumed),
		row(RunAwaitedType, 1, "A run waits for a process that serves its reactor or a tool, or no longer does.",
			RunAwaited{For: []WaitFor{{Kind: ReactorWorker, Name: "shout"}}, Until: exampleMoment}, Rules.RunAwaited),
		row(RunTurnedType, 1, "A side of a dual_ai agent has the next turn.", RunTurned{Side: SideB}, Rules.RunTurned),
		row(RunLimitedType, 1, "A run has fewer rights from here on.", RunLimited{Rights: &Rights{User: "ada", Can: []Capability{CanRead, CanWrite}}}, Rules.RunLimited),
	}
}

type traceRules interface {
	TraceRecorded(e *Event, d TraceRecorded) error
}

func traceEvents() []Row {
	return []Row{row(TraceRecordedType, 1, "A log line, a model's usage or a span was recorded.", TraceRecorded{
		Kind: "span", ExecutionID: exampleExecution, SpanID: "spn_1", ParentID: exampleStep, Name: "reactor", StartedAt: "2026-02-20T12:00:00.123456Z",
		Usage: &Usage{Model: "gpt-5", InputTokens: 812, OutputTokens: 96, TotalTokens: 908, LatencyMs: 1240},
		Shown: &Shown{Items: []string{exampleQuestion}},
	}, Rules.TraceRecorded)}
}
