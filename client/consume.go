package client

import (
	"context"
	"errors"
	"time"

	"github.com/skein-threads/skein/events"
)

// Filter says which events a durable consumer sees.
type Filter struct {
	Thread string   // a thread's id; default all threads of the tenant
	Types  []string // as SubscribeOptions.Types
	New    bool     // begin with what comes after the consumer was made, instead of all that the timeline still has
}

// Times of a consumer. An event of which nothing is heard for 30 s is given to
// another process: while a handler runs, the service is told that somebody works.
const (
	busyEvery = 10 * time.Second
	// Of one question for the next event. One that is handed out to a process that
	// has ended meanwhile comes again after the 30 s.
	consumerWait = 2 * time.Second
)

// Consume calls handler with each event that the filter takes, in the order of
// the log, one at a time, until ctx ends. The durable consumer of that name
// remembers how far it has got, across restarts and for all processes that use
// it together; names are the tenant's own. An event whose handler returned an
// error comes again, after a pause, before any other that this process has; one
// may come twice after a crash, so that the handler must bear it (by the event's
// id or version).
//
// The timeline keeps events for a time, by default 7 days; a consumer that was
// away for longer begins with the oldest that is there. Use Timeline for all
// history.
func (c *Client) Consume(ctx context.Context, durable string, f Filter, handler func(context.Context, Event) error) error {
	if f.Thread != "" && !events.ValidThreadID(f.Thread) {
		return events.Invalid("/thread", "%q is not a thread's id", f.Thread)
	}
	if err := pattern(f.Types).check(); err != nil {
		return err
	}
	if !events.ValidTenant(durable) { // the same letters: one token of a subject
		return events.Invalid("/durable", "the name of a consumer is 1 to 64 letters, digits, dashes and underscores")
	}
	create := events.CreateConsumer{Name: durable, ThreadID: f.Thread, Types: f.Types, New: f.New}
	if _, err := ask[events.ConsumerRef](ctx, c, "consumer.create", create); err != nil {
		return err
	}
	wait := consumerWait.Milliseconds()
	for attempt := 0; ; {
		d, err := ask[events.Delivery](ctx, c, "consumer.next", events.NextOfConsumer{Name: durable, WaitMs: &wait})
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && !events.AsError(err).Code.Retry(), c.nc.IsClosed():
			return err
		case err != nil: // the service may be away for longer than one request lasts
			if !pause(ctx, attempt) {
				return context.Cause(ctx)
			}
			attempt++
			continue
		}
		attempt = 0
		if d.Token == "" {
			continue
		}
		if err := c.handle(ctx, durable, d, handler); err != nil {
			return err
		}
	}
}

// handle calls the handler until it takes the event. The error is the context's.
func (c *Client) handle(ctx context.Context, durable string, d *events.Delivery, handler func(context.Context, Event) error) error {
	// What cannot be said is no harm: the event comes again.
	settle := func(ctx context.Context, as events.Settlement) {
		_, _ = ask[events.ConsumerRef](ctx, c, "consumer.settle", events.SettleConsumer{Name: durable, Token: d.Token, As: as})
	}
	e, err := events.DecodeEvent(d.Event)
	if err != nil {
		settle(ctx, events.SettledDone) // not Skein's
		return nil
	}
	busy := time.NewTicker(busyEvery)
	defer busy.Stop()
	for attempt := 0; ; attempt++ {
		done := make(chan error, 1)
		go func() { done <- handler(ctx, Event{Event: e, Seq: d.Seq}) }()
		for err = errRunning; errors.Is(err, errRunning); {
			select {
			case err = <-done:
			case <-busy.C:
				settle(ctx, events.SettledBusy)
			}
		}
		if err == nil {
			settle(context.WithoutCancel(ctx), events.SettledDone)
			return nil
		}
		settle(ctx, events.SettledBusy)
		if !pause(ctx, attempt) {
			settle(context.WithoutCancel(ctx), events.SettledAgain)
			return context.Cause(ctx)
		}
	}
}

// errRunning says that a handler has not returned.
var errRunning = errors.New("the handler has not returned")
