package client

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
)

// Event is an event, with the sequence of its commit in the log.
type Event struct {
	events.Event
	Seq   int64
	Place int64 // of the event in its commit, from 0; of a Timeline
}

// Position is where a subscription starts.
type Position struct {
	now   bool
	seq   int64
	log   string          // that seq is of; empty: any
	after events.Position // events up to there are left out
}

// Start starts with the first event of the log. It is the zero Position.
func Start() Position { return Position{seq: 1} }

// Now starts with events that are committed after the subscription.
func Now() Position { return Position{now: true} }

// Seq starts with the commit with that sequence in the log.
func Seq(seq int64) Position { return Position{seq: max(seq, 1)} }

// At starts with the commit of a position, and only in the log that it names: in another one, such
// as one that was restored, Timeline returns a position_ahead.
func At(p events.Position) Position { return Position{seq: max(p.Seq, 1), log: p.Log} }

// After starts with the event after a position, such as that of the last event that was handled (see
// [Timeline.Position]), and only in the log that it names, like At. The zero Position starts with the
// first event of the log.
func After(p events.Position) Position {
	from := At(p)
	from.after = p
	return from
}

// SubscribeOptions selects the events of a timeline.
type SubscribeOptions struct {
	Thread     string   // a thread's id; default all threads of the tenant
	Types      []string // event types such as item.created, or item.* for all of an entity; default all
	From       Position // default the start of the log
	Aggregates bool     // also events that belong to no thread: claims of keys, and the tenant's own
	Chunks     bool     // also chunk.emitted, live only: some may be missing, and none has a Seq; see Client.Chunks
	History    bool     // end at the current end of the log, instead of waiting for more
}

// ErrEnd reports that a timeline of history has returned all events.
var ErrEnd = errors.New("the end of the history")

// ErrClosed reports that a timeline was closed by its reader.
var ErrClosed = errors.New("the timeline was closed")

// Timeline returns events, each once and in the order of the log. Close it when done.
// Only one goroutine may read it at a time.
type Timeline struct {
	out    chan result
	cancel context.CancelFunc
	log    string // see Log
	start  int64  // see Start
	done   sync.WaitGroup
	err    error // why it ended; set before out is closed
}

type result struct {
	event Event
	err   error
}

// timelineAhead is how many events are read ahead of the reader; of one thread a quarter.
const timelineAhead = 256

// Timeline subscribes to events of the tenant. When it returns, no later event will be
// missed. ctx bounds the subscribing only.
//
// A From that lies more than one beyond the end of the log, or in another log, is a position_ahead:
// the log was restored to an earlier state. Read from the start again, as docs/http.md says. A
// timeline whose log is replaced while it is open ends with the same error.
func (c *Client) Timeline(ctx context.Context, o SubscribeOptions) (*Timeline, error) {
	if o.Thread != "" && !events.ValidThreadID(o.Thread) {
		return nil, events.Invalid("/thread", "%q is not a thread's id; look up a key with GetThread", o.Thread)
	}
	if err := pattern(o.Types).check(); err != nil {
		return nil, err
	}
	f := newFollower(c, o)
	if err := f.subscribe(ctx); err != nil {
		return nil, subscribeError(err)
	}
	return newTimeline(f), nil
}

// subscribeError returns the error of a subscription that was not made.
func subscribeError(err error) error {
	if known := (*events.Error)(nil); errors.As(err, &known) {
		return known
	}
	return events.Errorf(events.Unavailable, "subscribe to the timeline: %w", err)
}

// newTimeline returns the timeline of a follower that has subscribed.
func newTimeline(f *follower) *Timeline {
	running, cancel := context.WithCancel(context.Background())
	ahead := timelineAhead
	if f.o.Thread != "" {
		ahead = timelineAhead / 4
	}
	t := &Timeline{log: f.log, start: f.seq, out: make(chan result, ahead), cancel: cancel}
	f.deliver = func(r result) bool {
		select {
		case t.out <- r:
			return true
		case <-running.Done():
			return false
		}
	}
	t.done.Go(func() {
		defer close(t.out)
		defer f.unsubscribe()
		t.err = f.deliverEvents(running)
	})
	return t
}

// Next waits for the next event. An *events.BrokenError reports that a commit of the
// log cannot be decoded; later events still follow. ErrEnd ends a history. Any other
// error except ctx's ends the timeline.
func (t *Timeline) Next(ctx context.Context) (Event, error) {
	select {
	case r, ok := <-t.out:
		switch {
		case ok:
			return r.event, r.err
		case ctx.Err() != nil: // as below, whichever is seen first
			return Event{}, context.Cause(ctx)
		}
		return Event{}, t.err
	case <-ctx.Done():
		return Event{}, context.Cause(ctx)
	}
}

// All returns the events until ctx ends, the timeline ends or the loop is left. At the
// end of a history it ends without an error. A commit that cannot be decoded is an
// *events.BrokenError, and the loop may continue.
func (t *Timeline) All(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for {
			e, err := t.Next(ctx)
			if errors.Is(err, ErrEnd) || errors.Is(err, ErrClosed) {
				return
			}
			var broken *events.BrokenError
			if !yield(e, err) || err != nil && !errors.As(err, &broken) {
				return
			}
		}
	}
}

// Position returns the position of an event of the timeline, for After.
func (t *Timeline) Position(e Event) events.Position {
	return events.Position{Seq: e.Seq, Place: e.Place, Log: t.log}
}

// Log returns the name of the log that the sequences of the events are of. It is empty if the
// server is of a version that names none.
func (t *Timeline) Log() string { return t.log }

// Start returns where the timeline starts: the sequence of the last commit before its first event. Of
// one that begins [Now] it is the end of the log when the timeline was subscribed to: a read model that
// shows that commit, and the timeline, together miss nothing.
func (t *Timeline) Start() int64 { return t.start }

// Close ends the timeline. It may be called more than once.
func (t *Timeline) Close() {
	t.cancel()
	for range t.out { // so that the follower is not blocked
	}
	t.done.Wait()
}

// pattern selects event types of a timeline.
type pattern []string

// matches reports whether one of the patterns matches the type. An empty list matches
// all.
func (p pattern) matches(t events.Type) bool {
	for _, one := range p {
		if entity, all := strings.CutSuffix(one, "*"); all && strings.HasPrefix(string(t), entity) || one == string(t) {
			return true
		}
	}
	return len(p) == 0
}

// check reports whether the patterns are valid in subjects.
func (p pattern) check() error {
	for _, one := range p {
		entity, all := strings.CutSuffix(one, "*")
		ok := one != "" && !strings.ContainsAny(entity, " *>\t\r\n") && (!all || entity == "" || strings.HasSuffix(entity, ".")) &&
			!strings.HasPrefix(one, ".") && !strings.Contains(one, "..") && (all || !strings.HasSuffix(one, "."))
		if !ok {
			return events.Invalid("/types", "%q is not a pattern of event types; use item.created, or item.* for all of an entity", one)
		}
	}
	return nil
}

// header returns the log's sequence from a message of the timeline.
func header(m *nats.Msg) (int64, bool) { return parseSeq(m.Header.Get(events.HeaderSeq)) }

// logPage is how many events are requested at once.
const logPage = 1000

// HistoryEnd returns the sequence of the log's last commit, of any tenant.
func (c *Client) HistoryEnd(ctx context.Context) (int64, error) {
	end, err := Read(ctx, c, events.GetHistory{})
	if err != nil {
		return 0, err
	}
	return end.LastSeq, nil
}

// requestPage requests the log's events after the follower's position.
func (f *follower) requestPage(ctx context.Context) (*events.HistoryList, error) {
	from, limit := f.seq+1, int64(logPage)
	q := events.ListHistory{ThreadID: f.o.Thread, FromSeq: &from, Limit: &limit}
	if f.version != whole && f.seq > 0 { // the commit was not delivered whole
		from--
		q.AfterVersion = new(f.version)
	}
	page, err := Read(ctx, f.client, q)
	if err == nil {
		err = events.CheckLog(f.log, page.Log)
	}
	return page, err
}

// readLog reads the log's events from the follower's position to the current end of the
// log.
func (f *follower) readLog(ctx context.Context) (err error) {
	for {
		page := f.first
		if f.first = nil; page == nil {
			if page, err = f.requestPage(ctx); err != nil {
				return err
			}
		}
		for _, e := range page.Entries {
			if err := f.deliverStored(e); err != nil {
				return err
			}
		}
		if len(page.Entries) > 0 && (page.NextSeq > f.seq || page.NextSeq == 0) {
			f.notePassed(f.seq) // the last commit was delivered whole
		}
		if page.NextSeq == 0 {
			return nil
		}
		if page.NextSeq > f.seq+1 { // the rest up to there is not shown to this client
			f.notePassed(page.NextSeq - 1)
		}
	}
}

// deliverStored handles an entry of the log. The commit before it is complete.
func (f *follower) deliverStored(entry events.HistoryEntry) error {
	if entry.Seq > f.seq {
		f.notePassed(f.seq)
	}
	var err error
	if entry.Broken {
		err = &events.BrokenError{Tenant: f.client.opts.Tenant, Thread: entry.ThreadID, Seq: uint64(entry.Seq), Cause: errBroken}
	} else {
		var e events.Event
		if e, err = events.DecodeEvent(entry.Event); err == nil {
			if !f.isNew(entry.Seq, e.Version) {
				return nil
			}
			return f.deliverEvent(Event{Event: e, Seq: entry.Seq})
		}
		err = &events.BrokenError{Tenant: f.client.opts.Tenant, Seq: uint64(entry.Seq), Cause: err}
	}
	f.notePassed(entry.Seq)
	delete(f.versions, entry.ThreadID)
	if entry.ThreadID != "" && !f.o.Aggregates && !events.IsThread(entry.ThreadID) {
		return nil
	}
	if !f.deliver(result{event: Event{Seq: entry.Seq}, err: err}) {
		return errGone
	}
	return nil
}
