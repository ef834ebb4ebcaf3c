package snapshots

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

// pieceBytes is the largest size of an object's pieces: fewer pieces, fewer fsyncs.
const pieceBytes = 1 << 20

// Store is the object store of snapshots. It is safe for concurrent use.
type Store struct {
	conn   *streams.Conn
	bucket string
}

// On returns the snapshots that a connection leads to.
func On(conn *streams.Conn) Store {
	return Store{conn: conn, bucket: conn.Config().Names.Bucket(assets.SnapshotBucket)}
}

func objectName(tenant, thread string) string { return tenant + "/" + thread }

// Save stores the encoded state of a thread, in place of an older one.
func (s Store) Save(ctx context.Context, tenant, thread string, state []byte) error {
	name := objectName(tenant, thread)
	store, err := s.conn.JetStream().ObjectStore(ctx, s.bucket)
	if err == nil {
		err = s.conn.EraseObject(ctx, store, s.bucket, name)
	}
	if err == nil {
		packed := s2.Encode(nil, state)
		piece := uint32(min(len(packed), pieceBytes)) // the client allocates one
		meta := jetstream.ObjectMeta{Name: name, Opts: &jetstream.ObjectMetaOptions{ChunkSize: piece}}
		_, err = store.Put(ctx, meta, bytes.NewReader(packed))
	}
	if err != nil {
		return fmt.Errorf("saving a snapshot of %s: %w", name, err)
	}
	return nil
}

// Load returns the encoded state that was saved last. It returns nil if there is none, or if
// pieces of it are missing: it is about to be replaced or dropped, or was when its writer
// stopped. An error means that it cannot be read. Either way the thread can still be loaded from
// its commits.
func (s Store) Load(ctx context.Context, tenant, thread string) ([]byte, error) {
	name := objectName(tenant, thread)
	failed := func(cause error) error {
		return fmt.Errorf("a snapshot of %s that cannot be read: %w", name, cause)
	}
	stream := "OBJ_" + s.bucket
	got, err := s.conn.Direct(ctx, stream, streams.GetRequest{Multi: []string{streams.ObjectEntry(s.bucket, name)}})
	if err != nil || len(got) == 0 {
		return nil, err
	}
	var entry streams.Object
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
	for m, err := range s.conn.Messages(ctx, stream, streams.ObjectPieces(s.bucket, entry.NUID), 1) {
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

// Drop removes the snapshot of a thread. It is no error if there is none.
func (s Store) Drop(ctx context.Context, tenant, thread string) error {
	name := objectName(tenant, thread)
	store, err := s.conn.JetStream().ObjectStore(ctx, s.bucket)
	if err == nil {
		err = s.conn.EraseObject(ctx, store, s.bucket, name)
	}
	if err == nil {
		err = store.Delete(ctx, name)
	}
	if err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
		return fmt.Errorf("dropping a snapshot of %s: %w", name, err)
	}
	return nil
}

// Of names an aggregate that has a snapshot.
type Of struct{ Tenant, Aggregate string }

// List lists the aggregates that have a snapshot.
func (s Store) List(ctx context.Context) iter.Seq2[Of, error] {
	return func(yield func(Of, error) bool) {
		entries := streams.ObjectEntries(s.bucket)
		for m, err := range s.conn.Messages(ctx, "OBJ_"+s.bucket, entries+"*", 1) {
			if err != nil {
				yield(Of{}, fmt.Errorf("the store of snapshots: %w", err))
				return
			}
			if e, _ := streams.ParseObject(m.Data); e.Deleted {
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
