package serve_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/internal/serve"
)

// A tenant in an account of its own without access to JetStream, as in nats.conf,
// writes and reads files; and has no other way to the store. SA-95.
func TestFilesAcrossAccounts(t *testing.T) {
	t.Setenv("SKEIN_NATS_PASSWORD", "skein-secret")
	t.Setenv("SKEIN_PUBLISHER_PASSWORD", "publisher-secret")
	t.Setenv("SKEIN_SUBSCRIBER_PASSWORD", "subscriber-secret")
	t.Setenv("SKEIN_WORKER_PASSWORD", "worker-secret")
	t.Setenv("SKEIN_GATEWAY_PASSWORD", "gateway-secret")
	t.Setenv("SKEIN_AUDITOR_PASSWORD", "auditor-secret")
	o := must(server.ProcessConfigFile(filepath.Join("..", "..", "nats.conf")))(t)
	o.Port, o.StoreDir, o.NoSigs, o.NoLog = server.RANDOM_PORT, t.TempDir(), true, true
	ns := must(server.NewServer(o))(t)
	ns.Start()
	t.Cleanup(func() {
		ns.Shutdown()
		ns.WaitForShutdown()
	})
	if !ns.ReadyForConnections(time.Minute) {
		t.Fatal("the server is not ready")
	}
	as := func(user string) string {
		return strings.Replace(ns.ClientURL(), "://", "://"+user+":"+user+"-secret@", 1)
	}
	skein := must(serve.Start(t.Context(), serve.Config{NATS: as("skein"), HTTPListen: "127.0.0.1:0"}, zerolog.Nop()))(t)
	defer func() { _ = skein.Stop(t.Context()) }()

	c := must(client.Connect(as("publisher"), client.Options{Tenant: "acme", Inbox: "_INBOX.publisher", Timeout: time.Minute}))(t)
	defer c.Close()
	f := c.Files(must(c.Send(t.Context(), "", events.CreateThread{}))(t).ThreadID)
	for path, size := range map[string]int{"/small": 100, "/large": 5<<20 + 3} {
		data := noise(size, 1)
		record := must(f.WriteFile(t.Context(), path, data, "", client.WriteFileOptions{}))(t)
		if got := must(f.ReadFile(t.Context(), path))(t); !bytes.Equal(got, data) || record.Digest != sum(data) {
			t.Errorf("%s: %d bytes came back", path, len(got))
		}
	}
	nc := natstest.Dial(t, as("publisher"), nats.CustomInboxPrefix("_INBOX.publisher"), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	defer nc.Close()
	for _, subject := range []string{"$JS.API.DIRECT.GET.OBJ_thread_files", "$JS.API.STREAM.PURGE.OBJ_thread_files", "$O.thread_files.C.x", "skein.file.globex.content.get"} {
		if m, err := nc.Request(subject, []byte(`{"seq":1}`), 300*time.Millisecond); err == nil {
			t.Errorf("%s answered %v %d bytes", subject, m.Header, len(m.Data))
		}
	}
}
