package server_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/server"
)

// A server that acknowledges before its disk has a message is named, with the
// cure, and nothing stays behind of the measurement.
func TestStart_WarnsOfAServerWithoutFsync(t *testing.T) {
	t.Parallel()
	if raced {
		t.Skip("it measures times: make test runs it")
	}
	ns := natstest.Start(t) // which syncs every two minutes
	warned := false
	for range 20 { // on a busy machine an acknowledgement may take as long as a disk
		var log bytes.Buffer
		s, err := server.Start(t.Context(), server.Config{NATS: ns.URL(), HTTPListen: "127.0.0.1:0", Workers: -1}, zerolog.New(zerolog.SyncWriter(&log)).Level(zerolog.WarnLevel))
		if err != nil {
			t.Fatal(err)
		}
		stop(t, s)
		if warned = strings.Contains(log.String(), "sync_interval: always"); warned {
			break
		}
	}
	if !warned {
		t.Error("no warning")
	}
	js, err := jetstream.New(natstest.Connect(t, ns))
	if err != nil {
		t.Fatal(err)
	}
	names := js.StreamNames(t.Context())
	for name := range names.Name() {
		if strings.Contains(name, "PROBE") {
			t.Errorf("the stream %s is still there", name)
		}
	}
	if names.Err() != nil {
		t.Error(names.Err())
	}
}
