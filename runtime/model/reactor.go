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
			return reaction, err
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

// unanswered returns the error of a call: one that asks for another attempt only if the endpoint may
// be called again, and one that says so if it did not answer.
func (r *Reactor) unanswered(in *runtime.StepInput, err error) error {
	var later *runtime.RetryError
	var broke *runtime.BrokenOffError
	var coded *runtime.FailureError
	retry, brokeOff := errors.As(err, &later), errors.As(err, &broke)
	again := retry && r.config.Attempts > in.Attempt
	switch {
	case !retry && !brokeOff && (!errors.As(err, &coded) || coded.Code == events.FailedPolicy):
		return err
	case retry && r.config.Attempts > 0 && !again: // the last attempt
		if err = later.Err; brokeOff {
			err = &runtime.BrokenOffError{Err: err}
		}
	}
	return &runtime.UnansweredError{Again: again, Err: err}
}

// ask calls the endpoint once.
func (r *Reactor) ask(ctx context.Context, in *runtime.StepInput, out runtime.Stream) (*runtime.Reaction, error) {
	turn, shown, err := r.turn(ctx, in)
	if err != nil {
		return nil, err
	}
	var sequences []string
	if !r.protocol.Stops {
		if err := turn.Take(Field{"stop", &sequences}); err != nil {
			return nil, err
		}
	}
	request, err := r.codec.Encode(turn)
	if err != nil {
		return nil, err
	}
	c := r.call(ctx)
	defer c.end()
	start := time.Now()
	o := newOutput(in, out, r.config.endpoint())
	o.steps, o.stops = r.protocol.Steps, newStops(sequences)
	if err := c.ask(request.Body, o, r.codec.Decode(o)); err != nil {
		return nil, r.unanswered(in, err)
	}
	reaction, err := o.reaction()
	if err != nil {
		return nil, c.told(err)
	}
	sum := sha256.Sum256(request.Shown)
	reaction.MessagesForModel = &runtime.Shown{Items: shown, Digest: hex.EncodeToString(sum[:])}
	usage := o.usage
	usage.Provider, usage.Model, usage.LatencyMs = r.config.Provider, cmp.Or(usage.Model, in.Model.Model), time.Since(start).Milliseconds()
	reaction.Usage, reaction.ProviderUsage = &usage, wellFormed(o.used)
	return reaction, nil
}
