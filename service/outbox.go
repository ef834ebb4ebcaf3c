package service

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// stalledAfter is how long a message may take to be published before the connection
	// counts as stalled.
	stalledAfter = announceEvery
	// lateAfter is how long a message may wait to be published. One that waits longer, since
	// the connection is slow, is not sent: it would be late, and what it would leave is
	// forgotten too soon.
	lateAfter = returnedWithin / 2
)

// outbox publishes messages one after another, so that who puts one in need not wait for a
// connection that takes nothing. It is safe for concurrent use.
type outbox struct {
	conn   *nats.Conn
	unsent func(*nats.Msg) // receives what was surely not sent; must return at once
	queue  chan posted
	sent   chan struct{} // closed when it is closed, and all was published
	// connected is kept here, since a connection on which a write blocks does not tell.
	connected atomic.Bool

	mu     sync.Mutex // guards what follows
	closed bool
	since  time.Time // since when a message is being published; zero: none is
}

// posted is a message that waits to be published.
type posted struct {
	msg *nats.Msg
	at  time.Time
}

func newOutbox(conn *nats.Conn, unsent func(*nats.Msg)) *outbox {
	o := &outbox{conn: conn, unsent: unsent, queue: make(chan posted, mostKept), sent: make(chan struct{})}
	o.connected.Store(true)
	go o.publish()
	return o
}

// publish publishes what is put in, until the outbox is closed.
func (o *outbox) publish() {
	defer close(o.sent)
	for m := range o.queue {
		now := time.Now()
		if now.Sub(m.at) >= lateAfter {
			o.unsent(m.msg)
			continue
		}
		o.publishing(now)
		err := o.conn.PublishMsg(m.msg)
		o.publishing(time.Time{})
		o.connected.Store(!errors.Is(err, nats.ErrReconnectBufExceeded) && !errors.Is(err, nats.ErrConnectionClosed))
		if refused(err) {
			o.unsent(m.msg)
		}
	}
}

// refused reports whether the client refused a message before it wrote anything. After any
// other error the message may have arrived, and must not be taken for one that did not.
func refused(err error) bool {
	return errors.Is(err, nats.ErrReconnectBufExceeded) || errors.Is(err, nats.ErrConnectionClosed) ||
		errors.Is(err, nats.ErrConnectionDraining) || errors.Is(err, nats.ErrMaxPayload) ||
		errors.Is(err, nats.ErrBadSubject) || errors.Is(err, nats.ErrHeadersNotSupported)
}

func (o *outbox) publishing(since time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.since = since
}

// put puts a message in, and reports whether there was room.
func (o *outbox) put(m *nats.Msg) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	select {
	case o.queue <- posted{m, time.Now()}:
		return true
	default:
		return false
	}
}

// stalled reports whether the connection takes nothing.
func (o *outbox) stalled(now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.since.IsZero() && now.Sub(o.since) >= stalledAfter
}

// relieve takes out what waits for a stalled connection. Do not call it after close.
func (o *outbox) relieve(now time.Time) {
	if !o.stalled(now) {
		return
	}
	for range len(o.queue) {
		select {
		case m := <-o.queue:
			o.unsent(m.msg)
		default:
		}
	}
}

// close accepts no more, and reports whether all was published before ctx ended. What was
// not, is unsent. It may be called again.
func (o *outbox) close(ctx context.Context) bool {
	o.mu.Lock()
	if !o.closed {
		o.closed = true
		close(o.queue)
	}
	o.mu.Unlock()
	select {
	case <-o.sent:
		return true
	case <-ctx.Done():
		for m := range o.queue {
			o.unsent(m.msg)
		}
	}
	o.mu.Lock()
	blocked := !o.since.IsZero()
	o.mu.Unlock()
	if !blocked {
		<-o.sent
	}
	return !blocked
}
