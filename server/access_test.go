package server_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/connect"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/operator/access"
	"github.com/skein-threads/skein/server"
)

// guarded is a whole Skein with accounts.
type guarded struct {
	t      *testing.T
	dir    string
	folder *access.Folder
	server *server.Server
}

func startGuarded(t *testing.T, init access.InitOptions, users ...access.User) *guarded {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "access")
	folder, err := access.Init(dir, init)
	if err != nil {
		t.Fatal(err)
	}
	g := &guarded{t: t, dir: dir, folder: folder}
	for _, u := range users {
		g.add(u)
	}
	g.server, err = server.Start(t.Context(), server.Config{
		Store: t.TempDir(), NATSListen: "127.0.0.1:0", HTTPListen: "127.0.0.1:0", Volatile: true, Access: dir, AgentsProtocol: true,
	}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		if err := g.server.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return g
}

// everybody is one user of each role, and an application of each of two tenants.
func everybody() []access.User {
	both := []access.Role{access.Publisher, access.Subscriber}
	return []access.User{
		{Name: "app", Tenant: "acme", Roles: both},
		{Name: "app", Tenant: "globex", Roles: both},
		{Name: "pub", Tenant: "acme", Roles: []access.Role{access.Publisher}},
		{Name: "sub", Tenant: "acme", Roles: []access.Role{access.Subscriber}},
		{Name: "shouter", Roles: []access.Role{access.Worker}, Reactors: []string{"shout"}, Tools: []string{"add"}},
		{Name: "eye", Roles: []access.Role{access.Auditor}},
		{Name: "root", Roles: []access.Role{access.Administrator}},
	}
}

func (g *guarded) url() string { return g.server.Addresses().NATS }

func (g *guarded) add(u access.User) (creds string) {
	g.t.Helper()
	creds, _, err := g.folder.Add(u)
	if err != nil {
		g.t.Fatal(err)
	}
	return creds
}

// creds returns the file of a user's credentials.
func (g *guarded) creds(tenant, name string) string {
	g.t.Helper()
	for _, u := range g.folder.Users() {
		if u.Tenant == tenant && u.Name == name {
			return filepath.Join(g.dir, filepath.FromSlash(u.File()))
		}
	}
	g.t.Fatalf("there is no user %s of %s", name, tenant)
	return ""
}

func (g *guarded) ca() string {
	ca, made := g.folder.CA()
	if !made {
		return ""
	}
	return ca
}

// client connects as a user.
func (g *guarded) client(tenant, name string) *client.Client {
	g.t.Helper()
	var c *client.Client
	var err error
	for deadline := time.Now().Add(5 * time.Minute); ; { // a server with much else to do greets too late
		c, err = client.Connect(g.url(), client.Options{Tenant: tenant, Creds: g.creds(tenant, name), CA: g.ca(), Timeout: 5 * time.Minute})
		if err == nil || events.AsError(err).Code != events.Unavailable || time.Now().After(deadline) {
			break
		}
	}
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(c.Close)
	return c
}

// plain connects as a user without Skein's client; the channel receives what the server
// refuses.
func (g *guarded) plain(tenant, name string) (*nats.Conn, <-chan error) {
	g.t.Helper()
	opts, err := connect.Options{Creds: g.creds(tenant, name), CA: g.ca()}.NATS(name)
	if err != nil {
		g.t.Fatal(err)
	}
	refused := make(chan error, 64)
	opts = append(opts, nats.Timeout(5*time.Minute), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
	nc := natstest.Dial(g.t, g.url(), opts...)
	return nc, refused
}

// begun returns what is stored once each bucket of a read model names its log, soon after the start.
func (g *guarded) begun() map[string]uint64 {
	g.t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		now, unmarked := g.stored(), false
		for name, n := range now {
			unmarked = unmarked || n == 0 && strings.HasPrefix(name, "KV_thread_") && name != "KV_thread_workers"
		}
		if !unmarked {
			return now
		}
		if time.Now().After(deadline) {
			g.t.Fatalf("buckets stay empty: %v", now)
		}
	}
}

// stored returns the last sequence of every stream, as Skein sees it. Of buckets it
// counts the keys of documents: Skein writes checkpoints when it starts, and renews its
// leases.
func (g *guarded) stored() map[string]uint64 {
	g.t.Helper()
	nc, _ := g.plain("", "root")
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		g.t.Fatal(err)
	}
	out := map[string]uint64{}
	list := js.ListStreams(g.t.Context())
	for info := range list.Info() {
		out[info.Config.Name] = info.State.LastSeq
	}
	if err := list.Err(); err != nil {
		g.t.Fatal(err)
	}
	delete(out, "KV_thread_leases")
	for name := range out {
		if !strings.HasPrefix(name, "KV_") {
			continue
		}
		stream, err := js.Stream(g.t.Context(), name)
		if err != nil {
			g.t.Fatal(err)
		}
		info, err := stream.Info(g.t.Context(), jetstream.WithSubjectFilter(">"))
		if err != nil {
			g.t.Fatal(err)
		}
		out[name] = 0
		for subject := range info.State.Subjects {
			if !strings.HasSuffix(subject, "._.checkpoint") {
				out[name]++
			}
		}
	}
	return out
}
