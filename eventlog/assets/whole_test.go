package assets_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

// A log that ends before what derived streams show of it is refused, and so is one
// that is gone; without the derived streams there is nothing to compare it with.
func TestCheckWhole_LogBehindDerivedData(t *testing.T) {
	nc := natstest.Connect(t, natstest.Start(t))
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	l, err := eventlog.Open(nc, eventlog.Config{}, zerolog.Nop(), eventlog.NoMetrics{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	if err := assets.CheckWhole(t.Context(), l.Streams()); err != nil {
		t.Fatalf("a server without streams: %v", err)
	}
	if err := errors.Join(l.Ensure(t.Context()), assets.EnsureBucket(t.Context(), l.Streams(), "thread_threads"), assets.CheckWhole(t.Context(), l.Streams())); err != nil {
		t.Fatalf("new streams: %v", err)
	}
	put := func(subject, body string, headers nats.Header) {
		t.Helper()
		if _, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: subject, Data: []byte(body), Header: headers}); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(name string, last, proven uint64) {
		t.Helper()
		var behind *assets.BehindError
		if err := assets.CheckWhole(t.Context(), l.Streams()); !errors.As(err, &behind) || behind.Last != last || behind.Proven != proven {
			t.Errorf("%s: %v", name, err)
		}
	}
	names := events.DefaultNames()
	for range 3 {
		put(names.Log("acme", "T-1"), "[]", nil)
	}
	put("$KV."+names.Bucket("thread_threads")+"._.checkpoint", `{"projection":"threads","seq":3}`, nil)
	if err := assets.CheckWhole(t.Context(), l.Streams()); err != nil {
		t.Errorf("read models that show all of the log: %v", err)
	}
	put("$KV."+names.Bucket("thread_threads")+"._.checkpoint", `{"projection":"threads","seq":5}`, nil)
	refused("a checkpoint that shows more", 3, 5)
	put(names.Timeline("acme", "T-1", "thread.created"), "{}", nats.Header{events.HeaderSeq: {fmt.Sprint(9)}, events.HeaderVersion: {"1"}})
	refused("a timeline that shows more", 3, 9)
	if err := js.DeleteStream(t.Context(), names.Stream(assets.LogStream)); err != nil {
		t.Fatal(err)
	}
	refused("no log", 0, 9)
	dropped, err := assets.DropDerived(t.Context(), l.Streams())
	if err != nil || len(dropped) < 5 {
		t.Errorf("dropped %v, %v", dropped, err)
	}
	if err := assets.CheckWhole(t.Context(), l.Streams()); err != nil {
		t.Errorf("without what is derived: %v", err)
	}
}
