package runtime

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/attachment"
	"github.com/skein-threads/skein/internal/excerpt"
)

// Reactor generates the answers of an agent: it is called once a step, and again, with
// the same ids, if a call fails. It must return when ctx ends, and be safe for
// concurrent use. A panic is an error of its step.
//
// The error describes the failure in a few words that may be shown and stored: it must
// not contain secrets. A *RetryError is retried, with backoff; any other ends the
// execution.
type Reactor interface {
	React(ctx context.Context, in *StepInput, out Stream) (*Reaction, error)
}

// ReactorFunc is a function that is a reactor.
type ReactorFunc func(ctx context.Context, in *StepInput, out Stream) (*Reaction, error)

// React calls the function.
func (f ReactorFunc) React(ctx context.Context, in *StepInput, out Stream) (*Reaction, error) {
	return f(ctx, in, out)
}

// StepInput is the input of a reactor. It is read-only.
type StepInput struct {
	Tenant      string `json:"tenant"`
	ThreadID    string `json:"threadId"`
	ContextID   string `json:"contextId"`
	ExecutionID string `json:"executionId"`
	StepID      string `json:"stepId"`
	// ItemID is the reaction item, which the step creates or extends.
	ItemID    string `json:"itemId"`
	Iteration int64  `json:"iteration"`     // from 0
	Attempt   int    `json:"attempt"`       // of this step by this process, from 1
	Side      string `json:"side,omitzero"` // a or b, of a dual_ai agent

	SideLabel string `json:"sideLabel,omitzero"` // the agent's label of that side

	Agent        string     `json:"agent"`
	AgentMode    string     `json:"agentMode,omitzero"` // of the thread
	Model        Model      `json:"model,omitzero"`
	Instructions string     `json:"instructions,omitzero"` // the agent's prompt, with its variables filled in
	Tools        []ToolSpec `json:"tools,omitempty"`
	// Metadata are the caller's own fields for this run: an object, or nothing.
	Metadata events.JSON `json:"metadata,omitzero"`
	// Context is the content of the EK context: any JSON, or nothing.
	Context events.JSON `json:"context,omitzero"`
	// Items are the messages of the context, oldest first, the last one being the
	// current reaction item. A part of it with type tool-NAME is a call, with its
	// output once it has one; the items of kind action_execute and action_result of
	// these calls are omitted. The output of a call whose state is input-available,
	// which its caller executes, is an action_result that follows.
	Items []events.Item `json:"items"`
	// Omitted describes what is missing in Items, or replaced by a note; nil: nothing.
	Omitted *events.Omitted `json:"omitted,omitzero"`
	// Files are the thread's files, which parts of Items refer to (docs/files.md); nil in a
	// process that serves reactors over NATS.
	Files Files `json:"-"`
}

// Files are files of a thread.
type Files = attachment.Files

// Model is the model to use, and its settings.
type Model struct {
	Name            string      `json:"name"`                   // of its definition
	Model           string      `json:"model"`                  // the provider's name of it
	ContextTokens   int64       `json:"contextTokens,omitzero"` // size of its context window
	MaxOutputTokens int64       `json:"maxOutputTokens,omitzero"`
	Temperature     *float64    `json:"temperature,omitzero"`
	Params          events.JSON `json:"params,omitzero"` // an object, passed to the provider unchanged

	Endpoint string  `json:"endpoint,omitzero"`  // the operator's endpoint that serves it; default its own
	Fallback []Model `json:"fallback,omitempty"` // asked in this order after an *UnansweredError; they have none
}

// Reaction is the result of a reactor's step. Parts are stored unchanged, even those of
// unknown types.
type Reaction struct {
	// AssistantEvent is the item at this boundary: a message with role assistant whose
	// content lists the parts that this step adds. Its id is optional. It may contain a
	// part for each call, with type tool-NAME, toolCallId and input; missing ones are
	// added.
	AssistantEvent Assistant `json:"assistantEvent"`
	// ToolCalls are the calls that the parts request. Their callIds are unique in the
	// execution.
	ToolCalls []ToolCall `json:"toolCalls,omitempty"`
	// MessagesForModel is what was actually shown to the model. Default: all items of
	// the input.
	MessagesForModel *Shown `json:"messagesForModel,omitzero"`
	Usage            *Usage `json:"usage,omitzero"`
	// ProviderUsage is the usage in the form of the model's provider: an object, of at most 4 KiB.
	// It is recorded unchanged, and nothing is computed from it.
	ProviderUsage events.JSON `json:"providerUsage,omitzero"`
	// FinishReason is why the model ended its answer: one of the reasons of
	// events.Finish, such as length. Default: the answer is complete.
	FinishReason string `json:"finishReason,omitzero"`
}

// Assistant is the item of a reaction.
type Assistant struct {
	ID      string        `json:"id,omitzero"`
	Content []events.JSON `json:"content"` // parts, each an object with a type
}

// ToolCall is a call of a tool. The runtime sets its ItemID.
type ToolCall = events.ToolCall

// Shown names what a model was shown: ids of items in order, and the SHA-256, in hex,
// of what was sent.
type Shown = events.Shown

// Usage is the usage of a call of a model.
type Usage = events.Usage

// Stream receives the chunks of a working reactor, for live readers. It does not block
// for long, is not state, and may drop chunks. It is safe for concurrent use.
type Stream interface {
	Chunk(c Chunk)
}

// Chunk is one piece of a stream.
type Chunk struct {
	Type string      `json:"type"` // see the constants
	Data events.JSON `json:"data,omitzero"`
}

// Kinds of chunks that a reactor streams; events.ChunkKinds describes the data of each.
const (
	ChunkContextID       = events.ChunkContextID
	ChunkContextSubstate = events.ChunkContextSubstate
	ChunkThreadPing      = events.ChunkThreadPing
	ChunkToolOutput      = events.ChunkToolOutput
	ChunkToolError       = events.ChunkToolError
	ChunkFinish          = events.ChunkFinish
	ChunkTextDelta       = events.ChunkTextDelta
	ChunkReasoningDelta  = events.ChunkReasoningDelta
	ChunkReasoningEnd    = events.ChunkReasoningEnd
	ChunkToolInputStart  = events.ChunkToolInputStart
	ChunkToolInputDelta  = events.ChunkToolInputDelta
	ChunkToolInput       = events.ChunkToolInput
)

// RetryError reports a failure of a reactor or tool that may be temporary.
type RetryError struct {
	After time.Duration // minimum pause; 0: the usual backoff
	// NotMade reports that the call was certainly not made: repeating it is safe for
	// any tool.
	NotMade bool
	// Absent reports that no process serves it now: the call is repeated when one does,
	// for as long as the definition waits.
	Absent bool
	Err    error // the failure
}

// attempts returns how many attempts a call may have: again if it can be repeated,
// notMade if it was not made.
func (e *RetryError) attempts(again, notMade int) int {
	if e.NotMade {
		return max(again, notMade)
	}
	return again
}

func (e *RetryError) Error() string {
	if e == nil || e.Err == nil {
		return "it failed, and says no reason"
	}
	return e.Err.Error()
}

// Unwrap returns the failure.
func (e *RetryError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

// BrokenOffError reports an answer that broke off after it had begun. The text and the finished
// reasoning that were streamed of the last attempt are kept, marked as interrupted. It is retried
// if Err is a *RetryError.
type BrokenOffError struct{ Err error }

func (e *BrokenOffError) Error() string {
	if e == nil || e.Err == nil {
		return "the answer broke off"
	}
	return e.Err.Error()
}

// Unwrap returns the failure.
func (e *BrokenOffError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

// FailureError reports a failure of a model's endpoint for a reason that it has named. It is
// retried if Err is a *RetryError.
type FailureError struct {
	Code events.FailureCode
	Err  error
}

func (e *FailureError) Error() string {
	if e == nil || e.Err == nil {
		return "the model's endpoint failed"
	}
	return e.Err.Error()
}

// Unwrap returns the failure.
func (e *FailureError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

// UnansweredError reports that the endpoint of a model does not answer. The step continues with the
// next of Model.Fallback, and records the failure. Without another model it is what Err is.
type UnansweredError struct {
	// Again reports that the endpoint may answer another attempt, which is made first, if the agent
	// permits one: Err is a *RetryError.
	Again bool
	Err   error
}

func (e *UnansweredError) Error() string {
	if e == nil || e.Err == nil {
		return "the model's endpoint does not answer"
	}
	return e.Err.Error()
}

// Unwrap returns the failure.
func (e *UnansweredError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

// Returned returns what a reactor, a tool, an effect or a hook has returned as its error, as an
// error whose methods are safe: it has its text, what the first *RetryError in its tree requests,
// whether there is a *BrokenOffError or an *UnansweredError, the code of a *FailureError, and nothing
// else of it. The methods of the error itself may panic; a nil *RetryError requests nothing. It is
// nil for nil.
//
// Every error of code that is not Skein's passes here once, where that code was called.
func Returned(err error) error {
	if err == nil {
		return nil
	}
	safe := errors.New(excerpt.OfError(err, maxErrorText))
	if later := findError[*RetryError](err); later != nil {
		safe = &RetryError{After: later.After, NotMade: later.NotMade, Absent: later.Absent, Err: safe}
	}
	if findError[*BrokenOffError](err) != nil {
		safe = &BrokenOffError{Err: safe}
	}
	if coded := findError[*FailureError](err); coded != nil && slices.Contains(coded.Code.Enum(), string(coded.Code)) {
		safe = &FailureError{Code: coded.Code, Err: safe}
	}
	if unanswered := findError[*UnansweredError](err); unanswered != nil {
		safe = &UnansweredError{Again: unanswered.Again, Err: safe}
	}
	return safe
}

// findError returns the first error of a type in the tree of an error; nil if there is none.
func findError[E error](err error) (found E) {
	defer func() {
		if recover() != nil { // a method of the error
			var none E
			found = none
		}
	}()
	errors.As(err, &found)
	return found
}

// LogPanic logs the value and the stack of a panic of code that is not Skein's. Call it where the
// panic is recovered. The value is for the log only: it may contain anything.
func LogPanic(log *zerolog.Event, value any, what string) {
	log.Str("panic", clip(fmt.Sprint(value))).Bytes("stack", debug.Stack()).Msg(what + " panicked")
}
