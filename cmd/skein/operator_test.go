package main_test

import (
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"github.com/skein-threads/skein/eventlog/derived"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/operator/access"
	"github.com/skein-threads/skein/projections"
)

// The command line can send every command and query of the contract.
func TestRawCommandsAndQueries(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	var made struct {
		ThreadID string
		Version  int64
	}
	decode(t, s.ok("cmd", "thread.create", `{"key":"orders/1"}`), &made)
	if made.Version == 0 {
		t.Fatalf("%+v", made)
	}
	o := run(t, s.env, `{"item":{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}}`,
		"cmd", "item.create", "-", "--thread", "key:orders/1", "--command-id", "once")
	if o.code != 0 {
		t.Fatalf("%+v", o)
	}
	again := run(t, s.env, `{"item":{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}}`,
		"cmd", "item.create", "-", "--thread", "key:orders/1", "--command-id", "once")
	if again.code != 0 || again.out != o.out {
		t.Errorf("repeated with the same id: %+v, not %+v", again, o)
	}
	if o := run(t, s.env, "", "cmd", "thread.status", `{"to":"streaming"}`, "--thread", "key:orders/1", "--expected-version", "1"); o.code != 1 || !strings.HasPrefix(o.err, "skein: version_conflict: ") {
		t.Errorf("%+v", o)
	}
	var doc struct{ ID, Key string }
	decode(t, s.ok("query", "thread.get", `{"threadId":"key:orders/1"}`), &doc)
	if doc.ID != made.ThreadID || doc.Key != "orders/1" {
		t.Errorf("%+v", doc)
	}
	s.ok("thread", "update", made.ThreadID, "--title", "First order", "--archived")
	var thread struct {
		Title    string
		Archived bool
	}
	decode(t, s.ok("thread", "get", made.ThreadID, "--json"), &thread)
	if thread.Title != "First order" || !thread.Archived {
		t.Errorf("%+v", thread)
	}
	s.ok("thread", "update", made.ThreadID, "--archived=false")
	decode(t, s.ok("thread", "get", made.ThreadID, "--json"), &thread)
	var effect struct{ Result struct{ EffectID string } }
	decode(t, s.ok("cmd", "effect.schedule", `{"name":"remind","args":{},"delayMs":3600000}`, "--thread", made.ThreadID), &effect)
	if text := s.ok("effect", "list", made.ThreadID); !strings.Contains(text, effect.Result.EffectID) || !strings.Contains(text, "remind") {
		t.Error(text)
	}
	s.ok("effect", "cancel", made.ThreadID, effect.Result.EffectID)
	if o := run(t, s.env, "", "effect", "cancel", made.ThreadID, effect.Result.EffectID); o.code != 1 || !strings.HasPrefix(o.err, "skein: not_found: ") {
		t.Errorf("cancelled twice: %+v", o)
	}
	s.stop()
}

// Health checks over NATS and HTTP, and exits 1 if a check fails.
func TestHealth(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--ops-listen", "--metrics-listen"} {
		t.Run(flag, func(t *testing.T) { testHealth(t, flag) })
	}
}

// testHealth tests the listener that a flag opens.
func testHealth(t *testing.T, flag string) {
	t.Helper()
	s := start(t, t.TempDir(), flag, "127.0.0.1:0")
	var ready struct{ Ops string }
	decode(t, s.Ready, &ready)
	for _, at := range []string{s.HTTP, ready.Ops} {
		var h struct {
			OK     bool
			Checks []struct {
				Name string
				OK   bool
			}
		}
		decode(t, s.ok("health", "--http", at, "--json"), &h)
		if !h.OK || len(h.Checks) != 4 {
			t.Errorf("%s: %+v", at, h)
		}
		r, err := http.Get(at + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(r.Body)
		_ = r.Body.Close()
		if !strings.Contains(string(body), `skein_lease_held{lease="timeline"}`) || !strings.Contains(string(body), "skein_lag_known 1") {
			t.Errorf("%s/metrics has no leases, or no lags", at)
		}
	}
	gone := append([]string{}, s.env...)
	s.stop()
	if o := run(t, gone, "", "health", "--http", s.HTTP, "--timeout", "1s"); o.code != 1 || !strings.Contains(o.err, "skein: unhealthy: connection") || !strings.Contains(o.out, "failed") {
		t.Errorf("%+v", o)
	}
	if o := run(t, nil, "", "health"); o.code != 2 {
		t.Errorf("nothing to ask: %+v", o)
	}
}

// Read models that do not follow the log are not healthy, though queries are answered.
func TestHealth_ReadModelsStandStill(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	leases, err := s.wire(t).js.KeyValue(t.Context(), derived.LeaseBucket)
	if err != nil {
		t.Fatal(err)
	}
	s.ok("health", "--tenant", "acme")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := leases.PutString(ctx, projections.RunnerLease, "a process that does nothing"); err != nil {
		t.Fatal(err)
	}
	go func() { // it keeps the lease
		for tick := time.Tick(time.Second); ctx.Err() == nil; <-tick {
			_, _ = leases.PutString(ctx, projections.RunnerLease, "a process that does nothing")
		}
	}()
	natstest.Eventually(t, "the read models to stand still", func() bool {
		s.ok("thread", "create")
		o := run(t, s.env, "", "health", "--tenant", "acme")
		return o.code == 1 && strings.Contains(o.err, "skein: unhealthy: queries: projection_behind")
	})
	cancel()
	s.stop()
}

// The shipped nats.conf works as its first lines say, also from the command line: with
// a user whose inboxes have a prefix, and an auditor in another account.
func TestShippedConfiguration(t *testing.T) {
	for _, name := range []string{"NATS", "PUBLISHER", "SUBSCRIBER", "WORKER", "GATEWAY", "AUDITOR"} {
		t.Setenv("SKEIN_"+name+"_PASSWORD", "secret"+strings.ToLower(name))
	}
	conf, err := filepath.Abs(filepath.Join("..", "..", "nats.conf"))
	if err != nil {
		t.Fatal(err)
	}
	o, err := natsserver.ProcessConfigFile(conf)
	if err != nil {
		t.Fatal(err)
	}
	o.Port, o.StoreDir, o.NoSigs, o.NoLog = natsserver.RANDOM_PORT, t.TempDir(), true, true
	n, err := natsserver.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	n.Start()
	t.Cleanup(n.Shutdown)
	if !n.ReadyForConnections(time.Minute) {
		t.Fatal("nats-server is not ready")
	}
	at := strings.TrimPrefix(n.ClientURL(), "nats://")
	dir := filepath.Join(t.TempDir(), "access")
	folder, err := access.Init(dir, access.InitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	g := &gates{t: t, folder: folder}
	_, g.key = g.newKey("acme")
	s := start(t, t.TempDir(), "--nats", "nats://skein:secretnats@"+at, "--http-keys", dir)
	if strings.Contains(s.Ready, "secret") {
		t.Errorf("the ready line names the password: %s", s.Ready)
	}
	publisher := []string{"SKEIN_SERVER=nats://publisher:secretpublisher@" + at, "SKEIN_TENANT=acme", "SKEIN_INBOX_PREFIX=_INBOX.publisher"}
	var made struct{ ThreadID string }
	first := run(t, publisher, "", "thread", "create", "--json")
	if first.code != 0 {
		t.Fatalf("%+v", first)
	}
	decode(t, first.out, &made)
	if o := run(t, publisher, "", "thread", "get", made.ThreadID); o.code != 0 {
		t.Errorf("%+v", o)
	}
	p := g.gatewayOf("nats://gateway:secretgateway@" + at)
	other := g.gatewayOf("nats://gateway:secretgateway@" + at)
	p.want(http.StatusOK, "GET", "/api/threads/"+made.ThreadID, "")
	timeline := other.stream("/api/threads/" + made.ThreadID + "/events")
	p.want(http.StatusCreated, "POST", "/api/threads/"+made.ThreadID+"/messages", `{"role":"user","content":"hello"}`)
	for data := ""; !strings.Contains(data, "hello"); {
		var more bool
		if _, data, more = timeline.next(); !more {
			t.Fatal("the stream of events ended")
		}
	}
	var ticket struct{ Ticket string }
	decode(t, p.want(http.StatusCreated, "POST", "/api/tickets", "").text, &ticket)
	if r := other.do("GET", "/api/threads?ticket="+ticket.Ticket, "", ""); r.StatusCode != http.StatusOK {
		t.Errorf("the ticket elsewhere: %d %s", r.StatusCode, r.text)
	}
	if r := p.do("GET", "/api/threads", "", "", "Skein-Tenant", "acme"); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a key: %d %s", r.StatusCode, r.text)
	}
	auditor := []string{"SKEIN_SERVER=nats://auditor:secretauditor@" + at, "SKEIN_TENANT=acme", "SKEIN_INBOX_PREFIX=_INBOX.auditor"}
	if o := run(t, auditor, "", "audit", "verify", "--js-domain", "skein"); o.code != 0 {
		t.Errorf("%+v", o)
	}
	wrong := run(t, []string{"SKEIN_SERVER=nats://publisher:secretwrong@" + at, "SKEIN_TENANT=acme"}, "", "thread", "list")
	if wrong.code != 1 || strings.Contains(wrong.err, "secret") {
		t.Errorf("%+v", wrong)
	}
	s.stop()
}
