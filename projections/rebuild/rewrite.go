package rebuild

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/projections/documents"
)

// Rewrite is Repair, and also rewrites every correct document. The server keeps replaced
// and removed messages in a file until more than half of it is such, and in the newest
// file. After Rewrite no file holds anything that was replaced or removed before it,
// except for files that hold little but markers, which the server cleans within two
// minutes.
//
// It writes as many bytes as the buckets hold, and some 10 MB more for each.
func Rewrite(ctx context.Context, log *eventlog.Log, names ...string) (Report, error) {
	b, err := newRebuilding(log, names)
	if err != nil {
		return Report{}, err
	}
	b.repair = true
	for _, p := range b.models.List() {
		if b.kinds.Has(p.Kind) {
			if b.rewrite[p.Kind], err = b.startNewFile(ctx, p); err != nil {
				return Report{}, err
			}
		}
	}
	return b.compare(ctx)
}

// The server starts a new file when one has 8 MB.
const (
	fillerKey   = "_.filler"
	fillerFile  = 8 << 20
	fillerPiece = 512 << 10
)

// startNewFile makes the server start a new file for a bucket, and returns the last
// sequence in the files before it.
func (b *rebuilding) startNewFile(ctx context.Context, p documents.Projection) (uint64, error) {
	bucket := b.log.Bucket(p.Bucket)
	subject := bucket.Subject(fillerKey)
	piece := make([]byte, min(fillerPiece, b.log.Conn().MaxPayload()/2))
	var end uint64
	for n := 0; n <= fillerFile; n += len(piece) {
		// With an id, so that the runner's fence sees it.
		ack, err := b.log.JetStream().Publish(ctx, subject, piece, jetstream.WithMsgID(nuid.Next()))
		if err != nil {
			return 0, fmt.Errorf("rewriting the bucket of %s: %w", p.Name, err)
		}
		end = ack.Sequence
	}
	stream, err := b.log.Streams().Stream(ctx, bucket.Stream())
	if err == nil {
		err = streams.Purge(ctx, stream, jetstream.WithPurgeSubject(subject))
	}
	if err != nil {
		return 0, fmt.Errorf("rewriting the bucket of %s: %w", p.Name, err)
	}
	return end, nil
}

// renews reports whether a correct document has to be rewritten. One that the runner is
// about to write is left to it.
func (t *comparison) renews(p documents.Place, j *compared) bool {
	slot := t.memory.Slot(p)
	return j.live != nil && j.live.Seq <= t.rewrite[p.Kind] && slot.Doc != nil && slot.Seq == j.liveSeq
}
