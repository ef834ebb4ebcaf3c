package client

import (
	"cmp"
	"context"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/events"
)

// chunkPage is how many chunks are requested at once.
const chunkPage = 256

// fillFromStream delivers what the stream holds after the last delivered chunk. It retries while
// the stream cannot be read, or does not yet show the sequence upTo: a replica may lag
// behind the live messages.
func (r *chunkReader) fillFromStream(ctx context.Context, upTo int64) error {
	deadline := time.Now().Add(r.client.opts.Timeout)
	for attempts := requests().Start(); ; {
		page, err := r.requestPage(ctx)
		if page != nil {
			for i := range page.Chunks {
				if err := r.deliverStored(&page.Chunks[i]); err != nil {
					return err
				}
			}
		}
		switch {
		case err == nil && page.NextSeq > 0:
			r.seq = max(r.seq, page.NextSeq-1)
			attempts.Reset()
			deadline = time.Now().Add(r.client.opts.Timeout)
			continue
		case err == nil && (r.seq >= upTo || attempts.Failures() >= refillRetries):
			return nil
		case err != nil && !events.AsError(err).Retry():
			return err
		case err != nil && time.Now().After(deadline):
			return err
		case r.client.nc.IsClosed():
			return cmp.Or(err, nats.ErrConnectionClosed)
		}
		if ended := attempts.Wait(ctx); ended != nil {
			return cmp.Or(err, ended)
		}
	}
}

// requestPage requests the chunks after the last one seen, by sequence or, if that is unknown,
// by index.
func (r *chunkReader) requestPage(ctx context.Context) (*events.ChunkList, error) {
	limit := int64(chunkPage)
	q := events.ListChunks{ThreadID: r.thread, ExecutionID: r.execution, Limit: &limit}
	if r.seq > 0 {
		q.FromSeq = new(r.seq + 1)
	} else if r.next > 0 {
		q.FromIndex = new(r.next)
	}
	return Read(ctx, r.client, q)
}

// deliverStored handles a chunk of the stream.
func (r *chunkReader) deliverStored(c *events.StoredChunk) error {
	r.seq = c.Seq
	e, err := events.DecodeEvent(c.Event)
	d, ok := e.Data.(events.ChunkEmitted)
	if err != nil || !ok || d.ExecutionID != r.execution {
		return nil // not Skein's
	}
	r.seenAny = true
	if r.isNew(&d) || d.Type == events.ChunkFinish { // a caller that starts after the end is told of the end
		return r.deliver(&e, &d, c.Seq)
	}
	return nil
}
