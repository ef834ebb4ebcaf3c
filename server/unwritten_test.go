package server_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/server"
)

// A block of the log that cannot be made, for a reason other than a full disk, is an outage: readiness
// names the stream, and commands are refused at once.
func TestReady_LogCannotBeWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := run(t, server.Config{Store: dir, NATSListen: "127.0.0.1:0", HTTPListen: "127.0.0.1:0", Workers: -1, Volatile: true})
	if err := os.MkdirAll(filepath.Join(dir, "jetstream", "$G", "streams", "SKEIN_LOG", "msgs", "2.blk", "in its place"), 0o700); err != nil {
		t.Fatal(err)
	}
	c, err := client.Connect(s.Addresses().NATS, client.Options{Tenant: "acme", Timeout: natstest.Patience, Actor: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	made, err := c.Send(t.Context(), "", events.CreateThread{})
	if err != nil {
		t.Fatal(err)
	}
	readyWithin(t, s)
	text := events.JSON(`[{"type":"input_text","text":"` + strings.Repeat("x", 400<<10) + `"}]`)
	writing, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		for writing.Err() == nil {
			_, _ = c.Send(writing, made.ThreadID, events.CreateItem{Item: events.NewItem{Type: events.Message, Role: events.User, Content: text}})
		}
	}()
	var failed *server.NotReadyError
	for !errors.As(s.Ready(t.Context()), &failed) || !names(failed)["store"] {
		if t.Context().Err() != nil {
			t.Fatal("it stays ready")
		}
		time.Sleep(10 * time.Millisecond)
	}
	reason := failed.Error()
	if !strings.Contains(reason, "SKEIN_LOG") || !strings.Contains(reason, dir) || strings.Contains(reason, "there is room") {
		t.Errorf("readiness: %s", reason)
	}
	answer, err := http.Get(s.Addresses().HTTP + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if page, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("readyz: %d %s, %v", answer.StatusCode, page, err)
	}
	if page := scrape(t, s.Addresses().HTTP); !strings.Contains(page, "skein_store_failing 1\n") {
		t.Error("the metric does not say so")
	}
}
