package timeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/derived"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// Limits of a tenant's consumers.
const (
	ConsumerWait    = 30 * time.Second // until an event that was not acknowledged is redelivered
	tenantConsumers = 64               // consumers of one tenant
)

// ErrNoConsumer says that the tenant has no consumer of that name.
var ErrNoConsumer = errors.New("there is no such consumer")

// Consumers are the durable consumers of the timeline that tenants create. Each delivers one
// event, or one batch, at a time, so that the events keep their order.
type Consumers struct {
	conn     *streams.Conn
	timeline *Timeline
	leases   *derived.Leases
}

// ConsumersOf returns the durable consumers of a log's timeline.
func ConsumersOf(log *eventlog.Log) Consumers {
	return Consumers{conn: log.Streams(), timeline: Of(log), leases: derived.LeasesOn(log.Streams(), log.Logger())}
}

func (c Consumers) stream() string { return c.conn.Config().Names.Stream(assets.TimelineStream) }

// consumerName returns the name of a tenant's consumer on the timeline's stream, which all
// tenants share. No tenant's name contains the letter between.
func consumerName(tenant, name string) string { return tenant + "=" + name }

// Put creates a tenant's consumer, or changes the subjects that it takes. The error is an
// already_exists if there is one that began elsewhere.
func (c Consumers) Put(ctx context.Context, tenant, name string, subjects []string, from Start) error {
	stream, err := c.conn.JetStream().Stream(ctx, c.stream())
	if err != nil {
		return err
	}
	switch consumer, err := stream.Consumer(ctx, consumerName(tenant, name)); {
	case err == nil:
		return changeSubjects(ctx, stream, name, consumer.CachedInfo().Config, subjects, from)
	case !errors.Is(err, jetstream.ErrConsumerNotFound):
		return err
	}
	// One at a time, in all processes: a list may leave out one that is being created.
	unlock, err := c.lockTenant(ctx, tenant)
	if err != nil {
		return err
	}
	defer unlock()
	others, err := listConsumers(ctx, stream, tenant)
	if err != nil {
		return err
	}
	for _, other := range others {
		if other.Name == consumerName(tenant, name) {
			return changeSubjects(ctx, stream, name, other.Config, subjects, from)
		}
	}
	if len(others) >= tenantConsumers {
		return tooManyConsumers()
	}
	cfg := jetstream.ConsumerConfig{
		Durable: consumerName(tenant, name), FilterSubjects: subjects,
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: ConsumerWait, MaxDeliver: -1, MaxAckPending: 1,
	}
	if err := c.beginAt(ctx, stream, from, &cfg); err != nil {
		return err
	}
	_, err = stream.CreateConsumer(ctx, cfg)
	return err
}

// lockTenant waits until no other call, in any process, changes the tenant's consumers.
func (c Consumers) lockTenant(ctx context.Context, tenant string) (unlock func(), err error) {
	unlock, err = c.leases.Lock(ctx, "consumers."+tenant)
	if errors.Is(err, derived.ErrTaken) {
		err = events.Errorf(events.Unavailable, "others change the consumers of the tenant; try again: %w", ctx.Err())
	}
	return unlock, err
}

// listConsumers lists a tenant's consumers.
func listConsumers(ctx context.Context, stream jetstream.Stream, tenant string) ([]*jetstream.ConsumerInfo, error) {
	var list []*jetstream.ConsumerInfo
	all := stream.ListConsumers(ctx)
	for info := range all.Info() {
		if strings.HasPrefix(info.Name, consumerName(tenant, "")) {
			list = append(list, info)
		}
	}
	return list, all.Err()
}

func tooManyConsumers() error {
	return events.Errorf(events.QueueFull, "the tenant has %d consumers, and may have no more; delete one", tenantConsumers)
}

// Delete deletes a tenant's consumer. It is no error if there is none.
func (c Consumers) Delete(ctx context.Context, tenant, name string) error {
	err := c.conn.JetStream().DeleteConsumer(ctx, c.stream(), consumerName(tenant, name))
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		return nil
	}
	return err
}

// Delivery is an event that a consumer has delivered. In a batch it has no token.
type Delivery struct {
	Data  []byte
	Seq   uint64 // of its commit in the log
	Token string // to settle it with
}

// Next returns the next event of a tenant's consumer, nil if none arrived within wait. The
// error is ErrNoConsumer if there is no such consumer.
func (c Consumers) Next(ctx context.Context, tenant, name string, wait time.Duration) (*Delivery, error) {
	m, err := c.pullNext(ctx, tenant, name, wait)
	if m == nil || err != nil {
		return nil, err
	}
	seq, err := strconv.ParseUint(m.Header.Get(events.HeaderSeq), 10, 64)
	return &Delivery{Data: m.Data, Seq: seq, Token: m.Reply}, err
}

// pullNext returns the message of the next event, as Next does. Messages that Skein did not
// write are never redelivered.
func (c Consumers) pullNext(ctx context.Context, tenant, name string, wait time.Duration) (*nats.Msg, error) {
	now := wait == 0
	if now {
		consumer, err := c.consumer(ctx, tenant, name)
		if err != nil {
			return nil, err
		}
		if consumer.NumAckPending > 0 { // the server would answer when that is settled, or it delivers it again
			wait = unsettledWait
		}
	}
	body, err := json.Marshal(struct {
		Batch   int   `json:"batch"`
		Expires int64 `json:"expires,omitzero"` // nanoseconds
		NoWait  bool  `json:"no_wait,omitzero"`
	}{1, int64(wait), now})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, wait+streams.ReadTimeout)
	defer cancel()
	subject := c.conn.Config().API + ".CONSUMER.MSG.NEXT." + c.stream() + "." + consumerName(tenant, name)
	var out *nats.Msg
	err = c.pullMessages(ctx, subject, body, func(m *nats.Msg) (bool, error) {
		switch status := m.Header.Get("Status"); status {
		case "":
			if _, err := strconv.ParseUint(m.Header.Get(events.HeaderSeq), 10, 64); err != nil {
				return true, c.conn.NATS().Publish(m.Reply, []byte("+TERM"))
			}
			out = m
			return true, nil
		case "100": // a heartbeat
			return false, nil
		case "404", "408":
			return true, nil
		case "503":
			return true, ErrNoConsumer
		case "409":
			if strings.Contains(m.Header.Get("Description"), "Consumer Deleted") {
				return true, ErrNoConsumer
			}
			return true, fmt.Errorf("the consumer delivers nothing now: %s; try again", m.Header.Get("Description"))
		default:
			return true, fmt.Errorf("the consumer refused: %s %s", status, m.Header.Get("Description"))
		}
	})
	return out, err
}

// pullMessages requests messages of a consumer and passes each answer to handle, until that
// is the last. The messages arrive under their own subjects, so that the shared inbox could
// not tell which request they belong to.
func (c Consumers) pullMessages(ctx context.Context, subject string, body []byte, handle func(*nats.Msg) (last bool, err error)) error {
	answers := make(chan *nats.Msg, 4)
	reply := c.conn.NATS().NewInbox()
	sub, err := c.conn.NATS().ChanSubscribe(reply, answers)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only if the connection is closed
	if err := c.conn.NATS().PublishRequest(subject, reply, body); err != nil {
		return err
	}
	return streams.EachAnswer(ctx, answers, handle)
}

// Settle acknowledges a delivery, returns it for redelivery, or extends its time. The error is
// an invalid_request if the token is not one of the consumer's, or acknowledges what the consumer
// has not delivered.
func (c Consumers) Settle(ctx context.Context, tenant, name, token string, as events.Settlement) error {
	token, last, ofBatch := splitToken(token)
	if !acknowledgesFor(token, c.stream(), consumerName(tenant, name)) {
		return events.Invalid("/token", "it is no token of this consumer")
	}
	switch as {
	case events.SettledBusy:
		return c.conn.NATS().Publish(token, []byte("+WPI"))
	case events.SettledAgain:
		return c.conn.NATS().Publish(token, []byte(nak))
	default: // with an answer, so that it is known to be acknowledged
		if ofBatch {
			return c.acknowledgeBatch(ctx, tenant, name, token, last)
		}
		return c.acknowledge(ctx, tenant, name, token)
	}
}

// unsettledWait is how long a request that does not wait does so while an event is not settled.
const unsettledWait = 250 * time.Millisecond

// nak asks the server to deliver a message again.
const nak = "-NAK"

// ackQuiet is how long an acknowledgement waits for its answer before it asks whether there will
// be one.
const ackQuiet = 250 * time.Millisecond

// acknowledge acknowledges a delivery. The server answers nothing to an acknowledgement of what
// the consumer has not delivered.
func (c Consumers) acknowledge(ctx context.Context, tenant, name, token string) error {
	ctx, cancel := context.WithTimeout(ctx, streams.ReadTimeout)
	defer cancel()
	answered := make(chan error, 1)
	go func() {
		_, err := c.conn.NATS().RequestWithContext(ctx, token, []byte("+ACK"))
		answered <- err
	}()
	quiet := time.NewTimer(ackQuiet)
	defer quiet.Stop()
	select {
	case err := <-answered:
		if !errors.Is(err, nats.ErrNoResponders) {
			return err
		}
		return cmp.Or(c.delivered(ctx, tenant, name, token), err)
	case <-quiet.C:
		if err := c.delivered(ctx, tenant, name, token); err != nil {
			return err
		}
		return <-answered
	}
}

// delivered returns an error unless a consumer may have delivered the message of a token.
func (c Consumers) delivered(ctx context.Context, tenant, name, token string) error {
	consumer, err := c.consumer(ctx, tenant, name)
	switch {
	case errors.Is(err, ErrNoConsumer):
		return err
	case err != nil:
		return nil // the acknowledgement may be answered still
	}
	return wasDelivered(token, consumer)
}

// wasDelivered returns an error unless the message of a token is not after the last one that a
// consumer has delivered.
func wasDelivered(token string, consumer *jetstream.ConsumerInfo) error {
	seq, err := strconv.ParseUint(ackSubject.FindStringSubmatch(token)[3], 10, 64)
	if err != nil || seq > consumer.Delivered.Stream {
		return events.Invalid("/token", "the consumer has not delivered this")
	}
	return nil
}

// ackSubject matches the subject that acknowledges a message:
// $JS.ACK.{stream}.{consumer}.{5 numbers}, or with the domain and a hash of the account before
// the stream.
var ackSubject = regexp.MustCompile(`^\$JS\.ACK\.(?:[A-Za-z0-9_-]{1,64}\.[A-Za-z0-9]{1,16}\.)?([^.\s*>]+)\.([^.\s*>]+)\.[0-9]{1,20}\.([0-9]{1,20})(?:\.[0-9]{1,20}){3}$`)

// acknowledgesFor reports whether a subject acknowledges a message of a consumer.
func acknowledgesFor(token, stream, consumer string) bool {
	parts := ackSubject.FindStringSubmatch(token)
	return parts != nil && parts[1] == stream && parts[2] == consumer
}
