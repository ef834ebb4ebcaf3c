package remote

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
)

// Reasons for which this process ends a call: no heartbeat arrives, or the connection
// was closed.
var (
	errSilent = errors.New("silence")
	errLost   = errors.New("the NATS connection was closed")
)

// caller sends requests to the processes on one subject.
type caller struct {
	nc    *nats.Conn
	names events.Names
	callee
}

// protocol returns how a call is to be answered.
func (c *caller) protocol() protocol {
	p := c.callee.protocol(c.limit())
	p.Cancel = c.names.Cancel(rand.Text())
	return p
}

func (c *caller) limit() int64 {
	if most := c.nc.MaxPayload(); most > 0 {
		return min(int64(c.maxBytes), most)
	}
	return int64(c.maxBytes)
}

// call sends a request, passes chunks on, and returns the body of the result. whole is
// the request that body refers to, if it exceeds a message.
func (c *caller) call(ctx context.Context, p protocol, body []byte, whole *parcel, chunk func(runtime.Chunk)) (result []byte, err error) {
	if most := c.nc.MaxPayload(); most > 0 && int64(len(body)) > most {
		return nil, events.TooLarge("the request on "+c.address, int64(len(body)), most)
	}
	if !c.nc.IsConnected() { // a request that waits for a connection would arrive after its call has ended
		return nil, c.notMade("there is no connection to the NATS server")
	}
	waiting, end := context.WithCancelCause(ctx)
	defer end(nil)
	// Not a synchronous subscription: each of those buffers up to 65,536 messages.
	inbox, messages := c.nc.NewInbox(), make(chan *nats.Msg)
	sub, err := c.nc.Subscribe(inbox, func(m *nats.Msg) {
		select {
		case messages <- m:
		case <-waiting.Done():
		}
	})
	if err != nil {
		return nil, c.notMade("cannot subscribe on the NATS connection: %w", err)
	}
	sub.SetClosedHandler(func(string) { end(errLost) })
	defer func() { _ = sub.Unsubscribe() }() // fails only if the connection is closed
	mostMessages, mostBytes := nats.DefaultSubPendingMsgsLimit, int(streamOf*c.limit())
	if err := sub.SetPendingLimits(mostMessages, mostBytes); err != nil {
		return nil, c.notMade("cannot subscribe on the NATS connection: %w", err)
	}
	if err := c.nc.PublishRequest(c.address, inbox, body); err != nil {
		return nil, c.notMade("the request could not be sent: %w", err)
	}
	a := &answer{from: &c.callee, most: c.limit(), chunk: chunk, piece: func(n int) error { return whole.give(c.nc, n) }}
	defer func() {
		if !a.over {
			_ = c.nc.Publish(p.Cancel, nil) // if it is lost, the process works in vain
		}
	}()
	timer := time.AfterFunc(c.dead, func() { end(errSilent) })
	defer timer.Stop()
	for {
		var msg *nats.Msg
		select {
		case msg = <-messages:
		case <-waiting.Done():
			return nil, c.ended(context.Cause(waiting))
		}
		if len(msg.Data) == 0 && msg.Header.Get("Status") == "503" {
			a.over = true
			return nil, &runtime.RetryError{NotMade: true, Absent: true, Err: errors.New(c.address + ": no process answers there")}
		}
		timer.Reset(c.dead)
		if lost, err := sub.Dropped(); err == nil && lost > 0 {
			return nil, c.wrong("is too large: more than %d bytes or %d messages were waiting to be read", mostBytes, mostMessages)
		}
		if result, err := a.take(msg.Data); result != nil || err != nil {
			return result, err
		}
	}
}

// ended returns the error of a call that this process ended.
func (c *callee) ended(cause error) error {
	switch {
	case errors.Is(cause, errSilent):
		return c.retry("no heartbeat for %s", c.dead)
	case errors.Is(cause, errLost):
		return c.retry("the answer was lost: %w", cause)
	}
	return cause
}
