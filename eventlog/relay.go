package eventlog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/derived"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
)

// TimelineLease is the lease under which the relay runs. Two relays by mistake
// do no harm: the stream's fence lets one of them write at a time.
const TimelineLease = "timeline"

// position is how far the timeline has got: the commit with that sequence, up
// to the thread's version. Version 0 means the whole commit.
type position struct {
	seq     uint64
	version int64
}

// Relay puts each event of the log on the timeline, as a message of its own, in
// order and once, until ctx ends. It goes on where the timeline's own last
// message stands, so that a kill at any moment neither loses nor repeats one.
//
// It looks anew where that stands whenever the connection was made anew: a
// server that lost its power may have lost the timeline's newest messages, and
// a log where nothing happens would not let the fence notice.
func (l *Log) Relay(ctx context.Context) error {
	connects, stop := l.conn.Connects()
	defer stop()
	for ctx.Err() == nil {
		err := l.relayUntil(ctx, connects)
		if ctx.Err() != nil {
			return nil
		}
		if !streams.IsFenced(err) {
			l.logger.Warn().Err(err).Msg("the timeline was interrupted; it goes on from where it stands")
		}
		retry.Sleep(ctx, 250*time.Millisecond)
	}
	return nil
}

var errReconnected = errors.New("the connection was made anew")

// relayUntil relays until the connection was made anew, or something else stops
// it.
func (l *Log) relayUntil(ctx context.Context, connects <-chan nats.Status) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-connects:
			cancel(errReconnected)
		case <-done:
		}
	}()
	return l.relay(ctx, 0)
}

// relay goes on where the timeline stands, up to the commit with the sequence
// end, or, if that is 0, until ctx ends or another relay has taken over.
func (l *Log) relay(ctx context.Context, end uint64) error {
	// The fence first: what another relay writes after this is noticed.
	fence, err := derived.NewFence(ctx, l.conn, l.cfg.Names.Stream(assets.TimelineStream))
	if err != nil {
		return err
	}
	return l.relayBehind(ctx, fence, end)
}

// relayBehind goes on where the timeline stands, unless another relay has written since
// the fence was made: were that lost with the power, the fence would hold, and what the
// position counts as shown would never be.
func (l *Log) relayBehind(ctx context.Context, fence derived.Fence, end uint64) error {
	at, shown, err := l.heal(ctx)
	if err != nil {
		return err
	}
	if shown > fence.Last() {
		return &streams.FencedError{Stream: l.cfg.Names.Stream(assets.TimelineStream), Cause: errOtherRelay}
	}
	return l.relayFrom(ctx, fence, at, end)
}

// relayFrom does the same from a position that is known.
func (l *Log) relayFrom(ctx context.Context, fence derived.Fence, at position, end uint64) error {
	after := at.seq
	if at.version > 0 {
		after-- // the commit may not be all there
	}
	if end > 0 && after >= end {
		return nil
	}
	tail, err := l.Tail(ctx, "timeline", after)
	if err != nil {
		return err
	}
	defer tail.Stop()
	if end > 0 && tail.nothing {
		if more, err := l.conn.More(ctx, l.cfg.Names.Stream(assets.LogStream), ">", after+1); err != nil || !more {
			return err
		}
	}
	header := timelineHeader()
	for {
		e, err := tail.Next(ctx)
		if err != nil {
			return err
		}
		done := end > 0 && (e.Seq >= end || e.last)
		if done && e.Seq < end { // unless the copy lags that was read
			more, err := l.conn.More(ctx, l.cfg.Names.Stream(assets.LogStream), ">", e.Seq+1)
			if err != nil {
				return err
			}
			done = !more
		}
		wait := done || tail.Waiting() == 0
		switch {
		case e.Commit != nil:
			from := int64(0)
			if e.Seq == at.seq {
				from = at.version
			}
			err = l.relayCommit(ctx, fence, header, e.Commit, from, wait)
		case wait:
			err = fence.Flush(ctx)
		}
		if err != nil {
			return err
		}
		l.metrics.Relayed(e.Seq)
		if done {
			return nil
		}
	}
}

// timelineHeader gives the header that relayCommit fills in.
func timelineHeader() nats.Header {
	return nats.Header{events.HeaderType: {events.EventContentType}}
}

// relayCommit sends the events of a commit after a version, and, if the relay
// has nothing else to do, waits until they are stored. The header is used again
// for each; the fence keeps its values, not the map.
func (l *Log) relayCommit(ctx context.Context, fence derived.Fence, header nats.Header, c *events.Commit, after int64, wait bool) error {
	if err := assets.AdmitToTimeline(ctx, l.conn, c); err != nil {
		return err
	}
	thread := l.cfg.Names.Timeline(c.Tenant, c.Thread, "")
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
		if wait && i == len(c.Events)-1 {
			send = fence.Final
		}
		if err := send(ctx, thread+string(e.Type), header, e.Raw()); err != nil {
			return err
		}
	}
	return nil
}

// timelinePosition reads how far the timeline has got, from the last message that
// it has: one that was deleted behind it is relayed again. If there is none, all
// has expired: the relay goes on with the commits that are younger than what the
// timeline keeps.
func (l *Log) timelinePosition(ctx context.Context) (position, error) {
	m, err := l.conn.Leader(ctx, l.cfg.Names.Stream(assets.TimelineStream), streams.GetRequest{Last: l.anyEvent()}) // a copy that lags would say less
	switch {
	case err == nil:
		return parsePosition(m.Header)
	case !errors.Is(err, streams.ErrNoMessage):
		return position{}, err
	}
	return l.emptyPosition(ctx)
}

// emptyPosition returns where a timeline without messages stands: at what is too old
// for it.
func (l *Log) emptyPosition(ctx context.Context) (position, error) {
	return l.positionAt(ctx, time.Now().Add(-l.cfg.TimelineAge))
}

// errOtherRelay is why a relay that has sent nothing begins again.
var errOtherRelay = errors.New("another relay wrote to the timeline while this one began")

// anyEvent returns the subject of all events. It is not ">": asked for the last
// message of that, the server looks at the last sequence only, which may be deleted.
func (l *Log) anyEvent() string { return l.cfg.Names.Timeline("*", "*", ">") }

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

// positionAt gives the position before the first commit that was stored at a
// time or later.
func (l *Log) positionAt(ctx context.Context, at time.Time) (position, error) {
	stream, err := l.conn.JetStream().Stream(ctx, l.cfg.Names.Stream(assets.LogStream))
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
	tail, err := l.tail(ctx, "timeline", jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartTimePolicy, OptStartTime: &at,
	})
	if err != nil {
		return position{}, err
	}
	defer tail.Stop()
	if tail.nothing { // what was that young is erased
		_, err := l.conn.Leader(ctx, l.cfg.Names.Stream(assets.LogStream), streams.GetRequest{Seq: state.LastSeq})
		if err == nil { // it is not: a copy that lags has told
			err = fmt.Errorf("a copy of the log lags behind commit %d", state.LastSeq)
		}
		if !errors.Is(err, streams.ErrNoMessage) {
			return position{}, err
		}
		return position{seq: state.LastSeq}, nil
	}
	e, err := tail.Next(ctx)
	return position{seq: e.Seq - 1}, err
}

// RebuildTimeline throws the timeline away and puts the log's events on it
// anew, as far back as it keeps them, up to what the log holds now. Live
// subscribers see them again. The relay that runs meanwhile is fenced off, and
// then helps: either may write, and each event still comes once.
func (l *Log) RebuildTimeline(ctx context.Context) error {
	name := l.cfg.Names.Stream(assets.TimelineStream)
	end, err := l.LastSeq(ctx)
	if err != nil {
		return err
	}
	at, err := l.positionAt(ctx, time.Now().Add(-l.cfg.TimelineAge))
	if err != nil {
		return err
	}
	stream, err := l.conn.JetStream().Stream(ctx, name)
	if err != nil {
		return fmt.Errorf("the timeline: %w", err)
	}
	fence, err := derived.Seize(ctx, l.conn, name, l.cfg.Names.Timeline(markTenant, markTenant, assets.TimelineMark), at.header())
	if err != nil {
		return err
	}
	if err := stream.Purge(ctx, jetstream.WithPurgeSequence(fence.Last()+1)); err != nil {
		return fmt.Errorf("emptying the timeline: %w", err)
	}
	if end == 0 { // nothing was ever written
		return nil
	}
	err = l.relayFrom(ctx, fence, at, end)
	for streams.IsFenced(err) {
		err = l.relay(ctx, end)
	}
	return err
}

// The mark with which a rebuilding takes the timeline over: a relay that finds
// it goes on with the position that it holds. It is thrown away with what stands
// before it. No tenant has such a name.
const (
	markTenant = "_"
)

// header gives the headers that parsePosition reads.
func (p position) header() nats.Header {
	return nats.Header{
		events.HeaderSeq:     {strconv.FormatUint(p.seq, 10)},
		events.HeaderVersion: {strconv.FormatInt(p.version, 10)},
	}
}

// TimelineSeq gives the sequence in the log of the last commit that the
// timeline shows, whole or in part.
func (l *Log) TimelineSeq(ctx context.Context) (uint64, error) {
	at, err := l.timelinePosition(ctx)
	return at.seq, err
}

// TimelineMessages reads what the timeline keeps of an aggregate, in order, up
// to its present end. "*" stands for all tenants, or all aggregates.
func (l *Log) TimelineMessages(ctx context.Context, tenant, aggregate string) iter.Seq2[streams.Message, error] {
	return l.conn.Messages(ctx, l.cfg.Names.Stream(assets.TimelineStream), l.cfg.Names.Timeline(tenant, aggregate, ">"), 1)
}
