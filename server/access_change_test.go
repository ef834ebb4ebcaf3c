package server_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/connect"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/embedded"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/operator/access"
	"github.com/skein-threads/skein/server"
)

// closed connects as a user and returns a channel that is closed when the connection is
// closed permanently.
func (g *guarded) closed(creds string) (*nats.Conn, <-chan struct{}) {
	g.t.Helper()
	nc, done, err := g.tryClosed(creds)
	if err != nil {
		g.t.Fatal(err)
	}
	return nc, done
}

func (g *guarded) tryClosed(creds string) (*nats.Conn, <-chan struct{}, error) {
	g.t.Helper()
	opts, err := connect.Options{Creds: creds, CA: g.ca()}.NATS("a test")
	if err != nil {
		g.t.Fatal(err)
	}
	done := make(chan struct{})
	nc, err := nats.Connect(g.url(), append(opts, nats.NoReconnect(), nats.ClosedHandler(func(*nats.Conn) { close(done) }))...)
	if err == nil {
		g.t.Cleanup(nc.Close)
	}
	return nc, done, err
}

func wantClosed(t *testing.T, closed <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-closed:
	case <-time.After(5 * time.Minute):
		t.Fatalf("%s is still connected", what)
	}
}

// A revoked user is disconnected when the server has reloaded the folder, and cannot
// connect again; others are not affected, and a new user with the same name can
// connect.
func TestRevoke(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, access.InitOptions{}, everybody()...)
	path := g.creds("acme", "app")
	old := filepath.Join(t.TempDir(), "copy.creds")
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(old, body, 0o600); err != nil {
		t.Fatal(err)
	}
	_, closed := g.closed(old)
	other := g.client("globex", "app")
	if err := g.folder.Revoke("acme", "app"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file of credentials is still there: %v", err)
	}
	if err := g.server.Reload(); err != nil {
		t.Fatal(err)
	}
	wantClosed(t, closed, "the revoked user")
	if _, err := client.Connect(g.url(), client.Options{Tenant: "acme", Creds: old}); !errors.Is(err, &events.Error{Code: events.Unauthorized}) {
		t.Errorf("the revoked user: %v", err)
	}
	g.add(access.User{Name: "app", Tenant: "acme", Roles: []access.Role{access.Publisher}})
	for _, c := range []*client.Client{other, g.client("acme", "app")} {
		if _, err := c.Send(t.Context(), "", events.CreateThread{Title: "x"}); err != nil {
			t.Errorf("%s: %v", c.Tenant(), err)
		}
	}
	var none *access.NoUserError
	if err := g.folder.Revoke("acme", "nobody"); !errors.As(err, &none) {
		t.Errorf("no user was revoked: %v", err)
	}
}

// Skein's own credentials are replaced while it serves: it stays connected with the old
// ones until they are revoked, and reconnects with the new ones.
func TestRotateOwn(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, access.InitOptions{}, everybody()...)
	app := g.client("acme", "app")
	if err := g.folder.Revoke("", "skein"); err != nil {
		t.Fatal(err)
	}
	g.add(access.User{Name: "skein", Roles: []access.Role{access.Administrator}})
	if err := g.server.Reload(); err != nil {
		t.Fatal(err)
	}
	if _, err := app.Send(t.Context(), "", events.CreateThread{Title: "x"}); err != nil {
		t.Error(err)
	}
}

// The server closes the connection of a user whose credentials expire.
func TestExpiry(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, access.InitOptions{}, everybody()...)
	var at time.Time
	var creds string
	var closed <-chan struct{}
	for lasts := 6 * time.Second; closed == nil; lasts *= 2 { // until it is connected before its time
		at = time.Now().Add(lasts).UTC().Truncate(time.Second)
		creds = g.add(access.User{Name: fmt.Sprint("guest", lasts.Seconds()), Tenant: "acme", Roles: []access.Role{access.Publisher}, Expires: &at})
		_, done, err := g.tryClosed(creds)
		switch {
		case err == nil:
			closed = done
		case time.Now().Before(at):
			t.Fatal(err)
		}
	}
	wantClosed(t, closed, "the guest")
	time.Sleep(time.Until(at.Add(time.Second))) // the server counts in whole seconds
	if _, err := client.Connect(g.url(), client.Options{Tenant: "acme", Creds: creds}); !errors.Is(err, &events.Error{Code: events.Unauthorized}) {
		t.Errorf("after the time: %v", err)
	}
}

// A tenant that is added while the server runs is known after a reload.
func TestNewTenant(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, access.InitOptions{}, everybody()...)
	creds, reload, err := g.folder.Add(access.User{Name: "app", Tenant: "initech", Roles: []access.Role{access.Publisher}})
	if err != nil || !reload {
		t.Fatalf("reload %v, %v", reload, err)
	}
	if _, err := client.Connect(g.url(), client.Options{Tenant: "initech", Creds: creds}); err == nil {
		t.Error("an unknown tenant got in")
	}
	if err := g.server.Reload(); err != nil {
		t.Fatal(err)
	}
	if _, err := g.client("initech", "app").Send(t.Context(), "", events.CreateThread{Title: "x"}); err != nil {
		t.Error(err)
	}
}

// With TLS nothing is sent in plain text: a client that does not trust the authority,
// or uses an old version, cannot connect.
func TestTLS(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, access.InitOptions{Hosts: []string{"127.0.0.1", "localhost"}}, everybody()...)
	app := g.client("acme", "app")
	if _, err := app.Send(t.Context(), "", events.CreateThread{Title: "x"}); err != nil {
		t.Fatal(err)
	}
	creds := g.creds("acme", "app")
	if _, err := client.Connect(g.url(), client.Options{Tenant: "acme", Creds: creds}); err == nil {
		t.Error("a client that does not know the authority got in")
	}
	nc := natstest.Dial(t, g.url(), nats.UserCredentials(creds), nats.RootCAs(g.ca()))
	if state, err := nc.TLSConnectionState(); err != nil || state.Version < tls.VersionTLS13 {
		t.Errorf("%+v, %v", state.Version, err)
	}
	old := &tls.Config{MaxVersion: tls.VersionTLS12, InsecureSkipVerify: true}
	if _, err := nats.Connect(g.url(), nats.UserCredentials(creds), nats.Secure(old)); err == nil {
		t.Error("TLS 1.2 was accepted")
	}
}

// Beyond loopback the server listens only with both authentication and TLS.
func TestListenBeyondLoopback(t *testing.T) {
	t.Parallel()
	start := func(init access.InitOptions, guard bool) (*server.Server, error) {
		cfg := server.Config{Store: t.TempDir(), NATSListen: "0.0.0.0:0", HTTPListen: "127.0.0.1:0", Volatile: true}
		if guard {
			cfg.Access = filepath.Join(t.TempDir(), "access")
			if _, err := access.Init(cfg.Access, init); err != nil {
				t.Fatal(err)
			}
		}
		return server.Start(t.Context(), cfg, zerolog.Nop())
	}
	var refused *embedded.NotLoopbackError
	if _, err := start(access.InitOptions{}, false); !errors.As(err, &refused) {
		t.Errorf("without authentication: %v", err)
	}
	if _, err := start(access.InitOptions{}, true); !errors.As(err, &refused) {
		t.Errorf("without TLS: %v", err)
	}
	s, err := start(access.InitOptions{Hosts: []string{"127.0.0.1"}}, true)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Error(err)
	}
}

// A store that was used without accounts is not treated as an empty one.
func TestStoreOfAnotherAccount(t *testing.T) {
	t.Parallel()
	cfg := server.Config{Store: t.TempDir(), NATSListen: "127.0.0.1:0", HTTPListen: "127.0.0.1:0", Volatile: true}
	run := func() error {
		s, err := server.Start(t.Context(), cfg, zerolog.Nop())
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		return s.Stop(ctx)
	}
	if err := run(); err != nil {
		t.Fatal(err)
	}
	cfg.Access = filepath.Join(t.TempDir(), "access")
	folder, err := access.Init(cfg.Access, access.InitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var other *embedded.OtherAccountError
	if err := run(); !errors.As(err, &other) || other.Other != "$G" || other.Account != folder.Account() {
		t.Fatalf("%v", err)
	}
	// As the error advises.
	if err := os.Rename(filepath.Join(other.Dir, other.Other), filepath.Join(other.Dir, other.Account)); err != nil {
		t.Fatal(err)
	}
	if err := run(); err != nil {
		t.Error(err)
	}
	cfg.Access = ""
	if err := run(); !errors.As(err, &other) {
		t.Errorf("back without accounts: %v", err)
	}
}

// standalone starts a nats-server with the configuration of a folder.
func standalone(t *testing.T, folder *access.Folder) (*natsserver.Server, *natsserver.Options) {
	t.Helper()
	o, err := natsserver.ProcessConfigFile(folder.Conf())
	if err != nil {
		t.Fatal(err)
	}
	o.NoSigs, o.NoLog = true, true
	ns, err := natsserver.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	ns.Start()
	t.Cleanup(func() {
		ns.Shutdown()
		ns.WaitForShutdown()
	})
	if !ns.ReadyForConnections(time.Minute) {
		t.Fatal("the server is not ready")
	}
	return ns, o
}

// The folder's configuration starts a standalone nats-server, and Skein with it.
func TestAccess_StandaloneServer(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "access")
	folder, err := access.Init(dir, access.InitOptions{Listen: "127.0.0.1:-1", Store: t.TempDir(), Hosts: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	creds, _, err := folder.Add(access.User{Name: "app", Tenant: "acme", Roles: []access.Role{access.Publisher}})
	if err != nil {
		t.Fatal(err)
	}
	ns, o := standalone(t, folder)
	if !o.SyncAlways || o.MaxPayload != embedded.DefaultMaxPayload || !o.NoSublistCache {
		t.Errorf("the configuration is not that of the embedded server: %+v", o)
	}
	ca, _ := folder.CA()
	s, err := server.Start(t.Context(), server.Config{NATS: ns.ClientURL(), Creds: folder.Creds(), CA: ca, HTTPListen: "127.0.0.1:0"}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	c, err := client.Connect(ns.ClientURL(), client.Options{Tenant: "acme", Creds: creds, CA: ca})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Send(t.Context(), "", events.CreateThread{Title: "x"}); err != nil {
		t.Error(err)
	}
	// The process's credentials reach every tenant; others on the machine have none.
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.Addresses().HTTP+"/api/threads", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Skein-Tenant", "acme")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("a request that names its tenant: %s", answer.Status)
	}
	cfg := server.Config{NATS: ns.ClientURL(), Access: dir}
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "--access") {
		t.Errorf("--access with --nats: %v", err)
	}
}
