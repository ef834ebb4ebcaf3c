package runtime

import (
	"context"
	"reflect"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/excerpt"
	"github.com/skein-threads/skein/schema/arguments"
)

// maxErrorText bounds the text of a failure, in bytes.
const maxErrorText = 4 << 10

// DefineTool returns a tool of a Go function. Its arguments are a struct, whose JSON
// Schema becomes the tool's parameters, as arguments.Of describes; if spec.Parameters
// is set, it is the schema, and the struct may be any type that its values decode into.
//
// Arguments are validated against the schema and then decoded strictly, so that fn
// receives only valid ones. The value that fn returns is encoded as JSON: a string
// becomes a JSON string, and a ToolResult is returned unchanged. An error of fn becomes
// a result with status error, except a *RetryError and the end of ctx, which are
// returned to the caller, as a panic is. The error of DefineTool says what is wrong
// with the definition, and names the field.
func DefineTool[A, R any](spec ToolSpec, fn func(ctx context.Context, in *ToolInput, args A) (R, error)) (Tool, error) {
	if err := checkName("tool", spec.Name); err != nil {
		return nil, err
	}
	if fn == nil {
		return nil, events.Invalid("", "the tool %s has no function", spec.Name)
	}
	if len(spec.Parameters) == 0 {
		derived, err := arguments.Of(reflect.TypeFor[A]())
		if err != nil {
			return nil, events.Invalid("/parameters", "the tool %s: %w, or set Parameters", spec.Name, err)
		}
		spec.Parameters = derived
	}
	schema, err := arguments.Compile(spec.Parameters)
	if err != nil {
		return nil, err
	}
	spec.Idempotent = spec.Idempotent || spec.ReadOnly
	return &defined[A, R]{spec, schema, fn}, nil
}

// defined is a tool of a function.
type defined[A, R any] struct {
	spec   ToolSpec
	schema *arguments.Schema
	fn     func(context.Context, *ToolInput, A) (R, error)
}

func (d *defined[A, R]) Spec() ToolSpec { return d.spec }

func (d *defined[A, R]) Call(ctx context.Context, in *ToolInput) (ToolResult, error) {
	if err := d.schema.Check(in.Arguments); err != nil {
		return Failed(err.Error()), nil
	}
	var args A
	if err := arguments.Read(in.Arguments, &args); err != nil {
		return Failed(err.Error()), nil
	}
	out, err := d.fn(ctx, in, args)
	switch {
	case err != nil && (findError[*RetryError](err) != nil || ctx.Err() != nil):
		return ToolResult{}, err
	case err != nil:
		return Failed(excerpt.OfError(err, maxErrorText)), nil
	}
	if result, ok := any(out).(ToolResult); ok {
		return result, nil
	}
	written, err := json.Marshal(out, json.Deterministic(true))
	if err != nil {
		return Failed("the result of the tool " + d.spec.Name + " cannot be encoded as JSON"), nil
	}
	return Done(written), nil
}
