package client

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
)

// chunkReader merges what comes live with what is read from the stream of
// chunks. In the stream no number of a run is missing or comes twice, so that
// the number of the last chunk that was given says of any other whether it is
// new, and whether something between was missed. It works in the goroutine of
// who reads: while that is busy, chunks wait, and those that find no room are
// read from the stream.
type chunkReader struct {
	client            *Client
	thread, execution string
	yield             func(Chunk, error) bool

	subs    []*nats.Subscription
	live    chan *nats.Msg
	status  chan nats.Status
	dropped int

	next    int64 // the number of the next chunk
	attempt int64 // the claim of the last one
	seq     int64 // its sequence in the stream; 0 if that is not known
	given   bool  // a chunk of the run was there

	answers  chan answer
	asking   bool
	askAgain bool // something happened since

	over  *events.Finish   // the execution has ended so; its last chunk has not come yet
	grace <-chan time.Time // then it is not coming
}

// chunksAhead is how many messages may wait to be looked at.
const chunksAhead = 1024

// errRead says that the reader has all it wants.
var errRead = errors.New("all has been read")

func (r *chunkReader) run(ctx context.Context) error {
	switch {
	case !events.ValidThreadID(r.thread):
		return events.Invalid("/threadId", "%q is not a thread's id; look a key up with GetThread", r.thread)
	case r.execution != "" && !events.ValidID(r.execution):
		return events.Invalid("/executionId", "%q is not an execution's id", r.execution)
	case r.next < 0:
		return events.Invalid("/from", "chunks are numbered from 0, and %d is none", r.next)
	}
	err := r.subscribe(ctx)
	defer r.unsubscribe()
	if err == nil {
		err = r.follow(ctx)
	}
	var known *events.Error
	switch {
	case errors.Is(err, errRead):
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &known):
		return known
	}
	return events.Errorf(events.Unavailable, "the chunks cannot be followed: %w", err)
}

// subscribe begins to listen to the thread's chunks, and to the beginning and
// the end of its executions.
func (r *chunkReader) subscribe(ctx context.Context) error {
	ctx, cancel := r.client.limited(ctx)
	defer cancel()
	nc := r.client.nc
	r.live = make(chan *nats.Msg, chunksAhead)
	r.status = nc.StatusChanged(nats.CONNECTED)
	for _, t := range []events.Type{
		events.ChunkEmittedType, events.ExecutionCreatedType, events.ExecutionStatusChangedType, events.ThreadFinishedType,
	} {
		sub, err := nc.ChanSubscribe(r.client.opts.Names.Timeline(r.client.opts.Tenant, r.thread, t), r.live)
		if err != nil {
			return err
		}
		r.subs = append(r.subs, sub)
	}
	if err := r.client.again(ctx, nc.FlushWithContext); err != nil {
		return err
	}
	for _, sub := range r.subs {
		if err := mayListen(nc, sub.Subject); err != nil {
			return err
		}
	}
	return nil
}

func (r *chunkReader) unsubscribe() {
	for _, sub := range r.subs {
		_ = sub.Unsubscribe() // fails only if the connection has gone, and the subscription with it
	}
	r.client.nc.RemoveStatusListener(r.status)
}

// follow gives chunks until the run's end.
func (r *chunkReader) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // of what is asked for
	r.answers = make(chan answer, 1)
	if err := r.renew(ctx); err != nil {
		return err
	}
	drops, ask := time.NewTicker(dropCheck), time.NewTicker(askEvery)
	defer drops.Stop()
	defer ask.Stop()
	for {
		var err error
		select {
		case m := <-r.live:
			err = r.message(ctx, m)
		case _, ok := <-r.status:
			if !ok {
				return nats.ErrConnectionClosed
			}
			err = r.renew(ctx) // what came while it was lost
		case <-drops.C:
			if r.hasDropped() {
				err = r.renew(ctx)
			}
		case <-ask.C:
			r.ask(ctx)
		case a := <-r.answers:
			err = r.answered(ctx, a)
		case <-r.grace:
			err = r.end(ctx)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// hasDropped reports whether messages found no room since it was last asked.
func (r *chunkReader) hasDropped() bool {
	n := 0
	for _, sub := range r.subs {
		d, _ := sub.Dropped() // fails only for a subscription that has gone
		n += d
	}
	was := r.dropped
	r.dropped = n
	return n != was
}

// renew finds out where the run stands: after the subscribing, and whenever
// something may have been missed.
func (r *chunkReader) renew(ctx context.Context) error {
	r.ask(ctx)
	if r.execution == "" {
		return nil
	}
	return r.fill(ctx, 0)
}

// message takes a message of the live timeline.
func (r *chunkReader) message(ctx context.Context, m *nats.Msg) error {
	e, err := events.DecodeEvent(m.Data)
	if err != nil {
		return nil // not Skein's
	}
	switch d := e.Data.(type) {
	case events.ChunkEmitted:
		seq, _ := parseSeq(m.Header.Get("Nats-Sequence"))
		if r.execution == "" && d.Type != events.ChunkFinish { // that would be of one that is over
			if err := r.found(ctx, d.ExecutionID); err != nil {
				return err
			}
		}
		if d.ExecutionID != r.execution || !r.isNew(&d) {
			return nil
		}
		if d.Index > r.next {
			if err := r.fill(ctx, seq); err != nil || !r.isNew(&d) {
				return err
			}
		}
		return r.give(&e, &d, seq)
	case events.ExecutionCreated:
		if r.execution == "" {
			return r.found(ctx, d.ID)
		}
	case events.ExecutionStatusChanged:
		if e.Subject == r.execution && d.To != events.Executing {
			r.ended(events.FinishOf(d.To, d.ErrorText))
		}
	case events.ThreadFinished:
		if d.ExecutionID == r.execution {
			r.ended(events.FinishOf(d.Status, ""))
		}
	}
	return nil
}

// isNew reports whether a chunk counts: it comes after the last one, or a newer
// claim gave it. What an older claim gave after that does not.
func (r *chunkReader) isNew(d *events.ChunkEmitted) bool {
	return d.Attempt >= r.attempt && d.Index >= r.next || r.attempt > 0 && d.Attempt > r.attempt
}

// give hands a chunk on, after word of those that are missing before it.
func (r *chunkReader) give(e *events.Event, d *events.ChunkEmitted, seq int64) error {
	if d.Index > r.next {
		if !r.yield(Chunk{}, &ChunkGapError{ExecutionID: r.execution, From: r.next, To: d.Index - 1}) {
			return errRead
		}
	}
	r.next, r.attempt, r.seq, r.given = d.Index+1, d.Attempt, seq, true
	if r.over != nil {
		r.grace = time.After(endGrace) // more may come
	}
	if !r.yield(Chunk{ChunkEmitted: *d, Time: e.Time.Go()}, nil) || d.Type == events.ChunkFinish {
		return errRead
	}
	return nil
}
