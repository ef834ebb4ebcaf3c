package client

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/skein-threads/skein/events"
)

// Chunk is a piece of what an execution streams (EK 8.1).
type Chunk struct {
	events.ChunkEmitted
	Time time.Time `json:"time"` // when it was emitted
	// Derived says that the run's end was taken from its execution: the chunk
	// that ends it was never written, or has expired.
	Derived bool `json:"derived,omitzero"`
}

// ChunkGapError says that chunks of a run are not kept any more: they are older
// than an hour, or the server lost them in a power cut. What they were about is
// in the parts and items of the thread. What follows still comes.
type ChunkGapError struct {
	ExecutionID string
	From, To    int64 // the first and the last that are missing
}

func (e *ChunkGapError) Error() string {
	return fmt.Sprintf("chunks %d to %d of execution %s are not kept any more; read its parts", e.From, e.To, e.ExecutionID)
}

// ChunkOption changes what Chunks gives.
type ChunkOption func(*chunkReader)

// FromChunk begins with the chunk of that number, from 0: one more than that of
// the last chunk which was seen.
func FromChunk(n int64) ChunkOption {
	return func(r *chunkReader) { r.next = n }
}

// Chunks gives the chunks of a run, from its first or from the one that is
// asked for, and goes on live until the run's end: each once, in order, the last
// of type finish. If no execution is named, it is the one that runs on the thread
// now, or else the next.
//
// A *ChunkGapError says that some are missing, and the loop may go on. Any other
// error ends it: an *events.Error (invalid_request, not_found if there is no such
// execution, unavailable), or the cause for which ctx ended. Begin again with
// FromChunk and one more than the last number that was seen.
//
// A reader may be slow, and the connection may come and go: what it missed is
// asked for, by the query chunk.list, from where chunks are kept for an hour.
func (c *Client) Chunks(ctx context.Context, threadID, executionID string, opts ...ChunkOption) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		r := &chunkReader{client: c, thread: threadID, execution: executionID, yield: yield}
		for _, o := range opts {
			o(r)
		}
		if err := r.run(ctx); err != nil {
			yield(Chunk{}, err)
		}
	}
}
