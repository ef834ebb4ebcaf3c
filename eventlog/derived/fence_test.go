package derived

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/internal/natstest"
)

const docs = "thread_docs"

func subject(key string) string { return "$KV." + docs + "." + key }

// fenced returns a connection to a server with a bucket, and a fence on it.
func fenced(t *testing.T) (*streams.Conn, Fence) {
	t.Helper()
	conn := connect(t, natstest.Connect(t, natstest.Start(t)))
	must(t, conn.Ensure(t.Context(), streams.Asset{Config: jetstream.StreamConfig{
		Name: "KV_" + docs, Subjects: []string{subject(">")}, Discard: jetstream.DiscardNew, MaxMsgsPerSubject: -1, MaxMsgSize: -1, AllowDirect: true,
	}}))
	return conn, another(t, conn)
}

// another returns another writer of the bucket.
func another(t *testing.T, conn *streams.Conn) Fence {
	t.Helper()
	f, err := NewFence(t.Context(), conn, "KV_"+docs)
	must(t, err)
	return f
}

// put sends a document of that name without waiting.
func put(t *testing.T, f Fence, key string) error {
	t.Helper()
	return f.Send(t.Context(), subject(key), nil, []byte(key))
}

// written returns the keys of the bucket's messages in order.
func written(t *testing.T, conn *streams.Conn) string {
	t.Helper()
	got, err := conn.Bucket(docs).Range(t.Context(), ">", 0, 1<<20)
	must(t, err)
	var keys []string
	for _, m := range got {
		keys = append(keys, m.Subject)
	}
	return strings.Join(keys, " ")
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestAFenceWritesInOrder(t *testing.T) {
	t.Parallel()
	conn, f := fenced(t)
	var want []string
	for i := range 3*fenceMessages + 100 { // more than may be in flight at once
		want = append(want, fmt.Sprint(i))
		must(t, put(t, f, want[i]))
	}
	must(t, f.Flush(t.Context()), f.Flush(t.Context()))
	if got := written(t, conn); got != strings.Join(want, " ") {
		t.Errorf("the order is lost: %.100s", got)
	}
	if f.Last() != uint64(len(want)) {
		t.Errorf("the last is at %d", f.Last())
	}
	big := make([]byte, 1<<20)
	for range 10 {
		must(t, f.Send(t.Context(), subject("big"), nil, big))
	}
	must(t, f.Final(t.Context(), subject("end"), nil, nil))
	if f.Last() != uint64(len(want))+11 {
		t.Errorf("the last is at %d", f.Last())
	}
}

func TestASecondWriterIsFenced(t *testing.T) {
	t.Parallel()
	conn, old := fenced(t)
	must(t, put(t, old, "a1"), put(t, old, "a2"), old.Flush(t.Context()))
	late := another(t, conn)
	must(t, put(t, old, "a3"), old.Flush(t.Context()))
	err := put(t, late, "b1")
	var f *streams.FencedError
	if !streams.IsFenced(err) || !errors.As(err, &f) || f.Stream != "KV_"+docs {
		t.Errorf("the late one: %v", err)
	}
	taking := another(t, conn)
	must(t, put(t, taking, "c1"))
	must(t, put(t, old, "a4"), put(t, old, "a5"))
	if err := old.Flush(t.Context()); !streams.IsFenced(err) {
		t.Errorf("the one that was replaced: %v", err)
	}
	must(t, put(t, taking, "c2"), taking.Flush(t.Context()))
	// It continues at the end of the stream.
	old = another(t, conn)
	must(t, old.Final(t.Context(), subject("a4"), nil, nil))
	if got := written(t, conn); got != "a1 a2 a3 c1 c2 a4" {
		t.Errorf("written was %s", got)
	}
}

// Messages that a replaced writer has in flight do not come between those of its
// successor.
func TestWritersDoNotMix(t *testing.T) {
	t.Parallel()
	conn, old := fenced(t)
	must(t, put(t, old, "a0"))
	young := another(t, conn)
	must(t, put(t, young, "b0"))
	for i := range 5 {
		must(t, put(t, old, fmt.Sprint("a", i+1)), put(t, young, fmt.Sprint("b", i+1)))
	}
	must(t, young.Flush(t.Context()))
	if err := old.Flush(t.Context()); !streams.IsFenced(err) {
		t.Errorf("the one that was replaced: %v", err)
	}
	if got := written(t, conn); got != "a0 b0 b1 b2 b3 b4 b5" {
		t.Errorf("written was %s", got)
	}
}

func TestAFenceWithoutItsStream(t *testing.T) {
	t.Parallel()
	conn, f := fenced(t)
	if _, err := NewFence(t.Context(), conn, "NOBODY"); err == nil {
		t.Error("a fence on no stream")
	}
	must(t, put(t, f, "a"), conn.JetStream().DeleteStream(t.Context(), "KV_"+docs))
	if err := f.Final(t.Context(), subject("b"), nil, nil); !errors.Is(err, nats.ErrNoResponders) || streams.IsFenced(err) {
		t.Errorf("got %v", err)
	}
}

func TestAFenceDoesNotKeepItsCallersHeader(t *testing.T) {
	t.Parallel()
	conn, f := fenced(t)
	header := nats.Header{"Kind": {"x"}}
	must(t, f.Send(t.Context(), "$KV."+docs+".a", header, nil), f.Final(t.Context(), "$KV."+docs+".b", header, nil))
	if len(header) != 1 {
		t.Errorf("the caller's header is now %v", header)
	}
	got, err := conn.Bucket(docs).Get(t.Context(), "a", "b")
	if err != nil || len(got) != 2 || got[0].Header.Get("Kind") != "x" || got[1].Header.Get("Kind") != "x" {
		t.Errorf("got %+v: %v", got, err)
	}
}
