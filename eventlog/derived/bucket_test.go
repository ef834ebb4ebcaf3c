package derived

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/internal/natstest"
)

// makeLog creates a stream in the place of the log.
func makeLog(t *testing.T, conn *streams.Conn) {
	t.Helper()
	_, err := conn.JetStream().CreateStream(t.Context(), jetstream.StreamConfig{Name: conn.Config().Sample, Subjects: []string{"log.>"}})
	must(t, err)
}

// dropLeases removes the bucket of leases, as a restart of its server does.
func dropLeases(t *testing.T, conn *streams.Conn) {
	t.Helper()
	must(t, conn.JetStream().DeleteStream(t.Context(), "KV_"+LeaseBucket))
}

// A server that was restarted has no leases: a lease that was held is lost, the bucket is
// created as at the start, and the lease is taken again, by its holder or by one that waited.
func TestLease_BucketGone(t *testing.T) {
	t.Parallel()
	const shortly = 4 * time.Second
	address, store := natstest.FreeAddress(t), natstest.StoreDir(t.TempDir())
	s := natstest.Start(t, natstest.Listen(address), store)
	restart := func() {
		s.Shutdown()
		s = natstest.Start(t, natstest.Listen(address), store)
	}
	// Counted apart: one that waited may be connected, and take the lease, before the holder is.
	var ofA, ofB atomic.Int64
	a := hold(t, s.URL(), shortly, &ofA)
	makeLog(t, a.conn)
	_, working := next(t, a)
	for range 2 {
		restart()
		natstest.Within(t, "the work to be told", working.Done())
		_, working = next(t, a)
	}
	stream, err := a.conn.JetStream().Stream(t.Context(), "KV_"+LeaseBucket)
	must(t, err)
	if got, want := stream.CachedInfo().Config, LeaseStream(a.conn.Config()).Config; got.MaxAge != want.MaxAge || got.Storage != want.Storage || got.MaxMsgsPerSubject != 1 || !got.AllowRollup {
		t.Errorf("the bucket is %+v", got)
	}
	b := hold(t, s.URL(), shortly, &ofB)
	restart()
	natstest.Within(t, "the work to be told", working.Done())
	if h, _ := next(t, a, b); h == a { // also one that waited takes it
		a.quit()
		next(t, b)
	}
}

// One that waited creates the bucket if its server was restarted, and the holder is gone.
func TestLease_WaiterCreatesBucket(t *testing.T) {
	t.Parallel()
	nop := zerolog.Nop()
	conn := connect(t, natstest.Connect(t, natstest.Start(t)))
	makeLog(t, conn)
	l := LeasesOn(conn, &nop)
	holder := &lease{conn: conn, name: "work", owner: "holder", ttl: LeaseTTL}
	waiter := &lease{conn: conn, name: "work", owner: "waiter", ttl: LeaseTTL}
	must(t, l.acquire(t.Context(), holder))
	if err := l.acquire(t.Context(), waiter); !errors.Is(err, ErrTaken) {
		t.Fatalf("got %v", err)
	}
	dropLeases(t, conn)
	if err := l.acquire(t.Context(), waiter); err == nil || errors.Is(err, ErrTaken) {
		t.Fatalf("got %v", err)
	}
	must(t, l.acquire(t.Context(), waiter))
}

// Of processes that find no bucket at the same time, each has one afterwards.
func TestLease_BucketCreatedByMany(t *testing.T) {
	t.Parallel()
	s := natstest.Start(t)
	nop := zerolog.Nop()
	first := connect(t, natstest.Connect(t, s))
	makeLog(t, first)
	var racing sync.WaitGroup
	for range 8 {
		l := LeasesOn(connect(t, natstest.Connect(t, s)), &nop)
		racing.Go(func() {
			release, err := l.Lock(t.Context(), "work")
			if err != nil {
				t.Error(err)
				return
			}
			release()
		})
	}
	racing.Wait()
}

// Without the log the bucket of leases is not created: what is left says that there was a log.
func TestLease_NoBucketWithoutALog(t *testing.T) {
	t.Parallel()
	nop := zerolog.Nop()
	conn := connect(t, natstest.Connect(t, natstest.Start(t)))
	if _, err := LeasesOn(conn, &nop).Lock(t.Context(), "work"); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("got %v", err)
	}
	if _, err := conn.JetStream().Stream(t.Context(), "KV_"+LeaseBucket); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("the bucket: %v", err)
	}
}

// The revisions of a bucket that was created again begin at 1: a lease with a number that a
// former holder knows is not its own.
func TestLease_SameRevisionInANewBucket(t *testing.T) {
	t.Parallel()
	conn := connect(t, natstest.Connect(t, natstest.Start(t)))
	makeLog(t, conn)
	makeLeases(t, conn, time.Minute)
	bucket := func() jetstream.KeyValue {
		kv, err := conn.JetStream().KeyValue(t.Context(), LeaseBucket)
		must(t, err)
		return kv
	}
	mine := &lease{conn: conn, kv: bucket(), name: "work", owner: "me", ttl: time.Minute}
	must(t, mine.acquire(t.Context()))
	dropLeases(t, conn)
	makeLeases(t, conn, time.Minute)
	yours := &lease{conn: conn, kv: bucket(), name: "work", owner: "you", ttl: time.Minute}
	must(t, yours.acquire(t.Context()))
	if mine.revision != yours.revision {
		t.Fatalf("the revisions are %d and %d", mine.revision, yours.revision)
	}
	if err := mine.renew(t.Context()); !errors.Is(err, ErrTaken) {
		t.Errorf("a renewal: %v", err)
	}
	mine.release(context.Background())
	must(t, yours.renew(t.Context()))
}
