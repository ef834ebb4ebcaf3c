package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/skein-threads/skein/api/chat"
	"github.com/skein-threads/skein/api/completions"
	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/openresponses"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/quota"
)

// placeTaker is a service in the process of an edge with one place for large bodies. While it answers
// a query, another tenant takes the place, and leaves it when somebody waits for it.
type placeTaker struct {
	t      *testing.T
	places *quota.Pool

	mu       sync.Mutex // guards what follows
	leave    func()     // nil: the other tenant does not have the place
	waits    int        // how often the place was waited for
	queries  int
	commands int
}

// Serves implements client.Service.
func (*placeTaker) Serves(string) bool { return true }

// Request implements client.Service.
func (s *placeTaker) Request(_ context.Context, r client.ServiceRequest) (client.ServiceAnswer, error) {
	s.mu.Lock()
	taken := s.leave != nil
	s.mu.Unlock()
	if !taken {
		leave, err := s.places.Try("other")
		if err != nil {
			s.t.Errorf("%s is waited for in the place of a large body: %v", r.Name, err)
			return client.ServiceAnswer{}, err
		}
		s.mu.Lock()
		s.leave = leave
		s.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Kind == events.KindCommand {
		s.commands++
		return client.ServiceAnswer{}, events.Errorf(events.QueueFull, "the test ends here")
	}
	s.queries++
	if r.Name == "thread.get" {
		return client.ServiceAnswer{}, events.Missing("thread", "of the test")
	}
	return client.ServiceAnswer{Body: []byte("{}")}, nil
}

// Places implements quota.Metrics.
func (s *placeTaker) Places(_ string, _, waiting int) {
	if waiting == 0 {
		return
	}
	go func() {
		s.mu.Lock()
		leave := s.leave
		s.leave = nil
		s.waits++
		s.mu.Unlock()
		if leave != nil {
			leave()
		}
	}()
}

// PlaceRefused implements quota.Metrics.
func (*placeTaker) PlaceRefused(string, string) {}

// A large body is decoded in a place, before anything is asked or in another place afterwards, and
// nothing is waited for in a place.
func TestHandler_LargeBodyIsDecodedInAPlace(t *testing.T) {
	t.Parallel()
	conn := natstest.Connect(t, natstest.Start(t))
	text := `"` + strings.Repeat("x", 300<<10) + `"`
	for _, c := range []struct {
		name, path, body, chat string
		wait                   bool // for another place, before the command
	}{
		{"a response", "/v1/responses", `{"model":"m","input":[{"type":"message","role":"user","content":` + text + `}]}`, "", true},
		{"a response with a malformed item", "/v1/responses", `{"model":"m","input":[{"type":"message","role":"user","content":` + text + `},{"role":5}]}`, "", false},
		{"a response with an empty image", "/v1/responses", `{"model":"m","input":[{"role":"user","content":` + text + `},{"role":"user","content":[{"type":"input_image"}]}]}`, "", false},
		{"a completion", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":` + text + `}]}`, "", true},
		{"a completion of a chat", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":` + text + `}]}`, "c", true},
		{"a chat", "/chat", `{"id":"c","messages":[{"id":"a","role":"user","parts":[{"type":"text","text":` + text + `}]},{"id":"b","role":"user","parts":[{"type":"text","text":"b"}]}]}`, "", true},
		{"items of a conversation", "/v1/conversations", `{"items":[{"type":"message","role":"user","content":` + text + `}]}`, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			service := &placeTaker{t: t}
			service.places = quota.NewPool("bodies", quota.Places{Total: 1}, service)
			e, err := edge.New(edge.Options{Conn: conn, Auth: edge.Desk{Tenant: "acme"}, Service: service, Bodies: service.places})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			openresponses.Routes(e)
			completions.Routes(e)
			chat.Routes(e)
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1"+c.path, strings.NewReader(c.body))
			if c.chat != "" {
				r.Header.Set("Skein-Thread", c.chat)
			}
			answer := httptest.NewRecorder()
			e.ServeHTTP(answer, r)
			invalid := answer.Code == http.StatusBadRequest
			service.mu.Lock()
			defer service.mu.Unlock()
			if invalid && (service.queries > 0 || service.commands > 0) || !invalid && service.commands != 1 || c.wait != (service.waits > 0) {
				t.Errorf("%d %.300s after %d queries, %d commands and %d waits", answer.Code, answer.Body, service.queries, service.commands, service.waits)
			}
		})
	}
}
