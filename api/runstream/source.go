package runstream

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runview"
)

// View shows a run, as [runview.View] does: T is what it shows.
type View[T any] interface {
	History()
	Live() []T
	Event(e *events.Event) []T
	Takes(c *events.ChunkEmitted) bool
	Chunk(c *events.ChunkEmitted) []T
	Waiting() bool
	Pause() []T
	Ended() bool
}

// Options says which run to read.
type Options struct {
	Thread, Execution string
	From              int64    // the version of the thread from which its events are read
	Types             []string // of events that are read besides those of a view

	// Live has followed the run since before its beginning; nil: the run may have begun at any time. It is
	// closed after the source.
	Live *Live

	// Before is called with each event before the view is told; nil: nothing is.
	Before func(ctx context.Context, e *events.Event) error
}

// Source reads a run.
type Source struct {
	client   *client.Client
	o        Options
	types    []string
	timeline *client.Timeline
	stop     context.CancelFunc
	began    chan struct{} // closed when the run has begun: its message may wait in the agent's queue
	begun    bool          // the event that says so was passed on
	over     bool          // that it has ended was in the history
	version  atomic.Int64  // see Fresh
	events   chan told[*events.Event]
	chunks   chan told[*events.ChunkEmitted]
}

// told is a value, or the error that ended its sequence.
type told[T any] struct {
	value T
	err   error
}

// Subscribe begins to follow a run. Close the source.
func Subscribe(ctx context.Context, c *client.Client, o Options) (*Source, error) {
	s := &Source{
		client: c, o: o, types: append(runview.EventTypes(), o.Types...), began: make(chan struct{}),
		events: make(chan told[*events.Event]), chunks: make(chan told[*events.ChunkEmitted]),
	}
	if o.Live != nil {
		s.timeline = o.Live.ahead.Timeline(o.Live.reply, s.types)
	} else {
		timeline, err := c.Timeline(ctx, client.SubscribeOptions{Thread: o.Thread, Types: s.types, From: client.Now()})
		if err != nil {
			return nil, err
		}
		s.timeline = timeline
	}
	return s, nil
}

// Fresh asks a query for what the view was told, or later.
func (s *Source) Fresh() events.Fresh { return events.Fresh{MinVersion: new(s.version.Load())} }

// Close ends the reading.
func (s *Source) Close() {
	if s.stop != nil {
		s.stop()
	}
	s.timeline.Close()
}

// Play tells a view everything, and sends what it shows, until the run has ended or waits for people.
func Play[T any](ctx context.Context, s *Source, v View[T], send func([]T) error) error {
	ctx, s.stop = context.WithCancel(ctx)
	go s.readEvents(ctx)
	go s.readChunks(ctx)
	var held *events.ChunkEmitted // cannot be taken before the next event
	live := false                 // the history was read
	v.History()
	for !v.Ended() {
		if live && v.Waiting() {
			return send(v.Pause())
		}
		chunks := s.chunks
		if held != nil {
			chunks = nil
		}
		var out []T
		select {
		case e := <-s.events:
			if e.err != nil {
				return e.err
			}
			if e.value == nil {
				live = true
				if err := send(v.Live()); err != nil {
					return err
				}
				continue
			}
			if s.o.Before != nil {
				if err := s.o.Before(ctx, e.value); err != nil {
					return err
				}
			}
			out = v.Event(e.value)
			if held != nil && v.Takes(held) {
				out = append(out, v.Chunk(held)...)
				held = nil
			}
		case c := <-chunks:
			if c.err != nil {
				return c.err
			}
			if !v.Takes(c.value) {
				held = c.value
				continue
			}
			out = v.Chunk(c.value)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := send(out); err != nil {
			return err
		}
	}
	return nil
}

// tell sends a value to Play, unless ctx ends first.
func tell[T any](ctx context.Context, to chan told[T], v told[T]) bool {
	select {
	case to <- v:
		return true
	case <-ctx.Done():
		return false
	}
}

// readEvents reads the run's events: first those of the history, then nil, and then the live ones,
// each once.
func (s *Source) readEvents(ctx context.Context) {
	fail := func(err error) { tell(ctx, s.events, told[*events.Event]{err: err}) }
	now := s.client.WithMinSeq(s.timeline.Start()) // later events are live
	limit := int64(1000)
	from, last := s.o.From, s.o.From-1
	if s.o.Live != nil {
		from = 0 // all are live
	}
	for from > 0 {
		page, err := client.Read(ctx, now, events.ListEvents{ThreadID: s.o.Thread, FromVersion: &from, Types: s.types, Limit: &limit})
		if err != nil {
			fail(err)
			return
		}
		for _, raw := range page.Events {
			e, err := events.DecodeEvent(raw)
			if err != nil {
				fail(err)
				return
			}
			last = e.Version
			if d, ok := e.Data.(events.ThreadFinished); ok && d.ExecutionID == s.o.Execution {
				s.over = true
			}
			if !s.pass(ctx, &e) {
				return
			}
		}
		from = page.NextVersion
	}
	if s.begun {
		close(s.began)
	}
	if !tell(ctx, s.events, told[*events.Event]{}) {
		return
	}
	for live := s.begun; ; {
		e, err := s.timeline.Next(ctx)
		if err != nil {
			fail(err)
			return
		}
		if e.Version > last {
			if !s.pass(ctx, &e.Event) {
				return
			}
		}
		if s.begun && !live {
			live = true
			close(s.began)
		}
	}
}

// readChunks reads the run's chunks, from its beginning on.
func (s *Source) readChunks(ctx context.Context) {
	select {
	case <-s.began:
	case <-ctx.Done():
		return
	}
	var options []client.ChunkOption
	switch {
	case s.o.Live != nil:
		options = append(options, s.o.Live.Chunks())
	case !s.over:
		options = append(options, client.OfRunning())
	}
	for c, err := range s.client.Chunks(ctx, s.o.Thread, s.o.Execution, options...) {
		var gap *client.ChunkGapError
		switch {
		case errors.As(err, &gap): // the parts have what is missing
		case err != nil:
			tell(ctx, s.chunks, told[*events.ChunkEmitted]{err: err})
			return
		case !tell(ctx, s.chunks, told[*events.ChunkEmitted]{value: &c.ChunkEmitted}):
			return
		}
	}
}

// pass passes an event on, and notes the beginning of the run.
func (s *Source) pass(ctx context.Context, e *events.Event) bool {
	if d, ok := e.Data.(events.ExecutionCreated); ok && d.ID == s.o.Execution {
		s.begun = true
	}
	s.version.Store(e.Version)
	return tell(ctx, s.events, told[*events.Event]{value: e})
}

// firstLook is how many of a thread's latest events are searched first for the beginning of a run.
const firstLook = 256

// Beginning returns the version with which an execution of a thread began; now is the thread's. It looks
// at the latest events first: a run that is active began not long ago.
func Beginning(ctx context.Context, c *client.Client, x *events.Execution, now int64) (int64, error) {
	for back := int64(firstLook); ; back *= 16 {
		from := max(now-back, 1)
		version, err := findBeginning(ctx, c, x, from)
		if err != nil || version > 0 {
			return version, err
		}
		if from == 1 {
			return 1, nil
		}
	}
}

// findBeginning returns the version of the event that created an execution, if it is not before from; 0
// otherwise.
func findBeginning(ctx context.Context, c *client.Client, x *events.Execution, from int64) (int64, error) {
	limit := int64(1000)
	for from > 0 {
		page, err := client.Read(ctx, c, events.ListEvents{
			ThreadID: x.ThreadID, FromVersion: &from, Types: []string{string(events.ExecutionCreatedType)}, Limit: &limit,
		})
		if err != nil {
			return 0, err
		}
		for _, raw := range page.Events {
			e, err := events.DecodeEvent(raw)
			if d, ok := e.Data.(events.ExecutionCreated); err == nil && ok && d.ID == x.ID {
				return e.Version, nil
			}
		}
		from = page.NextVersion
	}
	return 0, nil
}
