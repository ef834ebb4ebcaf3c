package state_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/skeintest"
	"github.com/skein-threads/skein/state"
)

const key = "a key of thirty-two random bytes"

// site is an application behind a real HTTP server, on a real Skein.
type site struct {
	t      *testing.T
	skein  *skeintest.Server
	client *client.Client
	app    *state.App
	url    string
	http   *http.Client // without cookies
	log    *strings.Builder
}

// serve starts a site with a handler that fails the test if it returns an error.
func serve(t *testing.T, handler func(http.ResponseWriter, *http.Request) error, set ...func(*state.Options)) *site {
	t.Helper()
	s := &site{t: t, skein: skeintest.Start(t), log: &strings.Builder{}}
	s.client = s.skein.Client("acme")
	o := state.Options{Client: s.client, Keys: [][]byte{[]byte(key)}, Logger: slog.New(slog.NewJSONHandler(&locked{w: s.log}, nil)), Now: s.skein.Clock.Now}
	for _, apply := range set {
		apply(&o)
	}
	s.app = must(state.New(t.Context(), o))(t)
	web := httptest.NewServer(state.Middleware(s.app)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := handler(w, r); err != nil {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
	})))
	t.Cleanup(web.Close)
	s.url, s.http = web.URL, web.Client()
	return s
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

// get sends a request with headers: names and values.
func (s *site) get(path string, headers ...string) answer {
	s.t.Helper()
	r := must(http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+path, http.NoBody))(s.t)
	for pair := range slices.Chunk(headers, 2) {
		r.Header.Add(pair[0], pair[1])
	}
	response := must(s.http.Do(r))(s.t)
	defer func() { _ = response.Body.Close() }()
	return answer{response, string(must(io.ReadAll(response.Body))(s.t))}
}

// again returns the headers that continue the thread of an answer.
func again(a answer) []string { return []string{"x-thread-id", a.header()} }

// idle blocks until no background work of the site is in progress.
func (s *site) drain() {
	s.t.Helper()
	if err := s.app.Shutdown(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
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

// What one request sets, the next one of the thread reads; another visitor does not.
func TestThread_StateLastsAcrossRequests(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) error {
		ctx := r.Context()
		if err := state.Thread(ctx).Push(ctx, "messages", r.URL.Path, 2); err != nil {
			return err
		}
		messages, _, err := state.Get[[]string](ctx, state.Thread(ctx), "messages")
		_, _ = io.WriteString(w, strings.Join(messages, " "))
		return err
	})
	first := s.get("/a")
	second := s.get("/b", again(first)...)
	third := s.get("/c", again(second)...)
	other := s.get("/d")
	if first.body != "/a" || second.body != "/a /b" || third.body != "/b /c" || other.body != "/d" {
		t.Errorf("the messages are %q, %q, %q, and of another visitor %q", first.body, second.body, third.body, other.body)
	}
	if first.id() != third.id() || first.id() == other.id() || !state.ValidThreadID(first.id()) {
		t.Errorf("the threads are %s, %s and %s", first.id(), third.id(), other.id())
	}
}

func TestWaitUntil_SavesWhatItWrites(t *testing.T) {
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) error {
		return state.WaitUntil(r.Context(), func(ctx context.Context) error {
			return state.Thread(ctx).Set(ctx, "done", true)
		})
	})
	a := s.get("/")
	s.drain()
	if got := s.values(a.id()); got != `{"done":true}` {
		t.Errorf("the state is %s", got)
	}
}
