package eventlog

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/internal/natstest"
)

// A server that answers and does not store is known as such, from a commit that it did not store
// until one that it did. One that is slow is not, so the log is patient.
func TestAppend_ServerDoesNotStore(t *testing.T) {
	t.Parallel()
	dir, address := t.TempDir(), natstest.FreeAddress(t)
	server := natstest.Start(t, natstest.StoreDir(dir), natstest.Listen(address))
	writing := &streams.Writing{}
	l := openLog(t, natstest.Connect(t, server), Config{Writing: writing, AckTimeout: 10 * impatient}, nil)
	if err := l.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	next := filepath.Join(dir, "jetstream", "$G", "streams", "SKEIN_LOG", "msgs", "2.blk")
	if err := os.MkdirAll(filepath.Join(next, "in its place"), 0o700); err != nil {
		t.Fatal(err)
	}
	author := newAuthor(1)
	append := func() error {
		c := author.draft(t, 1, 1<<19)
		err := l.Append(t.Context(), Write{Commit: c, Expected: author.seq})
		if err == nil {
			author.stored(c)
		}
		return err
	}
	var err error
	for err == nil {
		if err = append(); err == nil && writing.Err() != nil {
			t.Fatalf("it was stored, and %v", writing.Err())
		}
	}
	var unknown *UnknownError
	var failing *streams.FailingError
	if !errors.As(err, &unknown) || !errors.As(writing.Err(), &failing) {
		t.Fatalf("the append: %v; writing: %v", err, writing.Err())
	}
	server.Shutdown()
	if err := os.RemoveAll(next); err != nil {
		t.Fatal(err)
	}
	natstest.Start(t, natstest.StoreDir(dir), natstest.Listen(address))
	for err = append(); err != nil; err = append() { // it connects again first
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
	if err := writing.Err(); err != nil {
		t.Errorf("it stores again, and %v", err)
	}
}

// A server that does not store is known to store again from a commit that it stored, also if its
// acknowledgement was lost and the commit was found in the log.
func TestAppend_StoredThoughNotAcknowledged(t *testing.T) {
	t.Parallel()
	direct := start(t)
	p := natstest.NewProxy(t, direct.conn.NATS().ConnectedUrl())
	writing := &streams.Writing{}
	l := openLog(t, p.Connect(t), Config{Writing: writing, AckTimeout: impatient}, nil)
	units := group(t, l, 0, 1)
	p.DropReceived.Store(true)
	go l.write(units)
	natstest.Eventually(t, "the commit in the log", holds(t, direct, commits(units)))
	writing.Failed("SKEIN_LOG", errors.New("it did not store the commit before"))
	p.DropReceived.Store(false)
	if err := natstest.Within(t, "an answer", units[0].done); err != nil {
		t.Fatal(err)
	}
	if err := writing.Err(); err != nil {
		t.Errorf("it stores again, and %v", err)
	}
}
