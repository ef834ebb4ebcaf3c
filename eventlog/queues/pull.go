package queues

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/streams"
)

// Parameters of requests for messages.
const (
	pullWait = 3 * time.Second // how long a request is open: a worker that stands still is given messages for no longer
	pullBeat = time.Second     // between heartbeats of the server; a request that misses two is given up
)

// ErrClosed means that a queue was closed, or no longer exists.
var ErrClosed = errors.New("the queue was closed")

// errSilent means that a server does not answer a request any more.
var errSilent = errors.New("no heartbeat")

// pull asks a consumer for messages, with one request at a time. The server may still send
// messages for a request that is given up: they go back to the queue at once. The client's own
// Fetch drops them, so that they come again only when the consumer's wait for an acknowledgement
// has passed. It is for one goroutine, but for the number of messages that are coming.
type pull struct {
	conn     *streams.Conn
	consumer jetstream.Consumer
	subject  string          // of requests
	back     func(*nats.Msg) // returns a message to the queue
	open     *request        // nil if none is
	asked    time.Time
	coming   atomic.Int64   // how many messages were requested and have not arrived
	ending   sync.WaitGroup // requests that were given up
	closed   bool
}

func newPull(conn *streams.Conn, consumer jetstream.Consumer) *pull {
	of := consumer.CachedInfo()
	return &pull{
		conn: conn, consumer: consumer, subject: conn.Config().API + ".CONSUMER.MSG.NEXT." + of.Stream + "." + of.Name,
		back: func(m *nats.Msg) { _ = acknowledge(conn.Wire(), ackRelease, m.Reply) },
	}
}

// request is an open request for messages.
type request struct {
	sub   *nats.Subscription
	most  int
	got   int
	msgs  chan *nats.Msg // messages, and what ends the request; closed with the subscription
	beats chan struct{}
}

// next returns the next message. If no request is open, it makes one for as many as free returns;
// 0: the error is that of ctx. The error is ErrClosed if there will be no other message, and
// temporary otherwise.
func (p *pull) next(ctx context.Context, free func() int) (*nats.Msg, error) {
	for !p.closed {
		if p.open == nil {
			n := free()
			if n <= 0 {
				return nil, ctx.Err()
			}
			if err := p.ask(n); err != nil {
				return nil, err
			}
		}
		r := p.open
		m, err := r.next(ctx)
		switch {
		case errors.Is(err, errSilent): // the server was restarted
			p.giveUp()
			continue
		case err != nil:
			return nil, err
		case m == nil:
			p.open = nil
			return nil, nats.ErrConnectionClosed
		case !ends(m):
			p.coming.Add(-1)
			if r.got++; r.got == r.most {
				p.over()
			}
			return m, nil
		}
		if err := p.ended(m); err != nil {
			return nil, err
		}
	}
	return nil, ErrClosed
}

// ask makes a request for n messages.
func (p *pull) ask(n int) error {
	r := &request{most: n, msgs: make(chan *nats.Msg, n+1), beats: make(chan struct{}, 1)}
	inbox := p.conn.Wire().NewInbox()
	sub, err := p.conn.Wire().Subscribe(inbox, r.receive)
	if err != nil {
		return fmt.Errorf("asking for messages: %w", err)
	}
	sub.SetClosedHandler(func(string) { close(r.msgs) })
	r.sub = sub
	body := fmt.Appendf(nil, `{"expires": %d, "batch": %d, "idle_heartbeat": %d}`, pullWait, n, pullBeat)
	if err := p.conn.Wire().PublishRequest(p.subject, inbox, body); err != nil {
		_ = sub.Unsubscribe()
		return fmt.Errorf("asking for messages: %w", err)
	}
	p.open, p.asked = r, time.Now()
	p.coming.Store(int64(n))
	return nil
}

// ended ends the open request, because of what the server said, and returns it as an error if the
// request has not just expired.
func (p *pull) ended(m *nats.Msg) error {
	code, why := m.Header.Get("Status"), m.Header.Get("Description")
	switch {
	case code == "408", code == "404":
		p.over()
		return nil
	case code == "503", strings.EqualFold(why, "Consumer Deleted"):
		p.over()
		return ErrClosed
	}
	p.giveUp() // another server may say so while messages of the one that led the consumer are on their way
	return fmt.Errorf("the server ended a request for messages: %s %s", code, why)
}

// over forgets the open request, for which the server sends nothing any more.
func (p *pull) over() {
	_ = p.open.sub.Unsubscribe()
	p.open = nil
	p.coming.Store(0)
}

// giveUp forgets the open request, and returns to the queue what the server still sends for it.
func (p *pull) giveUp() {
	if r := p.open; r != nil {
		p.open = nil
		p.coming.Store(0)
		p.ending.Go(func() { p.handBack(r) })
	}
}

// handBack returns to the queue what the server has sent, or still sends, for a request. The
// server forgets a request when it has filled it, when it expires, and when nobody is subscribed to
// its inbox. The last is quick, and exact if the server that leads the consumer also has this
// connection: what it has sent before it knows that the subscription has ended arrives here, and
// what it sends later it queues again at once. Messages from another server may cross the news,
// and are lost. The end of the request is then awaited.
func (p *pull) handBack(r *request) {
	late := time.NewTimer(pullWait + pullBeat)
	defer late.Stop()
	if p.near() {
		p.drain(r)
	}
	for {
		select {
		case m, open := <-r.msgs:
			switch {
			case !open:
				return
			case ends(m):
				p.drain(r)
				continue
			}
			p.ending.Go(func() { p.back(m) })
			if r.got++; r.got == r.most {
				p.drain(r)
			}
		case <-late.C:
			_ = r.sub.Unsubscribe()
		}
	}
}

// drain ends a request's subscription when all that the server has sent to it has arrived. Nothing
// arrives from a connection that is gone.
func (p *pull) drain(r *request) {
	if !p.conn.Wire().IsConnected() || r.sub.Drain() != nil {
		_ = r.sub.Unsubscribe()
	}
}

// near reports whether the server that leads the consumer, which may be the only one, has this
// connection, or none has.
func (p *pull) near() bool {
	if !p.conn.Wire().IsConnected() {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), pullBeat)
	defer cancel()
	info, err := p.consumer.Info(ctx)
	return err == nil && (info.Cluster == nil || info.Cluster.Leader == p.conn.NATS().ConnectedServerName())
}

// close returns to the queue the messages that were requested and not taken, and waits until the
// server sends no more.
func (p *pull) close() {
	p.closed = true
	p.giveUp()
	p.ending.Wait()
}

// receive takes what the server sends for a request. There is room for all of it.
func (r *request) receive(m *nats.Msg) {
	if !ends(m) || m.Header.Get("Status") != "100" {
		r.msgs <- m
		return
	}
	select {
	case r.beats <- struct{}{}:
	default:
	}
}

// next returns the next message, or what ended the request; nil if the connection was closed.
func (r *request) next(ctx context.Context) (*nats.Msg, error) {
	silence := time.NewTimer(2 * pullBeat)
	defer silence.Stop()
	for {
		select {
		case m := <-r.msgs:
			return m, nil
		case <-r.beats:
			silence.Reset(2 * pullBeat)
		case <-silence.C:
			select {
			case m := <-r.msgs: // this process stood still
				return m, nil
			default:
			}
			return nil, errSilent
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// ends reports whether a message is of the server itself: it cannot be acknowledged.
func ends(m *nats.Msg) bool { return m.Reply == "" }
