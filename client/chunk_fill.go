package client

import (
	"cmp"
	"context"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
)

// chunkPage is how many chunks are asked for at once.
const chunkPage = 256

// fill gives what the stream has after the last chunk that was given. It tries
// again while the stream cannot be read, or does not show the sequence upTo
// yet: a reader of it may lag behind what comes live.
func (r *chunkReader) fill(ctx context.Context, upTo int64) error {
	deadline := time.Now().Add(r.client.opts.Timeout)
	for attempt := 0; ; {
		page, err := r.page(ctx)
		if page != nil {
			for i := range page.Chunks {
				if err := r.stored(&page.Chunks[i]); err != nil {
					return err
				}
			}
		}
		switch {
		case err == nil && page.NextSeq > 0:
			r.seq = max(r.seq, page.NextSeq-1)
			attempt, deadline = 0, time.Now().Add(r.client.opts.Timeout)
			continue
		case err == nil && (r.seq >= upTo || attempt >= refillRetries):
			return nil
		case err != nil && !events.AsError(err).Code.Retry():
			return err
		case err != nil && time.Now().After(deadline), r.client.nc.IsClosed(), !pause(ctx, attempt):
			return cmp.Or(err, ctx.Err(), nats.ErrConnectionClosed)
		}
		attempt++
	}
}

// page asks for the chunks after the last one that was seen. Where that is not
// known, it is found by the number.
func (r *chunkReader) page(ctx context.Context) (*events.ChunkList, error) {
	limit := int64(chunkPage)
	q := events.ListChunks{ThreadID: r.thread, ExecutionID: r.execution, Limit: &limit}
	if r.seq > 0 {
		q.FromSeq = new(r.seq + 1)
	} else if r.next > 0 {
		q.FromIndex = new(r.next)
	}
	return r.client.ListChunks(ctx, q)
}

// stored takes a chunk of the stream.
func (r *chunkReader) stored(c *events.StoredChunk) error {
	r.seq = c.Seq
	e, err := events.DecodeEvent(c.Event)
	d, ok := e.Data.(events.ChunkEmitted)
	if err != nil || !ok || d.ExecutionID != r.execution {
		return nil // not Skein's
	}
	r.given = true
	if r.isNew(&d) || d.Type == events.ChunkFinish { // whoever asks for what comes after the end is told of it
		return r.give(&e, &d, c.Seq)
	}
	return nil
}
