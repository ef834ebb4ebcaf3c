package server_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/operator/access"
	"github.com/skein-threads/skein/server"
)

// Two Skeins on a server with accounts divide the threads of all tenants: each has those in
// memory that it decides, and no other. While one of them stops, and after, the other decides
// all.
func TestForward_AcrossAccounts(t *testing.T) {
	t.Parallel()
	folder, err := access.Init(filepath.Join(t.TempDir(), "access"), access.InitOptions{Listen: "127.0.0.1:-1", Store: t.TempDir(), Hosts: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	tenants := []string{"acme", "globex"}
	creds := map[string]string{}
	for _, tenant := range tenants {
		if creds[tenant], _, err = folder.Add(access.User{Name: "app", Tenant: tenant, Roles: []access.Role{access.Publisher}}); err != nil {
			t.Fatal(err)
		}
	}
	ns, _ := standalone(t, folder)
	ca, _ := folder.CA()
	cfg := server.Config{NATS: ns.ClientURL(), Creds: folder.Creds(), CA: ca, HTTPListen: "127.0.0.1:0"}
	skeins := []*server.Server{run(t, cfg), run(t, cfg)}
	natstest.Eventually(t, "the Skeins know each other", func() bool {
		return metric(t, skeins[0], "skein_peers") == 2 && metric(t, skeins[1], "skein_peers") == 2
	})
	clients := map[string]*client.Client{}
	for _, tenant := range tenants {
		c, err := client.Connect(ns.ClientURL(), client.Options{Tenant: tenant, Creds: creds[tenant], CA: ca, Timeout: 5 * time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		clients[tenant] = c
	}
	const threads = 20
	write := func(round, items int) {
		t.Helper()
		for i := range threads * len(tenants) {
			c, id := clients[tenants[i%len(tenants)]], fmt.Sprintf("T-0190a7c0-0000-7000-8000-%06d%06d", round, i)
			if _, err := c.Send(t.Context(), "", events.CreateThread{}, client.ThreadID(id)); err != nil {
				t.Fatal(err)
			}
			for range items {
				if _, err := c.Send(t.Context(), id, saying("hello")); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	round := 0
	// On a busy machine one may seem to be gone for a moment, and then threads change hands.
	natstest.Eventually(t, "each thread is in the memory of one Skein", func() bool {
		a, b := metric(t, skeins[0], "skein_cache_threads"), metric(t, skeins[1], "skein_cache_threads")
		round++
		write(round, 4)
		a, b = metric(t, skeins[0], "skein_cache_threads")-a, metric(t, skeins[1], "skein_cache_threads")-b
		return a+b == threads*len(tenants) && a > 0 && b > 0
	})
	const sent = `skein_forwarded_commands_total{outcome="sent"}`
	if metric(t, skeins[0], sent) == 0 || metric(t, skeins[1], sent) == 0 {
		t.Error("a Skein forwarded nothing")
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		stop(t, skeins[1])
	}()
	for done := false; !done; {
		select {
		case <-stopped:
			done = true
		default:
		}
		round++
		write(round, 1)
	}
	natstest.Eventually(t, "the Skein that stopped is forgotten", func() bool { return metric(t, skeins[0], "skein_peers") == 1 })
}
