package eventlog_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"runtime"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/internal/logtest"
)

func TestStore_SavesLoadsAndDrops(t *testing.T) {
	t.Parallel()
	l := logtest.Start(t)
	s := eventlog.SnapshotsOn(l.Streams())
	ctx := t.Context()
	if got, err := s.Load(ctx, logtest.Tenant, "T-1"); got != nil || err != nil {
		t.Errorf("a snapshot that is not there: %d bytes, %v", len(got), err)
	}
	large := make([]byte, 3*(1<<20))
	_, _ = rand.Read(large)
	for _, state := range [][]byte{[]byte(`{"version":1}`), large, []byte(`{"version":2}`)} {
		logtest.Must(t, s.Save(ctx, logtest.Tenant, "T-1", state))
		if got, err := s.Load(ctx, logtest.Tenant, "T-1"); err != nil || got == nil || !bytes.Equal(got, state) {
			t.Errorf("%d bytes came back as %d: %v", len(state), len(got), err)
		}
	}
	logtest.Must(t, s.Save(ctx, "other", "T-1", []byte("another tenant's")))
	for range 2 {
		logtest.Must(t, s.Drop(ctx, logtest.Tenant, "T-1"))
		if got, err := s.Load(ctx, logtest.Tenant, "T-1"); got != nil || err != nil {
			t.Errorf("a dropped snapshot: %q, %v", got, err)
		}
	}
	logtest.Must(t, s.Drop(ctx, logtest.Tenant, "T-never"))
	if got, err := s.Load(ctx, "other", "T-1"); string(got) != "another tenant's" || err != nil {
		t.Errorf("another tenant's: %q, %v", got, err)
	}
	stream, err := l.JetStream().Stream(ctx, "OBJ_"+assets.SnapshotBucket)
	logtest.Must(t, err)
	if bytes := stream.CachedInfo().State.Bytes; bytes > 64<<10 {
		t.Errorf("what was replaced still takes %d bytes", bytes)
	}
}

// Small snapshots are written often: each takes the memory of what it holds, not of the largest
// piece. (It does not run in parallel with others, whose memory would count.)
func TestSave_TakesTheMemoryOfItsState(t *testing.T) {
	s := eventlog.SnapshotsOn(logtest.Start(t).Streams())
	const times = 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range times {
		logtest.Must(t, s.Save(t.Context(), logtest.Tenant, "T-1", []byte(`{"version":1}`)))
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / times; each > (1<<20)/2 {
		t.Errorf("each took %d bytes", each)
	}
}

func TestLoad_Corrupt(t *testing.T) {
	t.Parallel()
	l := logtest.Start(t)
	s := eventlog.SnapshotsOn(l.Streams())
	store, err := l.JetStream().ObjectStore(t.Context(), assets.SnapshotBucket)
	logtest.Must(t, err)
	_, err = store.PutBytes(t.Context(), logtest.Tenant+"/T-1", []byte("this is not compressed"))
	logtest.Must(t, err)
	if got, err := s.Load(t.Context(), logtest.Tenant, "T-1"); err == nil {
		t.Errorf("got %q", got)
	}

	// Its pieces are gone, or are others.
	logtest.Must(t, s.Save(t.Context(), logtest.Tenant, "T-2", []byte("state")))
	info, err := store.GetInfo(t.Context(), logtest.Tenant+"/T-2")
	logtest.Must(t, err)
	stream, err := l.JetStream().Stream(t.Context(), "OBJ_"+assets.SnapshotBucket)
	logtest.Must(t, err)
	pieces := "$O." + assets.SnapshotBucket + ".C." + info.NUID
	logtest.Must(t, stream.Purge(t.Context(), jetstream.WithPurgeSubject(pieces)))
	if got, err := s.Load(t.Context(), logtest.Tenant, "T-2"); got != nil || err != nil { // it is being replaced
		t.Errorf("got %q, %v", got, err)
	}
	_, err = l.JetStream().Publish(t.Context(), pieces, []byte("somebody else's"))
	logtest.Must(t, err)
	if got, err := s.Load(context.Background(), logtest.Tenant, "T-2"); err == nil {
		t.Errorf("got %q", got)
	}
}
