package eventlog

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/skein-threads/skein/eventlog/streams"
)

// Fence writes a derived stream as its only writer. Its first message is
// conditional on the stream's last sequence and waited for, every other on the
// id of the one before. So messages are stored in order without a gap, nothing
// comes between them, and a second writer, or one that was replaced and does not
// know it, is refused whatever it still has under way. (A sequence alone would
// not do: once two writers are at it, each may hit what the other one left.)
//
// On a replicated stream the messages between two waits go as one atomic batch
// instead, whose first is conditional on the stream's last sequence, which the
// leader checks before it proposes. Ids do not do there: each copy checks the last
// id for itself, and a message that is sent again while the first is still under
// way is refused (10158).
//
// Not safe for concurrent use.
type Fence struct {
	log     *Log
	stream  string
	several bool        // the stream is replicated
	batch   []*nats.Msg // what is to go together, of a replicated one
	broken  error       // why it is of no more use
	id      string      // of the writer: its messages' ids begin with it
	sent    nats.Msg    // the last message that was sent; its header is used again for the next
	begun   bool        // one was sent
	name    [1]string   // its id
	after   [1]string   // the id of the one before it
	last    uint64      // the sequence that it has, or will have
	pending int         // sent since the last acknowledgement
	bytes   int
}

// Limits of what a fence sends before it waits: the server drops what is too
// much, and the fence would notice only then.
const (
	fenceMessages = 1000
	fenceBytes    = 4 << 20
)

// Fence begins to write a stream at its present end.
func (l *Log) Fence(ctx context.Context, stream string) (*Fence, error) {
	last, err := l.conn.LastSeq(ctx, stream)
	if err != nil {
		return nil, err
	}
	return l.newFence(ctx, stream, last)
}

func (l *Log) newFence(ctx context.Context, stream string, last uint64) (*Fence, error) {
	several, err := l.conn.Replicated(ctx)
	if err != nil {
		return nil, err
	}
	return &Fence{log: l, stream: stream, last: last, several: several, id: strconv.FormatUint(rand.Uint64(), 36) + "-"}, nil
}

// BucketFence begins to write a read model's bucket at its present end.
func (l *Log) BucketFence(ctx context.Context, bucket string) (*Fence, error) {
	return l.Fence(ctx, "KV_"+l.cfg.Names.Bucket(bucket))
}

// Last gives the sequence that the last message sent has, or will have.
func (f *Fence) Last() uint64 { return f.last }

// Sent gives the sequence of the last message that is stored or under way: what a
// reader may wait for.
func (f *Fence) Sent() uint64 { return f.last - uint64(len(f.batch)) }

// Send writes a message. It is stored for sure only after Flush.
func (f *Fence) Send(ctx context.Context, subject string, header nats.Header, data []byte) error {
	if f.several {
		return f.gather(ctx, subject, header, data, false)
	}
	full := f.pending >= fenceMessages || f.bytes+len(data) > fenceBytes
	return f.send(ctx, subject, header, data, !f.begun || full)
}

// Put writes a document of a bucket.
func (f *Fence) Put(ctx context.Context, bucket, key string, data []byte) error {
	return f.Send(ctx, "$KV."+f.log.cfg.Names.Bucket(bucket)+"."+key, nil, data)
}

// Delete removes a document of a bucket, with the marker that key-value
// clients expect.
func (f *Fence) Delete(ctx context.Context, bucket, key string) error {
	return f.Send(ctx, "$KV."+f.log.cfg.Names.Bucket(bucket)+"."+key, nats.Header{"KV-Operation": {"DEL"}}, nil)
}

// Final writes a message and waits until it, and all before it, are stored.
func (f *Fence) Final(ctx context.Context, subject string, header nats.Header, data []byte) error {
	return f.send(ctx, subject, header, data, true)
}

// FinalPut writes a document and waits until it, and all before it, are stored.
func (f *Fence) FinalPut(ctx context.Context, bucket, key string, data []byte) error {
	return f.Final(ctx, "$KV."+f.log.cfg.Names.Bucket(bucket)+"."+key, nil, data)
}

func (f *Fence) send(ctx context.Context, subject string, header nats.Header, data []byte, wait bool) error {
	if f.several {
		return f.gather(ctx, subject, header, data, wait)
	}
	f.next(subject, header, data)
	f.pending++
	f.bytes += len(data)
	if !wait {
		return f.log.conn.Wire().PublishMsg(&f.sent)
	}
	return f.flush(ctx)
}

// next makes the next message in place of the last, which the connection has
// copied. There are many: only its id is made anew.
func (f *Fence) next(subject string, header nats.Header, data []byte) {
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
}

// seize writes a first message wherever the stream ends, and so cuts off
// whoever writes it.
func (f *Fence) seize(ctx context.Context, subject string, header nats.Header) error {
	f.sent = nats.Msg{Subject: subject, Header: maps.Clone(header)}
	if f.several {
		ack, err := f.request(ctx)
		f.last = ack.Seq
		return err
	}
	f.name[0], f.begun = f.id, true
	f.sent.Header[streams.HeaderID] = f.name[:]
	ack, err := f.request(ctx)
	f.last = ack.Seq
	return err
}

// Flush waits until all that was sent is stored.
func (f *Fence) Flush(ctx context.Context) error {
	switch {
	case f.pending == 0:
		return nil
	case f.several:
		return f.flushBatch(ctx)
	}
	return f.flush(ctx)
}

// flush sends the last message and waits for its acknowledgement. If it was sent
// before, the server knows its id and does not store it again.
func (f *Fence) flush(ctx context.Context) error {
	ack, err := f.request(ctx)
	if err != nil {
		return err
	}
	if ack.Seq != f.last {
		return &streams.FencedError{Stream: f.stream, Cause: fmt.Errorf("stored at %d, not %d", ack.Seq, f.last)}
	}
	f.settled()
	return nil
}

// settled notes that all that was sent is stored.
func (f *Fence) settled() {
	f.pending, f.bytes = 0, 0
	f.log.cfg.Floors.Raise(f.stream, f.last)
}

// request sends the last message and gives its acknowledgement.
func (f *Fence) request(ctx context.Context) (streams.Ack, error) {
	ctx, cancel := context.WithTimeout(ctx, f.log.cfg.AckTimeout)
	defer cancel()
	var ack streams.Ack
	reply, err := f.log.conn.Wire().RequestMsgWithContext(ctx, &f.sent)
	if err == nil {
		err = json.Unmarshal(reply.Data, &ack)
	}
	return ack, f.judge(ack, err)
}

// judge says what an acknowledgement means.
func (f *Fence) judge(ack streams.Ack, err error) error {
	if err == nil && ack.Error == nil {
		return nil
	}
	switch streams.Classify(err, ack.Error) {
	case streams.Conflict, streams.InFlight:
		return &streams.FencedError{Stream: f.stream, Cause: ack.Error}
	}
	if err == nil {
		err = ack.Error
	}
	return fmt.Errorf("stream %s: %w", f.stream, err)
}
