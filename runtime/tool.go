package runtime

import (
	"context"
	"time"

	"github.com/skein-threads/skein/events"
)

// Tool is work that a reactor can request. It must return when ctx ends, and be safe
// for concurrent use. A panic is an error of its call.
//
// A failure of the work is a ToolResult with status error, which the model sees. An
// error of Call means that the call itself failed: a *RetryError is retried, with the
// same key, if the tool is idempotent or the call was certainly not made; any other
// becomes a result with status error. Neither may contain secrets.
type Tool interface {
	Spec() ToolSpec
	Call(ctx context.Context, in *ToolInput) (ToolResult, error)
}

// ToolSpec describes a tool: for models, and how its calls are handled.
type ToolSpec struct {
	Name        string        `json:"name"` // 1 to 64 of A-Z a-z 0-9 _ -
	Description string        `json:"description,omitzero"`
	Parameters  events.JSON   `json:"parameters,omitzero"`  // JSON Schema of the arguments, an object; default: any object
	Manual      bool          `json:"manual,omitzero"`      // each call waits for an approval (auto: false)
	Idempotent  bool          `json:"idempotent,omitzero"`  // a call with the same key may be repeated
	ReadOnly    bool          `json:"readOnly,omitzero"`    // it changes nothing, and so is idempotent
	Timeout     time.Duration `json:"-"`                    // of one attempt; default: the agent's tool time
	WorkerWait  time.Duration `json:"-"`                    // wait for a process that serves it; default: the agent's, negative: none
	Retries     int           `json:"-"`                    // more attempts after a *RetryError; default: the agent's; -1: none
	Backoff     time.Duration `json:"-"`                    // before the second attempt; doubles each time; default: the agent's; -1: none
	NotPortable bool          `json:"notPortable,omitzero"` // it uses the runtime context
	Caller      bool          `json:"caller,omitzero"`      // the caller of the run executes it: a call of it ends the run
	Strict      bool          `json:"strict,omitzero"`      // of a caller's tool: the endpoint must make the arguments conform to Parameters
}

// ToolInput is the input of a tool.
type ToolInput struct {
	Tenant      string
	ThreadID    string
	ExecutionID string
	StepID      string
	CallID      string
	Name        string
	// Key is the idempotency key: the same for every attempt at this call, and unique
	// to it.
	Key       string
	Attempt   int         // of this call by this process, from 1
	Arguments events.JSON // an object that is valid for the tool's schema
	State     ThreadState // of the thread; nil in a process that serves tools over NATS
	// Rights are the rights of the credential that started the run; nil: the tenant's.
	Rights *events.Rights
}

// ToolResult is the result of a call.
type ToolResult = events.ToolResult

// The two statuses of a result.
const (
	Success = events.ToolSuccess
	Failure = events.ToolError
)

// Done returns the result of a successful call.
func Done(result events.JSON) ToolResult { return ToolResult{Status: Success, Result: result} }

// Failed returns the result of a failed call.
func Failed(text string) ToolResult { return ToolResult{Status: Failure, Error: text} }
