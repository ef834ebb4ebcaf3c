package edge

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// A key that signs in again and again ends the oldest of its own sessions, a tenant with many
// credentials reaches a limit of its own, and others sign in as before. What has ended, or was
// revoked, makes room.
func TestPasses_Floods(t *testing.T) {
	p := passes{kind: "session"}
	now := time.Now()
	in := func(tenant, subject string) (string, error) {
		token, _, err := p.add(Principal{Tenant: tenant, Subject: subject}, sessionLasts, now)
		return token, err
	}
	stands := func(token string) bool { _, ok := p.find(token, now); return ok }
	must := func(tenant, subject string) string {
		t.Helper()
		token, err := in(tenant, subject)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	mine, colleague := must("acme", "key:1"), must("evil", "key:0")
	first := must("evil", "key:1")
	for range mostOfCredential - 1 {
		must("evil", "key:1")
	}
	if !stands(first) {
		t.Error("a session ended before its credential had too many")
	}
	last := must("evil", "key:1")
	if stands(first) || !stands(last) || !stands(colleague) || !stands(mine) {
		t.Errorf("after a flood: the first %t, the last %t, another's of the tenant %t, another tenant's %t", stands(first), stands(last), stands(colleague), stands(mine))
	}
	for i := 2; p.tenants["evil"] < mostOfTenant; i++ {
		for range mostOfCredential {
			if _, err := in("evil", fmt.Sprint("key:", i)); err != nil {
				break
			}
		}
	}
	if _, err := in("evil", "key:new"); err == nil {
		t.Error("a tenant has any number of sessions")
	}
	if !stands(mine) || !stands(must("acme", "key:2")) {
		t.Error("another tenant cannot sign in")
	}
	now = now.Add(sessionLasts + time.Minute)
	if stands(mine) || stands(last) {
		t.Error("a session stands for its key after 12 hours")
	}
	if !stands(must("evil", "key:new")) || len(p.of) != 1 || len(p.holders) != 1 || p.tenants["evil"] != 1 || len(p.tenants) != 1 {
		t.Errorf("%d sessions, %d credentials, %v", len(p.of), len(p.holders), p.tenants)
	}
	revoked, revoke := context.WithCancel(t.Context())
	for range mostOfTenant / mostOfCredential {
		for i := range mostOfCredential {
			who := Principal{Tenant: "evil", Subject: fmt.Sprint("key:", i), Valid: revoked}
			if _, _, err := p.add(who, sessionLasts, now); err != nil {
				break
			}
		}
	}
	if _, err := in("evil", "key:next"); err == nil {
		t.Error("a tenant has any number of sessions of many keys")
	}
	revoke()
	if !stands(must("evil", "key:next")) {
		t.Error("revoked sessions take room")
	}
}

// Tickets that were used leave nothing behind, however many there are, and cost none that was not.
func TestPasses_UsedTicketsAreForgotten(t *testing.T) {
	p, now := passes{kind: "ticket", once: true}, time.Now()
	add := func() string {
		t.Helper()
		token, _, err := p.add(Principal{Tenant: "acme", Subject: "key:1"}, ticketLasts, now)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	kept := add()
	for range 5 * mostOfCredential {
		if _, ok := p.find(add(), now); !ok {
			t.Fatal("a ticket is not taken")
		}
		if own := p.holders["acme key:1"]; len(own.tokens) > 2*mostOfCredential || own.live != 1 {
			t.Fatalf("%d names, %d tickets", len(own.tokens), own.live)
		}
	}
	if _, ok := p.find(kept, now); !ok || len(p.of)+len(p.tenants)+len(p.holders) != 0 {
		t.Errorf("%t, %d tickets, %v, %v", ok, len(p.of), p.tenants, p.holders)
	}
}
