package skein

import (
	"context"

	"github.com/skein-threads/skein/runtime"
)

// What reactors, tools, effects and hooks are told and return. Package runtime has
// their documentation.
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

// Answer returns a reaction that says a text and makes no calls.
func Answer(said string) *Reaction { return runtime.Answer(said) }

// ToolOption sets a part of a tool's spec.
type ToolOption func(*ToolSpec)

// Description is what models are told of the tool.
func Description(text string) ToolOption { return func(s *ToolSpec) { s.Description = text } }

// Manual lets each call wait for an approval.
func Manual() ToolOption { return func(s *ToolSpec) { s.Manual = true } }

// Idempotent says that a call with the same key may be made again.
func Idempotent() ToolOption { return func(s *ToolSpec) { s.Idempotent = true } }

// ReadOnly says that the tool changes nothing, and so is idempotent.
func ReadOnly() ToolOption { return func(s *ToolSpec) { s.ReadOnly = true } }

// Spec sets any field of the spec besides the name.
func Spec(set func(*ToolSpec)) ToolOption { return set }

// NewTool returns a tool of a Go function. The struct A is what a model gives, and
// its JSON Schema is the tool's parameters; R is written as JSON for the model, and an
// error of fn is a result of status error: neither may hold a secret. What is wrong
// with the definition is the error of Server.Tool. See runtime.DefineTool.
func NewTool[A, R any](name string, fn func(ctx context.Context, args A) (R, error), options ...ToolOption) Tool {
	return NewThreadTool(name, func(ctx context.Context, _ *ToolInput, args A) (R, error) { return fn(ctx, args) }, options...)
}

// NewThreadTool is NewTool for a function that is told of the call as well: its thread
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
