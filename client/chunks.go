package client

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/skein-threads/skein/events"
)

// Chunk is a piece of an execution's streamed output.
type Chunk struct {
	events.ChunkEmitted
	Time time.Time `json:"time"` // when it was emitted
	// Derived reports that the end of the run was derived from its execution: the chunk
	// that ends it was never written, or has expired.
	Derived bool `json:"derived,omitzero"`
}

// ChunkGapError reports that chunks of a run are no longer stored: they are older than
// an hour, or the server lost them in a power failure. The parts and items of the
// thread have their content. Later chunks still follow.
type ChunkGapError struct {
	ExecutionID string
	From, To    int64 // the first and the last missing index
}

func (e *ChunkGapError) Error() string {
	return fmt.Sprintf("chunks %d to %d of execution %s are no longer stored; read its parts", e.From, e.To, e.ExecutionID)
}

// ChunkOption configures Client.Chunks.
type ChunkOption func(*chunkReader)

// FromChunk starts with the chunk with that index, from 0. To resume, pass the index of
// the last chunk seen plus one.
func FromChunk(n int64) ChunkOption {
	return func(r *chunkReader) { r.next = n }
}

// OfRunning says that the run was seen to be active, or to have yet to begin: its execution is not
// queried before its chunks are read. If it has ended meanwhile without a last chunk, because its
// worker died, the end is noticed within 15 seconds.
func OfRunning() ChunkOption {
	return func(r *chunkReader) { r.running = true }
}

// Chunks returns the chunks of a run, from the first or as FromChunk says, and follows
// it live until its end: each chunk once, in order, the last of type finish. If
// executionID is empty, the run is the thread's active one, or else its next one.
//
// A *ChunkGapError reports that chunks are missing, and the loop may continue. Any
// other error ends it: an *events.Error (invalid_request, not_found if there is no such
// execution, unavailable), or the cause of ctx's end. To resume, pass FromChunk with
// the last index seen plus one.
//
// A reader may be slow and the connection may be lost for a while: missed chunks are
// read with the query chunk.list, from a stream that stores chunks for an hour.
func (c *Client) Chunks(ctx context.Context, threadID, executionID string, opts ...ChunkOption) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		r := &chunkReader{client: c, thread: threadID, execution: executionID, yield: yield}
		for _, o := range opts {
			o(r)
		}
		if err := r.readChunks(ctx); err != nil {
			yield(Chunk{}, err)
		}
	}
}
