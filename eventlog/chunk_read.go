package eventlog

import (
	"context"
	"iter"

	"github.com/skein-threads/skein/eventlog/streams"
)

// ChunkMessages reads the stored chunks of an execution from a sequence of their
// stream on, in order, up to its present end.
func (l *Log) ChunkMessages(ctx context.Context, tenant, thread, execution string, from uint64) iter.Seq2[streams.Message, error] {
	return l.conn.Messages(ctx, l.cfg.Names.Stream(ChunkStream), l.cfg.Names.Chunk(tenant, thread, execution), from)
}

// ChunkSeq gives a sequence from which on the chunks of an execution with that
// number and later ones stand, as far as they are kept, after the one before
// them. It halves the stream instead of reading all that stands before: numbers
// grow with sequences.
func (l *Log) ChunkSeq(ctx context.Context, tenant, thread, execution string, index int64) (uint64, error) {
	name, subject := l.cfg.Names.Stream(ChunkStream), l.cfg.Names.Chunk(tenant, thread, execution)
	last, err := l.conn.LastSeq(ctx, name)
	if err != nil {
		return 0, err
	}
	// What is below low comes before the chunk; what is from high on does not.
	low, high, before := uint64(1), last+1, uint64(1)
	for low < high {
		middle := low + (high-low)/2
		got, err := l.conn.Direct(ctx, name, streams.GetRequest{Seq: middle, Next: subject})
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
