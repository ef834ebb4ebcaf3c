package runtime

import (
	"context"
	"time"

	"github.com/skein-threads/skein/events"
)

// Reactor is the replaceable unit that generates: it is called once a
// step, and again, with the same ids, if that call came to nothing. It must
// return when ctx ends, and is safe for concurrent use. A panic is an error of
// its step.
//
// The error says what happened in a few words that may be shown and stored: it
// must hold no secret. A *RetryError is tried again, with backoff; any other
// ends the execution.
type Reactor interface {
	React(ctx context.Context, in *StepInput, out Stream) (*Reaction, error)
}

// ReactorFunc is a function that is a reactor.
type ReactorFunc func(ctx context.Context, in *StepInput, out Stream) (*Reaction, error)

// React calls the function.
func (f ReactorFunc) React(ctx context.Context, in *StepInput, out Stream) (*Reaction, error) {
	return f(ctx, in, out)
}

// StepInput is what a reactor is told. It must not be changed.
type StepInput struct {
	Tenant      string `json:"tenant"`
	ThreadID    string `json:"threadId"`
	ContextID   string `json:"contextId"`
	ExecutionID string `json:"executionId"`
	StepID      string `json:"stepId"`
	// ItemID is the reaction item, which the step writes or adds to.
	ItemID    string `json:"itemId"`
	Iteration int64  `json:"iteration"`     // from 0
	Attempt   int    `json:"attempt"`       // of this step, from 1
	Side      string `json:"side,omitzero"` // a or b, of a dual_ai agent

	SideLabel string `json:"sideLabel,omitzero"` // what the agent calls that side

	Agent        string     `json:"agent"`
	AgentMode    string     `json:"agentMode,omitzero"` // of the thread
	Model        Model      `json:"model,omitzero"`
	Instructions string     `json:"instructions,omitzero"` // the agent's prompt, its variables filled in
	Tools        []ToolSpec `json:"tools,omitempty"`
	// Context is the content of the EK context: any JSON, or nothing.
	Context events.JSON `json:"context,omitzero"`
	// Items is what has been said in the context, oldest first, the reaction
	// item so far as the last message. A part of it of type tool-NAME is a call,
	// with its output once it has one; the items of kind action_execute and
	// action_result of these calls are not listed again.
	Items []events.Item `json:"items"`
	// Omitted says what is left out of Items, or replaced by a note; nil: nothing.
	Omitted *events.Omitted `json:"omitted,omitzero"`
}

// Model says which model is to be asked, and how.
type Model struct {
	Name            string      `json:"name"`                   // of its definition
	Model           string      `json:"model"`                  // as its provider calls it
	ContextTokens   int64       `json:"contextTokens,omitzero"` // how many it takes in all
	MaxOutputTokens int64       `json:"maxOutputTokens,omitzero"`
	Temperature     *float64    `json:"temperature,omitzero"`
	Params          events.JSON `json:"params,omitzero"` // an object, given to the provider as it is
}

// Reaction is what a reactor gives for a step. Parts are kept
// as they come; those of no known type are kept too.
type Reaction struct {
	// AssistantEvent is the item for the present boundary: a message
	// of role assistant whose content lists the parts that this step adds. Its
	// id may be absent. A part for each call, of type tool-NAME with toolCallId
	// and input, may be among them; where it is not, one is added.
	AssistantEvent Assistant `json:"assistantEvent"`
	// ToolCalls are the calls that the parts ask for. Their callIds
	// are unique in the execution.
	ToolCalls []ToolCall `json:"toolCalls,omitempty"`
	// MessagesForModel says what was in fact shown to the model.
	// Absent: all items of the input.
	MessagesForModel *Shown `json:"messagesForModel,omitzero"`
	Usage            *Usage `json:"usage,omitzero"`
	// FinishReason says why the model ended its answer: one of the reasons of
	// events.Finish, such as length. Absent: it said all that it had to say.
	FinishReason string `json:"finishReason,omitzero"`
}

// Assistant is the item of a reaction.
type Assistant struct {
	ID      string        `json:"id,omitzero"`
	Content []events.JSON `json:"content"` // parts, each an object with a type
}

// ToolCall is a call of a tool. Its ItemID is for the runtime to fill in.
type ToolCall = events.ToolCall

// Shown names what a model was shown: ids of items in order, and a digest of
// what was in fact sent, hex of SHA-256.
type Shown = events.Shown

// Usage is what a call of a model used.
type Usage = events.Usage

// Stream takes what a reactor gives while it works, for those who watch. It
// never waits long, is not state, and may be left out. Safe for concurrent use.
type Stream interface {
	Chunk(c Chunk)
}

// Chunk is one piece of a stream (EK 8.1).
type Chunk struct {
	Type string      `json:"type"` // see the constants
	Data events.JSON `json:"data,omitzero"`
}

// Kinds of chunks that a reactor writes, and those of EK 8.1; events.ChunkKinds
// tells the data of each.
const (
	ChunkContextID       = events.ChunkContextID
	ChunkContextSubstate = events.ChunkContextSubstate
	ChunkThreadPing      = events.ChunkThreadPing
	ChunkToolOutput      = events.ChunkToolOutput
	ChunkToolError       = events.ChunkToolError
	ChunkFinish          = events.ChunkFinish
	ChunkTextDelta       = events.ChunkTextDelta
	ChunkReasoningDelta  = events.ChunkReasoningDelta
	ChunkToolInputStart  = events.ChunkToolInputStart
	ChunkToolInputDelta  = events.ChunkToolInputDelta
	ChunkToolInput       = events.ChunkToolInput
)

// RetryError says that a reactor or tool failed in a way that may pass.
type RetryError struct {
	After time.Duration // how long to wait at least; 0: as the backoff says
	// NotMade says that the call was surely not made: it is safe to make it again
	// whatever it does.
	NotMade bool
	// Absent says that it was not made because no process serves it now: it is made
	// when one does, for as long as the definition waits.
	Absent bool
	Err    error
}

// attempts gives how many attempts a call may have: so many if it can be made
// again anyway, and more if it was not made.
func (e *RetryError) attempts(again, notMade int) int {
	if e.NotMade {
		return max(again, notMade)
	}
	return again
}

func (e *RetryError) Error() string { return e.Err.Error() }

// Unwrap gives the failure itself.
func (e *RetryError) Unwrap() error { return e.Err }
