package main_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// Revoking a key lists the shares that it made, which stay open, and with --shares ends these, and
// no others. Over HTTP a tenant's shares are listed by who made them.
func TestAccessKey_RevokeEndsShares(t *testing.T) {
	t.Parallel()
	g := newGates(t)
	p := &gate{g, nil, g.Addresses().HTTP}
	other, otherKey := g.newKey("acme")
	for p.do("GET", "/api/threads", "", otherKey).StatusCode != http.StatusOK { // until the server has read it
	}
	c := g.Client("acme")
	share := func(key string) (thread, token string) {
		t.Helper()
		made, err := c.Send(t.Context(), "", events.CreateThread{})
		if err != nil {
			t.Fatal(err)
		}
		body := p.do("POST", "/api/commands/thread.share", `{"threadId":"`+made.ThreadID+`","data":{}}`, key).text
		var reply struct{ Result struct{ Token string } }
		decode(t, body, &reply)
		return made.ThreadID, reply.Result.Token
	}
	opens := func(token string) bool {
		_, err := client.Read(t.Context(), c, events.ReadShared{Token: token})
		return err == nil
	}
	var mine []string
	for range 3 {
		_, token := share(g.key)
		mine = append(mine, token)
	}
	_, others := share(otherKey)
	var listed events.ShareList
	decode(t, p.do("GET", "/api/shares?limit=2&actor=key:"+g.made.ID, "", otherKey).text, &listed)
	if len(listed.Shares) != 2 || listed.NextCursor == "" || listed.Shares[0].Actor != "key:"+g.made.ID {
		t.Errorf("GET /api/shares: %+v", listed)
	}
	revoke := func(code int, flags ...string) outcome {
		t.Helper()
		o := run(t, nil, "", append([]string{"access", "key", "revoke", g.made.ID, "--dir", filepath.Dir(g.folder.Conf())}, flags...)...)
		if o.code != code {
			t.Fatalf("exit %d: %s%s", o.code, o.out, o.err)
		}
		return o
	}
	at := []string{"--server", g.Addresses().NATS}
	var revoked struct {
		SharesEnded bool
		Shares      []events.Share
	}
	decode(t, revoke(0, append(at, "--json")...).out, &revoked)
	if revoked.SharesEnded || len(revoked.Shares) != 3 || !opens(mine[0]) {
		t.Errorf("without --shares: %+v", revoked)
	}
	revoke(1, at...) // it is revoked
	if o := revoke(1, "--shares", "--server", "nats://127.0.0.1:1"); !strings.Contains(o.err, "is revoked") {
		t.Errorf("without a server: %s", o.err)
	}
	decode(t, revoke(0, append(at, "--shares", "--json")...).out, &revoked)
	if !revoked.SharesEnded || len(revoked.Shares) != 3 {
		t.Errorf("with --shares: %+v", revoked)
	}
	for i, token := range mine {
		if opens(token) {
			t.Errorf("share %d is open", i)
		}
	}
	if !opens(others) {
		t.Errorf("the share of key %s has ended, too", other.ID)
	}
	if o := revoke(0, append(at, "--shares")...); strings.Contains(o.out, "ended") {
		t.Errorf("again: %s", o.out)
	}
}
