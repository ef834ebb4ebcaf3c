package thread

import (
	"github.com/skein-threads/skein/events"
)

// ClaimRun takes an execution for a worker, and begins its next step if none is
// open. It is never refused to a later claim: the queue says who is to run.
type ClaimRun struct {
	ExecutionID string
	Worker      string
	Side        events.Side // of the step, of a dual_ai agent
	Definitions []events.DefinitionVersion
}

// ReactStep records what the reactor of the open step gave.
// Without calls it also closes the step.
type ReactStep struct {
	ExecutionID string
	Token       int64
	StepID      string
	Parts       []events.JSON // in order; those of type tool-NAME are calls
	Types       []string      // of the parts
	Calls       []events.ToolCall
	Approve     []string               // callIds that wait for an approval
	Records     []events.TraceRecorded // what is to be recorded of it
	Seen        int64                  // the place after the last item that the reactor was shown
	After
}

// EndCalls records what came of calls. With the last one it closes the
// step.
type EndCalls struct {
	ExecutionID string
	Token       int64
	StepID      string
	Results     []CallResult
	Records     []events.TraceRecorded
	Seen        int64
	Agent       string // takes the thread over; "" for none
	After
}

// CallResult is what came of a call.
type CallResult struct {
	CallID  string
	Part    events.JSON // the call's part with its result merged in
	Output  events.JSON // of the action_result item
	IsError bool
}

// HoldCalls lets calls of the open step wait: for approvals, or for something
// else that completes them. If no other call is left, the run is parked.
type HoldCalls struct {
	ExecutionID string
	Token       int64
	StepID      string
	Approve     []events.ApprovalRequested
	Wait        []string
}

// FailRun ends an execution that cannot go on.
type FailRun struct {
	ExecutionID string
	Token       int64
	ErrorText   string
	Parts       []events.JSON // that the step gave before it failed
	Types       []string
	Records     []events.TraceRecorded
}

// ResumeCalls says that what calls waited for has come about, so that the run
// goes on with them.
type ResumeCalls struct {
	ExecutionID string
	CallIDs     []string
}

// AwaitWorkers says that a run waits for what no process serves.
type AwaitWorkers struct {
	ExecutionID string
	Token       int64
	For         []events.WaitFor // all that it waits for
	Until       string
}

// ParkRun gives up a run whose reactor no process serves: no worker holds it until
// WakeRun says that it may go on.
type ParkRun struct {
	ExecutionID string
	Token       int64
}

// WakeRun lets a run go on that was parked because no process served its reactor:
// one does now, or it has waited for long enough.
type WakeRun struct{ ExecutionID string }

// RecordRun records something of a run.
type RecordRun struct {
	ExecutionID string
	Token       int64
	Records     []events.TraceRecorded
}

// After says how an execution goes on when its step is closed.
type After struct {
	Continue bool        // what the loop policy says
	Limit    string      // why there may be no other step, although it should; "" if there may
	Side     events.Side // of the next step, of a dual_ai agent
	StopBy   events.Side // the side that stops the execution with this step
}
