package queues

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/streams"
)

const (
	dueConsumer = "skein-due"
	dueInHand   = 10000 // at all receivers together
)

// Due is a timer that has fired. It stays in the queue until it is settled. It is safe for
// concurrent use.
type Due struct {
	Tenant, Thread, ID string
	Seq                uint64 // of the message
	Data               []byte // as it was set

	delivery
}

// Drop removes what cannot be handled from the queue, also if it has come again.
func (d *Due) Drop() error { return d.settle(ackDrop) }

// DueReceiver receives due messages. It is for one goroutine.
type DueReceiver struct {
	conn *streams.Conn
	pull *pull
}

// Receive returns a receiver of due messages, which all receivers share. A message that
// is neither settled nor reported to be in progress within wait is redelivered.
func (q Timers) Receive(ctx context.Context, wait time.Duration) (*DueReceiver, error) {
	c, err := q.conn.JetStream().CreateOrUpdateConsumer(ctx, q.stream(), jetstream.ConsumerConfig{
		Durable: dueConsumer, Description: "Skein: what is due.", FilterSubject: q.conn.Config().Names.Due("*", "*", "*"),
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: wait, MaxDeliver: -1, MaxAckPending: dueInHand,
	})
	if err != nil {
		return nil, fmt.Errorf("the consumer of what is due: %w", err)
	}
	return &DueReceiver{conn: q.conn, pull: newPull(q.conn, c)}, nil
}

// Next returns the next due message. free is called when messages are requested, and returns
// how many; 0: none, because ctx has ended. The error is ErrClosed if there will be no other
// message, and temporary otherwise.
func (q *DueReceiver) Next(ctx context.Context, free func() int) (*Due, error) {
	m, err := q.pull.next(ctx, free)
	if err != nil {
		return nil, err
	}
	d := &Due{Data: m.Data, delivery: delivery{wire: q.conn.Wire(), acks: []string{m.Reply}}}
	d.Tenant, d.Thread, d.ID, _ = q.conn.Config().Names.ParseTimer(m.Subject) // the consumer has no others
	meta, err := m.Metadata()
	if err != nil {
		return nil, fmt.Errorf("a due message: %w", err)
	}
	d.Seq = meta.Sequence.Stream
	return d, nil
}

// Close returns to the queue the messages that were requested and not taken. It waits as
// [Receiver.Close] does.
func (q *DueReceiver) Close() { q.pull.close() }
