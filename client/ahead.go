package client

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
)

// Ahead is a subscription to a thread that is made before the command that starts a run. It
// delivers the run's events and chunks, so nothing needs to be queried. Close it.
//
//	ahead, err := c.Ahead(ctx, thread)
//	...
//	defer ahead.Close()
//	reply, err := c.Send(ctx, thread, events.ReactThread{...})
//	...
//	timeline := ahead.Timeline(reply, types)
//	for chunk, err := range c.Chunks(ctx, thread, execution, ahead.Chunks()) {
type Ahead struct {
	f *follower

	mu       sync.Mutex // guards what follows
	timeline *Timeline  // nil: not yet
	closed   bool
}

// aheadLate is how long the events of a commit may take to come live. They come at once, unless it was
// made before the subscription, as that of a command that another process has sent with the same id.
const aheadLate = time.Second

// Ahead subscribes to a thread, given by its id, which need not exist yet. ctx bounds the subscribing
// only. The error is an *events.Error: for a principal of an edge that may use some threads only, a
// not_found of a thread that does not exist.
func (c *Client) Ahead(ctx context.Context, thread string) (*Ahead, error) {
	if !events.ValidThreadID(thread) {
		return nil, events.Invalid("/thread", "%q is not a thread's id", thread)
	}
	f := newFollower(c, SubscribeOptions{Thread: thread, From: Now()})
	f.feed = &feed{messages: make(chan *nats.Msg, threadAhead)}
	ctx, cancel := c.limited(ctx)
	defer cancel()
	if err := f.listen(ctx); err != nil {
		return nil, subscribeError(err)
	}
	return &Ahead{f: f}, nil
}

// Timeline returns the thread's events of these types, from those of the reply's commit on. It is called
// once, and need not be closed.
func (a *Ahead) Timeline(reply *events.Reply, types []string) *Timeline {
	f := a.f
	f.o.Types, f.types = types, types
	f.notePassed(reply.Seq - 1)
	if len(reply.Events) > 0 {
		f.versions[reply.ThreadID] = reply.Events[0].Version - 1
	}
	f.owed, f.late = reply.Seq, time.Now().Add(aheadLate)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.timeline = newTimeline(f)
	if a.closed {
		a.timeline.cancel()
	}
	return a.timeline
}

// Chunks makes [Client.Chunks] read the chunks of a run that began after the subscription, while the
// Timeline is read.
func (a *Ahead) Chunks() ChunkOption {
	return func(r *chunkReader) { r.feed = a.f.feed }
}

// Close ends the subscription, and its Timeline. It may be called more than once.
func (a *Ahead) Close() {
	a.mu.Lock()
	t := a.timeline
	a.closed = true
	a.mu.Unlock()
	if t != nil {
		t.Close()
		return
	}
	a.f.unsubscribe()
}

// feed passes messages of a follower on to a reader of chunks.
type feed struct {
	messages chan *nats.Msg
	dropped  atomic.Int64 // how often messages were left out, because the reader was slow, or could have been
}

// pass passes on a message of an event, if it says something of chunks.
func (f *feed) pass(t events.Type, m *nats.Msg) {
	if f == nil {
		return
	}
	switch t {
	case events.ChunkEmittedType, events.ExecutionStatusChangedType, events.ThreadFinishedType:
		select {
		case f.messages <- m:
		default:
			f.miss()
		}
	}
}

func (f *feed) miss() {
	if f != nil {
		f.dropped.Add(1)
	}
}
