package client

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/events"
)

// Streams, without their prefix.
const (
	logStream      = "LOG"
	timelineStream = "TIMELINE"
	chunkStream    = "CHUNKS"
)

// readLog reads the log's commits from where the follower stands to the end
// that the log has when the reading begins, or later.
func (f *follower) readLog(ctx context.Context) error {
	n := f.client.opts.Names
	from := f.seq + 1
	if f.version != whole && f.seq > 0 {
		from = f.seq // the commit was not given whole
	}
	c, err := f.client.js.OrderedConsumer(ctx, n.Stream(logStream), jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{n.Log(f.client.opts.Tenant, f.aggregate())},
		DeliverPolicy:  jetstream.DeliverByStartSequencePolicy, OptStartSeq: from,
		InactiveThreshold: 30 * time.Second,
	})
	if err != nil {
		return err
	}
	defer f.client.drop(n.Stream(logStream), c)
	info, err := c.Info(ctx)
	if err != nil {
		return err
	}
	if info.NumPending == 0 && info.Delivered.Consumer == 0 {
		return nil
	}
	msgs, err := c.Messages(jetstream.PullMaxMessages(256))
	if err != nil {
		return err
	}
	defer msgs.Stop()
	for {
		m, err := msgs.Next(jetstream.NextContext(ctx))
		switch {
		case ctx.Err() != nil, errors.Is(err, jetstream.ErrMsgIteratorClosed):
			return err
		case err != nil: // the consumer heals itself, and goes on where it was
			if f.client.nc.IsClosed() || !pause(ctx, 3) {
				return err
			}
			continue
		}
		meta, err := m.Metadata()
		if err != nil {
			return err
		}
		if err := f.stored(m, meta.Sequence.Stream); err != nil {
			return err
		}
		if meta.NumPending == 0 {
			return nil
		}
	}
}

// drop takes a consumer off the server, which would else keep it for half a
// minute. It does not wait: credentials may not allow that, and then nobody answers.
func (c *Client) drop(stream string, consumer jetstream.Consumer) {
	// Fails only if the connection has gone. To the answer nobody listens.
	_ = c.nc.PublishRequest("$JS.API.CONSUMER.DELETE."+stream+"."+consumer.CachedInfo().Name, c.nc.NewInbox(), nil)
}

// stored takes a message of the log.
func (f *follower) stored(m jetstream.Msg, seq uint64) error {
	tenant, aggregate, _ := f.client.opts.Names.ParseLog(m.Subject())
	if !f.o.Aggregates && !events.IsThread(aggregate) {
		f.passed(seq)
		return nil
	}
	text := m.Headers().Get(events.HeaderVersion)
	version, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		err = &events.BrokenError{Tenant: tenant, Thread: aggregate, Seq: seq, Cause: fmt.Errorf("header %s %q", events.HeaderVersion, text)}
	}
	var c *events.Commit
	if err == nil {
		c, err = events.DecodeCommit(tenant, aggregate, seq, version, m.Headers().Get(events.HeaderChain), m.Data())
	}
	if err == nil {
		return f.commit(c)
	}
	f.passed(seq)
	delete(f.versions, aggregate)
	if !f.deliver(result{event: Event{Seq: seq}, err: err}) {
		return errGone
	}
	return nil
}
