package api_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/skein-threads/skein/api/edge"
)

// What is open when a credential is revoked, or expires, ends: streams of every kind, and the
// sockets of /api and /v1.
func TestHandler_EndedCredentialsEndStreams(t *testing.T) {
	t.Parallel()
	s := newStage(t, map[string]edge.Principal{})
	s.teller()
	real := s.made("acme", "", "order42")
	paths := []string{"/api/events", "/api/threads/" + real.thread + "/events", "/api/threads/" + real.thread + "/chunks"}
	sockets := []string{"/api/threads/" + real.thread + "/socket", "/v1/responses"}
	// opened begins everything as a person, and returns a channel for each, which tells how it
	// ended. It returns nil if the credential ended before all had begun.
	opened := func(who string, p edge.Principal) []chan error {
		p.Tenant, p.Subject = "acme", "key:"+who
		s.people[who] = p
		tooLate := func() bool { return !p.Expires.IsZero() && time.Now().After(p.Expires) }
		var ended []chan error
		for _, path := range paths {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", who)
			r.Header.Set("Accept", "text/event-stream")
			answer, err := http.DefaultTransport.RoundTrip(r)
			if err == nil {
				t.Cleanup(func() { _ = answer.Body.Close() })
			}
			if tooLate() {
				return nil
			}
			if err != nil || answer.StatusCode != http.StatusOK {
				t.Fatalf("%s: %v, %v", path, answer, err)
			}
			done := make(chan error, 1)
			ended = append(ended, done)
			go func() {
				_, err := io.Copy(io.Discard, answer.Body)
				done <- err
			}()
		}
		for _, path := range sockets {
			conn, _, err := websocket.Dial(t.Context(), strings.Replace(s.url, "http", "ws", 1)+path, &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {who}}})
			if err == nil {
				t.Cleanup(func() { _ = conn.CloseNow() })
			}
			if tooLate() {
				return nil
			}
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			done := make(chan error, 1)
			ended = append(ended, done)
			go func() {
				_, _, err := conn.Read(context.WithoutCancel(t.Context()))
				if websocket.CloseStatus(err) != websocket.StatusPolicyViolation || !strings.Contains(err.Error(), "credentials have ended") {
					t.Errorf("%s: it ended with %v", path, err)
				}
				done <- nil
			}()
		}
		return ended
	}
	haveEnded := func(what string, ended []chan error) {
		for _, done := range ended {
			select {
			case err := <-done:
				if err != nil {
					t.Errorf("%s: %v", what, err)
				}
			case <-t.Context().Done():
			}
		}
	}

	valid, revoke := context.WithCancel(t.Context())
	defer revoke()
	open := opened("revoked", edge.Principal{Valid: valid})
	revoke()
	haveEnded("revoked", open)

	open = nil
	for lasts := 2 * time.Second; open == nil; lasts *= 2 { // until all have begun before it expires
		open = opened(fmt.Sprint("expired after ", lasts), edge.Principal{Expires: time.Now().Add(lasts)})
	}
	haveEnded("expired", open)
}
