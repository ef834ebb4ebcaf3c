package server_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/operator/access"
)

// ofTenants reports whether a gateway without limits may use a subject that others may not: it
// does what publishers and subscribers of every tenant do.
func ofTenants(subject string) bool {
	for _, role := range []events.TenantRole{events.Publisher, events.Subscriber} {
		publish, subscribe := role.Subjects(events.DefaultNames(), "*")
		for _, p := range append(publish, subscribe...) {
			if events.Covers(p, subject) {
				return true
			}
		}
	}
	return false
}

// A gateway has what the tenants have that it serves, and nothing else: no stream, no worker,
// no inbox of another, no keys but by name, and no sessions but those of gateways, one by one.
func TestAccess_Gateway(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, access.InitOptions{}, append(everybody(),
		access.User{Name: "edge", Roles: []access.Role{access.Gateway}}, access.User{Name: "edge2", Roles: []access.Role{access.Gateway}},
		access.User{Name: "own", Roles: []access.Role{access.Gateway}, Serves: []string{"acme"}})...)
	g.client("globex", "app")
	before := g.begun()
	more := []string{
		"skein.emit.acme.T-1", "skein.gateway.other", "skein.cancel.x", "skein.cmd.x", "_INBOX.edge2.x", "skein.operation.report", "skein.operation.list",
		"$KV.sessions.gateway.session.acme", "$JS.API.DIRECT.GET.KV_sessions", "$JS.API.DIRECT.GET.KV_sessions.$KV.sessions.serve.session.acme.1",
		"$JS.API.STREAM.INFO.KV_sessions", "$JS.API.STREAM.MSG.GET.KV_sessions", "$JS.API.STREAM.PURGE.KV_sessions",
	}
	for _, name := range []string{"edge", "own"} {
		nc, refused := g.plain("", name)
		for _, subject := range append(forbiddenPublishes(), more...) {
			if name == "edge" && ofTenants(subject) {
				continue
			}
			if err := nc.PublishRequest(subject, access.InboxOf(name)+".x", []byte(`{}`)); err != nil {
				t.Fatal(err)
			}
			wantRefused(t, refused, subject)
		}
		for _, subject := range append(forbiddenSubscriptions(), "skein.gateway.>", "skein.gateway.keys", "$KV.sessions.>", "skein.emit.>") {
			if name == "edge" && ofTenants(subject) {
				continue
			}
			if _, err := nc.SubscribeSync(subject); err != nil {
				t.Fatal(err)
			}
			wantRefused(t, refused, subject)
		}
		for _, subject := range []string{"skein.gateway.keys", "skein.gateway.keys.globex", "$JS.API.DIRECT.GET.KV_sessions.$KV.sessions.gateway.session.globex.1"} {
			if err := nc.Publish(subject, nil); err != nil {
				t.Fatal(err)
			}
			if name == "own" {
				wantRefused(t, refused, subject)
			}
		}
	}
	if after := g.stored(); !maps.Equal(before, after) {
		t.Errorf("something was stored: %v, before %v", after, before)
	}
}

// A gateway serves its tenants: commands, queries, files, timelines and live events in both
// directions, each once.
func TestAccess_GatewayServesTenants(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, access.InitOptions{}, append(everybody(), access.User{Name: "edge", Roles: []access.Role{access.Gateway}})...)
	nc, refused := g.plain("", "edge")
	for _, tenant := range []string{"acme", "globex"} {
		c, err := client.New(nc, client.Options{Tenant: tenant, Timeout: 5 * time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		reply, err := c.Send(t.Context(), "", events.CreateThread{})
		if err != nil {
			t.Fatal(err)
		}
		timeline, err := c.Timeline(t.Context(), client.SubscribeOptions{Thread: reply.ThreadID, From: client.Seq(0)})
		if err != nil {
			t.Fatal(err)
		}
		if e, err := timeline.Next(t.Context()); err != nil || e.Event.Type != events.ThreadCreatedType {
			t.Errorf("%s: the timeline has %v, %v", tenant, e, err)
		}
		timeline.Close()
		state, err := c.Thread(t.Context(), reply.ThreadID)
		if err != nil {
			t.Fatal(err)
		}
		own, app, skein := g.live(c, reply.ThreadID), g.live(g.client(tenant, "app"), reply.ThreadID), g.live(g.inside(tenant), reply.ThreadID)
		for i := range 3 {
			if err := state.Emit(t.Context(), "progress", i); err != nil {
				t.Fatal(err)
			}
		}
		for who, l := range map[string]*client.Live{"the gateway": own, "the tenant": app, "Skein": skein} {
			for i := range 3 {
				if e, err := l.Next(t.Context()); err != nil || e.N != int64(i+1) {
					t.Errorf("%s, %s: live event %d is %+v, %v", tenant, who, i, e, err)
				}
			}
		}
	}
	select {
	case err := <-refused:
		t.Errorf("refused: %v", err)
	default:
	}
}

func (g *guarded) live(c *client.Client, thread string) *client.Live {
	g.t.Helper()
	l, err := c.LiveEvents(g.t.Context(), thread)
	if err != nil {
		g.t.Fatal(err)
	}
	return l
}

// inside returns a client of a tenant in Skein's own account.
func (g *guarded) inside(tenant string) *client.Client {
	g.t.Helper()
	nc, _ := g.plain("", "root")
	c, err := client.New(nc, client.Options{Tenant: tenant, Timeout: 5 * time.Minute})
	if err != nil {
		g.t.Fatal(err)
	}
	return c
}

// A gateway learns a key only by its id, and one that serves some tenants only theirs.
func TestAccess_GatewayKeysByName(t *testing.T) {
	t.Parallel()
	g := startGuarded(t, access.InitOptions{}, access.User{Name: "edge", Roles: []access.Role{access.Gateway}})
	nc, _ := g.plain("", "edge")
	for _, body := range []string{`{}`, `{"ids":[""]}`, `{"ids":["*"]}`} {
		m, err := nc.Request("skein.gateway.keys", []byte(body), 5*time.Minute)
		if err != nil || strings.Contains(string(m.Data), "hash") {
			t.Errorf("%s: %v, %v", body, m, err)
		}
	}
	if err := nc.PublishRequest("skein.gateway.keys", "skein.cmd.acme.thread.create", []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := nc.Request("skein.gateway.keys", []byte(`{`), time.Second/2); err == nil || err == nats.ErrNoResponders {
		t.Errorf("a request that is no JSON: %v", err)
	}
}
