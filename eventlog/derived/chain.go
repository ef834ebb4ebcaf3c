package derived

import (
	"context"
	"maps"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/eventlog/streams"
)

// Limits of what a fence sends before it waits: beyond them the server drops messages,
// which the fence would notice only then.
const (
	fenceMessages = 1000
	fenceBytes    = 4 << 20
)

// chainFence is the fence of a stream with one copy. Its first message is conditional
// on the stream's last sequence and waited for, every other on the id of the one before.
// So nothing comes between them, and a second writer is refused. (A sequence alone would
// not do: with two writers at it, each may hit what the other one left.)
type chainFence struct {
	writer

	id      string    // of the writer: its messages' ids begin with it
	sent    nats.Msg  // the last message that was sent; its header is used again for the next
	begun   bool      // one was sent
	name    [1]string // its id
	after   [1]string // the id of the one before it
	pending int       // sent since the last acknowledgement
	bytes   int
}

func newChainFence(w writer) *chainFence { return &chainFence{writer: w, id: writerID()} }

// Sent implements Fence.
func (f *chainFence) Sent() uint64 { return f.last }

// Send implements Fence.
func (f *chainFence) Send(ctx context.Context, subject string, header nats.Header, data []byte) error {
	wait := !f.begun || f.pending >= fenceMessages || f.bytes+len(data) > fenceBytes
	f.next(subject, header, data)
	if wait {
		return f.flush(ctx)
	}
	return f.conn.Wire().PublishMsg(&f.sent)
}

// Final implements Fence.
func (f *chainFence) Final(ctx context.Context, subject string, header nats.Header, data []byte) error {
	f.next(subject, header, data)
	return f.flush(ctx)
}

// next builds the next message in place of the last, which the connection has copied, so
// that only its id is allocated.
func (f *chainFence) next(subject string, header nats.Header, data []byte) {
	own := f.sent.Header
	if own == nil {
		own = nats.Header{}
	}
	clear(own)
	maps.Copy(own, header)
	if f.begun {
		f.after = f.name
		own[streams.HeaderExpectedID] = f.after[:]
	} else {
		own[streams.HeaderExpectedSeq] = []string{strconv.FormatUint(f.last, 10)}
	}
	f.last++
	var name [48]byte
	f.name[0] = string(strconv.AppendUint(append(name[:0], f.id...), f.last, 36))
	own[streams.HeaderID] = f.name[:]
	f.sent = nats.Msg{Subject: subject, Header: own, Data: data}
	f.begun = true
	f.pending++
	f.bytes += len(data)
}

// seize writes a first message under no condition but its id.
func (f *chainFence) seize(ctx context.Context, m *nats.Msg) error {
	f.name[0], f.begun = f.id, true
	m.Header[streams.HeaderID] = f.name[:]
	f.sent = *m
	ack, err := f.request(ctx, &f.sent)
	f.last = ack.Seq
	return err
}

// Flush implements Fence.
func (f *chainFence) Flush(ctx context.Context) error {
	if f.pending == 0 {
		return nil
	}
	return f.flush(ctx)
}

// flush sends the last message and waits for its acknowledgement. If it was sent
// before, the server knows its id and does not store it again.
func (f *chainFence) flush(ctx context.Context) error {
	ack, err := f.request(ctx, &f.sent)
	if err == nil {
		err = f.storedAt(ack.Seq)
	}
	if err == nil {
		f.pending, f.bytes = 0, 0
	}
	return err
}
