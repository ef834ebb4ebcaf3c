package client

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
)

// follower merges live events with those read from the log. The timeline has the order
// of the log, so the position of the last delivered event tells whether another one is
// new. Missing events are read from the log, which has all of them.
type follower struct {
	client  *Client
	o       SubscribeOptions
	types   pattern
	deliver func(result) bool // false: the reader has closed the timeline

	sub     *nats.Subscription
	live    chan *nats.Msg
	feed    *feed // of a reader of chunks; nil: there is none
	status  chan nats.Status
	dropped int // messages that this client dropped because its reader was slow

	first    *events.HistoryList // the first page of the log, until it is delivered
	log      string              // that the sequences are of; empty: the server does not name it
	seq      int64               // of the last commit that was delivered, whole or in part
	version  int64               // of the last delivered event in that commit
	place    int64               // of that event
	versions map[string]int64    // the last versions seen, by aggregate; others are unknown

	owed int64     // the commit whose events are to come live; 0: none
	late time.Time // when they are read from the log instead
}

const (
	liveAhead     = 4096                   // messages that may wait to be handled; further ones are dropped, and read from the log
	threadAhead   = 512                    // the same of one thread
	knownThreads  = 16384                  // aggregates whose version is remembered
	dropCheck     = 500 * time.Millisecond // how often drops are checked for while no message arrives
	whole         = int64(1) << 62         // the version of a commit that was delivered whole
	refillRetries = 8
)

func newFollower(c *Client, o SubscribeOptions) *follower {
	ahead := liveAhead
	if o.Thread != "" {
		ahead = threadAhead
	}
	f := &follower{client: c, o: o, types: o.Types, live: make(chan *nats.Msg, ahead), versions: map[string]int64{}}
	if !o.From.now {
		f.seq, f.version = max(o.From.seq, 1)-1, whole
	}
	return f
}

// aggregate returns the subject token that names the thread.
func (f *follower) aggregate() string {
	if f.o.Thread == "" {
		return "*"
	}
	return f.o.Thread
}

// subscribe subscribes, and finds its place in the log.
func (f *follower) subscribe(ctx context.Context) error {
	ctx, cancel := f.client.limited(ctx)
	defer cancel()
	if !f.o.History {
		if err := f.listen(ctx); err != nil {
			return err
		}
	}
	err := f.locate(ctx)
	if err != nil {
		f.unsubscribe()
	}
	return err
}

// listen subscribes to all types: only a subscriber that sees every version can detect a gap.
func (f *follower) listen(ctx context.Context) (err error) {
	n, nc := f.client.opts.Names, f.client.nc
	f.sub, err = f.client.subscribe(ctx, n.Timeline(f.client.opts.Tenant, f.aggregate(), ">"), f.live)
	if err != nil {
		return err
	}
	f.status = nc.StatusChanged(nats.CONNECTED)
	err = f.client.repeatUntilDone(ctx, nc.FlushWithContext)
	if err == nil {
		err = subscriptionError(nc, f.sub.Subject)
	}
	if err != nil {
		f.unsubscribe()
	}
	return err
}

// locate finds out which log is followed: it queries the end of the log if events are followed from
// now on, and otherwise the first page.
func (f *follower) locate(ctx context.Context) (err error) {
	if f.o.From.now { // later commits are published on the timeline after it
		end, err := Read(ctx, f.client, events.GetHistory{})
		if err == nil {
			f.log, f.seq, f.version = end.Log, end.LastSeq, whole
		}
		return err
	}
	f.log = f.o.From.log
	if f.first, err = f.requestPage(ctx); err == nil {
		f.log = f.first.Log
	}
	return err
}

func (f *follower) unsubscribe() {
	if f.sub == nil {
		return
	}
	_ = f.sub.Unsubscribe() // fails only if the connection is closed, and the subscription with it
	f.client.nc.RemoveStatusListener(f.status)
}

// deliverEvents delivers events until ctx ends. It returns earlier only at the end of a history,
// or with an error.
func (f *follower) deliverEvents(ctx context.Context) error {
	if !f.o.From.now {
		if err := f.readUpTo(ctx, 0); err != nil {
			return timelineError(ctx, err)
		}
	}
	if f.o.History {
		return ErrEnd
	}
	tick := time.NewTicker(dropCheck)
	defer tick.Stop()
	for {
		var err error
		select {
		case m := <-f.live:
			err = f.handleMessage(ctx, m)
		case _, ok := <-f.status:
			if !ok {
				f.status = nil // the connection has closed
				break
			}
			err = f.readUpTo(ctx, 0) // messages may have been missed while disconnected
		case <-tick.C:
			if err = f.recoverDropped(ctx); err == nil {
				err = f.collect(ctx)
			}
		case <-ctx.Done():
			return ErrClosed
		}
		if err == nil && f.client.nc.IsClosed() {
			err = nats.ErrConnectionClosed
		}
		if err != nil {
			return timelineError(ctx, err)
		}
	}
}

// errGone reports that the reader closed the timeline, errBroken that the service could
// not decode a commit.
var (
	errGone   = errors.New("the reader has gone")
	errBroken = errors.New("it is not a commit of Skein's")
)

// timelineError returns the error with which a timeline ends.
func timelineError(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, errGone) {
		return ErrClosed
	}
	var final *events.Error
	if errors.As(err, &final) && (final.Code == events.PositionAhead || events.IsUnreadable(final)) {
		return final
	}
	return events.Errorf(events.Unavailable, "the timeline ended: %w", err)
}

// recoverDropped reads dropped messages from the log, if there are any.
func (f *follower) recoverDropped(ctx context.Context) error {
	n, err := f.sub.Dropped()
	if err != nil || n == f.dropped {
		return nil // a closed subscription: the connection reports it
	}
	f.dropped = n
	return f.readUpTo(ctx, 0)
}

// collect reads the events that are owed from the log, if they are late.
func (f *follower) collect(ctx context.Context) error {
	if f.seq >= f.owed || time.Now().Before(f.late) {
		return nil
	}
	owed := f.owed
	f.owed = 0 // once: it may have been erased
	return f.readUpTo(ctx, owed)
}

// handleMessage handles a message of the live timeline.
func (f *follower) handleMessage(ctx context.Context, m *nats.Msg) error {
	if shown, err := f.client.receives(ctx, m.Subject); err != nil || !shown {
		return err
	}
	_, _, t, ok := f.client.opts.Names.ParseTimeline(m.Subject)
	f.feed.pass(t, m)
	if row, known := events.Lookup(t); !ok || known && row.Transient {
		return f.deliverTransient(m, t)
	}
	if err := f.recoverDropped(ctx); err != nil {
		return err
	}
	seq, ok := header(m)
	e, err := events.DecodeEvent(m.Data)
	if !ok || err != nil {
		return nil // not Skein's: a client that may publish here cannot change the log
	}
	if !f.isNew(seq, e.Version) {
		return nil
	}
	if last, known := f.versions[e.ThreadID]; known && e.Version != last+1 || seq == f.seq && e.Version != f.version+1 {
		if err := f.readUpTo(ctx, seq); err != nil {
			return err
		}
		if !f.isNew(seq, e.Version) {
			return nil
		}
	}
	return f.deliverEvent(Event{Event: e, Seq: seq})
}

// deliverTransient delivers an event that is not stored in the log, if requested. It has no
// position in the order.
func (f *follower) deliverTransient(m *nats.Msg, t events.Type) error {
	if !f.o.Chunks || !f.types.matches(t) {
		return nil
	}
	if e, err := events.DecodeEvent(m.Data); err == nil && !f.deliver(result{event: Event{Event: e}}) {
		return errGone
	}
	return nil
}

// isNew reports whether an event comes after the last delivered one.
func (f *follower) isNew(seq int64, version int64) bool {
	return seq > f.seq || seq == f.seq && version > f.version
}

// deliverEvent delivers an event, if it is selected, and notes its position.
func (f *follower) deliverEvent(e Event) error {
	if f.place++; e.Seq != f.seq {
		f.place = 0
	}
	f.seq, f.version, e.Place = e.Seq, e.Version, f.place
	if _, known := f.versions[e.ThreadID]; !known && len(f.versions) >= knownThreads {
		clear(f.versions) // forgetting only delays the detection of gaps
	}
	f.versions[e.ThreadID] = e.Version
	at := events.Position{Seq: e.Seq, Place: e.Place}
	if !f.o.Aggregates && !events.IsThread(e.ThreadID) || !f.types.matches(e.Type) || !f.o.From.after.Before(at) {
		return nil
	}
	if g := f.client.opts.Guard; g != nil {
		g.Deliver(e.ThreadID, e.Seq)
	}
	if !f.deliver(result{event: e}) {
		return errGone
	}
	return nil
}

// notePassed notes that everything up to a commit was delivered.
func (f *follower) notePassed(seq int64) {
	if seq >= f.seq {
		f.seq, f.version = seq, whole
	}
}

// readUpTo reads the log from the follower's position to its end, which is at least the
// commit with the sequence upTo: a replica may lag behind the timeline for a moment. What live events
// were missed, chunks may have been as well.
func (f *follower) readUpTo(ctx context.Context, upTo int64) error {
	f.feed.miss()
	for attempts := requests().Start(); ; {
		err := f.readLog(ctx)
		if ctx.Err() != nil || errors.Is(err, errGone) || events.HasCode(err, events.PositionAhead) || events.IsUnreadable(err) {
			return err
		}
		if err == nil && f.seq >= upTo {
			return nil
		}
		if attempts.Failures() >= refillRetries {
			if err == nil {
				// The log has no such commit: it was erased, or the message was not
				// Skein's.
				return nil
			}
			return fmt.Errorf("read the log: %w", err)
		}
		if err := attempts.Wait(ctx); err != nil {
			return err
		}
	}
}

func parseSeq(s string) (int64, bool) {
	seq, err := strconv.ParseInt(s, 10, 64)
	return seq, err == nil && seq >= 0
}
