package stream_test

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/api/a2a"
	"github.com/skein-threads/skein/api/agui"
	"github.com/skein-threads/skein/api/chat"
	"github.com/skein-threads/skein/api/completions"
	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/openresponses"
	"github.com/skein-threads/skein/api/rest"
	"github.com/skein-threads/skein/api/stream"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/skeintest"
)

// protocol is a stream that a request opens, on a thread of its own.
type protocol struct {
	method, path string // {thread} is the thread
	body         string
	socket       string // the first message to a WebSocket; empty: server-sent events
	told         string // with what it says that it is cut off: its clients take a stream that just ends for a success
}

func protocols() map[string]protocol {
	return map[string]protocol{
		"events":           {method: "GET", path: "/api/threads/{thread}/events"},
		"events of tenant": {method: "GET", path: "/api/events"},
		"chunks":           {method: "GET", path: "/api/threads/{thread}/chunks"},
		"react":            {method: "POST", path: "/api/threads/{thread}/react", body: `{"agentId":"talk","item":{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}}`},
		"chat":             {method: "POST", path: "/chat", body: `{"id":"{thread}","agent":"talk","message":{"id":"m-{thread}","role":"user","parts":[{"type":"text","text":"hi"}]}}`},
		"agui":             {method: "POST", path: "/agui/talk", body: `{"threadId":"{thread}","runId":"r-{thread}","messages":[{"id":"m","role":"user","content":"hi"}]}`, told: "RUN_ERROR"},
		"a2a":              {method: "POST", path: "/a2a/talk/message:stream", body: `{"message":{"messageId":"m-{thread}","contextId":"{thread}","role":"ROLE_USER","parts":[{"text":"hi"}]}}`, told: "event: error"},
		"completions":      {method: "POST", path: "/v1/chat/completions", body: `{"model":"talk","stream":true,"messages":[{"role":"user","content":"hi"}]}`, told: `data: {"error"`},
		"responses":        {method: "POST", path: "/v1/responses", body: `{"model":"talk","input":"hi","stream":true}`, told: "event: error"},
		"socket":           {path: "/api/threads/{thread}/socket", socket: `{"type":"watch","what":["events","chunks","thread"]}`},
		"responses socket": {path: "/v1/responses", socket: `{"type":"response.create","model":"talk","input":"hi"}`},
	}
}

// people authenticates everybody with a credential that can be revoked.
type people struct {
	mu     sync.Mutex
	valid  context.Context
	revoke context.CancelFunc
}

func (p *people) Authenticate(*http.Request) (edge.Principal, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.valid == nil || p.valid.Err() != nil {
		p.valid, p.revoke = context.WithCancel(context.Background())
	}
	return edge.Principal{Tenant: "acme", Subject: "key:1", Roles: []string{"publisher", "subscriber"}, Valid: p.valid}, nil
}

// stage is an edge with one place for streams, and an agent that never comes to an end.
type stage struct {
	*testing.T
	server *skeintest.Server
	people *people
	edge   *edge.Edge
	url    string
}

func newStage(t *testing.T) *stage {
	s := &stage{T: t, people: &people{}}
	s.server = skeintest.Start(t, func(o *skein.Options) { o.NATSListen = "127.0.0.1:0" })
	s.server.Must(s.server.Reactor("talk", func(ctx context.Context, _ *skein.StepInput, out skein.Stream) (*skein.Reaction, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}))
	_, err := s.server.Client("acme").Send(t.Context(), "", events.ApplyDefinitions{Definitions: []events.NewDefinition{
		{Kind: events.AgentKind, Definition: []byte(`{"name":"talk","type":"ai_human","reactor":"talk"}`)},
	}})
	s.server.Must(err)
	s.open(natstest.Dial(t, s.server.Addresses().NATS), edge.Options{})
	return s
}

// open starts an edge.
func (s *stage) open(nc *nats.Conn, o edge.Options) {
	s.Helper()
	o.Conn, o.Auth, o.Ping, o.SocketPing = nc, s.people, 10*time.Millisecond, 10*time.Millisecond
	o.Tenant.Streams = 1
	var err error
	s.edge, err = edge.New(o)
	s.server.Must(err)
	rest.Routes(s.edge, rest.Options{})
	chat.Routes(s.edge)
	completions.Routes(s.edge)
	openresponses.Routes(s.edge)
	agui.Routes(s.edge)
	a2a.Routes(s.edge, a2a.Options{})
	server := httptest.NewServer(s.edge)
	s.Cleanup(server.Close)
	s.Cleanup(s.edge.Close)
	s.url = server.URL
}

// opened is a stream that was opened.
type opened struct {
	ping func()        // waits for a ping
	end  func() string // reads to the end, and returns what tells how it ended
	gone func()        // leaves, without a word
}

// dial opens a stream on a new thread, when there is a place for it.
func (s *stage) dial(p protocol) opened {
	s.Helper()
	made, err := s.server.Client("acme").Send(s.Context(), "", events.CreateThread{})
	s.server.Must(err)
	named := strings.NewReplacer("{thread}", made.ThreadID)
	for {
		o, status := s.try(p, s.url+named.Replace(p.path), named.Replace(p.body))
		switch status {
		case http.StatusOK, http.StatusSwitchingProtocols:
			return o
		case http.StatusTooManyRequests: // the one before has not ended yet
			time.Sleep(10 * time.Millisecond)
		default:
			s.Fatalf("status %d", status)
		}
	}
}

func (s *stage) try(p protocol, url, body string) (opened, int) {
	s.Helper()
	if p.socket != "" {
		return s.trySocket(p, url)
	}
	ctx, cancel := context.WithCancel(s.Context())
	s.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, p.method, url, strings.NewReader(body))
	s.server.Must(err)
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	s.server.Must(err)
	s.Cleanup(func() { _ = answer.Body.Close() })
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	return opened{
		ping: func() {
			for lines.Text() != ": ping" {
				if !lines.Scan() {
					s.Fatalf("the stream ends: %v", lines.Err())
				}
			}
			lines.Scan()
		},
		end: func() string {
			last := ""
			for lines.Scan() {
				if text := lines.Text(); strings.HasPrefix(text, "data: [DONE]") || strings.HasPrefix(text, "event: error") {
					last = text
				} else if strings.HasPrefix(text, `data: {"type":"RUN_ERROR"`) {
					last = "RUN_ERROR"
				} else if errored := `data: {"error"`; last == "" && strings.HasPrefix(text, errored) {
					last = errored
				}
			}
			return last
		},
		gone: cancel,
	}, answer.StatusCode
}

func (s *stage) trySocket(p protocol, url string) (opened, int) {
	s.Helper()
	pings := make(chan struct{}, 1)
	conn, answer, err := websocket.Dial(s.Context(), url, &websocket.DialOptions{OnPingReceived: func(context.Context, []byte) bool {
		select {
		case pings <- struct{}{}:
		default:
		}
		return true
	}})
	if err != nil && answer == nil {
		s.Fatal(err)
	}
	if err != nil {
		return opened{}, answer.StatusCode
	}
	s.Cleanup(func() { _ = conn.CloseNow() })
	s.server.Must(conn.Write(s.Context(), websocket.MessageText, []byte(p.socket)))
	ended := make(chan error, 1)
	go func() {
		for {
			if _, _, err := conn.Read(s.Context()); err != nil {
				ended <- err
				return
			}
		}
	}()
	return opened{
		ping: func() { <-pings },
		end:  func() string { return websocket.CloseStatus(<-ended).String() },
		gone: func() { _ = conn.CloseNow() },
	}, answer.StatusCode
}

// Whatever protocol a stream is of, it is pinged though nothing is sent, a client that has gone frees
// its place, and the stream ends with its credential and with the edge, cut off rather than complete.
func TestServe_EveryProtocol(t *testing.T) {
	s := newStage(t)
	nc := natstest.Dial(t, s.server.Addresses().NATS)
	for name, p := range protocols() {
		t.Run(name, func(t *testing.T) {
			inner := *s
			inner.T = t
			revoked, closed := "", ""
			if p.socket != "" {
				revoked, closed = websocket.StatusPolicyViolation.String(), websocket.StatusGoingAway.String()
			}
			if p.told != "" {
				revoked, closed = p.told, p.told
			}
			one := inner.dial(p)
			for range 3 {
				one.ping()
			}
			one.gone()
			two := inner.dial(p)
			two.ping()
			inner.people.revoke()
			if end := two.end(); end != revoked {
				t.Errorf("the credential was revoked: %q, want %q", end, revoked)
			}
			three := inner.dial(p)
			three.ping()
			inner.edge.Close()
			if end := three.end(); end != closed {
				t.Errorf("the edge closes: %q, want %q", end, closed)
			}
			s.open(nc, edge.Options{})
		})
	}
}

// A reader that takes nothing is cut off, and its place is free again: a stream and a socket alike.
func TestServe_StalledReader(t *testing.T) {
	s := newStage(t)
	o := edge.Options{Conn: natstest.Dial(t, s.server.Addresses().NATS), Auth: s.people, Stall: 200 * time.Millisecond, SocketPing: time.Hour}
	e, err := edge.New(o)
	s.server.Must(err)
	much := []byte(strings.Repeat("x", 1<<20))
	ended := make(chan error, 1)
	e.Handle("GET /sse", func(w http.ResponseWriter, r *http.Request, _ *edge.Caller) error {
		err := stream.Serve(w, r, stream.Protocol{}, func(_ context.Context, out *stream.Writer) error {
			for {
				if err := out.Send(stream.Frame{Data: much}); err != nil {
					return err
				}
			}
		})
		ended <- err
		return err
	})
	e.Handle("GET /socket", func(w http.ResponseWriter, r *http.Request, c *edge.Caller) error {
		socket, err := stream.Accept(w, r, c, 1<<10)
		if err != nil {
			return err
		}
		defer socket.Close()
		for err == nil {
			err = socket.Send(much)
		}
		ended <- err
		return nil
	})
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	t.Cleanup(e.Close)
	answer, err := http.Get(server.URL + "/sse")
	s.server.Must(err)
	defer func() { _ = answer.Body.Close() }()
	if <-ended == nil {
		t.Error("the stream ended as if it was whole")
	}
	conn, _, err := websocket.Dial(t.Context(), server.URL+"/socket", nil)
	s.server.Must(err)
	defer func() { _ = conn.CloseNow() }()
	if <-ended == nil {
		t.Error("the socket ended as if it was whole")
	}
}

// What a source returns decides how its stream ends.
func TestServe_Ends(t *testing.T) {
	broken := events.Errorf(events.NotFound, "there is no such thread")
	all := stream.Protocol{Done: &stream.Frame{Data: []byte("done")}, Failed: func(err error) stream.Frame {
		return stream.Frame{Name: "error", Data: []byte(err.Error())}
	}}
	for name, c := range map[string]struct {
		protocol stream.Protocol
		begins   bool
		over     bool // the reader has gone, or the edge closes
		err      error
		want     string
	}{
		"complete":                    {all, true, false, nil, "id: 7\ndata: a\ndata: b\n\ndata: done\n\n"},
		"complete and empty":          {all, false, false, nil, "data: done\n\n"},
		"complete without an end":     {stream.Protocol{}, true, false, nil, "id: 7\ndata: a\ndata: b\n\n"},
		"failed":                      {all, true, false, broken, "id: 7\ndata: a\ndata: b\n\nevent: error\ndata: " + broken.Error() + "\n\n"},
		"failed before it has begun":  {all, false, false, broken, ""},
		"failed, in a resumed stream": {stream.Protocol{}, true, false, broken, "id: 7\ndata: a\ndata: b\n\n"},
		"cut off":                     {all, true, true, nil, "id: 7\ndata: a\ndata: b\n\n"},
		"cut off with an error":       {all, true, true, broken, "id: 7\ndata: a\ndata: b\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			ctx, end := context.WithCancel(t.Context())
			defer end()
			err := stream.Serve(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil), c.protocol, func(_ context.Context, out *stream.Writer) error {
				if c.begins {
					if err := out.Send(stream.Frame{ID: "7", Data: []byte("a\nb")}.Encoded()); err != nil {
						return err
					}
				}
				if c.over {
					end()
				}
				return c.err
			})
			if err != c.err || w.Body.String() != c.want {
				t.Errorf("%v, %q", err, w.Body)
			}
			if kind := w.Header().Get("Content-Type"); (kind == "text/event-stream") != (c.want != "") {
				t.Errorf("the answer has the type %q", kind)
			}
		})
	}
}
