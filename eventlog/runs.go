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
	Agent                     string // that is to run it, when it was put there
	Again                     bool   // it was delivered before
	msg                       jetstream.Msg
}

// Working says that the run is still in hand.
func (r *RunMessage) Working() error { return r.msg.InProgress() }

// Done takes the run out of the queue.
func (r *RunMessage) Done() error { return r.msg.Ack() }

// Release gives the run back, to come again after a while.
func (r *RunMessage) Release(after time.Duration) error { return r.msg.NakWithDelay(after) }

// Headers of a queued run: its thread, and its agent.
const (
	headerThread = "Skein-Thread"
	headerAgent  = "Skein-Agent"
)

// QueueRun puts an execution into the queue. It does not wait: what is lost is
// found by whoever compares the queue with the log; see HasRun.
func (l *Log) QueueRun(tenant, thread, execution, agent string) error {
	return l.wire.PublishMsg(&nats.Msg{
		Subject: l.cfg.Names.Run(tenant, execution), Header: nats.Header{headerThread: {thread}, headerAgent: {agent}},
	})
}

// HasRun reports whether an execution is in the queue, waiting or in hand.
func (l *Log) HasRun(ctx context.Context, tenant, execution string) (bool, error) {
	_, err := l.leader(ctx, l.cfg.Names.Stream(RunStream), getRequest{Last: l.cfg.Names.Run(tenant, execution)})
	if errors.Is(err, errNoMessage) {
		return false, nil
	}
	return err == nil, err
}

// RunQueue is a worker's end of the queue. It is for one goroutine.
type RunQueue struct {
	names    events.Names
	consumer jetstream.Consumer
	ctx      context.Context // ends when it is closed
	cancel   context.CancelFunc
	asked    jetstream.MessageBatch // what is on its way; nil if nothing is
	since    time.Time              // when it was asked for
	forget   context.CancelFunc     // ends asking
}

// How runs are asked for.
const (
	runsAsked = 256             // at most, at a time
	runsBeat  = time.Second     // how often the server says that it has not forgotten
	runsWait  = 3 * time.Second // how long what was asked for is waited for: a worker that stands still is given runs for no longer
)

// Runs opens the queue for a worker.
func (l *Log) Runs(ctx context.Context) (*RunQueue, error) {
	name := l.cfg.Names.Stream(RunStream)
	consumer, err := l.js.CreateOrUpdateConsumer(ctx, name, jetstream.ConsumerConfig{
		Durable: runConsumer, AckPolicy: jetstream.AckExplicitPolicy, AckWait: RunWait, MaxAckPending: runsUnderWay, MaxDeliver: -1,
	})
	if err != nil {
		return nil, fmt.Errorf("the queue of runs, stream %s: %w", name, err)
	}
	q := &RunQueue{names: l.cfg.Names, consumer: consumer}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	return q, nil
}

// ErrQueueClosed says that the queue was closed, or is no longer there.
var ErrQueueClosed = errors.New("the queue of runs was closed")

// Next gives the next run, to a worker that has so many places free: no more
// than that are asked for, since a run that lies with a worker comes to another
// one when RunWait has passed. A message that names none is dropped. The error
// is ErrQueueClosed when there will be no other, and may pass otherwise.
func (q *RunQueue) Next(ctx context.Context, free int) (*RunMessage, error) {
	for {
		if q.asked == nil {
			asking, forget := context.WithTimeout(q.ctx, runsWait)
			q.since = time.Now()
			asked, err := q.consumer.Fetch(min(max(free, 1), runsAsked), jetstream.FetchContext(asking), jetstream.FetchHeartbeat(runsBeat))
			if err != nil {
				forget()
				return nil, err
			}
			q.asked, q.forget = asked, forget
		}
		var m jetstream.Msg
		select {
		case m = <-q.asked.Messages():
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if m == nil {
			err := q.asked.Error()
			q.asked = nil
			q.forget()
			switch {
			case q.ctx.Err() != nil:
				return nil, ErrQueueClosed
			case err == nil, errors.Is(err, context.DeadlineExceeded), errors.Is(err, jetstream.ErrNoHeartbeat): // the server was restarted
				continue
			case errors.Is(err, jetstream.ErrConsumerDeleted), errors.Is(err, jetstream.ErrConsumerNotFound),
				errors.Is(err, nats.ErrNoResponders):
				return nil, ErrQueueClosed
			}
			return nil, err
		}
		if time.Since(q.since) > RunWait {
			continue // this process stood still: another worker may have the run by now; if not, it comes again
		}
		tenant, execution, ok := q.names.ParseRun(m.Subject())
		thread := m.Headers().Get(headerThread)
		if !ok || !events.ValidThreadID(thread) {
			if err := m.Term(); err != nil {
				return nil, err
			}
			continue
		}
		r := &RunMessage{Tenant: tenant, Thread: thread, Execution: execution, Agent: m.Headers().Get(headerAgent), msg: m}
		if meta, err := m.Metadata(); err == nil {
			r.Again = meta.NumDelivered > 1
		}
		return r, nil
	}
}

// Close gives back what was asked for and not taken.
func (q *RunQueue) Close() {
	q.cancel()
	if q.asked == nil {
		return
	}
	for m := range q.asked.Messages() {
		_ = m.Nak() // or it comes again when RunWait has passed
	}
}
