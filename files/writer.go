package files

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/objects"
	"github.com/skein-threads/skein/events"
)

// writer stores the pieces of one content, and names it when all are stored. send may run
// concurrently with the other methods, which one goroutine at a time may call.
type writer struct {
	store     *Store
	tenant    string
	historyOf string // source thread if this is a history page; otherwise empty
	nuid      string
	hash      hash.Hash
	size      int64
	seen      events.FileContent // detected from the first piece
	pieces    objects.Sequences
}

func (s *Store) newWriter(tenant string) *writer {
	return &writer{store: s, tenant: tenant, nuid: rand.Text(), hash: sha256.New()}
}

// send sends a piece to the store without waiting. The data may be reused.
func (w *writer) send(piece []byte) (jetstream.PubAckFuture, error) {
	if err := w.store.writing.RoomFor(len(piece)); err != nil {
		return nil, err
	}
	if w.size == 0 {
		w.seen = detectType(piece)
	}
	w.size += int64(len(piece))
	_, _ = w.hash.Write(piece) // never fails
	future, err := w.store.js.PublishMsgAsync(&nats.Msg{Subject: objects.Pieces(w.store.bucket, w.nuid), Data: piece})
	if err != nil {
		return nil, fmt.Errorf("store piece of content: %w", err)
	}
	return future, nil
}

// await waits until a piece is stored. Pieces must be awaited in order.
func (w *writer) await(ctx context.Context, sent jetstream.PubAckFuture) error {
	select {
	case ack := <-sent.Ok():
		w.pieces = w.pieces.Append(ack.Sequence)
		return nil
	case err := <-sent.Err():
		return fmt.Errorf("store piece of content: %w", err)
	case <-ctx.Done():
		return fmt.Errorf("store piece of content: %w", ctx.Err())
	}
}

func (w *writer) put(ctx context.Context, piece []byte) error {
	sent, err := w.send(piece)
	if err != nil {
		return err
	}
	return w.await(ctx, sent)
}

// finish writes the entry that names the content. If another writer was first, it deletes this
// writer's pieces, and the other's are used.
func (w *writer) finish(ctx context.Context) (events.FileContent, error) {
	sum := w.hash.Sum(nil)
	digest := hex.EncodeToString(sum)
	for {
		there, seq, err := w.store.hold(ctx, w.tenant, digest)
		if err != nil {
			w.drop(ctx)
			return events.FileContent{}, err
		}
		if there != nil {
			w.drop(ctx)
			return contentOf(there, digest), nil
		}
		made := w.entry(digest, sum)
		switch err := w.store.publishEntry(ctx, w.tenant, digest, made, seq); {
		case err == nil:
			return contentOf(&made, digest), nil
		case !conflict(err):
			// The entry may have been stored, so the pieces must stay. If it was not, the
			// collector deletes them.
			return events.FileContent{}, err
		}
	}
}

func (w *writer) entry(digest string, sum []byte) objects.Object {
	meta := map[string]string{metaType: w.seen.MimeType}
	if w.size == 0 {
		meta[metaType] = detectType(nil).MimeType
	}
	if len(w.pieces) > 0 {
		meta[objects.MetaPieces] = w.pieces.String()
	}
	if w.historyOf != "" {
		meta[metaOf] = w.historyOf
	}
	if w.seen.Width > 0 {
		meta[metaWidth], meta[metaHeight] = strconv.FormatInt(w.seen.Width, 10), strconv.FormatInt(w.seen.Height, 10)
	}
	return objects.Object{
		Name: objectName(w.tenant, digest), Metadata: meta, Options: objects.Options{PieceBytes: events.FilePieceBytes}, Bucket: w.store.bucket,
		NUID: w.nuid, Size: w.size, ModTime: objects.NoTime, Chunks: w.pieces.Count(), Digest: objects.DigestOf(sum),
	}
}

// drop deletes the pieces. If that fails, the collector deletes them later.
func (w *writer) drop(ctx context.Context) {
	if w.size > 0 {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ackTimeout)
		defer cancel()
		_ = w.store.stream.Purge(ctx, jetstream.WithPurgeSubject(objects.Pieces(w.store.bucket, w.nuid)))
	}
}
