package rebuild

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
)

// Rewrite is [Repair], and also rewrites every correct document. The server keeps replaced
// and removed messages in a file until more than half of it is such, and in the newest
// file. After Rewrite no file holds anything that was replaced or removed before it,
// except for files that hold little but markers, which the server cleans within two
// minutes.
//
// It writes as many bytes as the buckets hold, and some 10 MB more for each.
func (p Progress) Rewrite(ctx context.Context, log *eventlog.Log, names ...string) (Report, error) {
	b, err := newRebuilding(log, names)
	if err != nil {
		return Report{}, err
	}
	b.tell = p
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
	fillerFile  = 8 << 20
	fillerPiece = 512 << 10
)

// startNewFile makes the server start a new file for a bucket, and returns the last
// sequence in the files before it. What it writes for that is removed also if it fails; what a
// killed one has left is removed by the next, and no document.
func (b *rebuilding) startNewFile(ctx context.Context, p documents.Projection) (end uint64, err error) {
	bucket := b.log.Bucket(p.Bucket)
	subject := bucket.Subject(buckets.FillerKey)
	piece := make([]byte, min(fillerPiece, b.log.Conn().MaxPayload()/2))
	defer func() {
		err = errors.Join(err, b.removeFiller(context.WithoutCancel(ctx), bucket.Stream(), subject))
		if err != nil {
			err = fmt.Errorf("rewriting the bucket of %s: %w", p.Name, err)
		}
	}()
	for n := 0; n <= fillerFile; n += len(piece) {
		// With an id, so that the runner's fence sees it.
		ack, err := b.log.JetStream().Publish(ctx, subject, piece, jetstream.WithMsgID(rand.Text()))
		if err != nil {
			return 0, err
		}
		end = ack.Sequence
	}
	return end, nil
}

func (b *rebuilding) removeFiller(ctx context.Context, name, subject string) error {
	stream, err := b.log.Streams().Stream(ctx, name)
	if err != nil {
		return err
	}
	return streams.Purge(ctx, stream, jetstream.WithPurgeSubject(subject))
}

// renews reports whether a correct document has to be rewritten. One that the runner is
// about to write is left to it.
func (t *comparison) renews(p documents.Place, j *compared) bool {
	slot := t.memory.Slot(p)
	return j.live != nil && j.live.Seq <= t.rewrite[p.Kind] && slot.Doc != nil && slot.Seq == j.liveSeq
}
