package eventlog

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

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/derived"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// Bounds of a tenant's consumers.
const (
	ConsumerWait    = 30 * time.Second // until an event of which nothing was heard is handed out again
	tenantConsumers = 64               // consumers of one tenant
)

// ErrNoConsumer says that there is no such consumer.
var ErrNoConsumer = errors.New("there is no such consumer")

// consumerName names a tenant's durable consumer of the timeline, which all
// tenants share. No tenant's name has the letter between.
func consumerName(tenant, name string) string { return tenant + "=" + name }

// PutConsumer makes a tenant's consumer of the timeline, or changes what it
// takes. It hands out one event at a time, so that they keep their order.
func (l *Log) PutConsumer(ctx context.Context, tenant, name string, subjects []string, onlyNew bool) error {
	stream, err := l.conn.JetStream().Stream(ctx, l.cfg.Names.Stream(assets.TimelineStream))
	if err != nil {
		return err
	}
	cfg := jetstream.ConsumerConfig{
		Durable: consumerName(tenant, name), FilterSubjects: subjects,
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: ConsumerWait, MaxDeliver: -1, MaxAckPending: 1,
	}
	if onlyNew {
		cfg.DeliverPolicy = jetstream.DeliverNewPolicy
	}
	if _, err = stream.Consumer(ctx, cfg.Durable); err == nil {
		_, err = stream.UpdateConsumer(ctx, cfg)
		return err
	}
	if !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return err
	}
	// One at a time, in all processes: a list may leave out what is being made.
	leave, err := l.lockTenant(ctx, tenant)
	if err != nil {
		return err
	}
	defer leave()
	if others, err := l.consumersOf(ctx, stream, tenant); err != nil || len(others) >= tenantConsumers {
		return cmp.Or(err, tooManyConsumers())
	}
	_, err = stream.CreateOrUpdateConsumer(ctx, cfg)
	return err
}

// lockTenant waits until this call alone, of all processes, changes the tenant's
// consumers.
func (l *Log) lockTenant(ctx context.Context, tenant string) (leave func(), err error) {
	leave, err = derived.LeasesOn(l.conn, &l.logger).Lock(ctx, "consumers."+tenant)
	if errors.Is(err, derived.ErrTaken) {
		err = events.Errorf(events.Unavailable, "others change the consumers of the tenant; try again: %w", ctx.Err())
	}
	return leave, err
}

// consumersOf lists a tenant's consumers.
func (l *Log) consumersOf(ctx context.Context, stream jetstream.Stream, tenant string) ([]*jetstream.ConsumerInfo, error) {
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

// DropConsumer deletes a tenant's consumer. It is no error if there is none.
func (l *Log) DropConsumer(ctx context.Context, tenant, name string) error {
	err := l.conn.JetStream().DeleteConsumer(ctx, l.cfg.Names.Stream(assets.TimelineStream), consumerName(tenant, name))
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		return nil
	}
	return err
}

// Delivery is a message that a consumer has handed out.
type Delivery struct {
	Data  []byte
	Seq   uint64 // of its commit in the log
	Token string // for Settle
}

// NextDelivery gives the next event of a tenant's consumer, nil if none came in
// time. The error is ErrNoConsumer if there is no such consumer.
func (l *Log) NextDelivery(ctx context.Context, tenant, name string, wait time.Duration) (*Delivery, error) {
	body, err := json.Marshal(struct {
		Batch   int   `json:"batch"`
		Expires int64 `json:"expires,omitzero"` // nanoseconds
		NoWait  bool  `json:"no_wait,omitzero"`
	}{1, int64(wait), wait == 0})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, wait+streams.ReadTimeout)
	defer cancel()
	subject := l.cfg.API + ".CONSUMER.MSG.NEXT." + l.cfg.Names.Stream(assets.TimelineStream) + "." + consumerName(tenant, name)
	var out *Delivery
	err = l.pull(ctx, subject, body, func(m *nats.Msg) (bool, error) {
		switch status := m.Header.Get("Status"); status {
		case "":
			seq, err := strconv.ParseUint(m.Header.Get(events.HeaderSeq), 10, 64)
			if err != nil { // not Skein's: it is never handed out again
				return true, l.conn.NATS().Publish(m.Reply, []byte("+TERM"))
			}
			out = &Delivery{Data: m.Data, Seq: seq, Token: m.Reply}
			return true, nil
		case "100": // it lives
			return false, nil
		case "404", "408":
			return true, nil
		case "503":
			return true, ErrNoConsumer
		case "409":
			if strings.Contains(m.Header.Get("Description"), "Consumer Deleted") {
				return true, ErrNoConsumer
			}
			return true, fmt.Errorf("the consumer gives nothing now: %s", m.Header.Get("Description"))
		default:
			return true, fmt.Errorf("the consumer refused: %s %s", status, m.Header.Get("Description"))
		}
	})
	return out, err
}

// pull asks for messages of a consumer. They come under their own subjects, so
// that the shared inbox could not tell whose they are.
func (l *Log) pull(ctx context.Context, subject string, body []byte, take func(*nats.Msg) (last bool, err error)) error {
	answers := make(chan *nats.Msg, 4)
	reply := l.conn.NATS().NewInbox()
	sub, err := l.conn.NATS().ChanSubscribe(reply, answers)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only if the connection has gone
	if err := l.conn.NATS().PublishRequest(subject, reply, body); err != nil {
		return err
	}
	return streams.EachAnswer(ctx, answers, take)
}

// Settle says what became of a delivery. The error is an invalid_request if the
// token is none of the consumer's.
func (l *Log) Settle(ctx context.Context, tenant, name, token string, as events.Settlement) error {
	if !ofConsumer(token, l.cfg.Names.Stream(assets.TimelineStream), consumerName(tenant, name)) {
		return events.Invalid("/token", "it is no token of this consumer")
	}
	switch as {
	case events.SettledBusy:
		return l.conn.NATS().Publish(token, []byte("+WPI"))
	case events.SettledAgain:
		return l.conn.NATS().Publish(token, []byte("-NAK"))
	default: // acknowledged, so that it is known to be over
		ctx, cancel := context.WithTimeout(ctx, streams.ReadTimeout)
		defer cancel()
		_, err := l.conn.NATS().RequestWithContext(ctx, token, []byte("+ACK"))
		return err
	}
}

// acknowledges is how the server names the acknowledgement of a message:
// $JS.ACK.{stream}.{consumer}.{5 numbers}, or with domain and hash of the account
// before the stream.
var acknowledges = regexp.MustCompile(`^\$JS\.ACK\.(?:[A-Za-z0-9_-]{1,64}\.[A-Za-z0-9]{1,16}\.)?([^.\s*>]+)\.([^.\s*>]+)(?:\.[0-9]{1,20}){5}$`)

// ofConsumer reports whether a subject acknowledges a message of a consumer.
func ofConsumer(token, stream, consumer string) bool {
	parts := acknowledges.FindStringSubmatch(token)
	return parts != nil && parts[1] == stream && parts[2] == consumer
}
