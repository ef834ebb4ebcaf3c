package eventlog

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
)

// snapshotChunk is the size of an object's pieces: fewer pieces, fewer fsyncs.
const snapshotChunk = 1 << 20

func snapshotName(tenant, thread string) string { return tenant + "/" + thread }

// SaveSnapshot keeps the encoded state of a thread, in place of an older one.
func (l *Log) SaveSnapshot(ctx context.Context, tenant, thread string, state []byte) error {
	store, err := l.conn.JetStream().ObjectStore(ctx, l.cfg.Names.Bucket(assets.SnapshotBucket))
	if err == nil {
		err = l.erasePieces(ctx, store, assets.SnapshotBucket, snapshotName(tenant, thread))
	}
	if err == nil {
		meta := jetstream.ObjectMeta{Name: snapshotName(tenant, thread), Opts: &jetstream.ObjectMetaOptions{ChunkSize: snapshotChunk}}
		_, err = store.Put(ctx, meta, bytes.NewReader(s2.Encode(nil, state)))
	}
	if err != nil {
		return fmt.Errorf("keeping a snapshot of %s/%s: %w", tenant, thread, err)
	}
	return nil
}

// Snapshot gives the encoded state that was last kept, nil if there is none.
// An error means that it cannot be read; the thread can still be made from its
// log.
func (l *Log) Snapshot(ctx context.Context, tenant, thread string) ([]byte, error) {
	store, err := l.conn.JetStream().ObjectStore(ctx, l.cfg.Names.Bucket(assets.SnapshotBucket))
	if err != nil {
		return nil, fmt.Errorf("the store of snapshots: %w", err)
	}
	packed, err := store.GetBytes(ctx, snapshotName(tenant, thread))
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading a snapshot of %s/%s: %w", tenant, thread, err)
	}
	state, err := s2.Decode(nil, packed)
	if err != nil {
		return nil, fmt.Errorf("a snapshot of %s/%s that cannot be read: %w", tenant, thread, err)
	}
	return state, nil
}

// Snapshots returns the aggregates of which a snapshot is kept.
func (l *Log) Snapshots(ctx context.Context) iter.Seq2[SnapshotOf, error] {
	return func(yield func(SnapshotOf, error) bool) {
		bucket := l.cfg.Names.Bucket(assets.SnapshotBucket)
		entries := "$O." + bucket + ".M."
		for m, err := range l.conn.Messages(ctx, "OBJ_"+bucket, entries+"*", 1) {
			if err != nil {
				yield(SnapshotOf{}, fmt.Errorf("the store of snapshots: %w", err))
				return
			}
			if e, there := entryOf(m.Data); len(m.Data) > 0 && !there && e.Deleted {
				continue
			}
			name, _ := base64.URLEncoding.DecodeString(strings.TrimPrefix(m.Subject, entries))
			tenant, aggregate, _ := strings.Cut(string(name), "/")
			if !yield(SnapshotOf{Tenant: tenant, Aggregate: aggregate}, nil) {
				return
			}
		}
	}
}

// ReadSnapshot reads a snapshot as Snapshot does, without a consumer and without
// waiting. Nil if there is none, or if pieces of it are missing: it is about to be
// replaced or dropped, or was when its writer died.
func (l *Log) ReadSnapshot(ctx context.Context, of SnapshotOf) ([]byte, error) {
	bucket := l.cfg.Names.Bucket(assets.SnapshotBucket)
	name := snapshotName(of.Tenant, of.Aggregate)
	failed := func(cause error) error {
		return fmt.Errorf("a snapshot of %s that cannot be read: %w", name, cause)
	}
	got, err := l.conn.Direct(ctx, "OBJ_"+bucket, streams.GetRequest{Multi: []string{"$O." + bucket + ".M." + base64.URLEncoding.EncodeToString([]byte(name))}})
	if err != nil || len(got) == 0 {
		return nil, err
	}
	var entry struct {
		archiveEntry
		Digest string `json:"digest"`
	}
	switch err := json.Unmarshal(got[0].Data, &entry); {
	case err != nil:
		return nil, failed(err)
	case entry.Deleted:
		return nil, nil
	case entry.NUID == "" || entry.Name != name:
		return nil, failed(errors.New("its entry is another object's"))
	}
	var packed []byte
	pieces := 0
	for m, err := range l.conn.Messages(ctx, "OBJ_"+bucket, "$O."+bucket+".C."+entry.NUID, 1) {
		if err != nil {
			return nil, err
		}
		packed = append(packed, m.Data...)
		if pieces++; int64(len(packed)) > entry.Size {
			break
		}
	}
	sum := sha256.Sum256(packed)
	switch digest := "SHA-256=" + base64.URLEncoding.EncodeToString(sum[:]); {
	case pieces < entry.Chunks:
		return nil, nil
	case digest != entry.Digest:
		return nil, failed(fmt.Errorf("its digest is %s, and its entry says %.80q", digest, entry.Digest))
	}
	state, err := s2.Decode(nil, packed)
	if err != nil {
		return nil, failed(err)
	}
	return state, nil
}

// SnapshotOf names an aggregate of which a snapshot is kept.
type SnapshotOf struct{ Tenant, Aggregate string }

// DropSnapshot forgets the state of a thread.
func (l *Log) DropSnapshot(ctx context.Context, tenant, thread string) error {
	store, err := l.conn.JetStream().ObjectStore(ctx, l.cfg.Names.Bucket(assets.SnapshotBucket))
	if err == nil {
		err = l.erasePieces(ctx, store, assets.SnapshotBucket, snapshotName(tenant, thread))
	}
	if err == nil {
		err = store.Delete(ctx, snapshotName(tenant, thread))
	}
	if err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
		return fmt.Errorf("dropping a snapshot of %s/%s: %w", tenant, thread, err)
	}
	return nil
}

// erasePieces overwrites what an object holds, so that nothing of it stays on the
// disk. Until the object is written again or deleted it is broken,
// which costs whoever reads it only time.
func (l *Log) erasePieces(ctx context.Context, store jetstream.ObjectStore, bucket, name string) error {
	info, err := store.GetInfo(ctx, name)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	bucket = l.cfg.Names.Bucket(bucket)
	return l.conn.Erase(ctx, "OBJ_"+bucket, "$O."+bucket+".C."+info.NUID, 0)
}
