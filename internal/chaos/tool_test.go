package chaos

import (
	"context"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/remote"
)

// serveTool makes this process a tool that begins a call and never ends it.
func serveTool(ctx context.Context, name, folder, url string) error {
	nc, err := nats.Connect(url)
	if err != nil {
		return err
	}
	defer nc.Close()
	s, err := remote.ServeTool(nc, events.DefaultNames(), doing{runtime.ToolSpec{Name: name}, func(ctx context.Context, in *runtime.ToolInput) (runtime.ToolResult, error) {
		if err := ledgerIn(folder).begun(in.Key); err != nil {
			return runtime.ToolResult{}, err
		}
		<-ctx.Done()
		return runtime.ToolResult{}, context.Cause(ctx)
	}})
	if err != nil {
		return err
	}
	println("ready " + url)
	<-ctx.Done()
	return s.Close(context.WithoutCancel(ctx))
}
