package api_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/api"
	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/rest"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/skeintest"
)

// stage is a handler for principals that a test makes up, by the value of Authorization.
type stage struct {
	t       *testing.T
	skein   *skeintest.Server
	conn    *nats.Conn
	handler *api.Handler
	url     string
	people  map[string]edge.Principal
}

// Authenticate returns the principal of a request.
func (s *stage) Authenticate(r *http.Request) (edge.Principal, error) {
	p, ok := s.people[r.Header.Get("Authorization")]
	if !ok {
		return p, events.Errorf(events.Unauthorized, "this credential is unknown")
	}
	if p.Roles == nil {
		p.Roles = []string{"publisher", "subscriber"}
	}
	return p, nil
}

func newStage(t *testing.T, people map[string]edge.Principal, options ...func(*api.Options)) *stage {
	t.Helper()
	s := &stage{t: t, people: people, skein: skeintest.Start(t, func(o *skein.Options) { o.NATSListen, o.AgentsProtocol = "127.0.0.1:0", true })}
	s.conn = natstest.Dial(t, s.skein.Addresses().NATS)
	s.handler, s.url = s.serve(t, s.conn, options...)
	return s
}

// serve starts an HTTP server on a connection, as a gateway does.
func (s *stage) serve(t *testing.T, conn *nats.Conn, options ...func(*api.Options)) (*api.Handler, string) {
	t.Helper()
	o := api.Options{Conn: conn, Auth: s, Ops: http.NotFoundHandler()}
	for _, set := range options {
		set(&o)
	}
	handler, err := api.New(o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return handler, server.URL
}

// ask returns the status and the body of an answer.
func (s *stage) ask(who, method, path, body string, headers ...string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", who)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer.StatusCode, string(raw)
}

// ids are the ids of a thread and of what belongs to it, in every form that a route takes.
type ids struct{ thread, key, item, execution string }

// forms lists the values for the first part of a path and for those that follow.
func (i ids) forms() [][2]string {
	bare := func(id string) string { return id[strings.IndexAny(id, "-_")+1:] }
	return [][2]string{
		{i.thread, i.item}, {i.thread, i.execution}, {"key:" + i.key, i.item}, {i.key, i.item}, {"key:" + i.key, "a.txt"},
		{"conv_" + strings.ReplaceAll(bare(i.thread), "-", ""), i.item}, {"resp_" + bare(i.execution), i.item}, {i.execution, i.execution},
	}
}

// made makes a thread of a tenant, with an item, a run and a file.
func (s *stage) made(tenant, user, key string) ids {
	s.t.Helper()
	c := s.skein.Client(tenant)
	thread, err := c.Send(s.t.Context(), "", events.CreateThread{Key: key, UserID: user})
	s.skein.Must(err)
	item, err := c.Send(s.t.Context(), thread.ThreadID, events.CreateItem{Item: events.UserText("secret")})
	s.skein.Must(err)
	_, err = c.Files(thread.ThreadID).WriteFile(s.t.Context(), "a.txt", []byte("secret"), "", client.WriteFileOptions{})
	s.skein.Must(err)
	run, err := c.Send(s.t.Context(), thread.ThreadID, events.ReactThread{AgentID: "teller", Text: new("go")})
	s.skein.Must(err)
	s.skein.WaitIdle()
	return ids{thread.ThreadID, key, item.Result.ItemID, run.Result.ExecutionID}
}

// unknown returns ids of the same form that nothing has.
func (i ids) unknown() ids {
	other := func(id string) string {
		last := "0"
		if strings.HasSuffix(id, last) {
			last = "1"
		}
		return id[:len(id)-1] + last
	}
	return ids{other(i.thread), other(i.key), other(i.item), other(i.execution)}
}

var (
	variable = regexp.MustCompile(`\{[^}]*\}`)
	stamp    = regexp.MustCompile(`"(id|eventId|createdAt|time|request_id)":"[^"]*"`)
)

// wantAlike asks every route that has a place for an id for what exists and for what does not,
// as somebody for whom it does not exist either: the answers differ in nothing but the ids.
func (s *stage) wantAlike(who string, real ids) {
	s.t.Helper()
	tried := 0
	for _, pattern := range s.handler.Routes() {
		method, path, _ := strings.Cut(pattern, " ")
		if strings.HasPrefix(path, "/threads/") && !strings.Contains(path, "{") { // a tree
			method, path = "GET", "/threads/{id}/summary"
		}
		n := len(variable.FindAllString(path, -1))
		if n == 0 || strings.Contains(path, "{noun}") || strings.HasPrefix(path, "/console") {
			continue
		}
		unknown := real.unknown().forms()
		for f, form := range real.forms() {
			tried++
			var got [2]string
			var status [2]int
			for i, values := range [][2]string{form, unknown[f]} {
				filled := 0
				target := variable.ReplaceAllStringFunc(path, func(string) string {
					filled++
					return values[min(filled, 2)-1]
				})
				var body string
				status[i], body = s.ask(who, method, target, "{}")
				for _, id := range slices.Concat(values[:], []string{real.thread, real.unknown().thread}) {
					body = strings.ReplaceAll(body, id, "ID")
				}
				got[i] = stamp.ReplaceAllString(body, `"$1":"X"`)
			}
			if got[0] != got[1] || status[0] != status[1] || strings.Contains(got[0], "secret") {
				s.t.Errorf("%s %v: %d %.200s; of what does not exist: %d %.200s", pattern, form, status[0], got[0], status[1], got[1])
			}
			if status[0] == http.StatusOK && method == "GET" && !strings.Contains(path, "{kind}") {
				s.t.Errorf("%s %v: %d %.300s", pattern, form, status[0], got[0])
			}
		}
	}
	if tried < 200 {
		s.t.Errorf("only %d requests were tried", tried)
	}
}

// What belongs to another tenant does not exist, in every position of every route.
func TestHandler_OtherTenantsDoNotExist(t *testing.T) {
	t.Parallel()
	s := newStage(t, map[string]edge.Principal{"globex": {Tenant: "globex", Subject: "key:g"}})
	s.teller()
	s.wantAlike("globex", s.made("acme", "ann", "order42"))
}

// Nor does what a limited key may not use, also under /v1, /chat and /threads; what it may use
// is there.
func TestHandler_LimitedKeysOnEveryRoute(t *testing.T) {
	t.Parallel()
	s := newStage(t, map[string]edge.Principal{})
	s.teller()
	mine, other := s.made("acme", "bob", "mine7"), s.made("acme", "ann", "order42")
	s.people["user"] = edge.Principal{Tenant: "acme", Subject: "key:u", User: "bob"}
	s.people["thread"] = edge.Principal{Tenant: "acme", Subject: "key:t", Threads: []string{mine.thread}}
	s.people["read"] = edge.Principal{Tenant: "acme", Subject: "key:r", Can: []edge.Capability{edge.Read}}
	for _, who := range []string{"user", "thread"} {
		for _, path := range []string{
			"/api/threads/" + mine.thread, "/chat/" + mine.key, "/v1/conversations/key:" + mine.key, "/threads/" + mine.thread + "/summary",
			"/v1/responses/resp_" + strings.TrimPrefix(mine.execution, "exe_"),
		} {
			if status, body := s.ask(who, "GET", path, ""); status != http.StatusOK {
				t.Errorf("%s, GET %s: %d %.300s", who, path, status, body)
			}
		}
	}
	s.wantAlike("thread", other)
	s.wantAlike("user", other)
	for _, c := range []struct{ path, body string }{
		{"/v1/conversations", `{}`}, {"/api/threads", `{}`},
		{"/chat", `{"id":"` + mine.key + `","agent":"teller","messages":[{"id":"m","role":"user","parts":[{"type":"text","text":"x"}]}]}`},
	} {
		if status, body := s.ask("read", "POST", c.path, c.body); status != http.StatusForbidden {
			t.Errorf("read, POST %s: %d %.300s", c.path, status, body)
		}
	}
}

func (s *stage) teller() {
	s.t.Helper()
	s.skein.Must(s.skein.Reactor("teller", teller))
}

func teller(context.Context, *skein.StepInput, skein.Stream) (*skein.Reaction, error) {
	return skein.Answer("secret"), nil
}

// The API document describes each route of the other protocols, but those that only name another.
func TestRoutes_ProtocolsAreDescribed(t *testing.T) {
	raw, err := rest.OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]any
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	var described, served []string
	for path, methods := range doc.Paths {
		for method := range methods {
			if !strings.HasPrefix(path, "/api/") {
				described = append(described, strings.ToUpper(method)+" "+path)
			}
		}
	}
	s := newStage(t, nil)
	for _, pattern := range s.handler.Routes() {
		_, path, _ := strings.Cut(pattern, " ")
		if strings.HasPrefix(path, "/chat") || strings.HasPrefix(path, "/agui/") || strings.HasPrefix(path, "/a2a/") || strings.HasSuffix(path, "/agent-card.json") || pattern == "POST /mcp" || strings.HasPrefix(path, "/v1/") && path != "/v1/messages" {
			served = append(served, strings.ReplaceAll(pattern, "...}", "}"))
		}
	}
	slices.Sort(described)
	slices.Sort(served)
	if !slices.Equal(described, served) {
		t.Errorf("described: %v\nserved: %v", described, served)
	}
}
