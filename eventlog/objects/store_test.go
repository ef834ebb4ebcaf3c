package objects_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/objects"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/internal/logtest"
	"github.com/skein-threads/skein/internal/natstest"
)

const (
	name  = "acme/T-1/17"
	piece = 1 << 10
)

// bucket is a store of objects, as Skein sees it and as any client does.
type bucket struct {
	*testing.T
	log    *eventlog.Log
	store  objects.Store
	client jetstream.ObjectStore
	stream jetstream.Stream
}

func start(t *testing.T) *bucket {
	t.Helper()
	b := &bucket{T: t, log: logtest.Start(t)}
	b.store = objects.On(b.log.Streams(), assets.ArchiveBucket)
	var err error
	b.client, err = b.log.JetStream().ObjectStore(t.Context(), assets.ArchiveBucket)
	logtest.Must(t, err)
	b.stream, err = b.log.JetStream().Stream(t.Context(), objects.Stream(assets.ArchiveBucket))
	logtest.Must(t, err)
	return b
}

func (b *bucket) put(name string, content []byte) error {
	return b.store.Put(b.Context(), name, map[string]string{"first": "1"}, piece, bytes.NewReader(content))
}

// holds checks that a client reads an object, and how many pieces the store holds.
func (b *bucket) holds(name string, content []byte, pieces int) {
	b.Helper()
	got, err := b.client.GetBytes(b.Context(), name)
	if content == nil && !errors.Is(err, jetstream.ErrObjectNotFound) || content != nil && (err != nil || !bytes.Equal(got, content)) {
		b.Errorf("%s: a client reads %d bytes, %v", name, len(got), err)
	}
	if have := b.pieces(); have != pieces {
		b.Errorf("%s: the store holds %d pieces, and not %d", name, have, pieces)
	}
}

func (b *bucket) pieces() (n int) {
	b.Helper()
	info, err := b.stream.Info(b.Context(), jetstream.WithSubjectFilter(objects.Pieces(assets.ArchiveBucket, ">")))
	logtest.Must(b.T, err)
	for _, of := range info.State.Subjects {
		n += int(of)
	}
	return n
}

func filled(n int) []byte { return bytes.Repeat([]byte("0123456789"), n/10+1)[:n] }

func TestStore_PutsReplacesAndDrops(t *testing.T) {
	t.Parallel()
	b := start(t)
	for _, n := range []int{0, 1, piece, 2*piece + 1, 0, 3 * piece} {
		content := filled(n)
		logtest.Must(t, b.put(name, content))
		b.holds(name, content, (n+piece-1)/piece)
	}
	if info, err := b.client.GetInfo(t.Context(), name); err != nil || info.Metadata["first"] != "1" || info.Size != 3*piece || info.Opts.ChunkSize != piece {
		t.Errorf("a client sees %+v, %v", info, err)
	}
	other := "acme/T-1/170" // begins as the other one's name
	logtest.Must(t, b.put(other, filled(piece)))
	if list, err := b.store.WithPieces(t.Context(), "acme/T-1"); err != nil || strings.Join(list, " ") != name+" "+other {
		t.Errorf("it lists %v, %v", list, err)
	}
	for range 2 {
		logtest.Must(t, b.store.Drop(t.Context(), name))
		b.holds(name, nil, 1)
	}
	logtest.Must(t, b.store.Drop(t.Context(), "acme/T-1/1"), b.put(name, filled(5)))
	b.holds(name, filled(5), 2)
	b.holds(other, filled(piece), 2)
}

// A name with other tokens would be that of other objects' pieces.
func TestStore_Names(t *testing.T) {
	t.Parallel()
	b := start(t)
	logtest.Must(t, b.put(name, filled(5)))
	for _, bad := range []string{"", "acme/*/17", "acme/>", "acme//17", "/acme", "acme/", "acme/T.1", "acme/T 1"} {
		_, listErr := b.store.WithPieces(t.Context(), bad)
		for what, err := range map[string]error{
			"put": b.put(bad, filled(5)), "drop": b.store.Drop(t.Context(), bad), "erase": b.store.ErasePieces(t.Context(), bad), "list": listErr,
		} {
			if err == nil || !strings.Contains(err.Error(), "must be tokens of a subject") {
				t.Errorf("%s of %q: %v", what, bad, err)
			}
		}
	}
	b.holds(name, filled(5), 1)
}

// Of writers at the same time one succeeds, and nothing of the others stays.
func TestPut_WritersAtOnce(t *testing.T) {
	t.Parallel()
	b := start(t)
	for round := range 5 {
		const writers = 4
		var all, begun sync.WaitGroup
		begun.Add(writers)
		errs := make([]error, writers)
		for n := range writers {
			all.Go(func() {
				read := false
				errs[n] = b.store.Put(t.Context(), name, nil, piece, reader(func(p []byte) (int, error) {
					if read {
						return 0, io.EOF
					}
					read = true
					begun.Done()
					begun.Wait() // until all have read the entry
					return copy(p, filled(100+n)), nil
				}))
			})
		}
		all.Wait()
		won := -1
		for n, err := range errs {
			if err == nil && won < 0 {
				won = n
			} else if !errors.Is(err, objects.ErrReplaced) {
				t.Errorf("round %d: writer %d: %v", round, n, err)
			}
		}
		if won < 0 {
			t.Fatal("none succeeded")
		}
		b.holds(name, filled(100+won), 1)
	}
}

type reader func(p []byte) (int, error)

func (r reader) Read(p []byte) (int, error) { return r(p) }

// A reader that fails leaves what was there, also with an error that looks like an end.
func TestPut_ReaderFails(t *testing.T) {
	t.Parallel()
	b := start(t)
	logtest.Must(t, b.put(name, filled(5)))
	for _, failure := range []error{errors.New("it failed"), io.ErrUnexpectedEOF, fmt.Errorf("wrapped: %w", io.EOF)} {
		left := 3
		err := b.store.Put(t.Context(), name, nil, piece, reader(func(p []byte) (int, error) {
			if left--; left == 0 {
				return 0, failure
			}
			return len(p), nil
		}))
		if !errors.Is(err, failure) {
			t.Errorf("%v: %v", failure, err)
		}
		b.holds(name, filled(5), 1)
	}
}

// What a killed writer left is found by the object's name: it is gone when the object is written
// again or dropped, or what is under its name is erased; and the object that was there stays.
func TestStore_KilledWriter(t *testing.T) {
	t.Parallel()
	b := start(t)
	logtest.Must(t, b.put(name, filled(5)))
	killed := func(name string) {
		t.Helper()
		nc := natstest.Dial(t, b.log.Conn().ConnectedUrl())
		log, err := eventlog.Open(nc, eventlog.Config{AckTimeout: time.Second}, zerolog.Nop(), nil)
		logtest.Must(t, err)
		first := true
		err = objects.On(log.Streams(), assets.ArchiveBucket).Put(t.Context(), name, nil, piece, reader(func(p []byte) (int, error) {
			if !first {
				nc.Close()
			}
			first = false
			return len(p), nil
		}))
		if err == nil {
			t.Fatal("a killed writer succeeded")
		}
	}
	killed(name)
	b.holds(name, filled(5), 2)
	logtest.Must(t, b.put(name, filled(6)))
	b.holds(name, filled(6), 1)
	killed(name)
	logtest.Must(t, b.store.Drop(t.Context(), name))
	b.holds(name, nil, 0)
	killed(name)
	killed("acme/T-1/18")
	killed("acme/T-10/18")
	if list, err := b.store.WithPieces(t.Context(), "acme/T-1"); err != nil || strings.Join(list, " ") != name+" acme/T-1/18" {
		t.Errorf("it lists %v, %v", list, err)
	}
	logtest.Must(t, b.store.ErasePieces(t.Context(), "acme/T-1"))
	b.holds(name, nil, 1)
}

// What another client has put is replaced and dropped with its pieces, unless its entry names
// something else than pieces.
func TestStore_ObjectOfAnotherClient(t *testing.T) {
	t.Parallel()
	b := start(t)
	foreign := func(name string) {
		t.Helper()
		_, err := b.client.PutBytes(t.Context(), name, filled(5))
		logtest.Must(t, err)
	}
	foreign(name)
	logtest.Must(t, b.put(name, filled(6)))
	b.holds(name, filled(6), 1)
	foreign("acme/T-2/1")
	logtest.Must(t, b.store.Drop(t.Context(), "acme/T-2/1"))
	b.holds(name, filled(6), 1)
	for _, forged := range []string{">", "*", "acme.T-1.17.*", "acme.>"} {
		entry := []byte(`{"name":"acme/T-3/1","nuid":"` + forged + `"}`)
		for _, remove := range []func() error{
			func() error { return b.put("acme/T-3/1", nil) }, func() error { return b.store.Drop(t.Context(), "acme/T-3/1") },
		} {
			_, err := b.log.JetStream().Publish(t.Context(), objects.Entry(assets.ArchiveBucket, "acme/T-3/1"), entry)
			logtest.Must(t, err, remove())
			b.holds(name, filled(6), 1)
		}
	}
}

// A writer that the server does not answer when it has stored the entry leaves the pieces: the
// object is there.
func TestPut_AnswerIsLost(t *testing.T) {
	t.Parallel()
	b := start(t)
	logtest.Must(t, b.put(name, filled(5)))
	lossy, err := streams.OpenOn(lossyConn{b.log.Conn()}, b.log.JetStream(), b.log.Streams().Config())
	logtest.Must(t, err)
	t.Cleanup(lossy.Close)
	if err := objects.On(lossy, assets.ArchiveBucket).Put(t.Context(), name, nil, piece, bytes.NewReader(filled(6))); !errors.Is(err, nats.ErrTimeout) {
		t.Errorf("without the answer: %v", err)
	}
	b.holds(name, filled(6), 2)
	logtest.Must(t, b.put(name, filled(7)))
	b.holds(name, filled(7), 1)
}

// lossyConn is a connection that loses the answers to entries.
type lossyConn struct{ *nats.Conn }

func (c lossyConn) RequestMsg(m *nats.Msg, timeout time.Duration) (*nats.Msg, error) {
	reply, err := c.Conn.RequestMsg(m, timeout)
	if err == nil && strings.Contains(m.Subject, ".M.") {
		return nil, nats.ErrTimeout
	}
	return reply, err
}

// A Put ends with its context, before it has read everything.
func TestPut_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	b := start(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("over")
	err := b.store.Put(ctx, name, nil, piece, reader(func(p []byte) (int, error) {
		cancel(over)
		return len(p), nil
	}))
	if !errors.Is(err, over) {
		t.Errorf("it ended with %v", err)
	}
	logtest.Must(t, b.store.Drop(t.Context(), name))
	b.holds(name, nil, 0)
}
