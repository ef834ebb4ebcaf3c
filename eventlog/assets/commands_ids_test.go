package assets_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/internal/logtest"
	"github.com/skein-threads/skein/internal/natstest"
)

// A message id that one tenant has used swallows no submitted command of another
// one, nor of the same: each is stored. So it is after a restart of the server, and
// on a stream of before, which is brought up to date on start.
func TestSubmitted_MessageIDsSwallowNothing(t *testing.T) {
	dir := t.TempDir()
	server := natstest.Start(t, natstest.StoreDir(dir))
	l := logtest.Open(t, natstest.Connect(t, server), eventlog.Config{})
	stored := uint64(0)
	submit := func(when string) {
		t.Helper()
		for _, tenant := range []string{"hog", "acme", "acme"} {
			ack, err := l.JetStream().Publish(t.Context(), "skein.submit."+tenant+".thread.create", []byte(`{}`), jetstream.WithMsgID("1"))
			if err != nil || ack.Duplicate {
				t.Fatalf("%s, of %s: %+v %v", when, tenant, ack, err)
			}
			stored++
		}
		s, err := l.JetStream().Stream(t.Context(), "SKEIN_COMMANDS")
		if err != nil || s.CachedInfo().State.Msgs != stored {
			t.Fatalf("%s, %d are stored: %+v %v", when, stored, s, err)
		}
	}
	submit("on a new stream")
	before := streamsOf(t, l)["SKEIN_COMMANDS"].Config
	before.Sources, before.Duplicates = nil, time.Hour
	if _, err := l.JetStream().UpdateStream(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	if _, err := l.JetStream().Publish(t.Context(), "skein.submit.hog.thread.create", []byte(`{}`), jetstream.WithMsgID("1")); err != nil {
		t.Fatal(err)
	}
	stored++
	if err := l.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	for forgotten := false; !forgotten; { // the server forgets the ids that it knew by a timer, at once
		ack, err := l.JetStream().Publish(t.Context(), "skein.submit.hog.thread.create", []byte(`{}`), jetstream.WithMsgID("1"))
		if err != nil {
			t.Fatal(err)
		}
		forgotten = !ack.Duplicate
	}
	stored++
	submit("on a stream of before")
	server.Shutdown()
	l = logtest.Open(t, natstest.Connect(t, natstest.Start(t, natstest.StoreDir(dir))), eventlog.Config{})
	submit("after a restart")
}

// On a cluster the servers look for duplicates at another place.
func TestCluster_MessageIDsSwallowNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	l := logtest.Open(t, clusterConn(t), eventlog.Config{Replicas: 3})
	for _, tenant := range []string{"hog", "acme"} {
		ack, err := l.JetStream().Publish(t.Context(), "skein.submit."+tenant+".thread.create", []byte(`{}`), jetstream.WithMsgID("1"))
		if err != nil || ack.Duplicate {
			t.Fatalf("of %s: %+v %v", tenant, ack, err)
		}
	}
}

// clusterConn starts a cluster of three servers and connects to it.
func clusterConn(t *testing.T) *nats.Conn {
	t.Helper()
	nc := natstest.Dial(t, natstest.StartCluster(t).URL(), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	return nc
}
