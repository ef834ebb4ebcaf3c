package eventlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/events"
)

// The queue of runs.
const (
	runConsumer = "skein-workers"
	// RunWait is how long a run stays with a worker that says nothing of it.
	RunWait = 5 * time.Second
	// runsUnderWay bounds the runs that all workers have in hand.
	runsUnderWay = 65536
)

// RunMessage is one execution in the queue: it stays there until it is acknowledged,
// and comes to another worker when RunWait has passed without a word of this one.
type RunMessage struct {
	Tenant, Thread, Execution string
	Again                     bool // it was delivered before
	msg                       jetstream.Msg
}

// Working says that the run is still in hand.
func (r *RunMessage) Working() error { return r.msg.InProgress() }

// Done takes the run out of the queue.
func (r *RunMessage) Done() error { return r.msg.Ack() }

// Release gives the run back, to come again after a while.
func (r *RunMessage) Release(after time.Duration) error { return r.msg.NakWithDelay(after) }

// headerThread names the thread of a queued run.
const headerThread = "Skein-Thread"

// QueueRun puts an execution into the queue. It does not wait: what is lost is
// found by whoever compares the queue with the log; see HasRun.
func (l *Log) QueueRun(tenant, thread, execution string) error {
	return l.nc.PublishMsg(&nats.Msg{
		Subject: l.cfg.Names.Run(tenant, execution), Header: nats.Header{headerThread: {thread}},
	})
}

// HasRun reports whether an execution is in the queue, waiting or in hand.
func (l *Log) HasRun(ctx context.Context, tenant, execution string) (bool, error) {
	_, err := l.lastOf(ctx, l.cfg.Names.Stream(RunStream), l.cfg.Names.Run(tenant, execution))
	if errors.Is(err, errNoMessage) {
		return false, nil
	}
	return err == nil, err
}

// RunQueue is a worker's end of the queue.
type RunQueue struct {
	names events.Names
	msgs  jetstream.MessagesContext
}

// Runs opens the queue for a worker that has so many places.
func (l *Log) Runs(ctx context.Context, places int) (*RunQueue, error) {
	name := l.cfg.Names.Stream(RunStream)
	consumer, err := l.js.CreateOrUpdateConsumer(ctx, name, jetstream.ConsumerConfig{
		Durable: runConsumer, AckPolicy: jetstream.AckExplicitPolicy, AckWait: RunWait, MaxAckPending: runsUnderWay, MaxDeliver: -1,
	})
	if err != nil {
		return nil, fmt.Errorf("the queue of runs, stream %s: %w", name, err)
	}
	msgs, err := consumer.Messages(append(Beat(), jetstream.PullMaxMessages(max(1, places/2)), jetstream.PullThresholdMessages(max(0, places/4)))...)
	if err != nil {
		return nil, fmt.Errorf("the queue of runs, stream %s: %w", name, err)
	}
	return &RunQueue{names: l.cfg.Names, msgs: msgs}, nil
}

// ErrQueueClosed says that the queue was closed, or is no longer there.
var ErrQueueClosed = errors.New("the queue of runs was closed")

// Next gives the next run. A message that names none is dropped. The error is
// ErrQueueClosed when there will be no other, and may pass otherwise.
func (q *RunQueue) Next(ctx context.Context) (*RunMessage, error) {
	for {
		m, err := q.msgs.Next(jetstream.NextContext(ctx))
		switch {
		case errors.Is(err, jetstream.ErrMsgIteratorClosed), errors.Is(err, jetstream.ErrConsumerDeleted), errors.Is(err, jetstream.ErrConsumerNotFound):
			return nil, ErrQueueClosed
		case err != nil:
			return nil, err
		}
		tenant, execution, ok := q.names.ParseRun(m.Subject())
		thread := m.Headers().Get(headerThread)
		if !ok || !events.ValidThreadID(thread) {
			if err := m.Term(); err != nil {
				return nil, err
			}
			continue
		}
		r := &RunMessage{Tenant: tenant, Thread: thread, Execution: execution, msg: m}
		if meta, err := m.Metadata(); err == nil {
			r.Again = meta.NumDelivered > 1
		}
		return r, nil
	}
}

// Close gives back what was fetched and not taken.
func (q *RunQueue) Close() { q.msgs.Stop() }
