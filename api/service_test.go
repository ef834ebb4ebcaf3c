package api_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/api"
	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/skeintest"
)

// script are requests that follow each other on a thread, whose path stands for {thread}.
func script() []struct{ method, path, body, headers string } {
	large := `{"contextId":"` + strings.Repeat("x", 2<<20) + `"}`
	return []struct{ method, path, body, headers string }{
		{"POST", "{thread}/items", `{"item":{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}}`, ""},
		{"POST", "{thread}/items", `{"item":{"type":"message","role":"user","content":[{"type":"input_text","text":"again"}]}}`, "Idempotency-Key: k1"},
		{"POST", "{thread}/items", `{"item":{"type":"message","role":"user","content":[{"type":"input_text","text":"again"}]}}`, "Idempotency-Key: k1"},
		{"POST", "{thread}/items", `{"item":{"type":"message","role":"user","content":[{"type":"input_text","text":"other"}]}}`, "Idempotency-Key: k1"},
		{"GET", "{thread}/items", "", ""}, // what was acknowledged is shown
		{"PATCH", "{thread}", `{"title":"A"}`, `If-Match: "1"`},
		{"PATCH", "{thread}", `{"title":"A"}`, `If-Match: "3"`},
		{"GET", "{thread}", "", ""},
		{"POST", "{thread}/items", `{"item":{"type":"nothing"}}`, ""},
		{"POST", "{thread}/items", large, ""},
		{"POST", "/api/commands/thread.commit", `{"threadId":"T-0198f000-0000-7000-8000-000000000000","data":{"commands":[]}}`, ""},
		{"POST", "/api/commands/item.create", `{"threadId":"a b","data":{}}`, ""},
		{"POST", "/api/commands/item.create", `{"threadId":"T-0198f000-0000-7000-8000-000000000000","actor":"another","data":{}}`, ""},
		{"GET", "/api/threads/T-0198f000-0000-7000-8000-000000000000", "", ""},
		{"POST", "/api/queries/item.list", `{"limit":-1}`, ""},
		{"DELETE", "{thread}", "", ""},
		{"POST", "{thread}/items", `{"item":{"type":"message","role":"user","content":[{"type":"input_text","text":"late"}]}}`, ""},
	}
}

// ownParts matches what is of one request alone: its ids, its sequence and its time.
var ownParts = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{16,}|\d{13,}|\d{4}-\d\d-\d\dT[0-9:.]+Z|"(seq|updatedSeq|createdAtMicros)":\d+|chain[^,}]*`)

// An edge in the process of the service answers as one that asks over NATS, and sends it nothing.
func TestHandler_SameInProcessAsOverNATS(t *testing.T) {
	t.Parallel()
	s := skeintest.Start(t, func(o *skein.Options) { o.NATSListen, o.Tenant = "127.0.0.1:0", "acme" })
	conn := natstest.Dial(t, s.Addresses().NATS)
	gateway, err := api.New(api.Options{Conn: conn, Auth: edge.Desk{Tenant: "acme"}, Ops: http.NotFoundHandler()})
	s.Must(err)
	var sent atomic.Int32
	for _, subject := range []string{"skein.cmd.>", "skein.query.>"} {
		_, err := conn.Subscribe(subject, func(*nats.Msg) { sent.Add(1) })
		s.Must(err)
	}
	s.Must(conn.Flush())
	answers := func(h http.Handler) (all []string) {
		thread := create(t, h)
		for _, one := range script() {
			w := serve(t, h, one.method, strings.ReplaceAll(one.path, "{thread}", thread), one.body, one.headers)
			all = append(all, strconv.Itoa(w.Code)+" "+ownParts.ReplaceAllString(w.Body.String(), "*"))
		}
		return all
	}
	inside := answers(s.Handler())
	s.Must(conn.Flush())
	if n := sent.Load(); n > 0 {
		t.Errorf("%d requests of an edge in the process went over NATS", n)
	}
	over := answers(gateway)
	for i, one := range script() {
		if inside[i] != over[i] {
			t.Errorf("%s %s %.100s:\nin the process %s\nover NATS      %s", one.method, one.path, one.body, inside[i], over[i])
		}
	}
	s.Must(conn.Flush())
	if sent.Load() == 0 {
		t.Error("nothing went over NATS, so nothing was compared")
	}
}

// create creates a thread, and returns its path.
func create(t *testing.T, h http.Handler) string {
	w := serve(t, h, "POST", "/api/threads", `{}`, "")
	var made struct{ ThreadID string }
	if err := json.Unmarshal(w.Body.Bytes(), &made); err != nil || made.ThreadID == "" {
		t.Errorf("creating a thread: %d %s", w.Code, w.Body)
	}
	return "/api/threads/" + made.ThreadID
}

// serve serves a request with at most one header.
func serve(t *testing.T, h http.Handler, method, path, body, header string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	if name, value, ok := strings.Cut(header, ": "); ok {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}
