package client

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
)

// fill gives what the stream has after the last chunk that was given. It tries
// again while the stream cannot be read, or does not show the sequence upTo
// yet: a reader of it may lag behind what comes live.
func (r *chunkReader) fill(ctx context.Context, upTo uint64) error {
	n := r.client.opts.Names
	subject := n.Chunk(r.client.opts.Tenant, r.thread, r.execution)
	deadline := time.Now().Add(r.client.opts.Timeout)
	if r.seq == 0 && r.next > storedBatch {
		r.seek(ctx, subject)
	}
	for attempt := 0; ; {
		msgs, more, err := r.client.stored(ctx, n.Stream(chunkStream), subject, r.seq+1, storedBatch)
		for _, m := range msgs {
			if err := r.stored(m); err != nil {
				return err
			}
		}
		switch {
		case more:
			attempt, deadline = 0, time.Now().Add(r.client.opts.Timeout)
			continue
		case err == nil && (r.seq >= upTo || attempt >= refillRetries):
			return nil
		case err != nil && time.Now().After(deadline), r.client.nc.IsClosed(), !pause(ctx, attempt):
			return cmp.Or(err, ctx.Err(), nats.ErrConnectionClosed)
		}
		attempt++
	}
}

// stored takes a message of the stream.
func (r *chunkReader) stored(m *nats.Msg) error {
	seq, ok := parseSeq(m.Header.Get("Nats-Sequence"))
	if !ok {
		return errors.New("a message of the stream without a sequence")
	}
	r.seq = seq
	e, err := events.DecodeEvent(m.Data)
	d, ok := e.Data.(events.ChunkEmitted)
	if err != nil || !ok || d.ExecutionID != r.execution {
		return nil // not Skein's
	}
	r.given = true
	if r.isNew(&d) || d.Type == events.ChunkFinish { // whoever asks for what comes after the end is told of it
		return r.give(&e, &d, seq)
	}
	return nil
}

// seek finds the place in the stream of the chunk with which the reader begins,
// instead of reading all that stands before it. Numbers grow with sequences. If
// a read fails, the reading begins where the seeking stood.
func (r *chunkReader) seek(ctx context.Context, subject string) {
	stream, err := r.client.js.Stream(ctx, r.client.opts.Names.Stream(chunkStream))
	if err != nil {
		return
	}
	// What is below low comes before the chunk; what is from high on does not.
	low, high := uint64(1), stream.CachedInfo().State.LastSeq+1
	for low < high {
		middle := low + (high-low)/2
		seq, index, ok := r.look(ctx, subject, middle)
		switch {
		case !ok:
			return
		case seq == 0 || index >= r.next:
			high = middle
		default:
			low = seq + 1
			r.seq = seq - 1 // this one is read again: it may be the end
		}
	}
}

// look gives the sequence and the number of the first chunk from a sequence on:
// 0 if there is none.
func (r *chunkReader) look(ctx context.Context, subject string, from uint64) (seq uint64, index int64, ok bool) {
	msgs, _, err := r.client.stored(ctx, r.client.opts.Names.Stream(chunkStream), subject, from, 1)
	if err != nil || len(msgs) == 0 {
		return 0, 0, err == nil
	}
	seq, ok = parseSeq(msgs[0].Header.Get("Nats-Sequence"))
	e, err := events.DecodeEvent(msgs[0].Data)
	d, known := e.Data.(events.ChunkEmitted)
	return seq, d.Index, ok && err == nil && known
}
