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

// Emit sends an event to whoever listens now: see [Client.LiveEvents].
// It is not state, and nobody keeps it. What one handle emits arrives in order.
//
// Data must be JSON, or become it, and fit in one message; do not put
// secrets in it. The name should be of lower-case letters, digits and
// underscores; any other of up to 128 letters works too, and Options.Warn is told.
// An error says that nothing was sent.
func (t *ThreadState) Emit(ctx context.Context, event string, data any) error {
	if err := ctx.Err(); err != nil {
		return events.Errorf(events.Unavailable, "the event was not emitted: %w", err)
	}
	proper, err := events.CheckLiveName(event)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(data, json.Deterministic(true))
	if err != nil {
		return events.Invalid("/data", "the event's data cannot be written as JSON: %w", err)
	}
	if !proper && t.client.opts.Warn != nil {
		t.client.opts.Warn("the live event " + event + " should have a name of lower-case letters, digits and underscores")
	}
	t.mu.Lock() // also while it is sent: what comes after it is sent after it
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
	switch err := c.nc.Publish(c.opts.Names.Live(c.opts.Tenant, t.id, event), body); {
	case errors.Is(err, nats.ErrMaxPayload):
		return events.TooLarge("the event", int64(len(body)), c.nc.MaxPayload())
	case err != nil:
		return events.Errorf(events.Unavailable, "the event was not sent: %w", err)
	}
	t.sent++
	return nil
}

// Live is a subscription to live events.
type Live struct {
	sub *nats.Subscription
}

// LiveEvents subscribes to what is emitted on a thread: by its id, or on every
// thread of the tenant if it is empty. When it returns, nothing that is emitted
// from now on is missed by a reader that keeps up, while the connection lasts: N
// shows what was lost of an emitter. ctx bounds the subscribing only.
func (c *Client) LiveEvents(ctx context.Context, thread string) (*Live, error) {
	if thread == "" {
		thread = "*"
	} else if !events.ValidThreadID(thread) {
		return nil, events.Invalid("/thread", "%q is not a thread's id; look a key up with GetThread", thread)
	}
	sub, err := c.nc.SubscribeSync(c.opts.Names.AllLive(c.opts.Tenant, thread))
	if err != nil {
		return nil, events.Errorf(events.Unavailable, "live events cannot be followed: %w", err)
	}
	ctx, cancel := c.limited(ctx)
	defer cancel()
	if err := c.again(ctx, c.nc.FlushWithContext); err != nil {
		_ = sub.Unsubscribe()
		return nil, events.Errorf(events.Unavailable, "live events cannot be followed: %w", err)
	}
	return &Live{sub}, nil
}

// Next waits for the next event. The error is that of ctx, or ErrClosed.
func (l *Live) Next(ctx context.Context) (events.LiveEvent, error) {
	for {
		m, err := l.sub.NextMsgWithContext(ctx)
		switch {
		case errors.Is(err, nats.ErrSlowConsumer):
			continue // some were lost, as N shows; what follows still comes
		case err != nil && ctx.Err() != nil:
			return events.LiveEvent{}, context.Cause(ctx)
		case err != nil:
			return events.LiveEvent{}, ErrClosed
		}
		var e events.LiveEvent
		if json.Unmarshal(m.Data, &e) != nil || e.Event == "" {
			continue // not Skein's
		}
		return e, nil
	}
}

// All gives the events until ctx ends or the loop is left.
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
	_ = l.sub.Unsubscribe() // fails only if the connection has gone, and the subscription with it
}
