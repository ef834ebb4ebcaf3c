package remote

import (
	"context"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
)

// reactor is a reactor in another process.
type reactor struct{ caller }

// Reactor gives the reactor that processes on skein.reactor.{name} are. The
// error is an invalid_request for the name, or says what is wrong with an
// option.
func Reactor(nc *nats.Conn, names events.Names, name string, opts ...Option) (runtime.Reactor, error) {
	subject, err := names.Reactor(name)
	if err != nil {
		return nil, err
	}
	s, err := with(opts)
	if err != nil {
		return nil, err
	}
	return &reactor{caller{nc, names, subject, s}}, nil
}

func (r *reactor) React(ctx context.Context, in *runtime.StepInput, out runtime.Stream) (*runtime.Reaction, error) {
	p := r.protocol()
	var chunk func(runtime.Chunk)
	if out != nil {
		chunk = out.Chunk
	}
	body, err := r.call(ctx, p, &reactorRequest{*in, p}, chunk)
	if err != nil {
		return nil, err
	}
	reaction, err := readReaction(body)
	if err != nil {
		return nil, r.wrong("is of no use: %w", err)
	}
	return reaction, nil
}
