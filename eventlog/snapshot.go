package eventlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats.go/jetstream"
)

// snapshotChunk is the size of an object's pieces: fewer pieces, fewer fsyncs.
const snapshotChunk = 1 << 20

// ensureObjects makes an object store, or brings it up to date.
func (l *Log) ensureObjects(ctx context.Context, bucket, description string) error {
	name := l.cfg.Names.Bucket(bucket)
	if store, err := l.js.ObjectStore(ctx, name); err == nil {
		if status, err := store.Status(ctx); err == nil && status.Replicas() == l.cfg.Replicas {
			return nil
		}
	}
	_, err := l.js.CreateOrUpdateObjectStore(ctx, jetstream.ObjectStoreConfig{
		Bucket: name, Description: description, Replicas: l.cfg.Replicas,
	})
	return assetFailed(name, err)
}

func snapshotName(tenant, thread string) string { return tenant + "/" + thread }

// SaveSnapshot keeps the encoded state of a thread, in place of an older one.
func (l *Log) SaveSnapshot(ctx context.Context, tenant, thread string, state []byte) error {
	store, err := l.js.ObjectStore(ctx, l.cfg.Names.Bucket(SnapshotBucket))
	if err == nil {
		err = l.erasePieces(ctx, store, SnapshotBucket, snapshotName(tenant, thread))
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
	store, err := l.js.ObjectStore(ctx, l.cfg.Names.Bucket(SnapshotBucket))
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

// DropSnapshot forgets the state of a thread.
func (l *Log) DropSnapshot(ctx context.Context, tenant, thread string) error {
	store, err := l.js.ObjectStore(ctx, l.cfg.Names.Bucket(SnapshotBucket))
	if err == nil {
		err = l.erasePieces(ctx, store, SnapshotBucket, snapshotName(tenant, thread))
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
	return l.Erase(ctx, "OBJ_"+bucket, "$O."+bucket+".C."+info.NUID, 0)
}
