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

// follower merges what comes live with what is read from the log. The timeline
// comes in the order of the log, so that the place of the last event that was
// given decides of any other whether it is new; what is missing in between is
// read from the log, which has everything.
type follower struct {
	client  *Client
	o       SubscribeOptions
	types   pattern
	deliver func(result) bool // false: the reader has gone

	sub     *nats.Subscription
	live    chan *nats.Msg
	status  chan nats.Status
	dropped int // by this client, as its reader was slow

	seq      int64            // of the last commit that was given, whole or in part
	version  int64            // in that commit, of the last event that was given
	versions map[string]int64 // the last versions seen, by aggregate; what is not in it is not known
}

const (
	liveAhead     = 4096                   // messages that may wait to be looked at; more are dropped, and read from the log
	knownThreads  = 16384                  // versions that are remembered
	dropCheck     = 500 * time.Millisecond // how often drops are noticed where nothing comes any more
	whole         = int64(1) << 62         // the version of a commit that was given whole
	refillRetries = 8
)

func newFollower(c *Client, o SubscribeOptions) *follower {
	f := &follower{client: c, o: o, types: o.Types, live: make(chan *nats.Msg, liveAhead), versions: map[string]int64{}}
	if !o.From.now {
		f.seq, f.version = max(o.From.seq, 1)-1, whole
	}
	return f
}

// aggregate gives the token of the subjects that names the thread.
func (f *follower) aggregate() string {
	if f.o.Thread == "" {
		return "*"
	}
	return f.o.Thread
}

// subscribe begins to listen, and finds out where now is.
func (f *follower) subscribe(ctx context.Context) error {
	ctx, cancel := f.client.limited(ctx)
	defer cancel()
	n, nc := f.client.opts.Names, f.client.nc
	if !f.o.History {
		var err error
		// All types: a gap shows only to who sees every version.
		f.sub, err = nc.ChanSubscribe(n.Timeline(f.client.opts.Tenant, f.aggregate(), ">"), f.live)
		if err != nil {
			return err
		}
		f.status = nc.StatusChanged(nats.CONNECTED)
		err = f.client.again(ctx, nc.FlushWithContext)
		if err == nil {
			err = mayListen(nc, f.sub.Subject)
		}
		if err != nil {
			f.unsubscribe()
			return err
		}
	}
	end, err := f.client.HistoryEnd(ctx)
	if err != nil {
		f.unsubscribe()
		return err
	}
	if f.o.From.now { // what is committed after this is put on the timeline after it
		f.seq, f.version = end, whole
	}
	return nil
}

func (f *follower) unsubscribe() {
	if f.sub == nil {
		return
	}
	_ = f.sub.Unsubscribe() // fails only if the connection has gone, and the subscription with it
	f.client.nc.RemoveStatusListener(f.status)
}

// run gives events until ctx ends. It ends by itself only where a history ends,
// or with an error.
func (f *follower) run(ctx context.Context) error {
	if !f.o.From.now {
		if err := f.read(ctx, 0); err != nil {
			return ended(ctx, err)
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
			err = f.message(ctx, m)
		case _, ok := <-f.status:
			if !ok {
				f.status = nil // the connection has closed
				break
			}
			err = f.read(ctx, 0) // what came while it was lost
		case <-tick.C:
			err = f.recover(ctx)
		case <-ctx.Done():
			return ErrClosed
		}
		if err == nil && f.client.nc.IsClosed() {
			err = nats.ErrConnectionClosed
		}
		if err != nil {
			return ended(ctx, err)
		}
	}
}

// errGone says that the reader has closed the timeline, errBroken that the
// service could not read a commit.
var (
	errGone   = errors.New("the reader has gone")
	errBroken = errors.New("it is not a commit of Skein's")
)

// ended gives the error with which a timeline ends.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, errGone) {
		return ErrClosed
	}
	return events.Errorf(events.Unavailable, "the timeline ended: %w", err)
}

// recover reads from the log what was dropped, if anything was.
func (f *follower) recover(ctx context.Context) error {
	n, err := f.sub.Dropped()
	if err != nil || n == f.dropped {
		return nil // a subscription that has gone: the connection tells of it
	}
	f.dropped = n
	return f.read(ctx, 0)
}

// message takes a message of the live timeline.
func (f *follower) message(ctx context.Context, m *nats.Msg) error {
	_, _, t, ok := f.client.opts.Names.ParseTimeline(m.Subject)
	if row, known := events.Lookup(t); !ok || known && row.Transient {
		return f.transient(m, t)
	}
	if err := f.recover(ctx); err != nil {
		return err
	}
	seq, ok := header(m)
	e, err := events.DecodeEvent(m.Data)
	if !ok || err != nil {
		return nil // not Skein's: whoever may publish here cannot put anything into the log
	}
	if !f.isNew(seq, e.Version) {
		return nil
	}
	if last, known := f.versions[e.ThreadID]; known && e.Version != last+1 || seq == f.seq && e.Version != f.version+1 {
		if err := f.read(ctx, seq); err != nil {
			return err
		}
		if !f.isNew(seq, e.Version) {
			return nil
		}
	}
	return f.give(Event{Event: e, Seq: seq})
}

// transient gives an event that is transport only, if it is asked for. It has
// no place in the order.
func (f *follower) transient(m *nats.Msg, t events.Type) error {
	if !f.o.Chunks || !f.types.matches(t) {
		return nil
	}
	if e, err := events.DecodeEvent(m.Data); err == nil && !f.deliver(result{event: Event{Event: e}}) {
		return errGone
	}
	return nil
}

// isNew reports whether an event comes after the last one that was given.
func (f *follower) isNew(seq int64, version int64) bool {
	return seq > f.seq || seq == f.seq && version > f.version
}

// give hands an event on, if it is asked for, and notes its place.
func (f *follower) give(e Event) error {
	f.seq, f.version = e.Seq, e.Version
	if _, known := f.versions[e.ThreadID]; !known && len(f.versions) >= knownThreads {
		clear(f.versions) // forgetting costs only that a gap is noticed later
	}
	f.versions[e.ThreadID] = e.Version
	if !f.o.Aggregates && !events.IsThread(e.ThreadID) || !f.types.matches(e.Type) {
		return nil
	}
	if !f.deliver(result{event: e}) {
		return errGone
	}
	return nil
}

// passed notes that everything up to a commit has been given.
func (f *follower) passed(seq int64) {
	if seq >= f.seq {
		f.seq, f.version = seq, whole
	}
}

// read reads the log from where the follower stands to its end, which is at
// least the commit with the sequence upTo: a reader of the log may lag behind
// the timeline for a moment.
func (f *follower) read(ctx context.Context, upTo int64) error {
	for attempt := 0; ; attempt++ {
		err := f.readLog(ctx)
		if ctx.Err() != nil || errors.Is(err, errGone) {
			return err
		}
		if err == nil && f.seq >= upTo {
			return nil
		}
		if attempt >= refillRetries {
			if err == nil {
				// The log has no such commit: it was erased, or the message was not Skein's.
				return nil
			}
			return fmt.Errorf("reading the log: %w", err)
		}
		if !pause(ctx, attempt) {
			return ctx.Err()
		}
	}
}

func parseSeq(s string) (int64, bool) {
	seq, err := strconv.ParseInt(s, 10, 64)
	return seq, err == nil && seq >= 0
}
