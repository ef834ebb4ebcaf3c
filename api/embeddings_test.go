package api_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/api"
	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/internal/natstest"
	"github.com/skein-threads/skein/skeintest"
)

// embedder is an endpoint that embeds each text as its length and a number, until it is told to refuse.
type embedder struct {
	mu      sync.Mutex
	asked   []map[string]any
	auth    []string
	refuses func(n int, w http.ResponseWriter) bool // of the nth request, from 1
}

func (e *embedder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q map[string]any
	_ = json.NewDecoder(r.Body).Decode(&q) // it is looked at below
	e.mu.Lock()
	defer e.mu.Unlock()
	q["path"] = r.URL.Path
	e.asked, e.auth = append(e.asked, q), append(e.auth, r.Header.Get("Authorization"))
	if e.refuses != nil && e.refuses(len(e.asked), w) {
		return
	}
	inputs, many := q["input"].([]any)
	if !many {
		inputs = []any{q["input"]}
	}
	if _, tokens := inputs[0].(float64); tokens {
		inputs = []any{"tokens"}
	}
	list := []string{}
	for i := range inputs { // in another order than asked
		n := len(inputs) - 1 - i
		vector := fmt.Sprintf("[0.123456789012345,%d]", len(fmt.Sprint(inputs[n])))
		if q["encoding_format"] == "base64" {
			vector = `"AACAPw=="`
		}
		list = append(list, fmt.Sprintf(`{"object":"embedding","index":%d,"embedding":%s}`, n, vector))
	}
	fmt.Fprintf(w, `{"object":"list","data":[%s],"model":"text-small","usage":{"prompt_tokens":%d,"total_tokens":%d}}`, strings.Join(list, ","), len(inputs), len(inputs))
}

// embeds returns a stage whose tenant acme has the model small at an endpoint, and others that make no
// embeddings.
func embeds(t *testing.T, e *embedder, more ...func(*skein.Options)) *stage {
	t.Helper()
	t.Setenv("SKEIN_TEST_EMBEDDER_KEY", "sk-embedder-secret")
	endpoint := httptest.NewServer(e)
	t.Cleanup(endpoint.Close)
	s := &stage{t: t, people: map[string]edge.Principal{
		"acme": {Tenant: "acme", Subject: "key:a"}, "globex": {Tenant: "globex", Subject: "key:g"}, "ann": {Tenant: "acme", Subject: "key:ann", User: "ann"},
		"reader": {Tenant: "acme", Subject: "key:r", Can: []edge.Capability{edge.Read}}, "follower": {Tenant: "acme", Subject: "key:f", Roles: []string{"subscriber"}},
	}}
	s.skein = skeintest.Start(t, append([]func(*skein.Options){func(o *skein.Options) {
		o.NATSListen = "127.0.0.1:0"
		o.ModelEndpoints = []string{"local=chat," + endpoint.URL + "/v1,SKEIN_TEST_EMBEDDER_KEY", "claude=messages," + endpoint.URL}
		o.ModelEndpointOptions = []string{"local.tenants=acme"}
	}}, more...)...)
	s.conn = natstest.Dial(t, s.skein.Addresses().NATS)
	var err error
	if s.handler, err = api.New(api.Options{Conn: s.conn, Auth: s, Ops: http.NotFoundHandler()}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.handler)
	t.Cleanup(server.Close)
	s.url = server.URL
	s.teller()
	for _, d := range []string{"model/small {\"name\":\"small\",\"model\":\"text-small\",\"endpoint\":\"local\"}", "model/talks {\"name\":\"talks\",\"model\":\"claude\",\"endpoint\":\"claude\"}", "model/own {\"name\":\"own\",\"model\":\"x\",\"reactor\":\"teller\"}"} {
		path, body, _ := strings.Cut(d, " ")
		if status, text := s.ask("acme", "PUT", "/api/definitions/"+path, body); status >= 300 {
			t.Fatalf("%s: %d %s", path, status, text)
		}
	}
	return s
}

// Texts and tokens are passed to the endpoint of a model, with its own name of the model and its key,
// and the vectors come back as the endpoint wrote them, each at its place.
func TestEmbeddings_PassToTheEndpoint(t *testing.T) {
	e := &embedder{}
	s := embeds(t, e)
	for _, c := range []struct{ body, want, input string }{
		{`{"model":"small","input":"hello","user":"u","unknown":1}`, `[{"object":"embedding","index":0,"embedding":[0.123456789012345,5]}]`, `"hello"`},
		{`{"model":"small","input":["a","bcd"],"dimensions":2,"encoding_format":"float"}`, `[{"object":"embedding","index":0,"embedding":[0.123456789012345,1]},{"object":"embedding","index":1,"embedding":[0.123456789012345,3]}]`, `["a","bcd"]`},
		{`{"model":"small","input":[1,2,3],"encoding_format":"base64"}`, `[{"object":"embedding","index":0,"embedding":"AACAPw=="}]`, `[1,2,3]`},
	} {
		status, text := s.ask("ann", "POST", "/v1/embeddings", c.body)
		if n := strings.Count(c.want, "index"); status != http.StatusOK || text != fmt.Sprintf(`{"object":"list","data":%s,"model":"small","usage":{"prompt_tokens":%d,"total_tokens":%d}}`, c.want, n, n) {
			t.Errorf("%s: %d %s", c.body, status, text)
		}
		last := e.asked[len(e.asked)-1]
		if input, _ := json.Marshal(last["input"]); string(input) != c.input || last["model"] != "text-small" || last["path"] != "/v1/embeddings" || last["unknown"] != nil {
			t.Errorf("%s: the endpoint was sent %v", c.body, last)
		}
	}
	if e.asked[0]["user"] != "u" || e.asked[1]["dimensions"] != 2.0 || e.asked[2]["encoding_format"] != "base64" || e.auth[0] != "Bearer sk-embedder-secret" {
		t.Errorf("%v, %v", e.asked, e.auth)
	}
	many := `["` + strings.Repeat(`x","`, 2046) + strings.Repeat("y", 30) + `"]`
	status, text := s.ask("acme", "POST", "/v1/embeddings", `{"model":"small","input":`+many+`}`)
	if status != http.StatusOK || strings.Count(text, `"embedding":[`) != 2047 || !strings.Contains(text, `"index":2046,"embedding":[0.123456789012345,30]}]`) || !strings.Contains(text, `"prompt_tokens":2047`) {
		t.Errorf("%d %.100s ... %s", status, text, text[max(0, len(text)-200):])
	}
}

// What cannot be embedded is refused before the endpoint is asked, in OpenAI's form.
func TestEmbeddings_Refusals(t *testing.T) {
	e := &embedder{}
	s := embeds(t, e)
	for _, c := range []struct {
		name, who, body string
		status          int
		code, says      string
	}{
		{"no model", "acme", `{"input":"x"}`, 400, "invalid_request", `"param":"model"`},
		{"no input", "acme", `{"model":"small"}`, 400, "invalid_request", `"param":"input"`},
		{"an empty text", "acme", `{"model":"small","input":["a",""]}`, 400, "invalid_request", `"param":"input/1"`},
		{"a number", "acme", `{"model":"small","input":[1.5]}`, 400, "invalid_request", `"param":"input"`},
		{"an encoding", "acme", `{"model":"small","input":"x","encoding_format":"hex"}`, 400, "invalid_request", `"param":"encoding_format"`},
		{"too many", "acme", `{"model":"small","input":["` + strings.Repeat(`x","`, 2048) + `y"]}`, 400, "invalid_request", "2048"},
		{"a long text", "acme", `{"model":"small","input":"` + strings.Repeat("x", 3<<20) + `"}`, 413, "payload_too_large", `"param":"input"`},
		{"an unknown model", "acme", `{"model":"nothing","input":"x"}`, 404, "model_not_found", `"param":"model"`},
		{"another tenant's model", "globex", `{"model":"small","input":"x"}`, 404, "model_not_found", `"param":"model"`},
		{"Messages", "acme", `{"model":"talks","input":"x"}`, 400, "invalid_request", "protocol messages has no embeddings"},
		{"a reactor", "acme", `{"model":"own","input":"x"}`, 400, "invalid_request", "reactor"},
		{"who only reads", "reader", `{"model":"small","input":"x"}`, 403, "forbidden", ""},
		{"who only follows", "follower", `{"model":"small","input":"x"}`, 403, "forbidden", ""},
		{"no JSON", "acme", `x`, 400, "invalid_request", ""},
	} {
		status, text := s.ask(c.who, "POST", "/v1/embeddings", c.body)
		if status != c.status || !strings.Contains(text, `"code":"`+c.code+`"`) || !strings.Contains(text, c.says) || strings.Contains(text, "null") {
			t.Errorf("%s: %d %.400s", c.name, status, text)
		}
	}
	if len(e.asked) != 0 {
		t.Errorf("the endpoint was asked: %v", e.asked)
	}
}

// An endpoint that fails for a moment is asked again; what it refuses, and its key, are told as OpenAI's
// clients expect it, without the key.
func TestEmbeddings_EndpointFails(t *testing.T) {
	for name, c := range map[string]struct {
		status, want, asked int
		code, retry         string
	}{
		"overloaded once": {503, 200, 2, "", "0"}, "a rate": {429, 429, 3, "queue_full", "0"}, "its request": {400, 400, 1, "invalid_request", ""},
		"its key": {401, 503, 1, "unavailable", ""}, "a pause that is too long": {429, 429, 1, "queue_full", "3600"},
	} {
		t.Run(name, func(t *testing.T) {
			e := &embedder{}
			e.refuses = func(n int, w http.ResponseWriter) bool {
				if c.want == 200 && n > 1 {
					return false
				}
				w.Header().Set("Retry-After", c.retry)
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, `{"error":{"message":"no, Bearer sk-embedder-secret","type":"x","code":null,"param":null}}`)
				return true
			}
			s := embeds(t, e)
			status, text := s.ask("acme", "POST", "/v1/embeddings", `{"model":"small","input":"x"}`)
			if status != c.want || len(e.asked) != c.asked || !strings.Contains(text, c.code) || strings.Contains(text, "secret") || strings.Contains(text, "127.0.0.1") {
				t.Errorf("%d %s; asked %d times", status, text, len(e.asked))
			}
		})
	}
}

// Embeddings count as tokens of the tenant's budget, and are refused when that is used up.
func TestEmbeddings_Budget(t *testing.T) {
	e := &embedder{}
	s := embeds(t, e, func(o *skein.Options) { o.TokensPerDay = []string{"acme=3"} })
	for n, want := range []int{200, 200, 429} {
		status, text := s.ask("acme", "POST", "/v1/embeddings", `{"model":"small","input":["a","b"]}`)
		if status != want || want == 429 && !strings.Contains(text, "used 4 of its 3 tokens") {
			t.Errorf("%d: %d %s", n, status, text)
		}
	}
	if len(e.asked) != 2 {
		t.Errorf("the endpoint was asked %d times", len(e.asked))
	}
}
