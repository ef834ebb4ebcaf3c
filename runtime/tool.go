package runtime

import (
	"context"
	"time"

	"github.com/skein-threads/skein/events"
)

// Tool is work that a reactor can ask for. It must return when ctx ends, and is
// safe for concurrent use. A panic is an error of its call.
//
// A failure of the work is a ToolResult of status error, which the model is
// shown. An error of Call says that the call itself came to nothing: a
// *RetryError is tried again, with the same key, if the tool is idempotent or the
// call was surely not made; any other becomes a result of status error. Neither may hold a secret.
type Tool interface {
	Spec() ToolSpec
	Call(ctx context.Context, in *ToolInput) (ToolResult, error)
}

// ToolSpec says what a tool is: what a model is told of it, and how its calls
// are treated.
type ToolSpec struct {
	Name        string        `json:"name"` // 1 to 64 of A-Z a-z 0-9 _ -
	Description string        `json:"description,omitzero"`
	Parameters  events.JSON   `json:"parameters,omitzero"`  // JSON Schema of the arguments, an object; absent: any object
	Manual      bool          `json:"manual,omitzero"`      // each call waits for an approval (auto: false)
	Idempotent  bool          `json:"idempotent,omitzero"`  // a call with the same key may be made again
	ReadOnly    bool          `json:"readOnly,omitzero"`    // it changes nothing, and so is idempotent
	Timeout     time.Duration `json:"-"`                    // of one attempt; default: the agent's tool time
	WorkerWait  time.Duration `json:"-"`                    // for a process that serves it, when none does; default: the agent's, negative: none
	Retries     int           `json:"-"`                    // more attempts after a *RetryError; default: the agent's; -1: none
	Backoff     time.Duration `json:"-"`                    // before the second attempt; doubles each time; default: the agent's; -1: none
	NotPortable bool          `json:"notPortable,omitzero"` // it uses the runtime context
}

// ToolInput is what a tool is told.
type ToolInput struct {
	Tenant      string
	ThreadID    string
	ExecutionID string
	StepID      string
	CallID      string
	Name        string
	// Key is the same for every attempt at this call, and no other's: what the
	// tool does for it once it need not do again.
	Key       string
	Attempt   int         // from 1
	Arguments events.JSON // an object that the tool's schema accepts
	State     ThreadState // of the thread; nil in a process that serves tools over NATS
}

// ToolResult is what came of a call.
type ToolResult = events.ToolResult

// The two ways in which a call ends.
const (
	Success = events.ToolSuccess
	Failure = events.ToolError
)

// Done gives the result of a call that did what it was to do.
func Done(result events.JSON) ToolResult { return ToolResult{Status: Success, Result: result} }

// Failed gives the result of a call that did not.
func Failed(text string) ToolResult { return ToolResult{Status: Failure, Error: text} }
