package events

// ApprovalStatus is the state of a request for approval.
type ApprovalStatus string

// The states of a request.
const (
	ApprovalWaiting   ApprovalStatus = "waiting"
	ApprovalGrant     ApprovalStatus = "granted"
	ApprovalDenial    ApprovalStatus = "denied"
	ApprovalResult    ApprovalStatus = "resolved"  // with the result of the call
	ApprovalWithdrawn ApprovalStatus = "withdrawn" // the run ended before it was answered
)

// Enum lists the states.
func (ApprovalStatus) Enum() []string {
	return []string{string(ApprovalWaiting), string(ApprovalGrant), string(ApprovalDenial), string(ApprovalResult), string(ApprovalWithdrawn)}
}

// CallApproval is a request for approval in the document of its execution.
type CallApproval struct {
	CallID      string         `json:"callId" schema:"required,maxLength=256" doc:"The call."`
	StepID      string         `json:"stepId,omitzero" schema:"pattern=id" doc:"The step that asked for it."`
	Name        string         `json:"name" schema:"required,maxLength=256" doc:"The tool."`
	Arguments   JSON           `json:"arguments,omitzero" doc:"Of a request that waits: the arguments of the call."`
	Reason      ApprovalReason `json:"reason,omitzero" doc:"Why a person is asked."`
	Question    string         `json:"question,omitzero" doc:"Of a question: what is asked."`
	Answer      JSON           `json:"answer,omitzero" schema:"object" doc:"Of a question that waits: the JSON Schema of the answer; any JSON if absent."`
	Status      ApprovalStatus `json:"status" schema:"required" doc:"Whether it waits, or how it was answered."`
	RequestedAt string         `json:"requestedAt" schema:"required,pattern=time" doc:"When it was asked for."`
	AnsweredAt  string         `json:"answeredAt,omitzero" schema:"pattern=time" doc:"When it was answered, or withdrawn."`
	AnsweredBy  string         `json:"answeredBy,omitzero" doc:"Who answered, as the caller named it."`
}

// Waiting returns the request as the document of its execution shows it until it is answered.
func (r ApprovalRequested) Waiting(at string) CallApproval {
	return CallApproval{
		CallID: r.CallID, StepID: r.StepID, Name: r.Name, Arguments: r.Arguments, Reason: r.Reason, Question: r.Question, Answer: r.Answer,
		Status: ApprovalWaiting, RequestedAt: at,
	}
}

// Request returns the request that the document shows.
func (a CallApproval) Request() ApprovalRequested {
	return ApprovalRequested{
		CallID: a.CallID, StepID: a.StepID, Name: a.Name, Arguments: a.Arguments, Reason: a.Reason, Question: a.Question, Answer: a.Answer,
	}
}

// Approval is a request for approval in the tenant's list.
type Approval struct {
	ThreadID    string `json:"threadId" schema:"required,pattern=thread" doc:"The thread."`
	ExecutionID string `json:"executionId" schema:"required,pattern=id" doc:"The execution that waits, or waited."`
	AgentID     string `json:"agentId" schema:"required,pattern=name" doc:"The agent that runs, or ran."`
	CallApproval
}

// RunWaitKind says what a run waits for.
type RunWaitKind string

// What a run may wait for.
const (
	RunWaitsApproval RunWaitKind = "approval" // a person decides about a call
	RunWaitsWorker   RunWaitKind = "worker"   // no process serves a reactor or a tool
	RunWaitsThread   RunWaitKind = "thread"   // another agent works on a call, on a thread of its own
)

// Enum lists the kinds.
func (RunWaitKind) Enum() []string {
	return []string{string(RunWaitsApproval), string(RunWaitsWorker), string(RunWaitsThread)}
}

// RunWait is one thing that a run waits for.
type RunWait struct {
	Kind   RunWaitKind `json:"kind" schema:"required" doc:"For whom it waits."`
	Worker WorkerKind  `json:"worker,omitzero" doc:"Of a worker: what it would serve."`
	Name   string      `json:"name,omitzero" schema:"maxLength=256" doc:"The tool, or the reactor."`
	CallID string      `json:"callId,omitzero" schema:"maxLength=256" doc:"The call that waits."`
	Since  string      `json:"since,omitzero" schema:"pattern=time" doc:"Of an approval: when it was asked for."`
}

// Run is an execution of an agent in the tenant's list.
type Run struct {
	ThreadID    string          `json:"threadId" schema:"required,pattern=thread" doc:"The thread."`
	ExecutionID string          `json:"executionId" schema:"required,pattern=id" doc:"The execution."`
	ContextID   string          `json:"contextId" schema:"required,pattern=id" doc:"The context it works in."`
	SessionID   string          `json:"sessionId,omitzero" schema:"pattern=session" doc:"The request's session."`
	AgentID     string          `json:"agentId" schema:"required,pattern=name" doc:"The agent that runs, or ran."`
	Status      ExecutionStatus `json:"status" schema:"required" doc:"The state of the execution's machine."`
	ErrorText   string          `json:"errorText,omitzero" doc:"Why it failed."`
	WaitingFor  []RunWait       `json:"waitingFor,omitempty" doc:"What it waits for now."`
	Worker      string          `json:"worker,omitzero" doc:"Who runs it, or ran it last."`
	StepCount   int64           `json:"stepCount,omitzero" schema:"minimum=0" doc:"Its steps."`
	CreatedAt   string          `json:"createdAt" schema:"required,pattern=time" doc:"The time of creation."`
	UpdatedAt   string          `json:"updatedAt,omitzero" schema:"pattern=time" doc:"When it last changed, if it did."`
}

// ListRuns returns the tenant's runs: by thread, the one changed last first, and of one thread
// the newest run first.
type ListRuns struct {
	Status  ExecutionStatus `json:"status,omitzero" doc:"Only those in this state."`
	AgentID string          `json:"agentId,omitzero" schema:"pattern=name" doc:"Only those of this agent."`
	Limit   *int64          `json:"limit,omitzero" schema:"minimum=1,maximum=1000" doc:"The largest number to return; 50 if absent."`
	Cursor  string          `json:"cursor,omitzero" schema:"maxLength=256" doc:"nextCursor of the page before."`
	Fresh
}

// ListApprovals returns the tenant's requests for approval, in the order of ListRuns, and of
// one run the newest first.
type ListApprovals struct {
	Status  ApprovalStatus `json:"status,omitzero" doc:"Only those in this state; waiting if absent."`
	AgentID string         `json:"agentId,omitzero" schema:"pattern=name" doc:"Only those of this agent."`
	Limit   *int64         `json:"limit,omitzero" schema:"minimum=1,maximum=1000" doc:"The largest number to return; 50 if absent."`
	Cursor  string         `json:"cursor,omitzero" schema:"maxLength=256" doc:"nextCursor of the page before."`
	Fresh
}

// RunList is a page of runs.
type RunList struct {
	Runs       []Run  `json:"runs" schema:"required" doc:"The runs."`
	NextCursor string `json:"nextCursor,omitzero" doc:"For the next page; absent on the last one."`
}

// ApprovalList is a page of requests for approvals.
type ApprovalList struct {
	Approvals  []Approval `json:"approvals" schema:"required" doc:"The requests."`
	NextCursor string     `json:"nextCursor,omitzero" doc:"For the next page; absent on the last one."`
}

func runQueries() []Query {
	return []Query{
		query("run.list", "The tenant's runs, and what each waits for.", ListRuns{Status: Executing, Limit: new(int64(20))}).listing("runs", "threadId"),
		query("approval.list", "The tenant's requests for approvals.", ListApprovals{AgentID: "triage"}).listing("approvals", "threadId"),
	}
}

// The document that answers each query, for [QueryFor].
func (ListRuns) answer() (a RunList)           { return a }
func (ListApprovals) answer() (a ApprovalList) { return a }
