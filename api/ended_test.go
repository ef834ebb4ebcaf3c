package api_test

import (
	"context"
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
	s := newStage(t, map[string]edge.Principal{})
	s.teller()
	real := s.made("acme", "", "order42")
	for what, credential := range map[string]func() (edge.Principal, func()){
		"revoked": func() (edge.Principal, func()) {
			valid, revoke := context.WithCancel(t.Context())
			return edge.Principal{Valid: valid}, revoke
		},
		"expired": func() (edge.Principal, func()) {
			end := time.Now().Add(2 * time.Second)
			return edge.Principal{Expires: end}, func() { time.Sleep(time.Until(end)) }
		},
	} {
		p, end := credential()
		p.Tenant, p.Subject = "acme", "key:"+what
		s.people[what] = p
		thread := "/api/threads/" + real.thread
		var ended []chan error
		for _, path := range []string{"/api/events", thread + "/events", thread + "/chunks"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", what)
			r.Header.Set("Accept", "text/event-stream")
			answer, err := http.DefaultTransport.RoundTrip(r)
			if err != nil || answer.StatusCode != http.StatusOK {
				t.Fatalf("%s: %v, %v", path, answer, err)
			}
			defer answer.Body.Close()
			done := make(chan error, 1)
			ended = append(ended, done)
			go func() {
				_, err := io.Copy(io.Discard, answer.Body)
				done <- err
			}()
		}
		for _, path := range []string{thread + "/socket", "/v1/responses"} {
			conn, _, err := websocket.Dial(t.Context(), strings.Replace(s.url, "http", "ws", 1)+path, &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {what}}})
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			defer func() { _ = conn.CloseNow() }()
			done := make(chan error, 1)
			ended = append(ended, done)
			go func() {
				_, _, err := conn.Read(context.WithoutCancel(t.Context()))
				if err == nil {
					t.Errorf("%s: a frame", path)
				}
				done <- nil
			}()
		}
		end()
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
}
