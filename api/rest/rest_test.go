package rest_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/skeintest"
)

// site is a server with an address, as a client of HTTP sees it.
type site struct {
	*skeintest.Server
	t      testing.TB
	url    string
	tenant string

	described *description
}

// start starts a server at a desk, and returns it as the tenant acme sees it.
func start(t testing.TB, options ...func(*skein.Options)) *site {
	t.Helper()
	s := skeintest.Start(t, append([]func(*skein.Options){func(o *skein.Options) { o.HTTPListen = "127.0.0.1:0" }}, options...)...)
	description, err := described()
	s.Must(err)
	return &site{Server: s, t: t, url: s.Addresses().HTTP, tenant: "acme", described: description}
}

// as returns the site as another tenant sees it.
func (s *site) as(tenant string) *site {
	other := *s
	other.tenant = tenant
	return &other
}

// answer is what a request got.
type answer struct {
	t      testing.TB
	what   string
	status int
	header http.Header
	body   []byte
}

// open sends a request, and returns the answer with its body unread.
func (s *site) open(method, path, body string, headers ...string) *http.Response {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if body == "" {
		req.Body = nil
	}
	req.Header.Set("Skein-Tenant", s.tenant)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	r, err := http.DefaultTransport.RoundTrip(req) // a redirect is an answer like any other
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return r
}

// ask sends a request and reads the answer, which must be as /api/openapi.json describes it.
func (s *site) ask(method, path, body string, headers ...string) answer {
	s.t.Helper()
	r := s.open(method, path, body, headers...)
	defer r.Body.Close()
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	a := answer{s.t, method + " " + path, r.StatusCode, r.Header, raw}
	if err := s.described.check(r.Request, body, a); err != nil {
		s.t.Errorf("%s is not as described: %v", a.what, err)
	}
	return a
}

// want checks the status.
func (a answer) want(status int) answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("%s: %d %.600s; want %d", a.what, a.status, a.body, status)
	}
	return a
}

// problem checks a refusal, and returns its message.
func (a answer) problem(status int, code, param string) string {
	a.t.Helper()
	var body struct {
		Error map[string]any `json:"error"`
	}
	if err := json.Unmarshal(a.body, &body); err != nil || a.status != status || body.Error["code"] != code || body.Error["param"] != param {
		a.t.Errorf("%s: %d %.600s; want %d, code %s, param %q", a.what, a.status, a.body, status, code, param)
	}
	message, _ := body.Error["message"].(string)
	return message
}

// has checks that a header has a value.
func (a answer) has(name, value string) answer {
	a.t.Helper()
	if got := a.header.Get(name); got != value {
		a.t.Errorf("%s: %s is %q, want %q", a.what, name, got, value)
	}
	return a
}

// to decodes the body.
func (a answer) to(into any) answer {
	a.t.Helper()
	if err := json.Unmarshal(a.body, into); err != nil {
		a.t.Fatalf("%s: %.300s: %v", a.what, a.body, err)
	}
	return a
}

// text returns a member of the body, such as result.itemId.
func (a answer) text(path string) string {
	a.t.Helper()
	var v any
	numbers := json.NewDecoder(bytes.NewReader(a.body))
	numbers.UseNumber()
	if err := numbers.Decode(&v); err != nil {
		a.t.Fatalf("%s: %.300s: %v", a.what, a.body, err)
	}
	for name := range strings.SplitSeq(path, ".") {
		o, _ := v.(map[string]any)
		v = o[name]
	}
	if v == nil {
		a.t.Fatalf("%s: no %s in %.600s", a.what, path, a.body)
	}
	return fmt.Sprint(v)
}

// thread creates a thread that queries show, and returns its path.
func (s *site) thread() string {
	s.t.Helper()
	path := s.ask("POST", "/api/threads", `{"title":"A thread"}`).want(http.StatusCreated).header.Get("Location")
	s.ask("GET", path+"?minVersion=2", "").want(http.StatusOK)
	return path
}

// id returns the id of the thread at a path.
func id(path string) string { return strings.TrimPrefix(path, "/api/threads/") }

const hello = `{"item":{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}}`

// say adds an item to a thread, over NATS.
func (s *site) say(path string) {
	s.t.Helper()
	_, err := s.Client(s.tenant).Do(s.t.Context(), "item.create", client.Request{ThreadID: id(path), Data: json.RawMessage(hello)})
	s.Must(err)
}

// sse reads server-sent events.
type sse struct {
	t    testing.TB
	r    *http.Response
	scan *bufio.Scanner
}

// event is a server-sent event.
type event struct{ id, name, data string }

// stream opens a stream, which must begin.
func (s *site) stream(method, path, body string, headers ...string) *sse {
	s.t.Helper()
	r := s.open(method, path, body, append([]string{"Accept", "text/event-stream"}, headers...)...)
	if kind := r.Header.Get("Content-Type"); r.StatusCode != http.StatusOK || kind != "text/event-stream" {
		raw, _ := io.ReadAll(r.Body)
		s.t.Fatalf("%s %s: %d %s %.600s", method, path, r.StatusCode, kind, raw)
	}
	in := newSSE(r)
	in.t = s.t
	s.t.Cleanup(in.close)
	return in
}

func newSSE(r *http.Response) *sse {
	in := &sse{r: r, scan: bufio.NewScanner(r.Body)}
	in.scan.Buffer(nil, 16<<20)
	return in
}

func (in *sse) close() { in.r.Body.Close() }

// next returns the next event, and false at the end of the stream.
func (in *sse) next() (event, bool) {
	var e event
	for in.scan.Scan() {
		line := in.scan.Text()
		name, value, _ := strings.Cut(line, ": ")
		switch {
		case line == "" && e != event{}:
			return e, true
		case name == "id":
			e.id = value
		case name == "event":
			e.name = value
		case name == "data":
			e.data += value
		}
	}
	return event{}, false
}

// take returns the next n events.
func (in *sse) take(n int) []event {
	in.t.Helper()
	var list []event
	for range n {
		e, ok := in.next()
		if !ok {
			in.t.Fatalf("the stream ended after %d events, want %d: %v", len(list), n, in.scan.Err())
		}
		list = append(list, e)
	}
	return list
}

// ids returns the ids of events.
func ids(list []event) string {
	var b bytes.Buffer
	for i, e := range list {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(e.id)
	}
	return b.String()
}
