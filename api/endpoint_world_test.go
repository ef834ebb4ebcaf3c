package api_test

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/api"
	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/skeintest"
)

// world is an edge at a desk, with thread endpoints, in front of a real server.
type world struct {
	t         *testing.T
	server    *skeintest.Server
	endpoints *api.Endpoints
	url       string
	log       bytes.Buffer // of the front
}

func newWorld(t *testing.T) *world {
	t.Helper()
	server := skeintest.Start(t, func(o *skein.Options) { o.NATSListen = "127.0.0.1:0" })
	nc := natstest.Dial(t, server.Addresses().NATS)
	e, err := edge.New(edge.Options{Conn: nc, Names: events.DefaultNames(), Auth: edge.Desk{}})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, server: server, endpoints: api.NewEndpoints()}
	api.EndpointRoutes(e, w.endpoints)
	front := httptest.NewUnstartedServer(e)
	front.Config.ErrorLog = log.New(&w.log, "", 0)
	front.Start()
	t.Cleanup(front.Close)
	w.url = front.URL
	return w
}

// client returns a client of a tenant, for what happens outside the edge.
func (w *world) client(tenant string) *client.Client { return w.server.Client(tenant) }

// get sends a request as a tenant, and returns the status, the header and the body.
func (w *world) do(method, tenant, path string) (int, http.Header, string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if tenant != "" {
		r.Header.Set(edge.HeaderTenant, tenant)
	}
	noRedirect := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := noRedirect.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, string(body)
}

// get is do with GET and the tenant acme.
func (w *world) get(path string) (int, string) {
	w.t.Helper()
	status, _, body := w.do(http.MethodGet, "acme", path)
	return status, body
}

// thread creates a thread of acme with messages.
func (w *world) thread(texts ...string) string {
	w.t.Helper()
	c := w.client("acme")
	made, err := c.Send(w.t.Context(), "", events.CreateThread{Key: "endpoints", AgentID: "support", UserID: "ada"})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, text := range texts {
		if _, err := c.Send(w.t.Context(), made.ThreadID, events.AddMessage{Role: events.FromUser, Content: &text}); err != nil {
			w.t.Fatal(err)
		}
	}
	return made.ThreadID
}
