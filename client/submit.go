package client

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/events"
)

// Submit stores a command that is to be done, and returns when it is stored;
// the number is its place among the submitted ones. It is done once, in the
// order of its thread. A refusal is not told here: it appears on the timeline as
// command.rejected.
func (c *Client) Submit(ctx context.Context, name string, r Request) (uint64, error) {
	body, id, err := c.command(r)
	if err != nil {
		return 0, err
	}
	ctx, cancel := c.limited(ctx)
	defer cancel()
	m := nats.NewMsg(c.opts.Names.Submit(c.opts.Tenant, name))
	m.Data = body
	// The stream is one for all tenants; a repeat within its window is dropped.
	m.Header.Set(jetstream.MsgIDHeader, c.opts.Tenant+"."+id)
	for attempt := 0; ; attempt++ {
		one, done := context.WithTimeout(ctx, attemptTimeout)
		ack, err := c.js.PublishMsg(one, m)
		done()
		var refused *jetstream.APIError
		switch {
		case err == nil:
			return ack.Sequence, nil
		case errors.Is(err, nats.ErrMaxPayload):
			return 0, events.TooLarge("the request", int64(len(body)), c.nc.MaxPayload())
		case errors.As(err, &refused) && refused.Code < 500 && refused.Code != 429:
			return 0, events.Errorf(events.InvalidRequest, "the command was not stored: %w", err)
		case !pause(ctx, attempt):
			return 0, unknownOutcome(events.Errorf(events.Unavailable, "the command may not be stored; submit it again with the id %s: %w", id, err))
		}
	}
}
