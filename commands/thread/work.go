package thread

import (
	"time"

	"github.com/skein-threads/skein/events"
)

// ClaimRun claims an execution for a worker, and starts its next step if none is open. A claim is
// never refused because another worker has one: the queue decides which worker runs the execution.
type ClaimRun struct {
	ExecutionID string
	Worker      string
	Side        events.Side // of the step, of a dual_ai agent
	Definitions []events.DefinitionVersion
	Missing     []MissingServer // MCP servers that the agent needs and that cannot be reached
}

// MissingServer is an MCP server that cannot be reached. A run that needs the server begins no
// step: the claim parks it until WakeRun, unless it has already waited for Wait.
type MissingServer struct {
	events.WaitFor
	Wait time.Duration // how long the run waits at most, from when it first missed a server
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

	// For the run of a handoff: the summary, and the thread that begins with it.
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

// HoldCalls makes calls of the open step wait for approvals or for other threads. If no other call
// is left, the run is parked.
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

// ResumeCalls says that the calls no longer have to wait. The run continues with them.
type ResumeCalls struct {
	ExecutionID string
	CallIDs     []string
}

// AwaitWorkers records that a run waits for workers that no process serves.
type AwaitWorkers struct {
	ExecutionID string
	Token       int64
	For         []events.WaitFor // all that it waits for
	Until       string
}

// ParkRun parks a run that waits for an MCP server, its reactor, or the tools of all its remaining
// calls. No worker holds the run until WakeRun. ParkRun changes nothing if other calls can be
// made.
type ParkRun struct {
	ExecutionID string
	Token       int64
	Unmade      []string // the calls that were not made, because no process serves their tool
}

// WakeRun resumes a run that ParkRun or ClaimRun has parked: the workers are back, or the run has
// waited long enough.
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
	Limit    string      // the limit that forbids another step although the loop policy wants one; empty: no limit does
	Side     events.Side // of the next step, of a dual_ai agent
	StopBy   events.Side // the side that stops the execution with this step
}
