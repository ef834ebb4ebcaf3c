package client

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/events"
)

// Filter says which events a durable consumer sees.
type Filter struct {
	Thread string   // a thread's id; default all threads of the tenant
	Types  []string // as SubscribeOptions.Types
	New    bool     // begin with what comes after the consumer was made, instead of all that the timeline still has
}

// ackWait is how long a handler may be silent before the server gives the event
// to another process. While the handler runs, it is told that somebody works.
const ackWait = 30 * time.Second

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
	thread := f.Thread
	if thread == "" {
		thread = "*"
	} else if !events.ValidThreadID(thread) {
		return events.Invalid("/thread", "%q is not a thread's id", thread)
	}
	if err := pattern(f.Types).check(); err != nil {
		return err
	}
	if !events.ValidTenant(durable) { // the same letters: one token of a subject
		return events.Invalid("/durable", "the name of a consumer is 1 to 64 letters, digits, dashes and underscores")
	}
	n := c.opts.Names
	// The stream is one for all tenants. No tenant's name has the letter between.
	cfg := jetstream.ConsumerConfig{
		Durable: c.opts.Tenant + "=" + durable, FilterSubjects: pattern(f.Types).subjects(n, c.opts.Tenant, thread),
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait, MaxDeliver: -1, MaxAckPending: 1,
	}
	if f.New {
		cfg.DeliverPolicy = jetstream.DeliverNewPolicy
	}
	setup, cancel := c.limited(ctx)
	consumer, err := c.js.CreateOrUpdateConsumer(setup, n.Stream(timelineStream), cfg)
	cancel()
	if err != nil {
		return events.Errorf(events.Unavailable, "the consumer %s could not be made: %w", durable, err)
	}
	msgs, err := consumer.Messages(jetstream.PullMaxMessages(16))
	if err != nil {
		return events.Errorf(events.Unavailable, "the consumer %s: %w", durable, err)
	}
	defer msgs.Stop()
	for attempt := 0; ; {
		m, err := msgs.Next(jetstream.NextContext(ctx))
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, jetstream.ErrMsgIteratorClosed), errors.Is(err, jetstream.ErrConsumerDeleted):
			return events.Errorf(events.Unavailable, "the consumer %s ended: %w", durable, err)
		case err != nil: // it heals itself
			if !pause(ctx, attempt) {
				return context.Cause(ctx)
			}
			attempt++
			continue
		}
		attempt = 0
		if err := handle(ctx, m, handler); err != nil {
			return err
		}
	}
}

// handle calls the handler until it takes the event. The error is the context's.
func handle(ctx context.Context, m jetstream.Msg, handler func(context.Context, Event) error) error {
	seq, ok := parseSeq(m.Headers().Get(events.HeaderSeq))
	e, err := events.DecodeEvent(m.Data())
	if !ok || err != nil {
		return m.TermWithReason("not an event of Skein")
	}
	busy := time.NewTicker(ackWait / 3)
	defer busy.Stop()
	for attempt := 0; ; attempt++ {
		done := make(chan error, 1)
		go func() { done <- handler(ctx, Event{Event: e, Seq: seq}) }()
		for err = errRunning; errors.Is(err, errRunning); {
			select {
			case err = <-done:
			case <-busy.C:
				_ = m.InProgress() // if it is lost, the event comes again
			}
		}
		if err == nil {
			_ = m.Ack() // if it is lost, the event comes again
			return nil
		}
		_ = m.InProgress()
		if !pause(ctx, attempt) {
			_ = m.Nak()
			return context.Cause(ctx)
		}
	}
}

// errRunning says that a handler has not returned.
var errRunning = errors.New("the handler has not returned")
