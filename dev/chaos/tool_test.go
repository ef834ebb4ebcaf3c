package chaos

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/remote"
)

// serveTool makes this process a tool that comes to a gate with each call.
func serveTool(ctx context.Context, name, url string) error {
	nc, err := nats.Connect(url, nats.Timeout(time.Minute))
	if err != nil {
		return err
	}
	defer nc.Close()
	ask := asking(nc, name)
	s, err := remote.ServeTool(nc, events.DefaultNames(), doing{runtime.ToolSpec{Name: name}, func(ctx context.Context, _ *runtime.ToolInput) (runtime.ToolResult, error) {
		return runtime.ToolResult{}, ask(ctx, "called")
	}})
	if err != nil {
		return err
	}
	fmt.Println("ready " + url)
	<-ctx.Done()
	return s.Close(context.WithoutCancel(ctx))
}
