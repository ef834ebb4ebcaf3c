package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
)

// stored is the stream's acknowledgement of a submitted command.
type stored struct {
	Seq   int64 `json:"seq"`
	Error *struct {
		Code        int    `json:"code"`
		Description string `json:"description"`
	} `json:"error"`
}

// Submit stores a command for asynchronous execution, and returns its sequence among
// the submitted commands once it is durable. It is executed once, in the order of its
// thread, even if it was stored twice: its id identifies it. A refusal is not returned
// here; it appears on the timeline as command.rejected.
func (c *Client) Submit(ctx context.Context, name string, r Request) (int64, error) {
	if err := checkName("command", name); err != nil {
		return 0, err
	}
	body, id, err := c.command(r)
	if err != nil {
		return 0, err
	}
	ctx, cancel := c.limited(ctx)
	defer cancel()
	subject := c.opts.Names.Submit(c.opts.Tenant, name)
	for attempts := requests().Start(); ; {
		seq, err := c.submitOnce(ctx, subject, body)
		var refused *events.Error
		switch {
		case err == nil:
			return seq, nil
		case errors.As(err, &refused) && !refused.Code.Retry():
			return 0, refused
		case c.nc.IsClosed() || attempts.Wait(ctx) != nil:
			return 0, unknownOutcome(events.Errorf(events.Unavailable, "the command may not be stored; submit it again with the id %s: %w", id, err))
		}
	}
}

func (c *Client) submitOnce(ctx context.Context, subject string, body []byte) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	ctx, watched := c.denied.watch(ctx, subject)
	defer watched()
	data, err := c.guarded(ctx, subject, body, func(body []byte) ([]byte, error) {
		reply, err := c.nc.RequestMsgWithContext(ctx, c.message(subject, body))
		if err != nil {
			return nil, err
		}
		return reply.Data, nil
	})
	if errors.Is(context.Cause(ctx), errDenied) {
		err = nats.ErrPermissionViolation
	}
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		return 0, events.TooLarge("the request", int64(len(body)), c.nc.MaxPayload())
	case errors.Is(err, nats.ErrPermissionViolation):
		return 0, events.Errorf(events.Forbidden, "these credentials may not submit on %s: %w", subject, err)
	case err != nil:
		return 0, err
	}
	var ack stored
	if err := json.Unmarshal(data, &ack); err != nil {
		return 0, fmt.Errorf("read the acknowledgement: %w", err)
	}
	switch e := ack.Error; {
	case e == nil:
		return ack.Seq, nil
	case e.Code < 500 && e.Code != 429:
		return 0, events.Errorf(events.InvalidRequest, "the command was not stored: %s", e.Description)
	default:
		return 0, errors.New(e.Description)
	}
}
