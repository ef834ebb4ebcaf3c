package server_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/loopback"
	"github.com/skein-threads/skein/operator/access"
)

// A user of one tenant who floods Skein with queries, from raw connections and as fast
// as possible, is suspended for a while. Another tenant is answered all the time, other
// users of the same tenant stay connected, and the user may reconnect later.
func TestFlood_LoudestUserIsSuspended(t *testing.T) {
	users := append(everybody(), access.User{Name: "calm", Tenant: "globex", Roles: []access.Role{access.Publisher}})
	g := startGuarded(t, access.InitOptions{}, users...)
	quiet, calm := g.client("acme", "app"), g.client("globex", "calm")
	median := func(c *client.Client) time.Duration {
		t.Helper()
		var took []time.Duration
		for range 40 {
			began := time.Now()
			if _, err := c.Send(t.Context(), "", events.CreateThread{Title: "x"}); err != nil {
				t.Fatal(err)
			}
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		return took[len(took)/2]
	}
	alone := median(quiet)
	median(calm)
	flooding, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan int64, 1)
	go func() {
		_, n := loopback.Flood{
			URL: g.url(), Creds: g.creds("globex", "app"), Inbox: "_INBOX.app", Subject: "skein.query.globex.thread.get", Body: strings.Repeat("x", 100), Conns: 4,
		}.Run(flooding)
		ended <- n
	}()
	suspended := func() bool {
		return metric(t, g.server, "skein_suspensions_total") > 0
	}
	for deadline := time.Now().Add(5 * time.Minute); !suspended(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the flood went on")
		}
		if _, err := quiet.Send(t.Context(), "", events.CreateThread{Title: "x"}); err != nil {
			t.Fatalf("amid the flood: %v", err)
		}
	}
	if flooded := median(quiet); flooded > 100*alone {
		t.Errorf("a command took %v, and %v alongside the flood", alone, flooded)
	}
	if _, err := calm.Send(t.Context(), "", events.CreateThread{Title: "x"}); err != nil {
		t.Errorf("another user of the tenant: %v", err)
	}
	if err := g.server.Ready(t.Context()); err != nil {
		t.Errorf("Skein is not ready: %v", err)
	}
	stop()
	if n := <-ended; n == 0 {
		t.Error("no connection of the flood was ended")
	}
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		c, err := client.Connect(g.url(), client.Options{Tenant: "globex", Creds: g.creds("globex", "app"), CA: g.ca(), Timeout: time.Minute})
		if err == nil {
			c.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the user cannot come back: %v", err)
		}
	}
}
