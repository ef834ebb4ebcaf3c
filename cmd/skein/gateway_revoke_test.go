package main_test

import (
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// From the end of `skein access key revoke` it takes less than a second until what the key has open
// ends, at the server and behind a gateway: streams and sockets of every kind. A machine that stands
// still for a second may be late a few times.
func TestGateway_RevocationTakesLessThanASecond(t *testing.T) {
	t.Parallel()
	g := newGates(t)
	sites := []*gate{g.gateway(), {g, nil, g.Addresses().HTTP}}
	const attempts = 20
	for n := 1; ; n++ {
		made, text := g.newKey("acme")
		for _, p := range sites {
			for p.do("GET", "/api/threads", "", text).StatusCode != http.StatusOK { // until the server has read it
			}
		}
		var ends []<-chan time.Time
		for _, p := range sites {
			ends = append(ends, p.opens(text)...)
		}
		if o := run(t, nil, "", "access", "key", "revoke", made.ID, "--dir", filepath.Dir(g.folder.Conf())); o.code != 0 {
			t.Fatalf("exit %d: %s", o.code, o.err)
		}
		revoked, slowest := time.Now(), time.Duration(0)
		for _, end := range ends {
			select {
			case at := <-end:
				slowest = max(slowest, at.Sub(revoked))
			case <-t.Context().Done():
				t.Fatal("something of a revoked key is open")
			}
		}
		if t.Logf("the last ended %v after the revocation", slowest); slowest < time.Second {
			return
		}
		if n == attempts {
			t.Fatalf("%d revocations took longer than a second each, the last %v", n, slowest)
		}
	}
}

// opens opens streams and sockets with a key, and returns when each ended.
func (p *gate) opens(text string) []<-chan time.Time {
	t := p.g.t
	t.Helper()
	var ends []<-chan time.Time
	until := func(wait func()) {
		end := make(chan time.Time, 1)
		ends = append(ends, end)
		go func() { wait(); end <- time.Now() }()
	}
	created := p.do("POST", "/api/threads", `{}`, text)
	var thread struct{ ThreadID string }
	decode(t, created.text, &thread)
	for _, path := range []string{"/api/events", "/api/threads/" + thread.ThreadID + "/events", "/api/threads/" + thread.ThreadID + "/chunks"} {
		r, err := p.open(t.Context(), "GET", path, "", text, "Accept", "text/event-stream")
		if err != nil || r.StatusCode != http.StatusOK {
			t.Fatalf("%s: %v, %v", path, r, err)
		}
		t.Cleanup(func() { _ = r.Body.Close() })
		until(func() { _, _ = io.Copy(io.Discard, r.Body) }) // it ends, however it does
	}
	for _, path := range []string{"/api/threads/" + thread.ThreadID + "/socket", "/v1/responses"} {
		conn, _, err := websocket.Dial(t.Context(), strings.Replace(p.url, "http", "ws", 1)+path, &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + text}}})
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		t.Cleanup(func() { _ = conn.CloseNow() })
		until(func() { _, _, _ = conn.Read(context.WithoutCancel(t.Context())) })
	}
	return ends
}
