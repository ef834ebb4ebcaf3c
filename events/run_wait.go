package events

import "strings"

// RunAwaitedType is the event of a run that waits for a worker.
const RunAwaitedType Type = "run.awaited"

// WorkerKind says what a worker process serves.
type WorkerKind string

// What a worker process may serve.
const (
	ReactorWorker WorkerKind = "reactor"
	ToolWorker    WorkerKind = "tool"
)

// Enum lists the kinds.
func (WorkerKind) Enum() []string { return []string{string(ReactorWorker), string(ToolWorker)} }

// GoToolPrefix is what the name of a Go tool begins with in WaitFor: the process that has it is no
// worker on NATS, which may serve a tool of the same name.
const GoToolPrefix = "go:"

// MCPPrefix is what the name of a whole MCP server, or of a tool of one, begins with in WaitFor.
// The run waits for the server itself, before a step, and so no call is named.
const MCPPrefix = "mcp:"

// IsServer reports whether it is an MCP server that cannot be reached.
func (w WaitFor) IsServer() bool {
	return w.Kind == ToolWorker && w.CallID == "" && strings.HasPrefix(w.Name, MCPPrefix)
}

// WaitFor names what no process serves at present.
type WaitFor struct {
	Kind   WorkerKind `json:"kind" schema:"required" doc:"What it is."`
	Name   string     `json:"name" schema:"required,maxLength=256" doc:"The reactor, or the tool."`
	CallID string     `json:"callId,omitzero" schema:"maxLength=256" doc:"Of a tool: the call that waits."`
}

// RunAwaited records for which reactor or tools an execution waits, because no process serves
// them. It replaces the previous one.
type RunAwaited struct {
	For   []WaitFor `json:"for" schema:"required" doc:"Everything that it waits for now; empty: nothing any more."`
	Until string    `json:"until,omitzero" schema:"pattern=time" doc:"When the wait ends."`
}

// DefaultWorkerWaitMs is how long a run waits for a process that serves its reactor or a tool,
// unless the definition says otherwise.
const DefaultWorkerWaitMs = 10 * 60 * 1000

// RetryRun retries a failed run: another execution answers the same item, and sees what the
// failed one had achieved.
type RetryRun struct {
	ExecutionID string `json:"executionId,omitzero" schema:"pattern=id" doc:"The failed execution; the thread's last one if absent. No other may have come after it."`
	SessionID   string `json:"sessionId,omitzero" schema:"pattern=session" doc:"The session of the request that retries it."`
}
