package server_test

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/loopback"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/server"
)

// Without accounts the requests of a tenant that floods, from connections that read no answer, are
// dropped by the server for a while: commands of another tenant are answered all the time, and the
// tenant comes back.
func TestFlood_TenantIsSuspended(t *testing.T) {
	for _, subject := range []string{"skein.cmd.globex.thread.create", "skein.query.globex.thread.get"} {
		t.Run(subject, func(t *testing.T) { floodOpenly(t, subject) })
	}
}

// A tenant that is alone is never suspended: it only waits for itself.
func TestFlood_AloneIsNotSuspended(t *testing.T) {
	server, err := server.Start(t.Context(), server.Config{Store: t.TempDir(), NATSListen: "127.0.0.1:0", HTTPListen: "127.0.0.1:0", Volatile: true}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, server) })
	flooding, end := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		loopback.Flood{URL: server.Addresses().NATS, Inbox: "_INBOX.flood", Subject: "skein.query.globex.thread.get", Body: strings.Repeat("x", 100), Conns: 4, Unread: true}.Run(flooding)
	}()
	over := regexp.MustCompile(`(?m)^skein_limited_total\{[^}]*\} ([0-9.e+]+)$`)
	natstest.Eventually(t, "a flood", func() bool { // of which each second has many more than a suspension takes
		n := 0.0
		for _, m := range over.FindAllStringSubmatch(scrape(t, server.Addresses().HTTP), -1) {
			count, _ := strconv.ParseFloat(m[1], 64)
			n += count
		}
		return n > 50_000
	})
	end()
	<-ended
	if n := metric(t, server, "skein_suspensions_total"); n != 0 {
		t.Errorf("suspended %v times", n)
	}
}

func floodOpenly(t *testing.T, subject string) {
	server, err := server.Start(t.Context(), server.Config{Store: t.TempDir(), NATSListen: "127.0.0.1:0", HTTPListen: "127.0.0.1:0", Volatile: true}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, server) })
	url := server.Addresses().NATS
	create := func(tenant string) error {
		c, err := client.Connect(url, client.Options{Tenant: tenant, Timeout: 10 * time.Minute})
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = c.Send(t.Context(), "", events.CreateThread{Title: "x"})
		return err
	}
	flooding, end := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		loopback.Flood{URL: url, Inbox: "_INBOX.flood", Subject: subject, Body: strings.Repeat("x", 100), Conns: 4, Unread: true}.Run(flooding)
	}()
	suspended := func() bool { return metric(t, server, "skein_suspensions_total") > 0 }
	for deadline, more := time.Now().Add(5*time.Minute), 9; more > 0; {
		if err := create("acme"); err != nil {
			t.Fatalf("amid the flood: %v", err)
		}
		if suspended() {
			more--
		} else if time.Now().After(deadline) {
			t.Fatal("the flood goes on")
		}
	}
	end()
	<-ended
	if err := create("globex"); err != nil {
		t.Errorf("the tenant after its flood: %v", err)
	}
}
