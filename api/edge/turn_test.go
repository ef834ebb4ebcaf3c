package edge_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/quota"
)

// turns is a service in this process that notes whether requests have a turn.
type turns struct{ taken []bool }

func (*turns) Serves(string) bool { return true }

func (s *turns) Request(ctx context.Context, r client.ServiceRequest) (client.ServiceAnswer, error) {
	s.taken = append(s.taken, quota.TakeTurn(ctx, r.Tenant))
	return client.ServiceAnswer{Reply: &events.Reply{}, Body: []byte("{}")}, nil
}

// anyone lets everyone act for acme.
type anyone struct{}

func (anyone) Authenticate(*http.Request) (edge.Principal, error) {
	return edge.Principal{Tenant: "acme", Subject: "key:1", Roles: []string{"publisher", "subscriber"}}, nil
}

// A request over HTTP has waited for its tenant's rate, which its first request to a service in the same
// process does not wait for again; further ones do.
func TestEdge_FirstRequestHasATurn(t *testing.T) {
	service := &turns{}
	e, err := edge.New(edge.Options{Conn: natstest.Connect(t, natstest.Start(t)), Auth: anyone{}, Service: service})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	e.Handle("GET /api/caller", func(_ http.ResponseWriter, r *http.Request, c *edge.Caller) error {
		for range 2 {
			if _, err := c.Client.Send(r.Context(), "T-1", events.DeleteThread{}); err != nil {
				return err
			}
		}
		_, err := client.Read(r.Context(), c.Client, events.GetThread{ThreadID: "T-1"})
		return err
	})
	for range 2 {
		answer := httptest.NewRecorder()
		e.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "http://127.0.0.1/api/caller", nil))
		if answer.Code != http.StatusOK {
			t.Fatalf("%d %s", answer.Code, answer.Body)
		}
	}
	if want := []bool{true, false, false, true, false, false}; !slices.Equal(service.taken, want) {
		t.Errorf("requests that had a turn: %v, want %v", service.taken, want)
	}
}
