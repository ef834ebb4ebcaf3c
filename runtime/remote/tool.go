package remote

import (
	"context"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
)

// tool is a tool in another process.
type tool struct {
	caller
	spec runtime.ToolSpec
}

// Tool returns the tool that processes serve on skein.tool.{name}, with the name in the
// spec. The error is an invalid_request for the name, or says what is wrong with an
// option.
func Tool(nc *nats.Conn, names events.Names, spec runtime.ToolSpec, opts ...Option) (runtime.Tool, error) {
	subject, err := names.Tool(spec.Name)
	if err != nil {
		return nil, err
	}
	s, err := with(opts)
	if err != nil {
		return nil, err
	}
	return &tool{caller{nc, names, callee{subject, s}}, spec}, nil
}

func (t *tool) Spec() runtime.ToolSpec { return t.spec }

// Call sends the call to a process. Chunks of a tool count as heartbeats.
func (t *tool) Call(ctx context.Context, in *runtime.ToolInput) (runtime.ToolResult, error) {
	p := t.protocol()
	request, err := t.written(requestOf(in, p))
	if err != nil {
		return runtime.ToolResult{}, err
	}
	body, err := t.call(ctx, p, request, nil, nil)
	if err != nil {
		return runtime.ToolResult{}, err
	}
	return t.result(body)
}
