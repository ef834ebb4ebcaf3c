package timeline

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/derived"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
)

// Lease is the lease under which the relay runs. Two relays by mistake do no harm: the
// stream's fence lets one of them write at a time.
const Lease = "timeline"

// relayPace is the least time between two flushes of the relay while commits keep coming, so that
// those in between share one: commands have priority. The first commit after such a time is
// relayed at once. With more commits waiting the relay does not rest.
//
// Whatever was received is flushed without the help of a later commit: a rest ends by its timer, and
// an entry after which none waits is always flushed.
const relayPace = 5 * time.Millisecond

// entries is what the relay reads: a tail of the log.
type entries interface {
	Next(ctx context.Context) (eventlog.Entry, error)
	Waiting() int
}

// Relay puts each event of the log on the timeline, in order and once, until ctx ends. It
// resumes at the timeline's own last message, so that a kill at any moment neither loses nor
// repeats an event.
//
// It reads that position again whenever the connection has been re-established: a server that
// lost its power may have lost the timeline's newest messages, and on a log to which nothing
// is appended the fence would not notice.
func (t *Timeline) Relay(ctx context.Context) error {
	connects, stop := t.conn.Connects()
	defer stop()
	for ctx.Err() == nil {
		err := streams.UntilReconnect(ctx, connects, func(ctx context.Context) error { return t.relayTo(ctx, 0) })
		if ctx.Err() != nil {
			return nil
		}
		if !streams.IsFenced(err) {
			t.log.Logger().Warn().Err(err).Msg("the timeline was interrupted; it resumes at its last message")
		}
		retry.Sleep(ctx, 250*time.Millisecond)
	}
	return nil
}

// relayTo resumes at the timeline's last message, and relays up to the commit with the
// sequence end, or, if that is 0, until ctx ends or another relay has taken over.
func (t *Timeline) relayTo(ctx context.Context, end uint64) error {
	// The fence first: what another relay writes after this is noticed.
	fence, err := derived.NewFence(ctx, t.conn, t.stream())
	if err != nil {
		return err
	}
	return t.relayBehind(ctx, fence, end)
}

// relayBehind resumes at the timeline's last message, unless another relay has written since
// the fence was created. If a power loss took what that relay wrote, the fence would hold,
// and events that the position counts as shown would never be.
func (t *Timeline) relayBehind(ctx context.Context, fence derived.Fence, end uint64) error {
	at, shown, err := t.heal(ctx)
	if err != nil {
		return err
	}
	if shown > fence.Last() {
		return &streams.FencedError{Stream: t.stream(), Cause: errOtherRelay}
	}
	return t.relayFrom(ctx, fence, at, end)
}

// errOtherRelay is why a relay that has sent nothing begins again.
var errOtherRelay = errors.New("another relay wrote to the timeline while this one began")

// relayFrom relays from a position that is known.
func (t *Timeline) relayFrom(ctx context.Context, fence derived.Fence, at position, end uint64) error {
	after := at.seq
	if at.version > 0 {
		after-- // the commit may be shown in part
	}
	if end > 0 && after >= end {
		return nil
	}
	tail, err := t.log.Tail(ctx, "timeline", after)
	if err != nil {
		return err
	}
	defer tail.Stop()
	if end > 0 && tail.BeganAtEnd() {
		if more, err := t.logHasMore(ctx, after); err != nil || !more {
			return err
		}
	}
	return t.relayEntries(ctx, fence, tail, at, end)
}

// relayEntries relays what a tail returns, up to the commit with the sequence end or, if that is 0, until
// ctx ends.
func (t *Timeline) relayEntries(ctx context.Context, fence derived.Fence, tail entries, at position, end uint64) error {
	header := relayHeader()
	var flushed time.Time
	for {
		e, err := tail.Next(ctx)
		if err != nil {
			return err
		}
		done := end > 0 && (e.Seq >= end || e.Last)
		if done && e.Seq < end { // unless the replica lags that was read
			more, err := t.logHasMore(ctx, e.Seq)
			if err != nil {
				return err
			}
			done = !more
		}
		if !done && end == 0 && tail.Waiting() == 0 && !retry.Sleep(ctx, t.pace-time.Since(flushed)) {
			return context.Cause(ctx)
		}
		flush := done || tail.Waiting() == 0
		switch {
		case e.Commit != nil:
			from := int64(0)
			if e.Seq == at.seq {
				from = at.version
			}
			err = t.relayCommit(ctx, fence, header, e.Commit, from, flush)
		case flush:
			err = fence.Flush(ctx)
		}
		if err != nil {
			return err
		}
		if flush {
			flushed = time.Now()
		}
		t.log.Metrics().Relayed(e.Seq)
		if done {
			return nil
		}
	}
}

// logHasMore reports whether the log has a commit after a sequence.
func (t *Timeline) logHasMore(ctx context.Context, after uint64) (bool, error) {
	return t.conn.More(ctx, t.names.Stream(assets.LogStream), ">", after+1)
}

// relayHeader returns the header that relayCommit fills in.
func relayHeader() nats.Header {
	return nats.Header{events.HeaderType: {events.EventContentType}}
}

// relayCommit sends the events of a commit after a version, and waits until they are stored if
// flush is set. The header is used again for each; the fence keeps its values, not the map.
func (t *Timeline) relayCommit(ctx context.Context, fence derived.Fence, header nats.Header, c *events.Commit, after int64, flush bool) error {
	if err := assets.AdmitToTimeline(ctx, t.conn, c); err != nil {
		return err
	}
	thread := t.names.Timeline(c.Tenant, c.Thread, "")
	versions := make([]string, len(c.Events))
	header[events.HeaderSeq] = []string{strconv.FormatUint(c.Seq, 10)}
	for i := range c.Events {
		e := &c.Events[i]
		if e.Version <= after {
			continue
		}
		versions[i] = strconv.FormatInt(e.Version, 10)
		header[events.HeaderVersion] = versions[i : i+1]
		send := fence.Send
		if flush && i == len(c.Events)-1 {
			send = fence.Final
		}
		if err := send(ctx, thread+string(e.Type), header, e.Raw()); err != nil {
			return err
		}
	}
	return nil
}
