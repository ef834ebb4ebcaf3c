package server_test

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/server"
)

// startConf starts a server with nats.conf, and a Skein on it. It returns the URL of a user.
func startConf(t *testing.T) func(user string) string {
	t.Helper()
	t.Setenv("SKEIN_NATS_PASSWORD", "skein-secret")
	t.Setenv("SKEIN_PUBLISHER_PASSWORD", "publisher-secret")
	t.Setenv("SKEIN_SUBSCRIBER_PASSWORD", "subscriber-secret")
	t.Setenv("SKEIN_WORKER_PASSWORD", "worker-secret")
	t.Setenv("SKEIN_GATEWAY_PASSWORD", "gateway-secret")
	t.Setenv("SKEIN_AUDITOR_PASSWORD", "auditor-secret")
	o := must(natsserver.ProcessConfigFile(filepath.Join("..", "nats.conf")))(t)
	o.Port, o.StoreDir, o.NoSigs, o.NoLog = natsserver.RANDOM_PORT, t.TempDir(), true, true
	ns := must(natsserver.NewServer(o))(t)
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
	skein := must(server.Start(t.Context(), server.Config{NATS: as("skein"), HTTPListen: "127.0.0.1:0"}, zerolog.Nop()))(t)
	t.Cleanup(func() { _ = skein.Stop(context.Background()) })
	return as
}

// A tenant in an account of its own without access to JetStream, as in nats.conf,
// writes and reads files; and has no other way to the store. SA-95.
func TestFilesAcrossAccounts(t *testing.T) {
	as := startConf(t)
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

// A gateway of nats.conf reads and writes the sessions of gateways, one by one, and no others.
func TestSessionsAcrossAccounts(t *testing.T) {
	as := startConf(t)
	refused := make(chan error, 8)
	nc := natstest.Dial(t, as("gateway"), nats.CustomInboxPrefix("_INBOX.gateway"), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
	names := events.DefaultNames()
	key := names.Session("gateway", "session", "acme", "7")
	ask := func(m *nats.Msg) *nats.Msg {
		t.Helper()
		return must(nc.RequestMsg(m, time.Minute))(t)
	}
	for _, c := range []struct {
		last string
		want bool
	}{{"0", true}, {"0", false}, {"1", true}} {
		ack := ask(&nats.Msg{Subject: key, Header: nats.Header{jetstream.MsgTTLHeader: {"60s"}, jetstream.ExpectedLastSubjSeqHeader: {c.last}}, Data: []byte(c.last)})
		if stored := !bytes.Contains(ack.Data, []byte("error")); stored != c.want {
			t.Errorf("after %s: %s", c.last, ack.Data)
		}
	}
	if got := ask(nats.NewMsg(names.SessionGet(key))); string(got.Data) != "1" || got.Header.Get(jetstream.SequenceHeader) != "2" {
		t.Errorf("read %q %v", got.Data, got.Header)
	}
	other := names.Session("serve", "session", "acme", "7")
	for _, subject := range []string{other, names.SessionGet(other), "$JS.API.DIRECT.GET.KV_sessions", "$JS.API.STREAM.INFO.KV_sessions"} {
		if err := nc.PublishRequest(subject, "_INBOX.gateway.x", nil); err != nil {
			t.Fatal(err)
		}
		wantRefused(t, refused, subject)
	}
}
