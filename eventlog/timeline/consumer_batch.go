package timeline

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/quota"
)

// Batch is events that a consumer has delivered together.
type Batch struct {
	Events []Delivery
	Gap    bool   // see noteGap
	Token  string // to settle all of them with
}

// BatchSize bounds a batch. Its first event may be larger.
type BatchSize struct {
	Events, Bytes int
}

// NextBatch returns the next events of a tenant's consumer, nil if none arrived within wait. It
// does not wait until there are as many as may come. The error is ErrNoConsumer if there is no such
// consumer.
//
// Of a batch the server has delivered the first message alone. It delivers no other until that one
// is settled, so the messages that follow it can be read from the stream. When the batch is
// done the consumer is moved behind its last message.
func (c Consumers) NextBatch(ctx context.Context, tenant, name string, most BatchSize, wait time.Duration) (*Batch, error) {
	consumer, err := c.consumer(ctx, tenant, name)
	if err != nil {
		return nil, err
	}
	gap, err := c.noteGap(ctx, consumer)
	if err != nil {
		return nil, err
	}
	first, err := c.pullNext(ctx, tenant, name, wait)
	if first == nil || err != nil {
		return nil, err
	}
	var batch *Batch
	err = quota.Read(ctx, func() (_, bytes int, err error) {
		if batch, err = c.fillBatch(ctx, consumer, first, most); err != nil {
			return 0, 0, err
		}
		for _, e := range batch.Events {
			bytes += len(e.Data) + entryBytes
		}
		return len(batch.Events), bytes, nil
	}, func() { batch = nil })
	if err != nil { // others need not wait until it is redelivered
		return nil, errors.Join(err, c.conn.NATS().Publish(first.Reply, []byte(nak)))
	}
	batch.Gap = gap
	return batch, nil
}

// gapKey is the key of a consumer's metadata that says that messages left the timeline before the
// consumer delivered them. It is there until a batch that says so is done.
const gapKey = "skein-gap"

// noteGap reports whether messages that a consumer may have to deliver have left the timeline.
func (c Consumers) noteGap(ctx context.Context, consumer *jetstream.ConsumerInfo) (bool, error) {
	if consumer.Config.Metadata[gapKey] != "" || consumer.NumAckPending > 0 {
		return consumer.Config.Metadata[gapKey] != "", nil
	}
	stream, err := c.conn.JetStream().Stream(ctx, c.stream())
	if err != nil || consumer.Delivered.Stream+1 >= stream.CachedInfo().State.FirstSeq {
		return false, err
	}
	cfg := consumer.Config
	cfg.Metadata = ownMetadata(cfg)
	cfg.Metadata[gapKey] = strconv.FormatUint(consumer.Delivered.Stream, 10)
	_, err = stream.UpdateConsumer(ctx, cfg)
	return true, err
}

// forgetGap removes what noteGap has noted.
func (c Consumers) forgetGap(ctx context.Context, consumer *jetstream.ConsumerInfo) error {
	if consumer.Config.Metadata[gapKey] == "" {
		return nil
	}
	cfg := consumer.Config
	cfg.Metadata = ownMetadata(cfg)
	delete(cfg.Metadata, gapKey)
	_, err := c.conn.JetStream().UpdateConsumer(ctx, c.stream(), cfg)
	return err
}

// consumer describes a tenant's consumer. The error is ErrNoConsumer if there is none.
func (c Consumers) consumer(ctx context.Context, tenant, name string) (*jetstream.ConsumerInfo, error) {
	consumer, err := c.conn.JetStream().Consumer(ctx, c.stream(), consumerName(tenant, name))
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		return nil, ErrNoConsumer
	}
	if err != nil {
		return nil, err
	}
	return consumer.CachedInfo(), nil
}

// fillBatch returns a batch that begins with a message. consumer is as it was before the message
// was delivered.
func (c Consumers) fillBatch(ctx context.Context, consumer *jetstream.ConsumerInfo, first *nats.Msg, most BatchSize) (*Batch, error) {
	begin, err := first.Metadata()
	if err != nil {
		return nil, err
	}
	batch := &Batch{Token: first.Reply + batchMark}
	room, last := most.Bytes, begin.Sequence.Stream
	add := func(header nats.Header, data []byte, at uint64) (more bool) {
		if room -= len(data) + entryBytes; len(batch.Events) == most.Events || room < 0 && len(batch.Events) > 0 {
			return false
		}
		if seq, err := strconv.ParseUint(header.Get(events.HeaderSeq), 10, 64); err == nil { // else it is not Skein's
			batch.Events = append(batch.Events, Delivery{Data: data, Seq: seq})
		}
		last = at
		return true
	}
	add(first.Header, first.Data, last)
	// The server moves no consumer that an earlier version created to begin with new events.
	movable := consumer.Config.DeliverPolicy != jetstream.DeliverNewPolicy
	if movable && begin.NumPending > 0 && most.Events > 1 {
		subjects := consumer.Config.FilterSubjects
		if consumer.Config.FilterSubject != "" {
			subjects = []string{consumer.Config.FilterSubject}
		}
		rest := jetstream.OrderedConsumerConfig{
			FilterSubjects: subjects, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: last + 1,
		}
		for m, err := range c.conn.ListUpTo(ctx, c.stream(), rest, most.Events) {
			if err != nil {
				return nil, err
			}
			at, err := m.Metadata()
			if err != nil {
				return nil, err
			}
			if !add(m.Headers(), m.Data(), at.Sequence.Stream) {
				break
			}
		}
	}
	batch.Token += strconv.FormatUint(last, 10)
	return batch, nil
}

// entryBytes is what an event of a batch has at most besides its data.
const entryBytes = 256

// batchMark stands in the token of a batch, between the one of its first message and the sequence of
// its last.
const batchMark = ":"

// splitToken returns the token of a delivery's first message, and, of a batch, the sequence on the
// timeline of the last.
func splitToken(token string) (first string, last uint64, ofBatch bool) {
	first, text, ofBatch := strings.Cut(token, batchMark)
	if !ofBatch {
		return token, 0, false
	}
	last, err := strconv.ParseUint(text, 10, 63)
	if err != nil || text[0] == '+' {
		return "", 0, false
	}
	return first, last, true
}

// acknowledgeBatch moves a consumer behind the last message of a batch, unless it is there.
func (c Consumers) acknowledgeBatch(ctx context.Context, tenant, name, first string, last uint64) error {
	ctx, cancel := context.WithTimeout(ctx, streams.ReadTimeout)
	defer cancel()
	consumer, err := c.consumer(ctx, tenant, name)
	if err != nil {
		return err
	}
	if err := wasDelivered(first, consumer); err != nil {
		return err
	}
	end, err := c.conn.LastSeq(ctx, c.stream())
	if err != nil {
		return err
	}
	if begin, _ := strconv.ParseUint(ackSubject.FindStringSubmatch(first)[3], 10, 64); last < begin || last > end {
		return events.Invalid("/token", "the consumer has not delivered this")
	}
	if consumer.AckFloor.Stream >= last {
		return nil
	}
	if err := c.forgetGap(ctx, consumer); err != nil {
		return err
	}
	if consumer.Config.DeliverPolicy == jetstream.DeliverNewPolicy {
		return c.acknowledge(ctx, tenant, name, first)
	}
	_, err = c.conn.JetStream().ResetConsumerToSequence(ctx, c.stream(), consumer.Name, last+1)
	if errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, nats.ErrNoResponders) {
		_, gone := c.consumer(ctx, tenant, name)
		return cmp.Or(gone, err)
	}
	return err
}
