package client

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
)

// Emit publishes an event to the current subscribers of [Client.LiveEvents]. Live
// events are not state, and are not stored. Events of one handle arrive in order.
//
// data must encode as JSON, fit in one message and contain no secrets. The name should
// consist of lower-case letters, digits and underscores; any other name of up to 128
// characters works too, with a warning to Options.Warn. If Emit returns an error,
// nothing was sent.
func (t *ThreadState) Emit(ctx context.Context, event string, data any) error {
	if err := ctx.Err(); err != nil {
		return events.Errorf(events.Unavailable, "emit the event: %w", err)
	}
	proper, err := events.CheckLiveName(event)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(data, json.Deterministic(true))
	if err != nil {
		return events.Invalid("/data", "encode the event's data as JSON: %w", err)
	}
	if !proper && t.client.opts.Warn != nil {
		t.client.opts.Warn("the live event " + event + " should have a name of lower-case letters, digits and underscores")
	}
	t.mu.Lock() // held while sending, so that later events are sent later
	defer t.mu.Unlock()
	if t.emitter == "" {
		t.emitter = uuid.Must(uuid.NewV7()).String()
	}
	e := events.LiveEvent{
		Event: event, Data: raw, ThreadID: t.id, Time: events.TimeOf(time.Now()).String(), Emitter: t.emitter, N: t.sent + 1,
	}
	body, err := encode(e)
	if err != nil {
		return err
	}
	c := t.client
	var refusal *events.Error
	switch err := c.publish(ctx, &nats.Msg{Subject: c.opts.Names.Live(c.opts.Tenant, t.id, event), Data: body}); {
	case errors.As(err, &refusal):
		return refusal
	case errors.Is(err, nats.ErrMaxPayload):
		return events.TooLarge("the event", int64(len(body)), c.nc.MaxPayload())
	case err != nil:
		return events.Errorf(events.Unavailable, "emit the event: %w", err)
	}
	t.sent++
	return nil
}

// Live is a subscription to live events.
type Live struct {
	client *Client
	sub    *nats.Subscription
}

// LiveEvents subscribes to what is emitted on a thread, given by its id, or on every
// thread of the tenant if thread is empty. When it returns, a reader that keeps up
// misses no later event while the connection lasts; N reveals what was lost of an
// emitter. ctx bounds the subscribing only.
func (c *Client) LiveEvents(ctx context.Context, thread string) (*Live, error) {
	if thread == "" {
		thread = "*"
	} else if !events.ValidThreadID(thread) {
		return nil, events.Invalid("/thread", "%q is not a thread's id; look up a key with GetThread", thread)
	}
	sub, err := c.subscribe(ctx, c.opts.Names.AllLive(c.opts.Tenant, thread), nil)
	if refusal := (*events.Error)(nil); errors.As(err, &refusal) {
		return nil, refusal
	}
	if err != nil {
		return nil, events.Errorf(events.Unavailable, "subscribe to live events: %w", err)
	}
	ctx, cancel := c.limited(ctx)
	defer cancel()
	if err := c.repeatUntilDone(ctx, c.nc.FlushWithContext); err != nil {
		_ = sub.Unsubscribe()
		return nil, events.Errorf(events.Unavailable, "subscribe to live events: %w", err)
	}
	return &Live{c, sub}, nil
}

// Next waits for the next event. The error is ctx's, the guard's, or ErrClosed.
func (l *Live) Next(ctx context.Context) (events.LiveEvent, error) {
	for {
		m, err := l.sub.NextMsgWithContext(ctx)
		switch {
		case errors.Is(err, nats.ErrSlowConsumer):
			continue // some were lost, as N shows; later ones still follow
		case err != nil && ctx.Err() != nil:
			return events.LiveEvent{}, context.Cause(ctx)
		case err != nil:
			return events.LiveEvent{}, ErrClosed
		}
		if shown, err := l.client.receives(ctx, m.Subject); err != nil {
			return events.LiveEvent{}, err
		} else if !shown {
			continue
		}
		var e events.LiveEvent
		if json.Unmarshal(m.Data, &e) != nil || e.Event == "" {
			continue // not Skein's
		}
		return e, nil
	}
}

// All returns the events until ctx ends or the loop is left.
func (l *Live) All(ctx context.Context) iter.Seq[events.LiveEvent] {
	return func(yield func(events.LiveEvent) bool) {
		for {
			e, err := l.Next(ctx)
			if err != nil || !yield(e) {
				return
			}
		}
	}
}

// Close ends the subscription.
func (l *Live) Close() {
	_ = l.sub.Unsubscribe() // fails only if the connection is closed, and the subscription with it
}
