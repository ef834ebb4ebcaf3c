package server_test

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/server"
)

// The stream of the measurement is deleted only while the account has others: behind the
// deletion of an account's only stream the server removes the account's folder, and a
// stream that is created at this moment fails with "error creating store for stream".
func TestStart_MeasuresTheDiskNextToTheLog(t *testing.T) {
	t.Parallel()
	ns := natstest.Start(t)
	calls := make(chan *nats.Msg, 1024)
	nc := natstest.Connect(t, ns)
	if _, err := nc.ChanSubscribe("$JS.API.STREAM.*.*", calls); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	s, err := server.Start(t.Context(), server.Config{NATS: ns.URL(), HTTPListen: "127.0.0.1:0", Workers: -1}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	stop(t, s)
	created := map[string]bool{}
	for call := range calls {
		verb, stream, _ := strings.Cut(strings.TrimPrefix(call.Subject, "$JS.API.STREAM."), ".")
		if verb == "CREATE" {
			created[stream] = true
		}
		if verb == "DELETE" && strings.HasPrefix(stream, "SKEIN_PROBE_") {
			break
		}
	}
	if !created["SKEIN_LOG"] {
		t.Errorf("the measurement ended when the server had been asked only for %v", created)
	}
}
