package eventlog

import (
	"bytes"
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/skein-threads/skein/eventlog/assets"
)

func TestSnapshots(t *testing.T) {
	t.Parallel()
	l := start(t)
	ctx := t.Context()
	if got, err := l.Snapshot(ctx, tenant, "T-1"); got != nil || err != nil {
		t.Errorf("a snapshot that is not there: %d bytes, %v", len(got), err)
	}
	large := make([]byte, 3*snapshotChunk)
	_, _ = rand.Read(large)
	for _, state := range [][]byte{[]byte(`{"version":1}`), large, []byte(`{"version":2}`)} {
		must(t, l.SaveSnapshot(ctx, tenant, "T-1", state))
		if got, err := l.Snapshot(ctx, tenant, "T-1"); err != nil || got == nil || !bytes.Equal(got, state) {
			t.Errorf("%d bytes came back as %d: %v", len(state), len(got), err)
		}
	}
	must(t, l.SaveSnapshot(ctx, "other", "T-1", []byte("another tenant's")))
	for range 2 {
		must(t, l.DropSnapshot(ctx, tenant, "T-1"))
		if got, err := l.Snapshot(ctx, tenant, "T-1"); got != nil || err != nil {
			t.Errorf("a dropped snapshot: %q, %v", got, err)
		}
	}
	must(t, l.DropSnapshot(ctx, tenant, "T-never"))
	if got, err := l.Snapshot(ctx, "other", "T-1"); string(got) != "another tenant's" || err != nil {
		t.Errorf("another tenant's: %q, %v", got, err)
	}
	stream, err := l.conn.JetStream().Stream(ctx, "OBJ_"+assets.SnapshotBucket)
	must(t, err)
	if bytes := stream.CachedInfo().State.Bytes; bytes > 64<<10 {
		t.Errorf("what was replaced still takes %d bytes", bytes)
	}
}

func TestASnapshotThatIsCorrupt(t *testing.T) {
	t.Parallel()
	l := start(t)
	store, err := l.conn.JetStream().ObjectStore(t.Context(), assets.SnapshotBucket)
	must(t, err)
	_, err = store.PutBytes(t.Context(), snapshotName(tenant, "T-1"), []byte("this is not compressed"))
	must(t, err)
	if got, err := l.Snapshot(t.Context(), tenant, "T-1"); err == nil {
		t.Errorf("got %q", got)
	}

	// Its pieces are gone, or are others.
	must(t, l.SaveSnapshot(t.Context(), tenant, "T-2", []byte("state")))
	info, err := store.GetInfo(t.Context(), snapshotName(tenant, "T-2"))
	must(t, err)
	stream, err := l.conn.JetStream().Stream(t.Context(), "OBJ_"+assets.SnapshotBucket)
	must(t, err)
	pieces := "$O." + assets.SnapshotBucket + ".C." + info.NUID
	must(t, stream.Purge(t.Context(), jetstream.WithPurgeSubject(pieces)))
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if got, err := l.Snapshot(ctx, tenant, "T-2"); err == nil {
		t.Errorf("got %q", got)
	}
	_, err = l.conn.JetStream().Publish(t.Context(), pieces, []byte("somebody else's"))
	must(t, err)
	if got, err := l.Snapshot(context.Background(), tenant, "T-2"); err == nil {
		t.Errorf("got %q", got)
	}
}
