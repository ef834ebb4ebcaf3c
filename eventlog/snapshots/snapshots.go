package snapshots

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

// pieceBytes is the largest size of an object's pieces: fewer pieces, fewer fsyncs.
const pieceBytes = 1 << 20

// Store is the object store of snapshots. It is safe for concurrent use.
type Store struct {
	conn    *streams.Conn
	bucket  string
	objects objects.Store
}

// On returns the snapshots that a connection leads to.
func On(conn *streams.Conn) Store {
	bucket := conn.Config().Names.Bucket(assets.SnapshotBucket)
	return Store{conn: conn, bucket: bucket, objects: objects.On(conn, bucket)}
}

func objectName(tenant, thread string) string { return tenant + "/" + thread }

// Save stores the encoded state of a thread, in place of an older one, unless another Save of it
// is faster.
func (s Store) Save(ctx context.Context, tenant, thread string, state []byte) error {
	packed := s2.Encode(nil, state)
	err := s.objects.Put(ctx, objectName(tenant, thread), nil, min(len(packed), pieceBytes), bytes.NewReader(packed))
	if err != nil && !errors.Is(err, objects.ErrReplaced) {
		return fmt.Errorf("saving a snapshot: %w", err)
	}
	return nil
}

// Load returns the encoded state that was saved last. It returns nil if there is none, or if
// pieces of it are missing: it was replaced or dropped meanwhile. An error means that it cannot be
// read. Either way the thread can still be loaded from its commits.
func (s Store) Load(ctx context.Context, tenant, thread string) ([]byte, error) {
	name := objectName(tenant, thread)
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
func (s Store) Drop(ctx context.Context, tenant, thread string) error {
	if err := s.objects.Drop(ctx, objectName(tenant, thread)); err != nil {
		return fmt.Errorf("dropping a snapshot: %w", err)
	}
	return nil
}

// Of names an aggregate that has a snapshot.
type Of struct{ Tenant, Aggregate string }

// List lists the aggregates that have a snapshot.
func (s Store) List(ctx context.Context) iter.Seq2[Of, error] {
	return func(yield func(Of, error) bool) {
		entries := objects.Entries(s.bucket)
		for m, err := range s.conn.Messages(ctx, objects.Stream(s.bucket), entries+"*", 1) {
			if err != nil {
				yield(Of{}, fmt.Errorf("the store of snapshots: %w", err))
				return
			}
			if e, _ := objects.Parse(m.Data); e.Deleted {
				continue
			}
			name, _ := base64.URLEncoding.DecodeString(strings.TrimPrefix(m.Subject, entries))
			tenant, aggregate, _ := strings.Cut(string(name), "/")
			if !yield(Of{Tenant: tenant, Aggregate: aggregate}, nil) {
				return
			}
		}
	}
}
