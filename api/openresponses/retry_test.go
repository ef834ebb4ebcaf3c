package openresponses_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/api"
	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/openresponses"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
)

// attempt makes a request for a response as a client that says how often it has tried.
func (w *world) attempt(count, body string) object {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), "POST", w.url+"/v1/responses", strings.NewReader(body))
	w.s.Must(err)
	req.Header.Set("X-Stainless-Retry-Count", count)
	res, err := http.DefaultClient.Do(req)
	w.s.Must(err)
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	w.s.Must(err)
	return decoded(w.t, raw)
}

// Clients of OpenAI repeat a request with the same body, without an Idempotency-Key. The repeat has
// the run that the first attempt has begun, as long as it has not ended; a request that only looks
// like it has its own.
func TestRetry_JoinsTheFirst(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.careful()
	try := w.attempt
	conversation := w.must("POST", "/v1/conversations", `{}`)["id"]
	for name, body := range map[string]string{
		"alone":        `{"model":"careful","input":"refund it"}`,
		"conversation": fmt.Sprintf(`{"model":"careful","input":"refund it","conversation":%q}`, conversation),
	} {
		first := try("0", body)
		if again := try("1", body); !reflect.DeepEqual(again, first) {
			t.Errorf("%s: %v, and first %v", name, again, first)
		}
		if other := try("1", strings.Replace(body, "refund it", "refund that", 1)); other["id"] == first["id"] {
			t.Errorf("%s: another request has the same response", name)
		}
		if name == "alone" {
			if other := try("0", body); other["id"] == first["id"] {
				t.Errorf("%s: a first attempt has the response of another", name)
			}
		}
	}
}

// A repeat joins a request that was made as long ago as its client says that attempts take.
func TestRetry_Window(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]time.Duration{
		"":                              0,
		"x":                             0,
		"0":                             0,
		"1":                             10*time.Minute + 10*time.Second,
		"2":                             20*time.Minute + 20*time.Second,
		"1, timeout 2":                  12 * time.Second,
		"2, timeout 2.5":                25 * time.Second,
		"1, read-timeout 30":            40 * time.Second,
		"1, timeout 0":                  10*time.Minute + 10*time.Second,
		"1, timeout NaN":                10*time.Minute + 10*time.Second,
		"1, timeout 1e300":              time.Hour + 10*time.Second,
		"999999999999999999, timeout 1": 0,
	} {
		h := http.Header{}
		count, timeout, _ := strings.Cut(said, ", ")
		if count != "" {
			h.Set("X-Stainless-Retry-Count", count)
		}
		if name, seconds, ok := strings.Cut(timeout, " "); ok {
			h.Set("X-Stainless-"+name, seconds)
		}
		if got := openresponses.RetryOf(h); got != want {
			t.Errorf("%s: %v, not %v", said, got, want)
		}
	}
}

// A repeat joins no run of another caller, and of no other request.
func TestRetry_OfWhom(t *testing.T) {
	t.Parallel()
	marks := map[string]bool{}
	for _, of := range [][3]string{{"acme", "ada", "x"}, {"acme", "bob", "x"}, {"other", "ada", "x"}, {"acme", "ada", "y"}} {
		marks[openresponses.MarkOf(of[0], of[1], of[2])] = true
	}
	if len(marks) != 4 {
		t.Errorf("%d marks of 4 requests", len(marks))
	}
}

// A repeat of a request that waits in the queue of its conversation joins it there.
func TestRetry_Queued(t *testing.T) {
	t.Parallel()
	w := start(t)
	begun, release := w.model.waits()
	body := fmt.Sprintf(`{"model":"triage","conversation":%q,"input":"%%s","background":true}`, w.must("POST", "/v1/conversations", `{}`)["id"])
	w.must("POST", "/v1/responses", fmt.Sprintf(body, "first"))
	<-begun
	second := fmt.Sprintf(body, "second")
	if first, again := w.attempt("0", second)["id"], w.attempt("1", second)["id"]; first == nil || again != first {
		t.Errorf("the repeat of %v is %v", first, again)
	}
	close(release)
	w.s.WaitIdle()
}

// counted answers queries over a connection, and keeps those that it has answered.
type counted struct {
	conn    *nats.Conn
	mu      sync.Mutex
	queries []client.ServiceRequest // guarded by mu
}

func (c *counted) Serves(kind string) bool { return kind == events.KindQuery }

func (c *counted) Request(ctx context.Context, r client.ServiceRequest) (client.ServiceAnswer, error) {
	reply, err := c.conn.RequestWithContext(ctx, events.DefaultNames().Request(r.Kind, r.Tenant, r.Name), r.Body)
	if err != nil {
		return client.ServiceAnswer{}, err
	}
	if refusal := events.DecodeRefusal(reply.Header.Get(events.HeaderErrorCode), reply.Data); refusal != nil {
		return client.ServiceAnswer{}, refusal
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queries = append(c.queries, r)
	return client.ServiceAnswer{Body: reply.Data}, nil
}

// count returns how often a query about something was answered since the last count.
func (c *counted) count(name, about string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, q := range c.queries {
		if q.Name == name && strings.Contains(string(q.Body), about) {
			n++
		}
	}
	c.queries = nil
	return n
}

// What a request goes on from is read once, however many rules look at it.
func TestCreate_ReadsItsBasisOnce(t *testing.T) {
	t.Parallel()
	w := start(t)
	asked := &counted{conn: natstest.Dial(t, w.s.Addresses().NATS)}
	gateway, err := api.New(api.Options{Conn: asked.conn, Service: asked, Auth: edge.Desk{Tenant: "acme"}, Ops: http.NotFoundHandler()})
	w.s.Must(err)
	listener := httptest.NewServer(gateway)
	t.Cleanup(listener.Close)
	w.url = listener.URL
	first := w.must("POST", "/v1/responses", `{"model":"triage","input":"hello"}`)
	execution := events.ExecutionPrefix + strings.TrimPrefix(first["id"].(string), "resp_")
	asked.count("", "")
	w.must("POST", "/v1/responses", fmt.Sprintf(`{"model":"triage","previous_response_id":%q,"input":"hello"}`, first["id"]))
	if n := asked.count("execution.get", execution); n != 1 {
		t.Errorf("the response before was read %d times", n)
	}
	conversation := w.must("POST", "/v1/conversations", `{}`)["id"]
	asked.count("", "")
	w.must("POST", "/v1/responses", fmt.Sprintf(`{"model":"triage","conversation":%q,"input":"hello"}`, conversation))
	if n := asked.count("thread.get", "T-"); n != 1 {
		t.Errorf("the conversation was read %d times", n)
	}
}
