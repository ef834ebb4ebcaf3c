package api_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/skeintest"
)

// Under every path, a route that has other methods says which.
func TestHandler_WrongMethodUnderEveryPath(t *testing.T) {
	t.Parallel()
	url := start(t, func(o *skein.Options) { o.Tenant = "acme" })
	for target, c := range map[string]struct{ method, allow string }{
		"/api/threads":                      {"PUT", "GET, HEAD, POST"},
		"/api/threads/x":                    {"POST", "DELETE, GET, HEAD, PATCH"},
		"/api/threads/x/events":             {"POST", "GET, HEAD"},
		"/api/threads/x/files/a/b":          {"POST", "DELETE, GET, HEAD, PUT"},
		"/api/commands/thread.create":       {"GET", "POST"},
		"/api/queries/thread.list":          {"GET", "POST"},
		"/api/tickets":                      {"GET", "POST"},
		"/v1/responses":                     {"PUT", "GET, HEAD, POST"},
		"/v1/responses/x/cancel":            {"GET", "POST"},
		"/v1/conversations":                 {"GET", "POST"},
		"/v1/models":                        {"POST", "GET, HEAD"},
		"/chat":                             {"GET", "POST"},
		"/chat/x/stream":                    {"POST", "GET, HEAD"},
		"/console/session":                  {"PUT", "DELETE, GET, HEAD, POST"},
		"/api/threads/x/approvals/callId/x": {"GET", ""},
	} {
		a := ask(t, url, c.method, target)
		if c.allow == "" {
			a.wantProblem(t, target, http.StatusNotFound, "not_found")
			continue
		}
		a.wantProblem(t, c.method+" "+target, http.StatusMethodNotAllowed, "method_not_allowed")
		if got := a.header.Get("Allow"); got != c.allow {
			t.Errorf("%s %s: Allow %q, want %q", c.method, target, got, c.allow)
		}
	}
}

// Every answer has an id of its own for the log, whatever it is.
func TestHandler_EveryAnswerHasARequestID(t *testing.T) {
	t.Parallel()
	url := start(t, func(o *skein.Options) { o.Tenant, o.CORSOrigins = "acme", []string{"https://shop.example"} })
	thread := "/api/threads/" + createThread(t, url, "")
	seen := map[string]string{}
	for _, one := range [][]string{
		{"GET", "/healthz"}, {"GET", "/readyz"}, {"GET", "/metrics"}, {"GET", "/nothing"}, {"GET", "//"}, {"PUT", "/api/threads"},
		{"GET", "/api/openapi.json"}, {"GET", "/api/threads"}, {"GET", thread}, {"GET", thread, "If-None-Match: *"}, {"GET", thread + "/files/none"}, {"POST", "/api/tickets"},
		{"GET", "/v1/models"}, {"GET", "/v1/responses"}, {"GET", "/v1/responses/none"}, {"POST", "/v1/responses"}, {"GET", "/chat/none"}, {"GET", "/chat/none/stream"},
		{"GET", "/threads/"}, {"GET", "/threads/none/summary"}, {"GET", "/console/"}, {"GET", "/console/none"}, {"DELETE", "/console/session"},
		{"GET", "/api/threads", "Origin: https://evil.example"}, {"OPTIONS", "/api/threads", "Origin: https://shop.example", "Access-Control-Request-Method: POST"},
		{"GET", "/api/threads", "Authorization: Bearer skein_x_y"}, {"GET", "/api/threads?ticket=x"},
	} {
		what := strings.Join(one, " ")
		header := exchange(t, url, one[0], one[1], strings.TrimPrefix(url, "http://"), one[2:]...).header
		id := header.Get("Skein-Request-Id")
		if id == "" || seen[id] != "" || header.Get("X-Request-Id") != id {
			t.Errorf("%s: the id %q, which %q has; X-Request-Id is %q", what, id, seen[id], header.Get("X-Request-Id"))
		}
		seen[id] = what
	}
}

// The trace of a request is that of what it writes, under every path.
func TestHandler_TracesContinueUnderEveryPath(t *testing.T) {
	s := skeintest.Start(t, func(o *skein.Options) { o.HTTPListen, o.Tenant = "127.0.0.1:0", "acme" })
	s.Must(s.Reactor("echo", skein.ReactorFunc(func(context.Context, *skein.StepInput, skein.Stream) (*skein.Reaction, error) {
		return skein.Answer("said"), nil
	})))
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	post := func(path, body string, header ...string) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.Addresses().HTTP+path, strings.NewReader(body))
		s.Must(err)
		r.Header.Set("Traceparent", trace)
		r.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		a, err := http.DefaultClient.Do(r)
		s.Must(err)
		defer a.Body.Close()
		raw, err := io.ReadAll(a.Body)
		s.Must(err)
		if a.StatusCode >= 300 {
			t.Fatalf("%s: %d %s", path, a.StatusCode, raw)
		}
		return string(raw)
	}
	for what, ask := range map[string]func(){
		"a react": func() {
			post("/api/threads/"+createThread(t, s.Addresses().HTTP, "")+"/react", `{"agentId":"echo","text":"x"}`)
		},
		"a followed react": func() {
			post("/api/threads/"+createThread(t, s.Addresses().HTTP, "")+"/react", `{"agentId":"echo","text":"x"}`, "Accept", "text/event-stream")
		},
		"a response":     func() { post("/v1/responses", `{"model":"echo","input":"x"}`) },
		"a streamed one": func() { post("/v1/responses", `{"model":"echo","input":"x","stream":true}`) },
		"a keyed one":    func() { post("/v1/responses", `{"model":"echo","input":"x"}`, "Idempotency-Key", "k") },
		"a chat": func() {
			post("/chat", `{"id":"c1","agent":"echo","message":{"id":"u1","role":"user","parts":[{"type":"text","text":"x"}]}}`)
		},
		"a keyed chat": func() {
			post("/chat", `{"id":"c2","agent":"echo","message":{"id":"u1","role":"user","parts":[{"type":"text","text":"x"}]}}`, "Idempotency-Key", "k")
		},
		"a command by name": func() {
			post("/api/commands/thread.commit", `{"data":{"commands":[{"command":"thread.create","data":{}},{"command":"thread.react","data":{"agentId":"echo","text":"x"}}]}}`)
		},
	} {
		before := map[string]bool{}
		for _, id := range threads(t, s) {
			before[id] = true
		}
		ask()
		s.WaitIdle()
		for _, id := range threads(t, s) {
			if before[id] {
				continue
			}
			c, err := s.Client("acme").UpToDate(t.Context())
			s.Must(err)
			list, err := client.Read(t.Context(), c, events.ListEvents{ThreadID: id, Types: []string{"item.created", "execution.created"}})
			s.Must(err)
			var asked struct {
				Type        events.Type
				Traceparent string
			}
			for _, raw := range list.Events[:2] { // what follows are the worker's
				if s.Must(json.Unmarshal(raw, &asked)); asked.Traceparent != trace {
					t.Errorf("%s: %s is of the trace %q", what, asked.Type, asked.Traceparent)
				}
			}
		}
		if now := threads(t, s); len(now) != len(before)+1 {
			t.Errorf("%s: %d threads became %d", what, len(before), len(now))
		}
	}
}

// threads returns the ids of acme's threads.
func threads(t *testing.T, s *skeintest.Server) (ids []string) {
	t.Helper()
	c, err := s.Client("acme").UpToDate(t.Context())
	s.Must(err)
	list, err := client.Read(t.Context(), c, events.ListThreads{})
	s.Must(err)
	for _, one := range list.Threads {
		ids = append(ids, one.ID)
	}
	return ids
}
