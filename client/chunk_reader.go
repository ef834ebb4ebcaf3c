package client

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
)

// chunkReader merges live chunks with those read from the stream of chunks. In the
// stream the indexes of a run have no gaps and no duplicates, so the index of the last
// delivered chunk tells whether another one is new, and whether any were missed. It
// runs in the caller's goroutine: while the caller is busy, chunks wait in a channel,
// and those that do not fit are read from the stream.
type chunkReader struct {
	client            *Client
	thread, execution string
	running           bool // see OfRunning
	yield             func(Chunk, error) bool

	feed    *feed // of a follower that has subscribed before the run; nil: subs are the reader's own
	subs    []*nats.Subscription
	live    chan *nats.Msg
	status  chan nats.Status
	dropped int

	next    int64 // index of the next chunk
	attempt int64 // claim of the last one
	seq     int64 // its sequence in the stream; 0 if unknown
	seenAny bool  // a chunk of the run was seen

	answers  chan answer
	asking   bool
	askAgain bool // the execution may have changed since the query

	over  *events.Finish   // how the execution ended; its last chunk has not arrived yet
	grace <-chan time.Time // fires when it is no longer expected
}

// chunksAhead is how many messages may wait to be handled.
const chunksAhead = 1024

// errRead ends a reader that has delivered everything.
var errRead = errors.New("all has been read")

func (r *chunkReader) readChunks(ctx context.Context) error {
	switch {
	case !events.ValidThreadID(r.thread):
		return events.Invalid("/threadId", "%q is not a thread's id; look up a key with GetThread", r.thread)
	case r.execution != "" && !events.ValidID(r.execution):
		return events.Invalid("/executionId", "%q is not an execution's id", r.execution)
	case r.next < 0:
		return events.Invalid("/from", "chunks are numbered from 0; got %d", r.next)
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
	return events.Errorf(events.Unavailable, "follow the chunks: %w", err)
}

// subscribe subscribes to the thread's chunks, and to the start and the end of its
// executions.
func (r *chunkReader) subscribe(ctx context.Context) error {
	ctx, cancel := r.client.limited(ctx)
	defer cancel()
	nc := r.client.nc
	r.status = nc.StatusChanged(nats.CONNECTED)
	if r.feed != nil {
		r.live = r.feed.messages
		return nil
	}
	r.live = make(chan *nats.Msg, chunksAhead)
	for _, t := range []events.Type{
		events.ChunkEmittedType, events.ExecutionCreatedType, events.ExecutionStatusChangedType, events.ThreadFinishedType,
	} {
		sub, err := r.client.subscribe(ctx, r.client.opts.Names.Timeline(r.client.opts.Tenant, r.thread, t), r.live)
		if err != nil {
			return err
		}
		r.subs = append(r.subs, sub)
	}
	if err := r.client.repeatUntilDone(ctx, nc.FlushWithContext); err != nil {
		return err
	}
	for _, sub := range r.subs {
		if err := subscriptionError(nc, sub.Subject); err != nil {
			return err
		}
	}
	return nil
}

func (r *chunkReader) unsubscribe() {
	for _, sub := range r.subs {
		_ = sub.Unsubscribe() // fails only if the connection is closed, and the subscription with it
	}
	r.client.nc.RemoveStatusListener(r.status)
}

// follow delivers chunks until the end of the run.
func (r *chunkReader) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // for the queries in flight
	r.answers = make(chan answer, 1)
	if r.feed == nil { // else nothing can have been missed
		if err := r.resync(ctx); err != nil {
			return err
		}
	}
	drops, ask := time.NewTicker(dropCheck), time.NewTicker(askEvery)
	defer drops.Stop()
	defer ask.Stop()
	for {
		var err error
		select {
		case m := <-r.live:
			err = r.handleMessage(ctx, m)
		case _, ok := <-r.status:
			if !ok {
				return nats.ErrConnectionClosed
			}
			err = r.resync(ctx) // messages may have been missed while disconnected
		case <-drops.C:
			if r.hasDropped() {
				err = r.resync(ctx)
			}
		case <-ask.C:
			r.queryExecution(ctx)
		case a := <-r.answers:
			err = r.handleAnswer(ctx, a)
		case <-r.grace:
			err = r.deriveFinish(ctx)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// hasDropped reports whether messages were dropped since the last call.
func (r *chunkReader) hasDropped() bool {
	n := 0
	if r.feed != nil {
		n = int(r.feed.dropped.Load())
	}
	for _, sub := range r.subs {
		d, _ := sub.Dropped() // fails only for a closed subscription
		n += d
	}
	was := r.dropped
	r.dropped = n
	return n != was
}

// resync reads the stream, and queries the execution unless the stream has its end: after subscribing,
// and whenever messages may have been missed.
func (r *chunkReader) resync(ctx context.Context) error {
	if r.execution != "" {
		if err := r.fillFromStream(ctx, 0); err != nil {
			return err
		}
	}
	if !r.running || r.execution == "" {
		r.queryExecution(ctx)
	}
	r.running = false
	return nil
}

// handleMessage handles a message of the live timeline.
func (r *chunkReader) handleMessage(ctx context.Context, m *nats.Msg) error {
	e, err := events.DecodeEvent(m.Data)
	if err != nil {
		return nil // not Skein's
	}
	switch d := e.Data.(type) {
	case events.ChunkEmitted:
		seq, _ := parseSeq(m.Header.Get("Nats-Sequence"))
		if r.execution == "" && d.Type != events.ChunkFinish { // a finish would be that of an earlier run
			if err := r.setExecution(ctx, d.ExecutionID); err != nil {
				return err
			}
		}
		if d.ExecutionID != r.execution || !r.isNew(&d) {
			return nil
		}
		if d.Index > r.next {
			if err := r.fillFromStream(ctx, seq); err != nil || !r.isNew(&d) {
				return err
			}
		}
		return r.deliver(&e, &d, seq)
	case events.ExecutionCreated:
		if r.execution == "" {
			return r.setExecution(ctx, d.ID)
		}
	case events.ExecutionStatusChanged:
		if e.Subject == r.execution && d.To != events.Executing {
			r.noteEnd(events.FinishOf(d.To, d.ErrorText))
		}
	case events.ThreadFinished:
		if d.ExecutionID == r.execution {
			r.noteEnd(events.FinishOf(d.Status, ""))
		}
	}
	return nil
}

// isNew reports whether a chunk counts: it comes after the last one, or belongs to a
// newer claim. Later chunks of an older claim do not count.
func (r *chunkReader) isNew(d *events.ChunkEmitted) bool {
	return d.Attempt >= r.attempt && d.Index >= r.next || r.attempt > 0 && d.Attempt > r.attempt
}

// deliver delivers a chunk, after a *ChunkGapError if chunks before it are missing.
func (r *chunkReader) deliver(e *events.Event, d *events.ChunkEmitted, seq int64) error {
	if d.Index > r.next {
		if !r.yield(Chunk{}, &ChunkGapError{ExecutionID: r.execution, From: r.next, To: d.Index - 1}) {
			return errRead
		}
	}
	r.next, r.attempt, r.seq, r.seenAny = d.Index+1, d.Attempt, seq, true
	if r.over != nil {
		r.grace = time.After(endGrace) // more may follow
	}
	if !r.yield(Chunk{ChunkEmitted: *d, Time: e.Time.Go()}, nil) || d.Type == events.ChunkFinish {
		return errRead
	}
	return nil
}
