package queues

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// Receiver receives runs for a worker. It is for one goroutine.
type Receiver struct {
	conn     *streams.Conn
	consumer jetstream.Consumer
	ctx      context.Context // ends when it is closed
	cancel   context.CancelFunc
	asked    jetstream.MessageBatch // requested and on its way; nil if nothing is
	since    time.Time              // when it was requested
	forget   context.CancelFunc     // ends the request
	coming   atomic.Int64           // how many were requested and have not arrived
}

// Parameters of requests for runs.
const (
	runsAsked = 256             // at most, at a time
	runsBeat  = time.Second     // between heartbeats of the server
	runsWait  = 3 * time.Second // how long what was asked for is waited for: a worker that stands still is given runs for no longer
)

// ErrClosed means that the queue of runs was closed, or no longer exists.
var ErrClosed = errors.New("the queue of runs was closed")

// Next returns the next run, for a worker with that many free places. It requests no more
// runs than that, since a run that waits with a worker is redelivered to another one
// after RunWait. A message that names no run is dropped. The error is ErrClosed if there
// will be no other run, and temporary otherwise.
func (q *Receiver) Next(ctx context.Context, free int) (*Run, error) {
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
				return nil, ErrClosed
			case err == nil, errors.Is(err, context.DeadlineExceeded), errors.Is(err, jetstream.ErrNoHeartbeat): // the server was restarted
				continue
			case errors.Is(err, jetstream.ErrConsumerDeleted), errors.Is(err, jetstream.ErrConsumerNotFound),
				errors.Is(err, nats.ErrNoResponders):
				return nil, ErrClosed
			}
			return nil, err
		}
		q.coming.Add(-1)
		if time.Since(q.since) > RunWait {
			continue // this process stood still: another worker may have the run; if not, it is redelivered
		}
		tenant, execution, ok := q.conn.Config().Names.ParseRun(m.Subject())
		thread := m.Headers().Get(headerThread)
		if !ok || !events.ValidThreadID(thread) {
			if err := m.Term(); err != nil {
				return nil, err
			}
			continue
		}
		r := &Run{
			Tenant: tenant, Thread: thread, Execution: execution, Agent: m.Headers().Get(headerAgent), Keeper: m.Headers().Get(headerKeeper),
			wire: q.conn.Wire(), acks: []string{m.Reply()},
		}
		r.Version, _ = strconv.ParseInt(m.Headers().Get(events.HeaderVersion), 10, 64) // 0 of one that was queued before it said so
		if meta, err := m.Metadata(); err == nil {
			r.Again = meta.NumDelivered > 1
		}
		return r, nil
	}
}

// Coming returns how many runs were requested and have not arrived yet: each will need a
// place. It is safe for concurrent use.
func (q *Receiver) Coming() int { return int(q.coming.Load()) }

// Close returns to the queue the runs that were requested and not taken.
func (q *Receiver) Close() {
	q.cancel()
	if q.asked == nil {
		return
	}
	for m := range q.asked.Messages() {
		_ = m.Nak() // or it comes again when RunWait has passed
	}
}
