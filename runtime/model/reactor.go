package model

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
)

// Reactor calls one endpoint. It is safe for concurrent use.
type Reactor struct {
	config   Config
	codec    Codec
	protocol Protocol
}

// New returns a reactor that calls an endpoint of the codec's protocol. The error names everything
// that is wrong with the configuration.
func New(c Config, codec Codec) (*Reactor, error) {
	protocol := codec.Protocol()
	c = c.WithDefaults(protocol)
	if err := c.Validate(protocol); err != nil {
		return nil, err
	}
	return &Reactor{config: c, codec: codec, protocol: protocol}, nil
}

// shrinks is how often a conversation that is too long for its model is halved.
const shrinks = 5

// React calls the endpoint once, and again with half of the conversation while that is
// too long for the model: no thread is too long to be answered. The package comment
// describes the input, the reaction, and which errors are temporary.
func (r *Reactor) React(ctx context.Context, in *runtime.StepInput, out runtime.Stream) (*runtime.Reaction, error) {
	for halved := 0; ; halved++ {
		reaction, err := r.ask(ctx, in, out)
		var long *tooLongError
		if !errors.As(err, &long) || halved == shrinks {
			return reaction, r.lastAttempt(in, err)
		}
		items, omitted := events.FitItems(in.Items, events.ItemsBytes(in.Items)/2)
		if omitted == nil || omitted.Bytes == 0 {
			return nil, err
		}
		less := *in
		less.Items, less.Omitted = items, omitted.And(in.Omitted)
		in = &less
	}
}

// lastAttempt returns the error of an attempt: one that asks for another only if the endpoint may
// be called again.
func (r *Reactor) lastAttempt(in *runtime.StepInput, err error) error {
	var later *runtime.RetryError
	if r.config.Attempts == 0 || in.Attempt < r.config.Attempts || !errors.As(err, &later) {
		return err
	}
	var broke *runtime.BrokenOffError
	if errors.As(err, &broke) {
		return &runtime.BrokenOffError{Err: later.Err}
	}
	return &goneError{later.Err}
}

// goneError reports that the last attempt at a step failed as well.
type goneError struct{ error }

func (e *goneError) Unwrap() error { return e.error }

// ask calls the endpoint once.
func (r *Reactor) ask(ctx context.Context, in *runtime.StepInput, out runtime.Stream) (*runtime.Reaction, error) {
	turn, shown, err := r.turn(ctx, in)
	if err != nil {
		return nil, err
	}
	request, err := r.codec.Encode(turn)
	if err != nil {
		return nil, err
	}
	c := r.call(ctx)
	defer c.end()
	start := time.Now()
	o := newOutput(in, out, r.config.endpoint())
	o.steps = r.protocol.Steps
	if err := c.ask(request.Body, o, r.codec.Decode(o)); err != nil {
		return nil, err
	}
	reaction, err := o.reaction()
	if err != nil {
		return nil, c.told(err)
	}
	sum := sha256.Sum256(request.Shown)
	reaction.MessagesForModel = &runtime.Shown{Items: shown, Digest: hex.EncodeToString(sum[:])}
	usage := o.usage
	usage.Provider, usage.Model, usage.LatencyMs = r.config.Provider, cmp.Or(usage.Model, in.Model.Model), time.Since(start).Milliseconds()
	reaction.Usage = &usage
	return reaction, nil
}
