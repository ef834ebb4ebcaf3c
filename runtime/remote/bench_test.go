package remote_test

import (
	"context"
	"testing"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/remote"
)

// BenchmarkReactor measures what the protocol adds to a step: a request, a heartbeat,
// ten chunks and a result, over TCP.
func BenchmarkReactor(b *testing.B) {
	s := natstest.Start(b)
	names := events.DefaultNames()
	service, err := remote.ServeReactor(natstest.Connect(b, s), names, "planner", runtime.ReactorFunc(func(_ context.Context, _ *runtime.StepInput, out runtime.Stream) (*runtime.Reaction, error) {
		for range 10 {
			out.Chunk(runtime.Chunk{Type: runtime.ChunkTextDelta})
		}
		return says("ok"), nil
	}))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = service.Close(context.Background()) }()
	r, err := remote.Reactor(natstest.Connect(b, s), names, "planner")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := r.React(b.Context(), &runtime.StepInput{}, nil); err != nil {
			b.Fatal(err)
		}
	}
}
