package streams

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"
)

// inbox receives the answers of requests that have many, such as a direct get of
// several messages, through one subscription for all of them.
type inbox struct {
	nc     Wire
	sub    *nats.Subscription
	prefix string

	ids atomic.Uint64 // that were made

	mu   sync.Mutex // guards what follows
	next uint64
	open map[string]chan *nats.Msg
}

// inboxDepth is how many answers of one request may wait to be read. A direct
// get never has more.
const inboxDepth = 1100

func newInbox(nc Wire) (*inbox, error) {
	in := &inbox{nc: nc, prefix: nc.NewInbox() + ".", open: map[string]chan *nats.Msg{}}
	sub, err := nc.Subscribe(in.prefix+"*", in.deliver)
	if err != nil {
		return nil, fmt.Errorf("subscribing to an inbox: %w", err)
	}
	in.sub = sub
	return in, nil
}

func (in *inbox) close() { _ = in.sub.Unsubscribe() }

func (in *inbox) deliver(m *nats.Msg) {
	token := strings.TrimPrefix(m.Subject, in.prefix)
	in.mu.Lock()
	c := in.open[token]
	in.mu.Unlock()
	if c == nil {
		return // an answer that came after its asker gave up
	}
	select {
	case c <- m:
	default: // more than was asked for; a direct get notices what it misses
	}
}

// expect begins to receive answers, of which depth may wait, and returns the subject to
// which they are to be sent. Call done when no more are wanted.
func (in *inbox) expect(depth int) (reply string, answers <-chan *nats.Msg, done func()) {
	c := make(chan *nats.Msg, depth)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.next++
	token := strconv.FormatUint(in.next, 36)
	in.open[token] = c
	return in.prefix + token, c, func() {
		in.mu.Lock()
		defer in.mu.Unlock()
		delete(in.open, token)
	}
}

// Expect begins to receive answers to what the caller publishes with the reply
// subject that it returns; depth of them may wait. Call done when no more are wanted.
func (c *Conn) Expect(depth int) (reply string, answers <-chan *nats.Msg, done func()) {
	return c.inbox.expect(depth)
}

// NewID returns an id that is a token of a subject. No other call, of no other Conn, returns it.
func (c *Conn) NewID() string {
	in := c.inbox
	own := strings.TrimSuffix(in.prefix, ".") // it is the only subscriber
	return own[strings.LastIndexByte(own, '.')+1:] + "-" + strconv.FormatUint(in.ids.Add(1), 36)
}

// ask sends a request that has so many answers at most, and calls handle with each
// until handle reports that it was the last, or ctx ends.
func (in *inbox) ask(ctx context.Context, subject string, body []byte, most int, handle func(*nats.Msg) (last bool, err error)) error {
	reply, answers, done := in.expect(most)
	defer done()
	if err := in.nc.PublishRequest(subject, reply, body); err != nil {
		return err
	}
	return EachAnswer(ctx, answers, handle)
}

// EachAnswer calls handle with each answer until handle reports that it was the last, or
// ctx ends.
func EachAnswer(ctx context.Context, answers <-chan *nats.Msg, handle func(*nats.Msg) (last bool, err error)) error {
	for {
		select {
		case m := <-answers:
			if last, err := handle(m); last || err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
