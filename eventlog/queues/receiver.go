package queues

import (
	"context"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// Receiver receives runs for a worker. It is for one goroutine.
type Receiver struct {
	conn *streams.Conn
	pull *pull
}

// runsAsked bounds the runs that are requested at a time.
const runsAsked = 256

// Next returns the next run, for a worker with that many free places. It requests no more
// runs than that, since a run that waits with a worker is redelivered to another one
// after RunWait. A message that names no run is dropped. The error is ErrClosed if there
// will be no other run, and temporary otherwise.
func (q *Receiver) Next(ctx context.Context, free int) (*Run, error) {
	for {
		m, err := q.pull.next(ctx, func() int { return min(max(free, 1), runsAsked) })
		if err != nil {
			return nil, err
		}
		if time.Since(q.pull.asked) > RunWait {
			continue // this process stood still: another worker may have the run; if not, it is redelivered
		}
		if r := q.run(m); r != nil {
			return r, nil
		}
		if err := acknowledge(q.conn.Wire(), ackDrop, m.Reply); err != nil {
			return nil, err
		}
	}
}

// run returns the run of a message, or nil if it names none.
func (q *Receiver) run(m *nats.Msg) *Run {
	tenant, execution, ok := q.conn.Config().Names.ParseRun(m.Subject)
	thread := m.Header.Get(headerThread)
	if !ok || !events.ValidThreadID(thread) {
		return nil
	}
	r := &Run{
		Tenant: tenant, Thread: thread, Execution: execution, Agent: m.Header.Get(headerAgent), Keeper: m.Header.Get(headerKeeper),
		delivery: delivery{wire: q.conn.Wire(), acks: []string{m.Reply}},
	}
	r.Version, _ = strconv.ParseInt(m.Header.Get(events.HeaderVersion), 10, 64) // 0 of one that was queued before it said so
	if meta, err := m.Metadata(); err == nil {
		r.Again = meta.NumDelivered > 1
	}
	return r
}

// back returns a message to the queue. One whose run another worker has begun goes to that worker:
// if it came again, it would be taken from it.
func (q *Receiver) back(m *nats.Msg) {
	r := q.run(m)
	switch {
	case r == nil, r.Keeper == "", r.Again:
		_ = acknowledge(q.conn.Wire(), ackRelease, m.Reply)
	default:
		_ = r.HandOver()
	}
}

// Coming returns how many runs were requested and have not arrived yet: each will need a
// place. It is safe for concurrent use.
func (q *Receiver) Coming() int { return int(q.pull.coming.Load()) }

// Close returns to the queue the runs that were requested and not taken. It waits for those that
// are on their way; that is short if the server of this connection leads the queue, and at most
// some seconds otherwise.
func (q *Receiver) Close() { q.pull.close() }
