package objects_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/objects"
	"github.com/skein-threads/skein/internal/logtest"
)

// find returns the object of that name.
func (b *bucket) find() *objects.Object {
	b.Helper()
	for _, find := range []func(context.Context, string) (*objects.Found, error){b.store.FindNear, b.store.Find} {
		o, err := find(b.Context(), name)
		if err != nil || !o.Exists() || o.Seq == 0 || o.Stored.IsZero() {
			b.Fatalf("found %+v, %v", o, err)
		}
	}
	o, err := b.store.Find(b.Context(), name)
	logtest.Must(b.T, err)
	return &o.Object
}

// list rewrites the entry of an object so that it lists the sequences of its pieces.
func (b *bucket) list(o objects.Object) *objects.Object {
	b.Helper()
	pieces := objects.Sequences{}
	for m, err := range b.log.Streams().Messages(b.Context(), objects.Stream(assets.ArchiveBucket), objects.Pieces(assets.ArchiveBucket, o.NUID), 1) {
		logtest.Must(b.T, err)
		pieces = pieces.Append(m.Seq)
	}
	o.Metadata = map[string]string{objects.MetaPieces: pieces.String()}
	b.write(o)
	return b.find()
}

// write writes an entry.
func (b *bucket) write(o objects.Object) {
	b.Helper()
	m, err := o.Message(assets.ArchiveBucket)
	logtest.Must(b.T, err)
	_, err = b.log.JetStream().PublishMsg(b.Context(), m)
	logtest.Must(b.T, err)
}

func TestReader_ReadsAnyObject(t *testing.T) {
	t.Parallel()
	b := start(t)
	for _, size := range []int{0, 1, piece, 11*piece + 7} {
		content := filled(size)
		for writer, write := range map[string]func() error{
			"Put": func() error { return b.put(name, content) },
			"a client": func() error {
				_, err := b.client.PutBytes(t.Context(), name, content)
				return err
			},
		} {
			logtest.Must(t, write())
			o := b.find()
			for how, read := range map[string]func() ([]byte, error){
				"whole":              b.store.Read(t.Context(), o).Whole,
				"as an io.Reader":    func() ([]byte, error) { return io.ReadAll(iotest.HalfReader(b.store.Read(t.Context(), o))) },
				"by their sequences": func() ([]byte, error) { return b.store.Read(t.Context(), b.list(*o)).Whole() },
			} {
				if got, err := read(); err != nil || !bytes.Equal(got, content) {
					t.Errorf("%d bytes that %s wrote, %s: %d, %v", size, writer, how, len(got), err)
				}
			}
		}
	}
	logtest.Must(t, b.put(name, filled(3*piece+7)))
	o := b.list(*b.find())
	for n, want := range map[int64][]byte{0: filled(4 * piece)[:piece], 3: filled(4 * piece)[3*piece:][:7], 4: nil, -1: nil} {
		if got, err := b.store.Piece(t.Context(), o, n); (err == nil) != (want != nil) || !bytes.Equal(got, want) {
			t.Errorf("piece %d has %d bytes, %v", n, len(got), err)
		}
	}
	logtest.Must(t, b.store.Drop(t.Context(), name))
	if o, err := b.store.Find(t.Context(), name); err != nil || o.Exists() || o == nil {
		t.Errorf("a dropped object: %+v, %v", o, err)
	}
	if o, err := b.store.Find(t.Context(), "acme/T-2/1"); err != nil || o != nil {
		t.Errorf("an object that never was: %+v, %v", o, err)
	}
}

// No reader takes another object's bytes, or a part of the object, for the object.
func TestReader_Damage(t *testing.T) {
	t.Parallel()
	content := filled(9 * piece)
	for what, c := range map[string]struct {
		harm    func(b *bucket, o objects.Object)
		missing bool
	}{
		"pieces are gone": {func(b *bucket, o objects.Object) {
			logtest.Must(b.T, b.stream.Purge(b.Context(), jetstream.WithPurgeSubject(objects.Pieces(assets.ArchiveBucket, o.NUID)), jetstream.WithPurgeKeep(3)))
		}, true},
		"it was dropped": {func(b *bucket, _ objects.Object) { logtest.Must(b.T, b.store.Drop(b.Context(), name)) }, true},
		"it was replaced by another": {func(b *bucket, _ objects.Object) {
			logtest.Must(b.T, b.put(name, filled(9*piece+1)))
		}, true},
		"other bytes": {func(b *bucket, o objects.Object) {
			subject := objects.Pieces(assets.ArchiveBucket, o.NUID)
			logtest.Must(b.T, b.stream.Purge(b.Context(), jetstream.WithPurgeSubject(subject), jetstream.WithPurgeKeep(8)))
			_, err := b.log.JetStream().Publish(b.Context(), subject, content[:piece])
			logtest.Must(b.T, err)
		}, false},
		"longer pieces": {func(b *bucket, o objects.Object) {
			subject := objects.Pieces(assets.ArchiveBucket, o.NUID)
			logtest.Must(b.T, b.stream.Purge(b.Context(), jetstream.WithPurgeSubject(subject)))
			for range o.Chunks {
				_, err := b.log.JetStream().Publish(b.Context(), subject, content[:2*piece])
				logtest.Must(b.T, err)
			}
		}, false},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := start(t)
			logtest.Must(t, b.put(name, content))
			o := b.find()
			listed := b.list(*o)
			c.harm(b, *o)
			for _, o := range []*objects.Object{o, listed} {
				r := b.store.Read(t.Context(), o)
				got, err := r.Whole()
				var damaged *objects.DamagedError
				if !errors.As(err, &damaged) || o == listed && what == "other bytes" && !damaged.Missing || o != listed && damaged.Missing != c.missing {
					t.Errorf("listed: %v: %d bytes, %v", o == listed, len(got), err)
				}
				if _, again := r.Next(); !errors.Is(again, err) || !errors.Is(r.Err(), err) {
					t.Errorf("after %v: %v", err, again)
				}
			}
		})
	}
}

// A read goes on in an object that takes the place of the one that is read and equals it: of
// writers that store the same, the last one removes the pieces of the others.
func TestReader_ContinuesInAnEqualObject(t *testing.T) {
	t.Parallel()
	b := start(t)
	content := filled(11*piece + 3)
	for _, listed := range []bool{false, true} {
		logtest.Must(t, b.put(name, content))
		o := b.find()
		if listed {
			o = b.list(*o)
		}
		r := b.store.Read(t.Context(), o)
		first, err := r.Next()
		logtest.Must(t, err)
		logtest.Must(t, b.put(name, content))
		if listed {
			b.list(*b.find())
		}
		rest, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(append(bytes.Clone(first), rest...), content) || r.Object().NUID == o.NUID {
			t.Errorf("listed: %v: %d bytes after the first piece, %v", listed, len(rest), err)
		}
	}
}

func TestReader_ContextEnds(t *testing.T) {
	t.Parallel()
	b := start(t)
	logtest.Must(t, b.put(name, filled(3*piece)))
	stopped := errors.New("stopped")
	ctx, stop := context.WithCancelCause(t.Context())
	r := b.store.Read(ctx, b.find())
	_, err := r.Next()
	logtest.Must(t, err)
	stop(stopped)
	if got, err := r.Whole(); !errors.Is(err, stopped) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}
