package main_test

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/internal/natstest"
)

// With a separate server, a Skein refuses to start on a log that is missing or has lost
// its end, until that is accepted; then everything works again.
func TestStore_LostLogOnAServer(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	s := start(t, "", "--nats", server.URL())
	for range 3 {
		s.ok("thread", "create")
	}
	s.ok("thread", "list")
	s.stop()
	js, err := jetstream.New(natstest.Connect(t, server))
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteStream(t.Context(), "SKEIN_LOG"); err != nil {
		t.Fatal(err)
	}
	o := run(t, []string{"SKEIN_HTTP_LISTEN=127.0.0.1:0"}, "", "serve", "--nats", server.URL())
	if o.code != 1 || o.out != "" || !strings.Contains(o.err, "skein store repair --accept-loss") {
		t.Fatalf("without its log: exit %d, %q, %s", o.code, o.out, o.err)
	}
	if _, err := js.Stream(t.Context(), "SKEIN_LOG"); err == nil {
		t.Error("a new log was made")
	}
	if o := run(t, nil, "", "store", "repair", "--server", server.URL()); o.code != 2 {
		t.Errorf("without accepting it: exit %d, %s", o.code, o.err)
	}
	if o := run(t, nil, "", "store", "repair", "--server", server.URL(), "--accept-loss"); o.code != 0 || !strings.Contains(o.out, "SKEIN_TIMELINE: removed") {
		t.Fatalf("accepting it: exit %d, %s%s", o.code, o.out, o.err)
	}
	s = start(t, "", "--nats", server.URL())
	s.ok("thread", "create")
	if list := s.ok("thread", "list", "--json"); strings.Count(list, "\n") != 1 {
		t.Errorf("the threads: %s", list)
	}
	s.stop()
}
