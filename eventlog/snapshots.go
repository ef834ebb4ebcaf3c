package eventlog

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/klauspost/compress/s2"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/objects"
	"github.com/skein-threads/skein/eventlog/streams"
)

// snapshotPieceBytes is the largest size of an object's pieces: fewer pieces, fewer fsyncs.
const snapshotPieceBytes = 1 << 20

// Snapshots keeps encoded states of threads in an object store, so that a long thread is loaded
// without reading all of its commits. It is safe for concurrent use.
//
//   - Save replaces the snapshot of a thread, and Drop removes it. The server overwrites what either
//     removes.
//   - A snapshot that is damaged is never returned: its digest and its compression are checked.
//   - It is derived: it may be missing, damaged or old, and the thread's commits decide. What the
//     bytes mean, and whether they are still valid, is for the caller to say.
type Snapshots struct {
	conn    *streams.Conn
	bucket  string
	objects objects.Store
}

// SnapshotsOn returns the snapshots that a connection leads to.
func SnapshotsOn(conn *streams.Conn) Snapshots {
	bucket := conn.Config().Names.Bucket(assets.SnapshotBucket)
	return Snapshots{conn: conn, bucket: bucket, objects: objects.On(conn, bucket)}
}

func snapshotName(tenant, thread string) string { return tenant + "/" + thread }

// Save stores the encoded state of a thread, in place of an older one, unless another Save of it
// is faster.
func (s Snapshots) Save(ctx context.Context, tenant, thread string, state []byte) error {
	packed := s2.Encode(nil, state)
	err := s.objects.Put(ctx, snapshotName(tenant, thread), nil, min(len(packed), snapshotPieceBytes), bytes.NewReader(packed))
	if err != nil && !errors.Is(err, objects.ErrReplaced) {
		return fmt.Errorf("saving a snapshot: %w", err)
	}
	return nil
}

// Load returns the encoded state that was saved last. It returns nil if there is none, or if
// pieces of it are missing: it was replaced or dropped meanwhile. An error means that it cannot be
// read. Either way the thread can still be loaded from its commits.
func (s Snapshots) Load(ctx context.Context, tenant, thread string) ([]byte, error) {
	name := snapshotName(tenant, thread)
	failed := func(cause error) error {
		return fmt.Errorf("a snapshot of %s that cannot be read: %w", name, cause)
	}
	o, err := s.objects.FindNear(ctx, name)
	var packed []byte
	if err == nil && o.Exists() {
		packed, err = s.objects.Read(ctx, &o.Object).Whole()
	}
	var damaged *objects.DamagedError
	switch {
	case errors.As(err, &damaged) && damaged.Missing, err == nil && !o.Exists():
		return nil, nil
	case damaged != nil:
		return nil, failed(err)
	case err != nil:
		return nil, err
	}
	state, err := s2.Decode(nil, packed)
	if err != nil {
		return nil, failed(err)
	}
	return state, nil
}

// Drop removes the snapshot of a thread. It is no error if there is none.
func (s Snapshots) Drop(ctx context.Context, tenant, thread string) error {
	if err := s.objects.Drop(ctx, snapshotName(tenant, thread)); err != nil {
		return fmt.Errorf("dropping a snapshot: %w", err)
	}
	return nil
}

// SnapshotOf names an aggregate that has a snapshot.
type SnapshotOf struct{ Tenant, Aggregate string }

// List lists the aggregates that have a snapshot.
func (s Snapshots) List(ctx context.Context) iter.Seq2[SnapshotOf, error] {
	return func(yield func(SnapshotOf, error) bool) {
		entries := objects.Entries(s.bucket)
		for m, err := range s.conn.Messages(ctx, objects.Stream(s.bucket), entries+"*", 1) {
			if err != nil {
				yield(SnapshotOf{}, fmt.Errorf("the store of snapshots: %w", err))
				return
			}
			if e, _ := objects.Parse(m.Data); e.Deleted {
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
