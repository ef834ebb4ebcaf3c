package timeline

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
)

// ErrNotShown says that the timeline does not show a commit yet.
var ErrNotShown = errors.New("the timeline does not show it yet")

// Timeline is the timeline of a log. It is safe for concurrent use.
type Timeline struct {
	log   *eventlog.Log
	conn  *streams.Conn
	names events.Names
	age   time.Duration // how long it keeps an event
	pace  time.Duration // of the relay, see relayPace; tests change it
}

// Of returns the timeline of a log.
func Of(log *eventlog.Log) *Timeline {
	return &Timeline{log: log, conn: log.Streams(), names: log.Config().Names, age: log.Config().TimelineAge, pace: relayPace}
}

func (t *Timeline) stream() string { return t.names.Stream(assets.TimelineStream) }

// LastSeq returns the sequence in the log of the last commit that the timeline shows, whole
// or in part.
func (t *Timeline) LastSeq(ctx context.Context) (uint64, error) {
	at, err := t.position(ctx)
	return at.seq, err
}

// Await waits until the timeline shows a commit. The error is ErrNotShown if it does not
// within patience.
func (t *Timeline) Await(ctx context.Context, seq uint64, patience time.Duration) error {
	for attempts := (retry.Policy{First: 2 * time.Millisecond, Max: 250 * time.Millisecond, Limit: patience}).Start(); ; {
		at, err := t.LastSeq(ctx)
		if err != nil || at >= seq {
			return err
		}
		switch err := attempts.Wait(ctx); {
		case errors.Is(err, retry.ErrExhausted):
			return ErrNotShown
		case err != nil:
			return err
		}
	}
}

// Messages reads what the timeline keeps of an aggregate, in order, up to its present end.
// "*" stands for all tenants, or all aggregates.
func (t *Timeline) Messages(ctx context.Context, tenant, aggregate string) iter.Seq2[streams.Message, error] {
	return t.conn.Messages(ctx, t.stream(), t.names.Timeline(tenant, aggregate, ">"), 1)
}

// Readable reads what Messages reads, without what the server cannot read; see [streams.Conn.Readable].
func (t *Timeline) Readable(ctx context.Context, tenant, aggregate string) iter.Seq2[streams.Message, error] {
	return t.conn.Readable(ctx, t.stream(), t.names.Timeline(tenant, aggregate, ">"))
}

// Delivered reads what Messages reads, faster; see [streams.Conn.Delivered] for what it does not
// notice.
func (t *Timeline) Delivered(ctx context.Context, tenant, aggregate string) iter.Seq2[streams.Message, error] {
	return t.conn.Delivered(ctx, t.stream(), t.names.Timeline(tenant, aggregate, ">"))
}

// Erase erases a thread's events up to those of the commit with its tombstone, which must be
// on the timeline or have expired.
func (t *Timeline) Erase(ctx context.Context, tenant, thread string, tombstone *events.Commit) error {
	last, err := t.conn.Direct(ctx, t.stream(), streams.GetRequest{Multi: []string{t.names.Timeline(tenant, thread, events.LifecycleDeletedType)}})
	if err != nil {
		return err
	}
	before := uint64(0)
	if len(last) > 0 {
		before = last[0].Seq - uint64(len(tombstone.Events)-1) // they are adjacent: the relay is the only writer
	}
	return t.conn.Erase(ctx, t.stream(), t.names.Timeline(tenant, thread, ">"), before)
}

// EraseBefore erases the events of a thread before a commit. The commit's own stay, so that
// the relay finds its position. The error is ErrNotShown if the timeline does not show the
// commit yet: nothing was done.
func (t *Timeline) EraseBefore(ctx context.Context, c *events.Commit) error {
	at, err := t.LastSeq(ctx) // first: what it shows by now is there, or has expired
	if err != nil {
		return err
	}
	if at < c.Seq {
		return ErrNotShown
	}
	own := uint64(0)
	for m, err := range t.Messages(ctx, c.Tenant, c.Thread) {
		if err != nil {
			return err
		}
		shown, err := parsePosition(m.Header)
		if err != nil {
			return err
		}
		if shown.seq >= c.Seq {
			own = m.Seq
			break
		}
	}
	if own == 0 {
		return nil // it has expired, and so has everything before it
	}
	return t.conn.Erase(ctx, t.stream(), t.names.Timeline(c.Tenant, c.Thread, ">"), own)
}

// position is how far the timeline has got: the commit with that sequence, up to the thread's
// version. Version 0 means the whole commit.
type position struct {
	seq     uint64
	version int64
}

// position reads how far the timeline has got, from its last message: one that was deleted
// after it is relayed again. If there is none, everything has expired: the relay resumes with
// the commits that are younger than what the timeline keeps.
func (t *Timeline) position(ctx context.Context) (position, error) {
	m, err := t.conn.Leader(ctx, t.stream(), streams.GetRequest{Last: t.anyEvent()}) // a replica that lags would return less
	switch {
	case err == nil:
		return parsePosition(m.Header)
	case !errors.Is(err, streams.ErrNoMessage):
		return position{}, err
	}
	return t.emptyPosition(ctx)
}

// emptyPosition returns the position of a timeline without messages: after what is too old
// for it.
func (t *Timeline) emptyPosition(ctx context.Context) (position, error) {
	return t.positionAt(ctx, time.Now().Add(-t.age))
}

// errLags says that a copy of the log shows less than there is: it may show it later.
var errLags = errors.New("a copy lags")

// positionAt returns the position before the first commit that was stored at a time or later.
// It asks again while a copy lags.
func (t *Timeline) positionAt(ctx context.Context, at time.Time) (before position, err error) {
	err = retry.Do(ctx, retry.Policy{First: 50 * time.Millisecond, Max: time.Second, Limit: 30 * time.Second}, func() (err error) {
		before, err = t.positionOf(ctx, at)
		return err
	}, func(err error) bool { return errors.Is(err, errLags) })
	return before, err
}

// positionOf does so once.
func (t *Timeline) positionOf(ctx context.Context, at time.Time) (position, error) {
	name := t.names.Stream(assets.LogStream)
	stream, err := t.conn.JetStream().Stream(ctx, name)
	if err != nil {
		return position{}, err
	}
	state := stream.CachedInfo().State
	if state.Msgs == 0 || state.LastTime.Before(at) {
		return position{seq: state.LastSeq}, nil
	}
	if !state.FirstTime.Before(at) {
		return position{seq: state.FirstSeq - 1}, nil
	}
	tail, err := t.log.TailSince(ctx, "timeline", at)
	if err != nil {
		return position{}, err
	}
	defer tail.Stop()
	if tail.BeganAtEnd() { // every commit that young is erased
		_, err := t.conn.Leader(ctx, name, streams.GetRequest{Seq: state.LastSeq})
		if err == nil { // it is not: a replica that lags has answered
			err = fmt.Errorf("the log, behind commit %d: %w", state.LastSeq, errLags)
		}
		if !errors.Is(err, streams.ErrNoMessage) {
			return position{}, err
		}
		return position{seq: state.LastSeq}, nil
	}
	e, err := tail.Next(ctx)
	return position{seq: e.Seq - 1}, err
}

// anyEvent returns the subject of all events. It is not ">": asked for the last message of
// that, the server looks at the last sequence only, which may be deleted.
func (t *Timeline) anyEvent() string { return t.names.Timeline("*", "*", ">") }

func parsePosition(h nats.Header) (position, error) {
	seq, err := strconv.ParseUint(h.Get(events.HeaderSeq), 10, 64)
	version, verr := strconv.ParseInt(h.Get(events.HeaderVersion), 10, 64)
	if err != nil || verr != nil {
		return position{}, &streams.AssetError{
			Name: assets.TimelineStream, Problem: "its last message was not written by Skein", Hint: "the relay of a running skein serve removes it",
		}
	}
	return position{seq, version}, nil
}

// header returns the headers that parsePosition reads.
func (p position) header() nats.Header {
	return nats.Header{
		events.HeaderSeq:     {strconv.FormatUint(p.seq, 10)},
		events.HeaderVersion: {strconv.FormatInt(p.version, 10)},
	}
}
