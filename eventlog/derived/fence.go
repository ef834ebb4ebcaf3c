package derived

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/eventlog/streams"
)

// Fence writes a derived stream as its only writer. It is not safe for concurrent use.
// After a *[streams.FencedError] another writer has written the stream: what was sent up to
// Last may be stored; read where the stream ends, and begin a new fence from there.
type Fence interface {
	// Send writes a message. It is certainly stored only after Flush. The header is copied;
	// data is not used after the next call.
	Send(ctx context.Context, subject string, header nats.Header, data []byte) error
	// Final writes a message and waits until it, and all before it, are stored.
	Final(ctx context.Context, subject string, header nats.Header, data []byte) error
	// Flush waits until all that was sent is stored.
	Flush(ctx context.Context) error
	// Last returns the sequence that the last message sent has, or will have.
	Last() uint64
	// Sent returns the sequence of the last message that is stored or in flight: what a
	// reader may wait for.
	Sent() uint64
}

// NewFence returns a fence that continues at the end of a stream.
func NewFence(ctx context.Context, conn *streams.Conn, stream string) (Fence, error) {
	last, err := conn.LastSeq(ctx, stream)
	if err != nil {
		return nil, err
	}
	w := writer{conn: conn, stream: stream, last: last}
	replicated, err := conn.Replicated(ctx)
	switch {
	case err != nil:
		return nil, err
	case replicated:
		return &batchFence{writer: w}, nil
	}
	return newChainFence(w), nil
}

// Seize writes a first message wherever the stream ends, which fences off its present
// writer, and returns the fence that continues after it.
func Seize(ctx context.Context, conn *streams.Conn, stream, subject string, header nats.Header) (Fence, error) {
	w := writer{conn: conn, stream: stream}
	replicated, err := conn.Replicated(ctx)
	if err != nil {
		return nil, err
	}
	m := &nats.Msg{Subject: subject, Header: nats.Header{}}
	for name, values := range header {
		m.Header[name] = values
	}
	if replicated {
		f := &batchFence{writer: w}
		ack, err := f.request(ctx, m)
		f.last = ack.Seq
		return f, err
	}
	f := newChainFence(w)
	err = f.seize(ctx, m)
	return f, err
}

// writer is the part that both kinds of fences share.
type writer struct {
	conn   *streams.Conn
	stream string
	last   uint64 // the sequence that the last message sent has, or will have
}

// Last implements Fence.
func (w *writer) Last() uint64 { return w.last }

// request sends a message and returns its acknowledgement.
func (w *writer) request(ctx context.Context, m *nats.Msg) (streams.Ack, error) {
	ctx, cancel := context.WithTimeout(ctx, w.conn.Config().AckTimeout)
	defer cancel()
	var ack streams.Ack
	reply, err := w.conn.Wire().RequestMsgWithContext(ctx, m)
	if err == nil {
		err = json.Unmarshal(reply.Data, &ack)
	}
	return ack, w.ackError(ack, err)
}

// ackError returns the error of an acknowledgement.
func (w *writer) ackError(ack streams.Ack, err error) error {
	if err == nil && ack.Error == nil {
		return nil
	}
	switch streams.Classify(err, ack.Error) {
	case streams.Conflict, streams.InFlight:
		return &streams.FencedError{Stream: w.stream, Cause: ack.Error}
	}
	if err == nil {
		err = ack.Error
	}
	return fmt.Errorf("stream %s: %w", w.stream, err)
}

// storedAt records that the last message is stored, and checks its sequence.
func (w *writer) storedAt(seq uint64) error {
	if seq != w.last {
		return &streams.FencedError{Stream: w.stream, Cause: fmt.Errorf("stored at %d, not %d", seq, w.last)}
	}
	w.conn.Config().Floors.Raise(w.stream, w.last)
	return nil
}

// writerID returns what the ids of a writer's messages begin with.
func writerID() string { return strconv.FormatUint(rand.Uint64(), 36) + "-" }
