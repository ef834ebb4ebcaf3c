package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/runtime"
)

// site is an MCP server on HTTP that can be made to misbehave.
type site struct {
	*httptest.Server
	over    chan struct{} // ends requests that hang
	mu      sync.Mutex
	mcp     http.Handler
	before  http.HandlerFunc // if set, it answers instead of the server
	wanted  string           // the Authorization header
	refused atomic.Int32     // requests without it
}

// serve starts a site, whose server has sessions.
func serve(t *testing.T, o *mcp.StreamableHTTPOptions) *site {
	t.Helper()
	s := &site{wanted: "Bearer topsecret123", over: make(chan struct{})}
	dir := t.TempDir()
	fresh := func() http.Handler {
		server := newServer(dir, s.over)
		return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, o)
	}
	s.mcp = fresh()
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		handler, before := s.mcp, s.before
		s.mu.Unlock()
		switch {
		case r.Header.Get("Authorization") != s.wanted:
			s.refused.Add(1)
			http.Error(w, "who are you, "+r.Header.Get("Authorization"), http.StatusUnauthorized)
		case before != nil:
			before(w, r)
		default:
			handler.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() {
		close(s.over)
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *site) instead(h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = h
}

// reach returns a manager for a site.
func reach(t *testing.T, s *site, o Options) *Manager {
	t.Helper()
	if o.Variable == nil {
		o.Variable = variables("FILES_TOKEN=" + s.wanted)
	}
	o.Backoff = time.Millisecond
	return manage(t, o, Server{Name: "files", URL: s.URL, Headers: map[string]string{"Authorization": "FILES_TOKEN"}, TimeoutMs: 60_000})
}

// shapes are the variants of a server on HTTP.
func shapes() map[string]*mcp.StreamableHTTPOptions {
	return map[string]*mcp.StreamableHTTPOptions{"streams": nil, "JSON": {JSONResponse: true}, "stateless": {Stateless: true}}
}

func TestToolsOverHTTP(t *testing.T) {
	for name, o := range shapes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := reach(t, serve(t, o), Options{MaxAnswer: 1 << 20})
			for tool, want := range map[string]string{"echo": `"{\"a\":1}"`, "key": `"exe_1/call_1"`, "structured": `{"n":9007199254740993}`} {
				if result, err := call(t, offered(t, m, "files", tool), `{"a":1}`); err != nil || string(result.Result) != want {
					t.Errorf("%s: %+v %v", tool, result, err)
				}
			}
			if result, err := call(t, offered(t, m, "files", "refuse"), `{}`); err != nil || !strings.Contains(result.Error, "not allowed with") {
				t.Errorf("%+v %v", result, err)
			}
			reading := offered(t, m, "files", "hang_reading")
			reading.(*tool).spec.Timeout = 500 * time.Millisecond
			if !fails(t, reading, "no answer within 500ms") {
				t.Error("an idempotent call is not made again")
			}
			if result, err := call(t, offered(t, m, "files", "echo"), `{}`); err != nil || result.Status != runtime.Success {
				t.Errorf("afterwards: %+v %v", result, err)
			}
		})
	}
}

// A restarted server has forgotten the session: the call is made on another one, and
// only there.
func TestWeb_ServerForgetsSession(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	m := reach(t, s, Options{})
	echo := offered(t, m, "files", "echo")
	for range 3 {
		server := newServer(t.TempDir(), s.over)
		s.mu.Lock()
		s.mcp = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
		s.mu.Unlock()
		if result, err := call(t, echo, `{"a":1}`); err != nil || string(result.Result) != `"{\"a\":1}"` {
			t.Errorf("%+v %v", result, err)
		}
	}
}

// logged is an operator's log.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logged) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.text.Reset()
	return l.text.String()
}

// SA-66: details of HTTP are for the operator only; and whether a call may be repeated.
func TestFailuresOverHTTP(t *testing.T) {
	cut := func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			conn.Close()
		}
	}
	answer := func(kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = io.WriteString(w, body)
		}
	}
	status := func(code int, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			http.Error(w, "Bearer topsecret123 is wrong", code)
		}
	}
	huge := func(kind, start string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = io.WriteString(w, start)
			for range 50 {
				if _, err := io.WriteString(w, strings.Repeat("x", 1<<20)); err != nil {
					return
				}
			}
		}
	}
	const may, not = "; the call may have been made", "; the call was not made"
	for name, c := range map[string]struct {
		instead    http.HandlerFunc
		want       string
		made       bool
		again      bool // of a tool that is not idempotent
		idempotent bool // of one that is
	}{
		"429":             {status(429, "Retry-After", "7"), "it answered HTTP 429 Too Many Requests", false, true, true},
		"503":             {status(503), "it answered HTTP 503 Service Unavailable", false, true, true},
		"500":             {status(500), "it answered HTTP 500 Internal Server Error", true, false, true},
		"502":             {status(502), "it answered HTTP 502 Bad Gateway", true, false, true},
		"403":             {status(403), "it answered HTTP 403 Forbidden; look at the variables that its headers name", false, false, false},
		"400":             {status(400), "it answered HTTP 400 Bad Request", false, false, false},
		"redirect":        {status(307, "Location", "http://localhost:1/elsewhere"), "it answered HTTP 307 Temporary Redirect; redirects are not followed", false, false, false},
		"cut":             {cut, "the connection broke: ", true, false, true},
		"no JSON":         {answer("application/json", "<html>"), "its answer was incomplete, or is not MCP", true, false, true},
		"no event":        {answer("text/event-stream", "data: {\n\n"), "its answer was incomplete, or is not MCP", true, false, true},
		"empty stream":    {answer("text/event-stream", ""), "its answer was incomplete, or is not MCP", true, false, true},
		"50 MB of JSON":   {huge("application/json", `{"jsonrpc":"2.0","result":"`), "it answered with more than 1048576 bytes", true, false, false},
		"50 MB of events": {huge("text/event-stream", "id: 1\ndata: "), "it answered with more than 1048576 bytes", true, false, false},
		"a page":          {answer("text/html", "<html>"), "its answer was incomplete, or is not MCP", true, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, nil)
			var told logged
			m := reach(t, s, Options{MaxAnswer: 1 << 20, Logger: zerolog.New(&told)})
			plain, idempotent := offered(t, m, "files", "key"), offered(t, m, "files", "echo")
			for _, one := range []struct {
				tool  runtime.Tool
				again bool
				end   string
			}{{plain, c.again, may}, {idempotent, c.idempotent, ""}} {
				s.instead(nil)
				if result, err := call(t, one.tool, `{}`); err != nil || result.Status != runtime.Success {
					t.Fatalf("before: %+v %v", result, err)
				}
				s.instead(func(w http.ResponseWriter, r *http.Request) { // but let sessions begin and end
					body, _ := io.ReadAll(r.Body)
					r.Body = io.NopCloser(strings.NewReader(string(body)))
					if r.Method == http.MethodPost && strings.Contains(string(body), "tools/call") {
						c.instead(w, r)
						return
					}
					s.mcp.ServeHTTP(w, r)
				})
				if !c.made {
					one.end = not
				}
				_, err := call(t, one.tool, `{}`)
				if err == nil || err.Error() != "the MCP server files: "+noAnswer+one.end {
					t.Fatalf("%v", err)
				}
				if text := told.take(); !strings.Contains(text, c.want) || strings.Contains(text, "topsecret") {
					t.Errorf("the operator is told %q, not %q", text, c.want)
				}
				var retry *runtime.RetryError
				if errors.As(err, &retry) != one.again {
					t.Errorf("%s: made again: %v", one.tool.Spec().Name, !one.again)
				}
				if name == "429" && retry != nil && retry.After != 7*time.Second {
					t.Errorf("it is made again after %v", retry.After)
				}
			}
		})
	}
}

// The end of a call is reported to the server by a request that carries the call's
// values: its answer says nothing about the call, nor about its session.
func TestWeb_CancelMessagesAreSeparate(t *testing.T) {
	t.Parallel()
	const endless = "/endless"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == endless {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, strings.Repeat("x", 100))
			return
		}
		w.WriteHeader(http.StatusAccepted)
	}))
	defer s.Close()
	way := &web{base: http.DefaultTransport, most: 10}
	ctx, e := withExchange(t.Context())
	post := func(ctx context.Context, path string) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := way.client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		_, err = io.ReadAll(answer.Body)
		return err
	}
	var long tooLong
	if err := post(ctx, endless); !errors.As(err, &long) || !errors.As(context.Cause(ctx), &long) || !e.doomed() {
		t.Fatalf("the call ended with %v, %v, doomed: %v", err, context.Cause(ctx), e.doomed())
	}
	if err := post(context.WithoutCancel(ctx), "/"); err != nil {
		t.Fatal(err)
	}
	if _, status, _, _ := e.seen(); status != http.StatusOK || !e.doomed() {
		t.Errorf("afterwards the call has the status %d, and its session is doomed: %v", status, e.doomed())
	}
}

// An answer whose header arrives after the end of its call is not read: if it were
// incomplete, it would end the session after the call reported that it is healthy.
func TestWeb_LateAnswerIsNotRead(t *testing.T) {
	t.Parallel()
	body := &closing{Reader: strings.NewReader("{}")}
	ctx, e := withExchange(t.Context())
	way := &web{base: trip(func(*http.Request) (*http.Response, error) {
		e.cancel(nil)
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: body}, nil
	}), most: 10}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := way.RoundTrip(r); !errors.Is(err, context.Canceled) || answer != nil {
		t.Errorf("got %v: %v", answer, err)
	}
	if !body.closed || e.doomed() {
		t.Errorf("its body is closed: %v, the session is doomed: %v", body.closed, e.doomed())
	}
}

type trip func(*http.Request) (*http.Response, error)

func (t trip) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Close() error {
	c.closed = true
	return nil
}

func TestWeb_UnreachableServers(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	var told logged
	m := reach(t, s, Options{Variable: variables("FILES_TOKEN=Bearer wrongsecret456"), Logger: zerolog.New(&told)})
	_, err := m.Tools(t.Context(), "files")
	if err == nil || !strings.HasSuffix(err.Error(), noAnswer) {
		t.Error(err)
	}
	if text := told.take(); !strings.Contains(text, "it answered HTTP 401 Unauthorized; look at the variables that its headers name") || strings.Contains(text, "secret") {
		t.Error(text)
	}
	m = manage(t, Options{Logger: zerolog.New(&told)}, Server{Name: "files", URL: "http://127.0.0.1:1/?key=topsecret123", TimeoutMs: 5000})
	one := &tool{m, m.links["files"], "echo", runtime.ToolSpec{Timeout: time.Minute}}
	if !fails(t, one, noAnswer) {
		t.Error("a call that was not made is not made again")
	}
	if text := told.take(); !strings.Contains(text, "it cannot be reached: dial tcp") || strings.Contains(text, "topsecret") {
		t.Error(text)
	}

	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	defer hanging.Close()
	m = manage(t, Options{Start: 500 * time.Millisecond}, Server{Name: "files", URL: hanging.URL})
	if _, err := m.Tools(t.Context(), "files"); err == nil || !strings.Contains(err.Error(), "it did not complete the handshake within 500ms") {
		t.Error(err)
	}
}

// A server at an address that is not permitted is not connected to, and its author does
// not learn what is there.
func TestWeb_EgressIsRestricted(t *testing.T) {
	t.Parallel()
	reached := false
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reached = true
		http.Error(w, "SSH-2.0-OpenSSH_9.6", http.StatusTeapot)
	}))
	defer s.Close()
	var told logged
	m, err := New(Options{Logger: zerolog.New(&told)}, Server{Name: "files", URL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if _, err := m.Tools(t.Context(), "files"); err == nil || !strings.HasSuffix(err.Error(), noAnswer) || reached {
		t.Errorf("reached: %v, %v", reached, err)
	}
	if text := told.take(); !strings.Contains(text, "--egress-allow") {
		t.Error(text)
	}
	m = manage(t, Options{Logger: zerolog.New(&told)}, Server{Name: "files", URL: s.URL})
	if _, err := m.Tools(t.Context(), "files"); err == nil || !strings.HasSuffix(err.Error(), noAnswer) || !reached {
		t.Errorf("reached: %v, %v", reached, err)
	}
}

func TestWeb_ConcurrentCalls(t *testing.T) {
	t.Parallel()
	m := reach(t, serve(t, nil), Options{})
	echo := &tool{m, m.links["files"], "echo", runtime.ToolSpec{Timeout: time.Minute}}
	var all sync.WaitGroup
	for i := range 32 {
		all.Go(func() {
			want := fmt.Sprintf(`{"i":%d}`, i)
			if result, err := call(t, echo, want); err != nil || string(result.Result) != strconv.Quote(want) {
				t.Errorf("%s: %+v %v", want, result, err)
			}
		})
	}
	all.Wait()
}
