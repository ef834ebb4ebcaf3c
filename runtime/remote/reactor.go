package remote

import (
	"context"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
)

// reactor is a reactor in another process.
type reactor struct{ caller }

// Reactor returns the reactor that processes serve on skein.reactor.{name}. The error
// is an invalid_request for the name, or says what is wrong with an option.
func Reactor(nc *nats.Conn, names events.Names, name string, opts ...Option) (runtime.Reactor, error) {
	subject, err := names.Reactor(name)
	if err != nil {
		return nil, err
	}
	s, err := with(opts)
	if err != nil {
		return nil, err
	}
	return &reactor{caller{nc, names, callee{subject, s}}}, nil
}

func (r *reactor) React(ctx context.Context, in *runtime.StepInput, out runtime.Stream) (*runtime.Reaction, error) {
	p := r.protocol()
	stream := &streamed{out: out}
	request, whole, shown, err := r.request(in, p)
	if err != nil {
		return nil, err
	}
	body, err := r.call(ctx, p, request, whole, stream.chunk)
	if err != nil {
		return nil, stream.brokeOff(err)
	}
	if whole.whole() {
		shown = nil
	}
	reaction, err := r.reaction(body, shown)
	return reaction, stream.brokeOff(err)
}

// request returns the message for a process. If the whole exceeds the server's limit,
// the message contains what fits, and the whole can be fetched in pieces; shown then
// describes what the message has.
func (r *reactor) request(in *runtime.StepInput, p protocol) (body []byte, whole *parcel, shown *runtime.Shown, err error) {
	most := r.nc.MaxPayload()
	body, err = r.written(&reactorRequest{*in, p})
	if err != nil || most <= 0 || int64(len(body)) <= most {
		return body, nil, nil, err
	}
	if most := streamOf * most; int64(len(body)) > most {
		if body, _, err = r.fitted(in, p, most); err != nil {
			return nil, nil, nil, err
		}
	}
	if whole, err = newParcel(r.names, body, most); err != nil {
		return nil, nil, nil, err
	}
	p.Pieces = &whole.head
	body, items, err := r.fitted(in, p, most)
	if err != nil {
		return nil, nil, nil, err
	}
	return body, whole, shownIn(items), nil
}
