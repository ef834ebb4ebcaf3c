package state_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/skeintest"
	"github.com/skein-threads/skein/state"
)

const key = "a key of thirty-two random bytes"

// site is an application behind a real HTTP server, on a real Skein.
type site struct {
	t      *testing.T
	skein  *skeintest.Server
	nc     *nats.Conn // of the application alone
	client *client.Client
	app    *state.App
	url    string
	http   *http.Client // without cookies
	log    *lines

	opts     state.Options
	mu       sync.Mutex // guards the rest
	handlers map[string]http.HandlerFunc
	web      http.Handler
}

// open starts a site.
func open(t *testing.T, set ...func(*state.Options)) *site {
	t.Helper()
	s := &site{t: t, log: &lines{}, handlers: map[string]http.HandlerFunc{}}
	s.skein = skeintest.Start(t, func(o *skein.Options) { o.NATSListen = "127.0.0.1:0" })
	s.nc = natstest.Dial(t, s.skein.Addresses().NATS)
	t.Cleanup(s.nc.Close)
	s.client = must(client.New(s.nc, client.Options{Tenant: "acme", Timeout: 5 * time.Minute}))(t)
	o := state.Options{Client: s.client, Keys: [][]byte{[]byte(key)}, Logger: slog.New(slog.NewJSONHandler(s.log, nil)), Now: s.skein.Clock.Now}
	for _, apply := range set {
		apply(&o)
	}
	s.opts = o
	s.start()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		web := s.web
		s.mu.Unlock()
		web.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	s.url, s.http = web.URL, web.Client()
	return s
}

func (s *site) start() {
	s.t.Helper()
	s.app = must(state.New(s.t.Context(), s.opts))(s.t)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.web = state.Middleware(s.app)(s)
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	handler := s.handlers[r.URL.Path]
	s.mu.Unlock()
	handler(w, r)
}

// handle returns the path of a handler that fails the test if it returns an error.
func (s *site) handle(handler func(http.ResponseWriter, *http.Request) error) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := "/" + strconv.Itoa(len(s.handlers))
	s.handlers[path] = func(w http.ResponseWriter, r *http.Request) {
		if err := handler(w, r); err != nil {
			s.t.Errorf("a handler: %v", err)
		}
	}
	return path
}

// answer is a response and its body.
type answer struct {
	*http.Response
	body string
}

// header returns the signed id of the answer's thread.
func (a answer) header() string { return a.Header.Get("x-thread-id") }

// id returns the id of the answer's thread.
func (a answer) id() string {
	id, _, _ := strings.Cut(a.header(), ";")
	return id
}

// next returns the headers that continue the thread of the answer.
func (a answer) next() []string { return []string{"x-thread-id", a.header()} }

// cookie returns the cookie of the answer's thread; nil if there is none.
func (a answer) cookie() *http.Cookie {
	for _, c := range a.Cookies() {
		if c.Name == "atid" {
			return c
		}
	}
	return nil
}

// request returns a request with headers: names and values.
func (s *site) request(path string, headers ...string) *http.Request {
	r := must(http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+path, http.NoBody))(s.t)
	for pair := range slices.Chunk(headers, 2) {
		r.Header.Add(pair[0], pair[1])
	}
	return r
}

// visit sends a request with headers, which the handler serves.
func (s *site) visit(handler func(http.ResponseWriter, *http.Request) error, headers ...string) answer {
	s.t.Helper()
	return s.get(s.handle(handler), headers...)
}

func (s *site) get(path string, headers ...string) answer {
	s.t.Helper()
	response := must(s.http.Do(s.request(path, headers...)))(s.t)
	defer func() { _ = response.Body.Close() }()
	return answer{response, string(must(io.ReadAll(response.Body))(s.t))}
}

// drain blocks until no background work of the site is in progress. The site serves no request
// after it.
func (s *site) drain() {
	s.t.Helper()
	if err := s.app.Shutdown(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// settle blocks until no background work of the site is in progress.
func (s *site) settle() {
	s.t.Helper()
	s.drain()
	s.start()
}

// values returns the stored state of a thread.
func (s *site) values(id string) string {
	s.t.Helper()
	v := must(client.Read(s.t.Context(), s.client, events.GetState{ThreadID: id}))(s.t)
	return string(v.Values)
}

func nothing(http.ResponseWriter, *http.Request) error { return nil }

// lines is a log.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func refused(err error, code events.Code) bool {
	e := events.AsError(err)
	return err != nil && e.Code == code
}
