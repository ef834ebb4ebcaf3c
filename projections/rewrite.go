package projections

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/skein-threads/skein/projections/documents"
)

// Rewrite does what Rebuild does, and also writes every document anew that is as
// it should be. The server keeps what was replaced or removed from a bucket in
// its files until more than half of a file is such, and in the newest file for as
// long as it is that. After Rewrite no file holds anything that was replaced or
// removed before it, but for files that hold little else than markers, which the
// server cleans within two minutes.
//
// It writes as many bytes as the buckets hold, and some 10 MB more for each.
func (r *Runner) Rewrite(ctx context.Context, names []string) (Report, error) {
	b := &rebuilding{Runner: r, repair: true}
	if err := b.choose(names); err != nil {
		return Report{}, err
	}
	for _, p := range b.models.List() {
		if b.kinds.Has(p.Kind) {
			end, err := r.fill(ctx, p)
			if err != nil {
				return Report{}, err
			}
			b.anew[p.Kind] = end
		}
	}
	return b.run(ctx)
}

// The server begins a new file when one has 8 MB.
const (
	fillerKey   = "_.filler"
	fillerFile  = 8 << 20
	fillerPiece = 512 << 10
)

// fill makes the server begin a new file for a bucket, and gives the last
// sequence in the files before it.
func (r *Runner) fill(ctx context.Context, p documents.Projection) (uint64, error) {
	subject := r.subjectOf(p.Bucket, fillerKey)
	piece := make([]byte, min(fillerPiece, r.log.Conn().MaxPayload()/2))
	var end uint64
	for n := 0; n <= fillerFile; n += len(piece) {
		// With an id, so that the runner's fence sees it.
		ack, err := r.log.JetStream().Publish(ctx, subject, piece, jetstream.WithMsgID(nuid.Next()))
		if err != nil {
			return 0, fmt.Errorf("writing the bucket of %s anew: %w", p.Name, err)
		}
		end = ack.Sequence
	}
	stream, err := r.log.JetStream().Stream(ctx, "KV_"+r.log.Config().Names.Bucket(p.Bucket))
	if err == nil {
		err = stream.Purge(ctx, jetstream.WithPurgeSubject(subject))
	}
	if err != nil {
		return 0, fmt.Errorf("writing the bucket of %s anew: %w", p.Name, err)
	}
	return end, nil
}

// renews reports whether a document that is as it should be is to be written
// anew. One that the runner is about to write is left to it.
func (t *trial) renews(p documents.Place, j *judged) bool {
	slot := t.memory.Slot(p)
	return j.live != nil && j.live.Seq <= t.anew[p.Kind] && slot.Doc != nil && slot.Seq == j.liveSeq
}
