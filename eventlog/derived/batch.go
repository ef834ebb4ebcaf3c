package derived

import (
	"context"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/eventlog/streams"
)

// Limits of an atomic batch of a fence. The server accepts 1,000 messages.
const (
	fenceBatch      = 500
	fenceBatchBytes = 2 << 20
)

// batchFence is the fence of a replicated stream. The messages between two waits go as
// one atomic batch, whose first is conditional on the stream's last sequence, which the
// leader checks before it proposes. Ids would not do there: each replica checks the last
// id for itself, and a message that is sent again while the first is still in flight is
// refused (10158).
type batchFence struct {
	writer

	batch  []*nats.Msg // sent together
	bytes  int
	broken error // why it is unusable
}

// Sent implements Fence.
func (f *batchFence) Sent() uint64 { return f.last - uint64(len(f.batch)) }

// Send implements Fence.
func (f *batchFence) Send(ctx context.Context, subject string, header nats.Header, data []byte) error {
	if err := f.add(ctx, subject, header, data); err != nil || len(f.batch) < fenceBatch {
		return err
	}
	return f.Flush(ctx)
}

// Final implements Fence.
func (f *batchFence) Final(ctx context.Context, subject string, header nats.Header, data []byte) error {
	if err := f.add(ctx, subject, header, data); err != nil {
		return err
	}
	return f.Flush(ctx)
}

// add puts a message into the batch, after sending the batch if the message would not
// fit.
func (f *batchFence) add(ctx context.Context, subject string, header nats.Header, data []byte) error {
	if f.broken != nil {
		return f.broken
	}
	if len(f.batch) > 0 && f.bytes+len(data) > fenceBatchBytes {
		if err := f.Flush(ctx); err != nil {
			return err
		}
	}
	own := make(nats.Header, len(header)+3)
	for name, values := range header {
		own[name] = slices.Clone(values)
	}
	f.batch = append(f.batch, &nats.Msg{Subject: subject, Header: own, Data: slices.Clone(data)})
	f.bytes += len(data)
	f.last++
	return nil
}

// Flush implements Fence. After an error the fence is unusable.
func (f *batchFence) Flush(ctx context.Context) error {
	if f.broken != nil || len(f.batch) == 0 {
		return f.broken
	}
	f.broken = f.sendBatch(ctx, f.batch)
	f.batch, f.bytes = nil, 0
	return f.broken
}

// sendBatch sends messages, and retries while there are no responders: a server learns a
// little later than its stream's leader who that is.
func (f *batchFence) sendBatch(ctx context.Context, msgs []*nats.Msg) error {
	first := f.last - uint64(len(msgs))
	msgs[0].Header[streams.HeaderExpectedSeq] = []string{strconv.FormatUint(first, 10)}
	var ack streams.Ack
	err := streams.UntilResponders(ctx, func() (err error) {
		if len(msgs) == 1 {
			ack, err = f.request(ctx, msgs[0])
			return err
		}
		ack, err = f.conn.PublishBatch(msgs)
		return f.ackError(ack, err)
	})
	if err != nil {
		return err
	}
	return f.storedAt(ack.Seq)
}
