package skein

import (
	"context"

	"github.com/skein-threads/skein/runtime"
)

// Types that reactors, tools, effects and hooks receive and return. Package runtime
// documents them.
type (
	ReactorFunc = runtime.ReactorFunc
	StepInput   = runtime.StepInput
	Stream      = runtime.Stream
	Chunk       = runtime.Chunk
	Reaction    = runtime.Reaction
	Assistant   = runtime.Assistant
	Tool        = runtime.Tool
	ToolSpec    = runtime.ToolSpec
	ToolCall    = runtime.ToolCall
	ToolInput   = runtime.ToolInput
	ToolResult  = runtime.ToolResult
	EffectFunc  = runtime.EffectFunc
	EffectInput = runtime.EffectInput
	Hooks       = runtime.Hooks
	Loop        = runtime.Loop
	Outcome     = runtime.Outcome
	RetryError  = runtime.RetryError
	ThreadState = runtime.ThreadState
)

// Answer returns a reaction with a text and no tool calls.
func Answer(said string) *Reaction { return runtime.Answer(said) }

// ToolOption sets a field of a tool's spec.
type ToolOption func(*ToolSpec)

// Description sets what models are told about the tool.
func Description(text string) ToolOption { return func(s *ToolSpec) { s.Description = text } }

// Manual makes each call wait for an approval.
func Manual() ToolOption { return func(s *ToolSpec) { s.Manual = true } }

// Idempotent declares that a call with the same key may be repeated.
func Idempotent() ToolOption { return func(s *ToolSpec) { s.Idempotent = true } }

// ReadOnly declares that the tool changes nothing, and so is idempotent.
func ReadOnly() ToolOption { return func(s *ToolSpec) { s.ReadOnly = true } }

// Spec sets any field of the spec except the name.
func Spec(set func(*ToolSpec)) ToolOption { return set }

// NewTool returns a tool of a Go function. A model sends the fields of the struct A,
// whose JSON Schema is the tool's parameters. R is encoded as JSON for the model, and
// an error of fn is a result with status error: neither may contain secrets.
// Server.Tool returns what is wrong with the definition, such as a function that is nil. See
// runtime.DefineTool.
func NewTool[A, R any](name string, fn func(ctx context.Context, args A) (R, error), options ...ToolOption) Tool {
	if fn == nil {
		return NewThreadTool[A, R](name, nil, options...)
	}
	return NewThreadTool(name, func(ctx context.Context, _ *ToolInput, args A) (R, error) { return fn(ctx, args) }, options...)
}

// NewThreadTool is NewTool for a function that also receives the call: its thread
// (in.State), its key, its attempt.
func NewThreadTool[A, R any](name string, fn func(ctx context.Context, in *ToolInput, args A) (R, error), options ...ToolOption) Tool {
	spec := ToolSpec{}
	for _, set := range options {
		set(&spec)
	}
	spec.Name = name
	tool, err := runtime.DefineTool(spec, fn)
	if err != nil {
		return invalidTool{spec, err}
	}
	return tool
}

// invalidTool is a tool that could not be defined. Server.Tool refuses it.
type invalidTool struct {
	spec ToolSpec
	err  error
}

func (t invalidTool) Spec() ToolSpec { return t.spec }

func (t invalidTool) Call(context.Context, *ToolInput) (ToolResult, error) {
	return ToolResult{}, t.err
}
