package chunks

import (
	"context"
	"errors"
	"iter"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// Messages reads the stored chunks of an execution in order, from a sequence of their
// stream up to its present end.
func Messages(ctx context.Context, conn *streams.Conn, tenant, thread, execution string, from uint64) iter.Seq2[streams.Message, error] {
	n := conn.Config().Names
	return conn.Messages(ctx, n.Stream(assets.ChunkStream), n.Chunk(tenant, thread, execution), from)
}

// Find returns a sequence from which a reader meets the chunk with that number and all
// later ones, as far as they are kept. It bisects the stream, since numbers grow with
// sequences.
func Find(ctx context.Context, conn *streams.Conn, tenant, thread, execution string, index int64) (uint64, error) {
	n := conn.Config().Names
	name, subject := n.Stream(assets.ChunkStream), n.Chunk(tenant, thread, execution)
	last, err := conn.LastSeq(ctx, name)
	if err != nil {
		return 0, err
	}
	// Sequences below low come before the chunk; those from high on do not.
	low, high, before := uint64(1), last+1, uint64(1)
	for low < high {
		middle := low + (high-low)/2
		got, err := conn.Direct(ctx, name, streams.GetRequest{Seq: middle, Next: subject})
		if err != nil {
			return 0, err
		}
		if len(got) == 0 {
			high = middle
			continue
		}
		if d, err := decodeChunk(got[0].Data); err == nil && d.Index >= index {
			high = middle
		} else {
			low, before = got[0].Seq+1, got[0].Seq
		}
	}
	return before, nil
}

// Next returns the number of the chunk that follows the last stored one of an execution, according
// to the leader of their stream, 0 if none is stored, and whether that one ends the run.
func Next(ctx context.Context, conn *streams.Conn, tenant, thread, execution string) (next int64, ended bool, err error) {
	n := conn.Config().Names
	last, err := conn.Leader(ctx, n.Stream(assets.ChunkStream), streams.GetRequest{Last: n.Chunk(tenant, thread, execution)})
	if errors.Is(err, streams.ErrNoMessage) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	d, err := decodeChunk(last.Data)
	return d.Index + 1, d.Type == events.ChunkFinish, err
}

// Erase erases the stored chunks of a thread.
func Erase(ctx context.Context, conn *streams.Conn, tenant, thread string) error {
	n := conn.Config().Names
	return conn.Erase(ctx, n.Stream(assets.ChunkStream), n.Chunk(tenant, thread, "*"), 0)
}

// decodeChunk reads a message of the stream of chunks.
func decodeChunk(raw []byte) (events.ChunkEmitted, error) {
	e, err := events.DecodeEvent(raw)
	if err != nil {
		return events.ChunkEmitted{}, err
	}
	d, ok := e.Data.(events.ChunkEmitted)
	if !ok {
		return d, errors.New("it is no chunk")
	}
	return d, nil
}
