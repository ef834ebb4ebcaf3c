package eventlog

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/streams"
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
// A run that its process began by itself has one before the queue has delivered
// it; see BegunRun. Safe for concurrent use.
type RunMessage struct {
	Tenant, Thread, Execution string
	Agent                     string // that is to run it, when it was put there
	Again                     bool   // it was delivered before
	Keeper                    string // the inbox of the worker that has begun it; "" if none had

	version int64 // of the thread, that asked for it; known of one that is put into the queue
	wire    streams.Wire

	mu   sync.Mutex // guards what follows
	acks []string   // where each delivery is acknowledged; none before the queue has delivered it
	told string     // what became of it; "" while it is in hand
}

// What a queue is told of a message.
const (
	ackDone    = "+ACK"
	ackWorking = "+WPI"
	ackRelease = "-NAK"
)

// Working says that the run is still in hand.
func (r *RunMessage) Working() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tell(ackWorking, r.acks...)
}

// Done takes the run out of the queue.
func (r *RunMessage) Done() error { return r.settle(ackDone) }

// Release gives the run back, to come again after a while.
func (r *RunMessage) Release(after time.Duration) error {
	if after <= 0 {
		return r.settle(ackRelease)
	}
	return r.settle(fmt.Sprintf(`%s {"delay": %d}`, ackRelease, after.Nanoseconds()))
}

func (r *RunMessage) settle(told string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = told
	return r.tell(told, r.acks...)
}

// Delivered reports whether the queue has delivered it.
func (r *RunMessage) Delivered() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.acks) > 0
}

// Settled reports whether the queue was told what became of the run, or will be
// when it has delivered it.
func (r *RunMessage) Settled() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.told != ""
}

// Takes takes over what the queue has delivered of the same run: what becomes
// of the run becomes of it.
func (r *RunMessage) Takes(m *RunMessage) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.acks = append(r.acks, m.acks...)
	if r.told == "" {
		return nil
	}
	return r.tell(r.told, m.acks...)
}

func (r *RunMessage) tell(what string, acks ...string) error {
	var errs []error
	for _, ack := range acks {
		errs = append(errs, r.wire.PublishMsg(&nats.Msg{Subject: ack, Data: []byte(what)}))
	}
	return errors.Join(errs...)
}

// Headers of a queued run: its thread, its agent, and the inbox of who has begun
// it, beside the thread's version that asked for it; and of one that is handed to
// that inbox, where it is acknowledged.
const (
	headerThread = "Skein-Thread"
	headerAgent  = "Skein-Agent"
	headerKeeper = "Skein-Keeper"
	headerAck    = "Skein-Ack"
)

// QueueRun puts an execution into the queue, which a thread's version asked to be
// run. It does not wait: what is lost is found by whoever compares the queue with
// the log; see HasRun.
func (l *Log) QueueRun(tenant, thread string, version int64, execution, agent string) error {
	return l.Queue(l.BegunRun(tenant, thread, version, execution, agent, ""))
}

// BegunRun gives the message of a run that this process begins by itself,
// before the queue has it. It is put there with Queue.
func (l *Log) BegunRun(tenant, thread string, version int64, execution, agent, keeper string) *RunMessage {
	return &RunMessage{Tenant: tenant, Thread: thread, version: version, Execution: execution, Agent: agent, Keeper: keeper, wire: l.conn.Wire()}
}

// Queue puts the execution into the queue, as QueueRun does, and says there who
// has begun it.
func (l *Log) Queue(r *RunMessage) error {
	header := nats.Header{headerThread: {r.Thread}, headerAgent: {r.Agent}, events.HeaderVersion: {strconv.FormatInt(r.version, 10)}}
	if r.Keeper != "" {
		header[headerKeeper] = []string{r.Keeper}
	}
	return l.conn.Wire().PublishMsg(&nats.Msg{Subject: l.cfg.Names.Run(r.Tenant, r.Execution), Header: header})
}

// HandOver gives a message to the worker that has begun its run. If that is no
// longer there, the message comes again when RunWait has passed.
func (r *RunMessage) HandOver() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wire.PublishMsg(&nats.Msg{Subject: r.Keeper, Header: nats.Header{headerAck: r.acks}, Data: []byte(r.Tenant + "." + r.Execution)})
}

// KeptRuns gives an inbox for the messages of runs that this process has begun
// and another one was given, and calls take with each until stop.
func (l *Log) KeptRuns(take func(*RunMessage)) (inbox string, stop func(), err error) {
	inbox = l.conn.Wire().NewInbox()
	sub, err := l.conn.Wire().Subscribe(inbox, func(m *nats.Msg) {
		tenant, execution, _ := strings.Cut(string(m.Data), ".")
		take(&RunMessage{Tenant: tenant, Execution: execution, Keeper: inbox, wire: l.conn.Wire(), acks: m.Header[headerAck]})
	})
	if err != nil {
		return "", nil, fmt.Errorf("subscribing to the inbox of runs: %w", err)
	}
	return inbox, func() { _ = sub.Unsubscribe() }, nil
}

// HasRun reports whether an execution is in the queue, waiting or in hand, as a
// thread's version asked for it, or a later one. A message of an earlier one does
// not count: it was acknowledged, and is there again because the server was killed
// before it knew for sure that it had taken it out. It may come to nobody.
func (l *Log) HasRun(ctx context.Context, tenant, execution string, version int64) (bool, error) {
	m, err := l.conn.Leader(ctx, l.cfg.Names.Stream(RunStream), streams.GetRequest{Last: l.cfg.Names.Run(tenant, execution)})
	if errors.Is(err, streams.ErrNoMessage) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	of, err := strconv.ParseInt(m.Header.Get(events.HeaderVersion), 10, 64)
	return err == nil && of >= version, nil
}

// RunQueue is a worker's end of the queue. It is for one goroutine.
type RunQueue struct {
	log      *Log
	consumer jetstream.Consumer
	ctx      context.Context // ends when it is closed
	cancel   context.CancelFunc
	asked    jetstream.MessageBatch // what is on its way; nil if nothing is
	since    time.Time              // when it was asked for
	forget   context.CancelFunc     // ends asking
	coming   atomic.Int64           // how many were asked for and have not come
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
	consumer, err := l.conn.JetStream().CreateOrUpdateConsumer(ctx, name, jetstream.ConsumerConfig{
		Durable: runConsumer, AckPolicy: jetstream.AckExplicitPolicy, AckWait: RunWait, MaxAckPending: runsUnderWay, MaxDeliver: -1,
	})
	if err != nil {
		return nil, fmt.Errorf("the queue of runs, stream %s: %w", name, err)
	}
	q := &RunQueue{log: l, consumer: consumer}
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
			n := min(max(free, 1), runsAsked)
			asked, err := q.consumer.Fetch(n, jetstream.FetchContext(asking), jetstream.FetchHeartbeat(runsBeat))
			if err != nil {
				forget()
				return nil, err
			}
			q.asked, q.forget = asked, forget
			q.coming.Store(int64(n))
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
			q.coming.Store(0)
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
		q.coming.Add(-1)
		if time.Since(q.since) > RunWait {
			continue // this process stood still: another worker may have the run by now; if not, it comes again
		}
		tenant, execution, ok := q.log.cfg.Names.ParseRun(m.Subject())
		thread := m.Headers().Get(headerThread)
		if !ok || !events.ValidThreadID(thread) {
			if err := m.Term(); err != nil {
				return nil, err
			}
			continue
		}
		r := &RunMessage{
			Tenant: tenant, Thread: thread, Execution: execution, Agent: m.Headers().Get(headerAgent), Keeper: m.Headers().Get(headerKeeper),
			wire: q.log.conn.Wire(), acks: []string{m.Reply()},
		}
		if meta, err := m.Metadata(); err == nil {
			r.Again = meta.NumDelivered > 1
		}
		return r, nil
	}
}

// Coming gives how many runs were asked for and have not come yet: each will want
// a place. Any goroutine may ask.
func (q *RunQueue) Coming() int { return int(q.coming.Load()) }

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
