package server_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/connect"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/operator/access"
)

// A tenant that has all connections of its account is refused another one, whichever of its users
// asks, and has one again when one is closed. Other tenants, and what the tenant has, work on.
func TestAccess_ConnectionsOfATenant(t *testing.T) {
	g := startGuarded(t, access.InitOptions{}, everybody()...)
	app := g.client("acme", "app")
	opts, err := connect.Options{Creds: g.creds("acme", "sub"), CA: g.ca()}.NATS("one of many")
	if err != nil {
		t.Fatal(err)
	}
	opts = append(opts, nats.NoReconnect(), nats.Timeout(5*time.Minute))
	all := []*nats.Conn{}
	for {
		nc, err := nats.Connect(g.url(), opts...)
		if err != nil {
			if !strings.Contains(err.Error(), nats.MAX_ACCOUNT_CONNECTIONS_ERR) {
				t.Errorf("another connection: %v", err)
			}
			break
		}
		t.Cleanup(nc.Close)
		if all = append(all, nc); len(all) > 1000 {
			t.Fatal("there is no limit")
		}
	}
	if len(all) != 255 { // and that of app
		t.Errorf("%d connections of 256, and then no other", len(all)+1)
	}
	connected := func(tenant, name string) error {
		c, err := client.Connect(g.url(), client.Options{Tenant: tenant, Creds: g.creds(tenant, name), CA: g.ca(), Timeout: 5 * time.Minute})
		if err == nil {
			c.Close()
		}
		return err
	}
	err = connected("acme", "pub")
	if !errors.Is(err, nats.ErrMaxAccountConnectionsExceeded) || events.AsError(err).Code != events.Unavailable || !strings.HasSuffix(err.Error(), "close one of them, or share one in a process") {
		t.Errorf("another user of the tenant: %v", err)
	}
	if err := connected("globex", "app"); err != nil {
		t.Errorf("another tenant: %v", err)
	}
	if _, err := app.Send(t.Context(), "", events.CreateThread{}); err != nil {
		t.Errorf("a connection of the tenant: %v", err)
	}
	all[0].Close()
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if err = connected("acme", "pub"); err == nil {
			break
		}
		if time.Since(begin) > 5*time.Minute {
			t.Fatalf("a connection in place of one that was closed: %v", err)
		}
	}
}

// A connection that has as many subscriptions as a tenant's may have is refused another one, and
// told so; it keeps what it has, and others are not affected.
func TestAccess_SubscriptionsOfAConnection(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, access.InitOptions{}, everybody()...)
	nc, _ := g.plain("acme", "app")
	inbox := access.InboxOf("app")
	first, err := nc.SubscribeSync(inbox + ".0")
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n < 10_000; n++ {
		if _, err := nc.SubscribeSync(fmt.Sprint(inbox, ".", n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.FlushTimeout(5 * time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := nc.LastError(); err != nil {
		t.Fatalf("fewer than 10,000: %v", err)
	}
	if _, err := nc.SubscribeSync(inbox + ".more"); err != nil {
		t.Fatal(err)
	}
	if err := nc.FlushTimeout(5 * time.Minute); err != nil { // behind what the server says of it
		t.Fatal(err)
	}
	if err := nc.LastError(); !errors.Is(err, nats.ErrMaxSubscriptionsExceeded) {
		t.Errorf("one more: %v", err)
	}
	if err := nc.PublishRequest("skein.query.acme.thread.list", inbox+".0", []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := first.NextMsg(5 * time.Minute); err != nil {
		t.Errorf("its first subscription: %v", err)
	}
	for _, tenant := range []string{"acme", "globex"} {
		if _, err := client.Read(t.Context(), g.client(tenant, "app"), events.ListThreads{}); err != nil {
			t.Errorf("another connection, of %s: %v", tenant, err)
		}
	}
}
