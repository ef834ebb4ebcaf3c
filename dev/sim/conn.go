package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// maxPayload is what the server takes.
const maxPayload = 4 << 20

// Conn is a connection to the simulated server: the log's wire. What is sent on
// it waits until the scheduler lets it arrive; so does every answer.
type Conn struct {
	run    *Run
	name   string
	closed chan struct{}

	mu        sync.Mutex // guards what follows
	fresh     []*frame   // sent since the scheduler last looked
	away      bool       // the connection is lost, and will be re-established
	life      int        // how often it was made
	batch     []*nats.Msg
	inbox     nats.MsgHandler
	listeners []chan nats.Status
	over      bool
}

// frame is something that is sent to the server, and what becomes of it.
type frame struct {
	conn   *Conn
	flow   string            // what is sent on one flow arrives in its order; "": it has no order
	label  string            // tells frames apart that are sent at the same moment
	life   int               // of the connection
	run    func(*Server) any // what the server does
	back   func(any)         // takes the answer; nil: nobody waits
	answer any
	after  time.Time // it is held until then
	parts  int       // messages of which it is made
	lose   int       // the part that is lost; 0: none
}

func newConn(r *Run, name string) *Conn {
	return &Conn{run: r, name: name, closed: make(chan struct{})}
}

// send hands a frame to the scheduler.
func (c *Conn) send(f *frame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return nats.ErrConnectionClosed
	}
	f.conn, f.life = c, c.life
	c.fresh = append(c.fresh, f)
	return nil
}

// call sends a frame and waits for its answer.
func (c *Conn) call(ctx context.Context, f *frame) (any, error) {
	answers, err := c.begin(f)
	if err != nil {
		return nil, err
	}
	return c.await(ctx, answers)
}

// begin sends a frame, and returns the channel of its answer.
func (c *Conn) begin(f *frame) (<-chan any, error) {
	answers := make(chan any, 1)
	f.back = func(a any) {
		select {
		case answers <- a:
		default: // it was answered before
		}
	}
	return answers, c.send(f)
}

// await waits for an answer.
func (c *Conn) await(ctx context.Context, answers <-chan any) (any, error) {
	select {
	case a := <-answers:
		if err, bad := a.(error); bad {
			return nil, err
		}
		return a, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-c.closed:
		return nil, nats.ErrConnectionClosed
	}
}

// publishing makes the frame of messages, of which the last is answered.
func (c *Conn) publishing(msgs ...*nats.Msg) *frame {
	f := &frame{parts: len(msgs)}
	m := msgs[len(msgs)-1]
	f.flow = streamOf(m.Subject)         // it takes them in their order
	if strings.Contains(f.flow, "LOG") { // the appender's goroutines send at once
		f.label = msgs[0].Subject
	}
	f.run = func(s *Server) any {
		var last any = nats.ErrNoResponders
		for i, m := range msgs {
			if i+1 == f.lose {
				last = nil
				continue
			}
			if answer, ok := s.Publish(m); ok && answer != nil {
				last = answer
			} else if ok {
				last = nil
			}
		}
		return last
	}
	return f
}

// whole takes messages of a batch until it is whole.
func (c *Conn) whole(m *nats.Msg) []*nats.Msg {
	m = copied(m)
	if m.Header.Get(headerBatchID) == "" {
		return []*nats.Msg{m}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.Header.Get(headerBatchSequence) == "1" {
		c.batch = nil
	}
	c.batch = append(c.batch, m)
	if m.Header.Get(headerBatchCommit) == "" {
		return nil
	}
	return c.batch
}

// copied returns a copy of a message, as on the wire: the sender may change the original.
func copied(m *nats.Msg) *nats.Msg {
	c := &nats.Msg{Subject: m.Subject, Data: bytes.Clone(m.Data), Header: make(nats.Header, len(m.Header))}
	for name, values := range m.Header {
		c.Header[name] = slices.Clone(values)
	}
	return c
}

// PublishMsg implements streams.Wire.
func (c *Conn) PublishMsg(m *nats.Msg) error {
	if msgs := c.whole(m); msgs != nil {
		return c.send(c.publishing(msgs...))
	}
	return nil
}

// RequestMsg implements streams.Wire.
func (c *Conn) RequestMsg(m *nats.Msg, timeout time.Duration) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	answer, err := c.RequestMsgWithContext(ctx, m)
	if errors.Is(err, context.DeadlineExceeded) {
		err = nats.ErrTimeout
	}
	return answer, err
}

// RequestMsgWithContext implements streams.Wire.
func (c *Conn) RequestMsgWithContext(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
	msgs := c.whole(m)
	if len(m.Data) > maxPayload {
		return nil, nats.ErrMaxPayload
	}
	a, err := c.call(ctx, c.publishing(msgs...))
	if err != nil {
		return nil, err
	}
	return a.(*nats.Msg), nil
}

// RequestWithContext implements streams.Wire.
func (c *Conn) RequestWithContext(ctx context.Context, subject string, data []byte) (*nats.Msg, error) {
	a, err := c.call(ctx, &frame{label: subject + string(data), run: func(s *Server) any {
		answers, ok := s.Ask(subject, data)
		if !ok {
			return nats.ErrNoResponders
		}
		return answers[0]
	}})
	if err != nil {
		return nil, err
	}
	return a.(*nats.Msg), nil
}

// PublishRequest implements streams.Wire. The answers go to the inbox.
func (c *Conn) PublishRequest(subject, reply string, data []byte) error {
	return c.send(&frame{
		label: subject + string(data),
		run: func(s *Server) any {
			answers, ok := s.Ask(subject, data)
			if !ok {
				answers = []*nats.Msg{status("503", "")}
			}
			return answers
		},
		back: func(a any) {
			for _, m := range a.([]*nats.Msg) {
				to := *m
				to.Subject = reply
				c.inbox(&to)
			}
		},
	})
}

// Subscribe implements streams.Wire, for the one inbox that the log has.
func (c *Conn) Subscribe(_ string, deliver nats.MsgHandler) (*nats.Subscription, error) {
	c.inbox = deliver
	return &nats.Subscription{}, nil
}

// NewInbox implements streams.Wire, for the one inbox that the log has.
func (c *Conn) NewInbox() string {
	return fmt.Sprintf("_INBOX.%s%d", c.name, time.Since(c.run.begun).Nanoseconds()) // a process that comes back has another
}

// IsConnected implements streams.Wire.
func (c *Conn) IsConnected() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.away && !c.over
}

// IsClosed implements streams.Wire.
func (c *Conn) IsClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over
}

// MaxPayload implements streams.Wire.
func (c *Conn) MaxPayload() int64 { return maxPayload }

// Stats implements streams.Wire: it counts reconnections, and nothing else.
func (c *Conn) Stats() nats.Statistics {
	c.mu.Lock()
	defer c.mu.Unlock()
	return nats.Statistics{Reconnects: uint64(c.life)}
}

// StatusChanged implements streams.Wire: it reports reconnections.
func (c *Conn) StatusChanged(...nats.Status) chan nats.Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	told := make(chan nats.Status, 10)
	c.listeners = append(c.listeners, told)
	return told
}

// RemoveStatusListener implements streams.Wire.
func (c *Conn) RemoveStatusListener(listener chan nats.Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, l := range c.listeners {
		if l == listener {
			c.listeners = append(c.listeners[:i], c.listeners[i+1:]...)
			return
		}
	}
}

// cut loses the connection.
func (c *Conn) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away = true
}

// mend re-establishes it.
func (c *Conn) mend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away = false
	c.life++
	for _, l := range c.listeners {
		select {
		case l <- nats.CONNECTED:
		default:
		}
	}
}

// end closes it for ever: everything on it fails at once.
func (c *Conn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.over = true
		close(c.closed)
	}
}
