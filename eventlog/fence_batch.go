package eventlog

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/skein-threads/skein/eventlog/streams"
)

// Limits of an atomic batch of a fence. The server takes 1,000 messages.
const (
	fenceBatch      = 500
	fenceBatchBytes = 2 << 20
)

// gather keeps a message until there are enough, or wait says so.
func (f *Fence) gather(ctx context.Context, subject string, header nats.Header, data []byte, wait bool) error {
	if f.broken != nil {
		return f.broken
	}
	if f.pending > 0 && f.bytes+len(data) > fenceBatchBytes {
		if err := f.flushBatch(ctx); err != nil {
			return err
		}
	}
	own := make(nats.Header, len(header)+3)
	for name, values := range header {
		own[name] = slices.Clone(values)
	}
	f.batch = append(f.batch, &nats.Msg{Subject: subject, Header: own, Data: slices.Clone(data)})
	f.pending++
	f.bytes += len(data)
	f.last++
	if !wait && f.pending < fenceBatch {
		return nil
	}
	return f.flushBatch(ctx)
}

// flushBatch sends what was gathered and waits until it is stored: all of it, or
// nothing. After an error the fence is of no more use.
func (f *Fence) flushBatch(ctx context.Context) error {
	if f.broken != nil {
		return f.broken
	}
	err := f.sendBatch(ctx, f.batch)
	f.batch, f.broken = nil, err
	if err == nil {
		f.settled()
	}
	return err
}

// sendBatch sends messages, again while nobody is there to hear them: a server
// learns a little later than its stream's leader who that is.
func (f *Fence) sendBatch(ctx context.Context, msgs []*nats.Msg) error {
	first := f.last - uint64(len(msgs))
	msgs[0].Header[streams.HeaderExpectedSeq] = []string{strconv.FormatUint(first, 10)}
	var ack streams.Ack
	err := streams.UntilResponders(ctx, func() (err error) {
		if len(msgs) == 1 {
			f.sent = *msgs[0]
			ack, err = f.request(ctx)
			return err
		}
		timed, err := f.log.conn.PublishBatch(msgs)
		ack = timed
		return f.judge(ack, err)
	})
	switch {
	case err != nil:
		return err
	case ack.Seq != f.last:
		return &streams.FencedError{Stream: f.stream, Cause: fmt.Errorf("stored at %d, not %d", ack.Seq, f.last)}
	}
	return nil
}
