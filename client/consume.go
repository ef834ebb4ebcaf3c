package client

import (
	"context"
	"errors"
	"time"

	"github.com/skein-threads/skein/events"
)

// Filter selects the events that a durable consumer receives.
type Filter struct {
	Thread string   // a thread's id; default all threads of the tenant
	Types  []string // like SubscribeOptions.Types
	New    bool     // the same as From: Now()
	From   Position // where a consumer starts that is created; default all that the timeline still holds
}

// Batch is events that a consumer receives together, in the order of the log.
type Batch struct {
	Events []Event
	// Gap reports that older events have left the timeline since the consumer's last batch, and
	// that it may have missed some. A Timeline from where the handler is has them.
	Gap bool
}

// Times of a consumer. An event that is not acknowledged for 30 s is redelivered,
// perhaps to another process; while a handler runs, the client extends that time.
const (
	busyEvery = 10 * time.Second
	// Of one request for the next event. An event that is delivered to a process that
	// has ended is redelivered after the 30 s.
	consumerWait = 2 * time.Second
)

// Consume calls handler with each event that f selects, in the order of the log, one at
// a time, until ctx ends. The durable consumer with that name stores the position,
// across restarts and for all processes that use it together; names are per tenant. If
// handler returns an error, its event is redelivered after a pause, before any other
// event in this process. After a crash an event may be delivered twice, so the handler
// must be idempotent (by the event's id or version).
//
// The timeline keeps events for a limited time, by default 7 days; a consumer that was
// stopped for longer continues with the oldest event that is stored, and ConsumeBatches
// says so. Use Timeline to read the whole history.
//
// The error is an *events.Error, or the cause of ctx's end. It is an already_exists if there is
// such a consumer that started elsewhere.
func (c *Client) Consume(ctx context.Context, durable string, f Filter, handler func(context.Context, Event) error) error {
	return c.consume(ctx, f, events.NextOfConsumer{Name: durable}, func(ctx context.Context, b Batch) error { return handler(ctx, b.Events[0]) })
}

// ConsumeBatches is Consume with up to most events at a time, at most 1,000. It does not wait until
// there are as many. If handler returns an error, or the process ends, all of the batch comes again.
func (c *Client) ConsumeBatches(ctx context.Context, durable string, f Filter, most int, handler func(context.Context, Batch) error) error {
	return c.consume(ctx, f, events.NextOfConsumer{Name: durable, Limit: new(int64(most))}, handler)
}

// consume creates a consumer and handles what it delivers until ctx ends.
func (c *Client) consume(ctx context.Context, f Filter, next events.NextOfConsumer, handler func(context.Context, Batch) error) error {
	if f.Thread != "" && !events.ValidThreadID(f.Thread) {
		return events.Invalid("/thread", "%q is not a thread's id", f.Thread)
	}
	if err := pattern(f.Types).check(); err != nil {
		return err
	}
	if !events.ValidTenant(next.Name) { // the same alphabet: one token of a subject
		return events.Invalid("/durable", "the name of a consumer is 1 to 64 letters, digits, dashes and underscores")
	}
	create := events.CreateConsumer{Name: next.Name, ThreadID: f.Thread, Types: f.Types, New: f.New || f.From.now, Log: f.From.log}
	if f.From.seq > 1 {
		create.FromSeq = &f.From.seq
	}
	if _, err := Read(ctx, c, create); err != nil {
		return err
	}
	next.WaitMs = new(consumerWait.Milliseconds())
	for attempts := requests().Start(); ; {
		d, err := Read(ctx, c, next)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && !events.AsError(err).Retry(), c.nc.IsClosed():
			return err
		case err != nil: // the service may be unavailable for longer than one request waits
			if err := attempts.Wait(ctx); err != nil {
				return err
			}
			continue
		}
		attempts.Reset()
		if d.Token == "" {
			continue
		}
		if err := c.handle(ctx, next.Name, d, handler); err != nil {
			return err
		}
	}
}

// batchOf returns the events of a delivery that are Skein's.
func batchOf(d *events.Delivery) Batch {
	entries := d.Entries
	if entries == nil {
		entries = []events.HistoryEntry{{Seq: d.Seq, Event: d.Event}}
	}
	b := Batch{Gap: d.Gap}
	for _, one := range entries {
		if e, err := events.DecodeEvent(one.Event); err == nil {
			b.Events = append(b.Events, Event{Event: e, Seq: one.Seq})
		}
	}
	return b
}

// handle calls the handler until it succeeds. The error is ctx's.
func (c *Client) handle(ctx context.Context, durable string, d *events.Delivery, handler func(context.Context, Batch) error) error {
	// A lost settlement does no harm: the events are redelivered.
	settle := func(ctx context.Context, as events.Settlement) {
		_, _ = Read(ctx, c, events.SettleConsumer{Name: durable, Token: d.Token, As: as})
	}
	batch := batchOf(d)
	if len(batch.Events) == 0 {
		settle(ctx, events.SettledDone)
		return nil
	}
	busy := time.NewTicker(busyEvery)
	defer busy.Stop()
	for attempts := requests().Start(); ; {
		done := make(chan error, 1)
		go func() { done <- handler(ctx, batch) }()
		err := errRunning
		for errors.Is(err, errRunning) {
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
		if err := attempts.Wait(ctx); err != nil {
			settle(context.WithoutCancel(ctx), events.SettledAgain)
			return err
		}
	}
}

// errRunning reports that a handler has not returned.
var errRunning = errors.New("the handler has not returned")
