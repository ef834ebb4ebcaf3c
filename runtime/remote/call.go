package remote

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
)

// streamOf limits the total size of one answer, in messages of the largest size: 64 MiB
// by default.
const streamOf = 16

// Reasons for which this process ends a call: no heartbeat arrives, or the connection
// was closed.
var (
	errSilent = errors.New("silence")
	errLost   = errors.New("the NATS connection was closed")
)

// caller sends requests to the processes on one subject.
type caller struct {
	nc      *nats.Conn
	names   events.Names
	subject string
	settings
}

// written returns a request as JSON.
func (c *caller) written(request any) ([]byte, error) {
	body, err := json.Marshal(request, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("encode the request on %s: %w", c.subject, err)
	}
	return body, nil
}

// protocol returns how a call is to be answered.
func (c *caller) protocol() protocol {
	return protocol{
		Version: version, Cancel: c.names.Cancel(nuid.Next()),
		HeartbeatMs: c.heartbeat.Milliseconds(), DeadMs: c.dead.Milliseconds(), MaxBytes: c.limit(),
	}
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
		return nil, events.TooLarge("the request on "+c.subject, int64(len(body)), most)
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
	if err := c.nc.PublishRequest(c.subject, inbox, body); err != nil {
		return nil, c.notMade("the request could not be sent: %w", err)
	}
	last := false
	defer func() {
		if !last {
			_ = c.nc.Publish(p.Cancel, nil) // if it is lost, the process works in vain
		}
	}()
	timer := time.AfterFunc(c.dead, func() { end(errSilent) })
	defer timer.Stop()
	for total := 0; ; {
		var msg *nats.Msg
		select {
		case msg = <-messages:
		case <-waiting.Done():
			switch cause := context.Cause(waiting); {
			case errors.Is(cause, errSilent):
				return nil, c.retry("no heartbeat for %s", c.dead)
			case errors.Is(cause, errLost):
				return nil, c.retry("the answer was lost: %w", cause)
			default:
				return nil, cause
			}
		}
		if len(msg.Data) == 0 && msg.Header.Get("Status") == "503" {
			last = true
			return nil, &runtime.RetryError{NotMade: true, Absent: true, Err: errors.New(c.subject + ": no process answers there")}
		}
		timer.Reset(c.dead)
		if total += len(msg.Data); int64(len(msg.Data)) > c.limit() || int64(total) > streamOf*c.limit() {
			return nil, c.wrong("is too large: the limit is %d bytes a message and %d together", c.limit(), streamOf*c.limit())
		}
		var m message
		if err := json.Unmarshal(msg.Data, &m); err != nil {
			return nil, c.wrong("%w", shape(err))
		}
		switch m.Kind {
		case kindHeartbeat:
		case kindPiece:
			if err := whole.give(c.nc, m.Piece); err != nil {
				return nil, c.wrong("%w", err)
			}
		case kindChunk:
			if m.Type == "" || len(m.Type) > 128 {
				return nil, c.wrong("has a chunk without a type of 1 to 128 letters")
			}
			if chunk != nil {
				chunk(runtime.Chunk{Type: m.Type, Data: m.Data})
			}
		case kindResult:
			last = true
			return msg.Data, nil
		case kindError:
			last = true
			return nil, c.told(m)
		default:
			return nil, c.wrong("has a message of kind %q, not heartbeat, chunk, result or error", clip(m.Kind))
		}
	}
}

// told returns the error that a process reported.
func (c *caller) told(m message) error {
	text := clip(m.Message)
	if text == "" {
		text = c.subject + " returned an error without a message"
	}
	if !m.Retry {
		return errors.New(text)
	}
	after := min(max(m.AfterMs, 0), math.MaxInt64/int64(time.Millisecond))
	return &runtime.RetryError{After: time.Duration(after) * time.Millisecond, Err: errors.New(text)}
}

func (c *caller) retry(format string, args ...any) error {
	return &runtime.RetryError{Err: fmt.Errorf(c.subject+": "+format, args...)}
}

// notMade returns the error of a request that no process received.
func (c *caller) notMade(format string, args ...any) error {
	return &runtime.RetryError{NotMade: true, Err: fmt.Errorf(c.subject+": "+format, args...)}
}

// wrong returns the error of an invalid answer.
func (c *caller) wrong(format string, args ...any) error {
	return fmt.Errorf("the answer of "+c.subject+" "+format, args...)
}

// shape returns an error of the JSON library without the names of Go types.
func shape(err error) error {
	var semantic *json.SemanticError
	if !errors.As(err, &semantic) {
		return errors.New("is not JSON: " + clip(err.Error()))
	}
	where := string(semantic.JSONPointer)
	if where == "" {
		where = "it"
	}
	kind := "value"
	if semantic.JSONKind != jsontext.Kind(0) {
		kind = semantic.JSONKind.String()
	}
	return fmt.Errorf("has the wrong shape: %s is a JSON %s", clip(where), kind)
}
