package thread

import (
	"time"

	"github.com/skein-threads/skein/events"
)

// ClaimRun claims an execution for a worker, and starts its next step if none is open. A later
// claim is never refused: the queue decides which worker runs it.
type ClaimRun struct {
	ExecutionID string
	Worker      string
	Side        events.Side // of the step, of a dual_ai agent
	Definitions []events.DefinitionVersion
	Lacks       []Lack // MCP servers that the agent needs and that cannot be reached
}

// Lack is an MCP server that cannot be reached. A run that lacks one begins no step: it is parked
// with its claim until WakeRun, unless it has waited for long enough.
type Lack struct {
	events.WaitFor
	Wait time.Duration // for how long the run waits at most, from when it first lacked one
}

// ReactStep records the output of the open step's reactor. Without calls it also closes the
// step.
type ReactStep struct {
	ExecutionID string
	Token       int64
	StepID      string
	Parts       []events.JSON // in order; those of type tool-NAME are calls
	Types       []string      // of the parts
	Calls       []events.ToolCall
	Approve     []string               // callIds that wait for approval
	Records     []events.TraceRecorded // trace events to record
	After

	// Of a run that writes a summary: the thread that begins with it, and the summary.
	HandoffTo, Summary string
}

// EndCalls records the results of calls. With the last one it closes the step.
type EndCalls struct {
	ExecutionID string
	Token       int64
	StepID      string
	Results     []CallResult
	Records     []events.TraceRecorded
	Agent       string // the agent that takes the thread over; "" for none
	After
}

// CallResult is the result of a call.
type CallResult struct {
	CallID  string
	Part    events.JSON // the call's part with its result merged in
	Output  events.JSON // of the action_result item
	IsError bool
	Skill   *events.ActivateSkill // that the call has loaded; nil: none
}

// HoldCalls makes calls of the open step wait: for approvals, or for something else that
// completes them. If no other call is left, the run is parked.
type HoldCalls struct {
	ExecutionID string
	Token       int64
	StepID      string
	Approve     []events.ApprovalRequested
	Wait        []string
}

// FailRun ends an execution that cannot continue.
type FailRun struct {
	ExecutionID string
	Token       int64
	ErrorText   string
	ErrorCode   events.FailureCode
	Parts       []events.JSON // the step's output before it failed
	Types       []string
	Records     []events.TraceRecorded
}

// ResumeCalls says that what calls waited for has happened, so that the run continues with
// them.
type ResumeCalls struct {
	ExecutionID string
	CallIDs     []string
}

// AwaitWorkers says that a run waits for workers that no process serves.
type AwaitWorkers struct {
	ExecutionID string
	Token       int64
	For         []events.WaitFor // all that it waits for
	Until       string
}

// ParkRun parks a run that lacks an MCP server, or whose reactor or whose remaining calls' tools no
// process serves: no worker holds it until WakeRun. It changes nothing if other calls can be made.
type ParkRun struct {
	ExecutionID string
	Token       int64
	Unmade      []string // the calls that were not made, because no process serves their tool
}

// WakeRun lets a run continue that was parked because no process served its reactor or a tool:
// one does now, or the run has waited long enough.
type WakeRun struct{ ExecutionID string }

// RecordRun records trace events of a run.
type RecordRun struct {
	ExecutionID string
	Token       int64
	Records     []events.TraceRecorded
}

// After says how an execution continues when its step is closed.
type After struct {
	Continue bool        // the loop policy's decision
	Limit    string      // why there may be no other step, although the policy wants one; "" if there may be
	Side     events.Side // of the next step, of a dual_ai agent
	StopBy   events.Side // the side that stops the execution with this step
}
