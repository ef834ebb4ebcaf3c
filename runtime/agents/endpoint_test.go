package agents_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/transcript"
	"github.com/skein-threads/skein/server"
)

// shop is a server of endpoints: /double is a tool, and /say a reactor. It records the
// names of the keys with which each request was signed.
type shop struct {
	*httptest.Server
	mu     sync.Mutex
	signed []string
}

func openShop(t *testing.T, secrets map[string]string) *shop {
	t.Helper()
	s := &shop{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		var keys []string
		for _, one := range strings.Split(r.Header.Get("Skein-Signature"), ",") {
			id, sum, _ := strings.Cut(one, "=")
			mac := hmac.New(sha256.New, []byte(secrets[id]))
			mac.Write([]byte(r.Header.Get("Skein-Timestamp") + "." + string(body)))
			if hex.EncodeToString(mac.Sum(nil)) == sum {
				keys = append(keys, id)
			}
		}
		s.mu.Lock()
		s.signed = append(s.signed, r.URL.Path+" "+strings.Join(keys, "+"))
		s.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/double" {
			_, _ = io.WriteString(w, `{"kind":"result","status":"success","result":42}`)
			return
		}
		_, _ = io.WriteString(w, `{"kind":"result","assistantEvent":{"content":[{"type":"output_text","text":"from afar"}]}}`)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *shop) calls() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.signed, ", ")
}

// A tool and a reactor of type http are called at the url of their http, signed with
// each secret of secretEnv, and the run records the reactor's definition.
func TestEndpoint_ToolAndReactorOfDefinitions(t *testing.T) {
	t.Setenv("SHOP_1", "the-old-secret-of-the-shop")
	t.Setenv("SHOP_2", "the-new-secret-of-the-shop")
	s := openShop(t, map[string]string{"SHOP_1": "the-old-secret-of-the-shop", "SHOP_2": "the-new-secret-of-the-shop"})
	h := start(t, func(c *server.Config) {
		c.EgressAllow = []string{"127.0.0.1"}
		c.HTTPSecrets = []string{"acme:SHOP_1=" + s.URL, "acme:SHOP_2=" + s.URL}
	})
	endpoint := func(path, secrets string) string {
		return `{"url":"` + s.URL + path + `","secretEnv":[` + secrets + `]}`
	}
	h.apply("tool", `{"name":"double","description":"D","type":"http","readOnly":true,"http":`+endpoint("/double", `"SHOP_1"`)+`}`,
		"reactor", `{"name":"far","type":"http","description":"Far away.","http":`+endpoint("/say", `"SHOP_2","SHOP_1"`)+`}`,
		"agent", `{"name":"a","type":"ai_human","reactor":"say","tools":["double"]}`, "agent", `{"name":"b","type":"ai_human","reactor":"far"}`,
		"model", `{"name":"m","model":"big","reactor":"far"}`)
	if x, answer := h.ask("a"); x.Status != events.ExecutionCompleted || !strings.Contains(answer, `"output":42`) {
		t.Errorf("%s %s: %s", x.Status, x.ErrorText, answer)
	}
	for _, agent := range []string{"b", "m", "far"} { // a reactor's name alone is an agent, too
		x, answer := h.ask(agent)
		if x.Status != events.ExecutionCompleted || !strings.Contains(answer, "from afar") {
			t.Errorf("%s: %s %s: %s", agent, x.Status, x.ErrorText, answer)
		}
		if !strings.Contains(fmt.Sprint(x.Definitions), "{reactor far 1}") {
			t.Errorf("%s: %v", agent, x.Definitions)
		}
	}
	if got, want := s.calls(), "/double SHOP_1, /say SHOP_2+SHOP_1, /say SHOP_2+SHOP_1, /say SHOP_2+SHOP_1"; got != want {
		t.Errorf("%s", got)
	}
	got, err := client.Read(t.Context(), h.c, events.GetDefinition{Kind: events.ReactorKind, Name: "far"})
	if err != nil || !strings.Contains(string(got.Definition), `"description":"Far away."`) {
		t.Errorf("%v %v", got, err)
	}
}

// A definition's reactor precedes one of the process with that name, for its tenant alone.
func TestEndpoint_ReactorPrecedesThatOfTheProcess(t *testing.T) {
	t.Setenv("SHOP_1", "the-old-secret-of-the-shop")
	s := openShop(t, nil)
	h := start(t, func(c *server.Config) {
		c.EgressAllow, c.HTTPSecrets = []string{"127.0.0.1"}, []string{"*:SHOP_1=" + s.URL}
	})
	h.apply("reactor", `{"name":"say","type":"http","http":{"url":"`+s.URL+`/say","secretEnv":["SHOP_1"]}}`, "agent", `{"name":"a","type":"ai_human","reactor":"say"}`)
	if _, answer := h.ask("a"); !strings.Contains(answer, "from afar") {
		t.Errorf("%s", answer)
	}
	other, err := client.Connect(h.url, client.Options{Tenant: "globex", Timeout: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	h.c = other
	if _, answer := h.ask("say"); !strings.Contains(answer, "say///") {
		t.Errorf("%s", answer)
	}
}

func TestEndpoint_OperatorDecides(t *testing.T) {
	const secret = "the-old-secret-of-the-shop"
	t.Setenv("SHOP_1", secret)
	t.Setenv("SHORT", "short")
	s := openShop(t, nil)
	define := func(h *house, url, variable string) *events.Execution {
		h.apply("reactor", `{"name":"far","type":"http","http":{"url":"`+url+`","secretEnv":["`+variable+`"]}}`, "agent", `{"name":"a","type":"ai_human","reactor":"far"}`)
		x, _ := h.ask("a")
		return x
	}
	h := start(t, func(c *server.Config) {
		c.HTTPSecrets = []string{"acme:SHOP_1=" + s.URL + "/say", "acme:SHORT=" + s.URL, "acme:NONE=" + s.URL, "globex:OTHER=" + s.URL, "acme:SHOP_1=http://169.254.169.254", "acme:SHOP_1=http://localhost"}
		c.EgressAllow = []string{strings.TrimPrefix(s.URL, "http://")}
	})
	for _, c := range []struct{ url, variable, want string }{
		{s.URL + "/other", "SHOP_1", "--http-secret"}, {s.URL + "/say/../other", "SHOP_1", "--http-secret"}, {s.URL + "/say", "OTHER", "--http-secret"},
		{"http://169.254.169.254/latest", "SHOP_1", "--egress-allow"}, {"http://localhost/", "SHOP_1", "--egress-allow"},
		{s.URL + "/say", "SHORT", "is shorter than 16 bytes"}, {s.URL + "/say", "NONE", "is not set"},
	} {
		if x := define(h, c.url, c.variable); x.Status != events.ExecutionFailed || !strings.Contains(x.ErrorText, c.want) || strings.Contains(x.ErrorText, secret) {
			t.Errorf("%s %s: %s %s", c.url, c.variable, x.Status, x.ErrorText)
		}
	}
	if s.calls() != "" {
		t.Errorf("%s", s.calls())
	}
	if x := define(h, s.URL+"/say", "SHOP_1"); x.Status != events.ExecutionCompleted {
		t.Errorf("%s %s", x.Status, x.ErrorText)
	}
}

// A tool that is not idempotent is called once where it may have done its work, and again
// where it surely did not; an idempotent one is called again, with the same key.
func TestEndpoint_CallsAreRepeatedAsTheToolAllows(t *testing.T) {
	t.Setenv("SHOP_1", "the-old-secret-of-the-shop")
	for _, c := range []struct {
		name, more string
		status     int
		calls      int
		want       string
	}{
		{"lost", ``, 503, 1, "may have been made"}, {"refused", ``, 429, 2, `"output":42`}, {"idempotent", `,"idempotent":true`, 503, 2, `"output":42`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var mu sync.Mutex
			var keys []string
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body) //nolint:errcheck // what is missing is noticed below
				_, key, _ := strings.Cut(string(body), `"key":"`)
				key, _, _ = strings.Cut(key, `"`)
				mu.Lock()
				keys = append(keys, key)
				first := len(keys) == 1
				mu.Unlock()
				if first {
					w.WriteHeader(c.status)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{"kind":"result","status":"success","result":42}`)
			}))
			defer s.Close()
			h := start(t, func(cfg *server.Config) {
				cfg.EgressAllow, cfg.HTTPSecrets = []string{"127.0.0.1"}, []string{"acme:SHOP_1=" + s.URL}
				cfg.Register = func(r *runtime.Registry) error { return errors.Join(r.AddReactor("say", transcript.Chosen(say))) }
			})
			h.apply("tool", `{"name":"double","description":"D","type":"http","retries":{"attempts":3,"backoffMs":1},"http":{"url":"`+s.URL+`","secretEnv":["SHOP_1"]}`+c.more+`}`,
				"agent", `{"name":"a","type":"ai_human","reactor":"say","tools":["double"]}`)
			_, answer := h.ask("a")
			mu.Lock()
			defer mu.Unlock()
			if len(keys) != c.calls || !strings.Contains(answer, c.want) || keys[0] == "" || keys[0] != keys[len(keys)-1] {
				t.Errorf("%d calls with keys %v: %s", len(keys), keys, answer)
			}
		})
	}
}

// An agent elsewhere is reached only where the operator permits it, and its token goes nowhere else,
// whatever the agent's card says.
func TestDefinitions_AgentElsewhereIsRestricted(t *testing.T) {
	t.Setenv("TRIPS_TOKEN", "topsecret")
	asked := make(chan string, 10)
	var address string
	trips := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Method + " " + r.URL.Path + " " + r.Header.Get("Authorization")
		at := strings.TrimSuffix(r.URL.Path, "/.well-known/agent-card.json")
		if at == "/wide" {
			at = "/elsewhere"
		}
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, `{"supportedInterfaces":[{"url":"`+address+at+`","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`)
			return
		}
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"message":{"parts":[{"text":"a trip"}]}}}`)
	}))
	defer trips.Close()
	address = trips.URL
	begin := func(allow ...string) *house {
		return start(t, func(c *server.Config) {
			register := c.Register
			c.EgressAllow, c.MCPVariables = allow, []string{"acme:TRIPS_TOKEN=" + address + "/trips", "acme:TRIPS_TOKEN=" + address + "/wide"}
			c.Register = func(r *runtime.Registry) error {
				err := r.AddReactor("relay", runtime.ReactorFunc(func(_ context.Context, in *runtime.StepInput, _ runtime.Stream) (*runtime.Reaction, error) {
					if in.Iteration > 0 {
						raw, err := json.Marshal(in.Items)
						return runtime.Answer(string(raw)), err
					}
					out := runtime.Answer("")
					out.ToolCalls = []runtime.ToolCall{{CallID: "c1", Name: "trips", Arguments: events.JSON(`{"message":"to Rome"}`)}}
					return out, nil
				}))
				return errors.Join(err, register(r))
			}
		})
	}
	define := func(h *house, url string) {
		h.apply("tool", `{"name":"trips","description":"Trips.","type":"a2a","server":{"url":"`+url+`","tokenEnv":"TRIPS_TOKEN"}}`,
			"agent", `{"name":"a","type":"ai_human","reactor":"relay","tools":["trips"]}`)
	}
	h := begin()
	define(h, address+"/trips")
	if x, _ := h.ask("a"); x.Status != events.ExecutionFailed || !strings.Contains(x.ErrorText, "--egress-allow") {
		t.Errorf("an address that is not allowed: %s: %s", x.Status, x.ErrorText)
	}
	h = begin(strings.TrimPrefix(address, "http://"))
	define(h, address+"/other")
	if x, _ := h.ask("a"); x.Status != events.ExecutionFailed || !strings.Contains(x.ErrorText, "--mcp-variable") {
		t.Errorf("an address for which the variable is not allowed: %s: %s", x.Status, x.ErrorText)
	}
	if len(asked) > 0 {
		t.Errorf("the agent was asked: %s", <-asked)
	}
	define(h, address+"/wide")
	if x, answer := h.ask("a"); x.Status != events.ExecutionCompleted || !strings.Contains(answer, "--mcp-variable") || strings.Contains(answer, "topsecret") {
		t.Errorf("a card with another address: %s: %s", x.Status, answer)
	}
	if one := <-asked; one != "GET /wide/.well-known/agent-card.json Bearer topsecret" || len(asked) > 0 {
		t.Errorf("the agent was asked: %s, and %d times more", one, len(asked))
	}
	define(h, address+"/trips")
	if x, answer := h.ask("a"); x.Status != events.ExecutionCompleted || !strings.Contains(answer, "a trip") {
		t.Errorf("%s %s: %s", x.Status, x.ErrorText, answer)
	}
}
