package queues

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// The queue of runs.
const (
	runConsumer = "skein-workers"
	// RunWait is how long a run stays with a worker that does not report on it.
	RunWait = 5 * time.Second
	// runsInProgress bounds the runs of all workers.
	runsInProgress = 65536
)

// Runs is the queue of executions that wait for a worker, or have one.
type Runs struct{ conn *streams.Conn }

// RunsOf returns the queue of runs of a log.
func RunsOf(log *eventlog.Log) Runs { return Runs{log.Streams()} }

func (q Runs) stream() string { return q.conn.Config().Names.Stream(assets.RunStream) }

// Headers of a queued run: its thread, its agent, and the inbox of the worker that has
// begun it, besides the thread's version that asked for it; and of one that is handed to
// that inbox, where it is acknowledged.
const (
	headerThread = "Skein-Thread"
	headerAgent  = "Skein-Agent"
	headerKeeper = "Skein-Keeper"
	headerAck    = "Skein-Ack"
)

// Put adds an execution to the queue, as requested by a version of its thread. It does
// not wait: a lost message is found by comparing the queue with the log; see Has.
func (q Runs) Put(tenant, thread string, version int64, execution, agent string) error {
	return q.PutBegun(q.Begin(tenant, thread, version, execution, agent, ""))
}

// Begin returns the message of a run that this process begins by itself, before the
// queue has it. Add it with PutBegun.
func (q Runs) Begin(tenant, thread string, version int64, execution, agent, keeper string) *Run {
	return &Run{Tenant: tenant, Thread: thread, Version: version, Execution: execution, Agent: agent, Keeper: keeper, delivery: delivery{wire: q.conn.Wire()}}
}

// PutBegun adds the execution to the queue, as Put does, with the worker that has begun
// it.
func (q Runs) PutBegun(r *Run) error {
	header := nats.Header{headerThread: {r.Thread}, headerAgent: {r.Agent}, events.HeaderVersion: {strconv.FormatInt(r.Version, 10)}}
	if r.Keeper != "" {
		header[headerKeeper] = []string{r.Keeper}
	}
	return q.conn.Wire().PublishMsg(&nats.Msg{Subject: q.conn.Config().Names.Run(r.Tenant, r.Execution), Header: header})
}

// Handed returns an inbox for runs that this process has begun and the queue delivered to
// another worker, and calls receive with each until stop, which returns when those that have arrived
// are answered: the other worker would wait for an answer in vain. receive reports whether this
// process executes the run.
func (q Runs) Handed(receive func(*Run) bool) (inbox string, stop func(), err error) {
	wire := q.conn.Wire()
	inbox = wire.NewInbox()
	sub, err := wire.Subscribe(inbox, func(m *nats.Msg) {
		tenant, execution, _ := strings.Cut(string(m.Data), ".")
		answer := &nats.Msg{Subject: m.Reply}
		if !receive(&Run{Tenant: tenant, Thread: m.Header.Get(headerThread), Execution: execution, Keeper: inbox, delivery: delivery{wire: wire, acks: m.Header[headerAck]}}) {
			answer.Data = []byte(notHeld)
		}
		if m.Reply != "" { // "": of a release that waits for no answer
			_ = wire.PublishMsg(answer) // if it is lost, the message is redelivered
		}
	})
	if err != nil {
		return "", nil, fmt.Errorf("subscribing to the inbox of runs: %w", err)
	}
	ended := make(chan struct{})
	sub.SetClosedHandler(func(string) { close(ended) })
	return inbox, func() {
		if !wire.IsConnected() || sub.Drain() != nil {
			_ = sub.Unsubscribe()
			return
		}
		select {
		case <-ended:
		case <-time.After(handOverWait): // nobody waits any more
			_ = sub.Unsubscribe()
		}
	}, nil
}

// Has reports whether a thread's execution is in the queue, waiting or in progress, as requested
// by that version of the thread or a later one. A message of an earlier one does not
// count: it was acknowledged, and is there again because the server was killed before the
// acknowledgement was on its disk. It may never be delivered. Nor does the message of another
// thread's execution with the same id, which has replaced this one's.
func (q Runs) Has(ctx context.Context, tenant, thread, execution string, version int64) (bool, error) {
	m, err := q.message(ctx, tenant, thread, execution)
	if m == nil || err != nil {
		return false, err
	}
	of, err := strconv.ParseInt(m.Header.Get(events.HeaderVersion), 10, 64)
	return err == nil && of >= version, nil
}

// message returns the message of a thread's execution, nil if there is none.
func (q Runs) message(ctx context.Context, tenant, thread, execution string) (*streams.Message, error) {
	m, err := q.conn.Leader(ctx, q.stream(), streams.GetRequest{Last: q.conn.Config().Names.Run(tenant, execution)})
	if errors.Is(err, streams.ErrNoMessage) || err == nil && m.Header.Get(headerThread) != thread {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &m, nil
}

// Receive returns a receiver for a worker.
func (q Runs) Receive(ctx context.Context) (*Receiver, error) {
	name := q.stream()
	consumer, err := q.conn.JetStream().CreateOrUpdateConsumer(ctx, name, jetstream.ConsumerConfig{
		Durable: runConsumer, AckPolicy: jetstream.AckExplicitPolicy, AckWait: RunWait, MaxAckPending: runsInProgress, MaxDeliver: -1,
	})
	if err != nil {
		return nil, fmt.Errorf("the queue of runs, stream %s: %w", name, err)
	}
	r := &Receiver{conn: q.conn, pull: newPull(q.conn, consumer)}
	r.pull.back = r.back
	return r, nil
}

// Depth returns the number of messages in the queue.
func (q Runs) Depth(ctx context.Context) (Depth, error) {
	return depth(ctx, q.conn, q.stream(), runConsumer)
}

// Erase erases the messages of a thread's executions, and none of another thread's with the same id.
func (q Runs) Erase(ctx context.Context, tenant, thread string, executions []string) error {
	var errs []error
	for _, id := range executions {
		m, err := q.message(ctx, tenant, thread, id)
		if m != nil {
			err = q.conn.Erase(ctx, q.stream(), q.conn.Config().Names.Run(tenant, id), m.Seq+1)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
