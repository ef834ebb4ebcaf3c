package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/api"
	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/keys"
)

// Tools of /mcp may do what the credential may: threads of another tenant or user do not exist, a reader
// writes nothing, and who has no credential is told where one is issued.
func TestHandler_MCPOfOthers(t *testing.T) {
	t.Parallel()
	s := strangers(t, func(o *api.Options) { o.Listen.Tokens = keys.TokenOptions{Issuer: "https://login.example.org"} })
	ann := s.made("acme", "ann", "hers")
	call := func(who, tool, args string) (int, string) {
		t.Helper()
		return s.ask(who, "POST", "/mcp", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, args),
			"Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", "2025-06-18")
	}
	theirs := `"thread":"` + ann.thread + `"`
	for _, c := range []struct{ name, who, tool, args, want string }{
		{"her thread", "ann", "read_thread", `{` + theirs + `}`, `"structuredContent"`},
		{"the tenant's thread", "acme", "fetch", `{"id":"` + ann.thread + `"}`, "secret"},
		{"a thread of another user", "bob", "read_thread", `{` + theirs + `}`, "not_found"},
		{"its key", "bob", "fetch", `{"id":"key:hers"}`, "not_found"},
		{"as a resource", "bob", "fetch", `{"id":"skein://threads/` + ann.thread + `"}`, "not_found"},
		{"a question there", "bob", "ask_agent", `{` + theirs + `,"text":"x"}`, "not_found"},
		{"its run", "bob", "ask_agent", `{` + theirs + `,"execution":"` + ann.execution + `"}`, "not_found"},
		{"a decision there", "bob", "approve", `{` + theirs + `,"call":"c1","decision":"deny"}`, "not_found"},
		{"lists", "bob", "search", `{"query":""}`, `"results":[]`},
		{"a thread of another tenant", "globex", "read_thread", `{` + theirs + `}`, "not_found"},
		{"a run of another tenant", "globex", "ask_agent", `{` + theirs + `,"execution":"` + ann.execution + `"}`, "not_found"},
		{"a reader asks", "reader", "ask_agent", `{"agent":"teller","text":"x"}`, "forbidden"},
		{"a reader writes", "reader", "add_message", `{` + theirs + `,"text":"x"}`, "forbidden"},
		{"a reader decides", "reader", "approve", `{` + theirs + `,"call":"c1","decision":"deny"}`, "forbidden"},
		{"one of some threads begins another", "one", "ask_agent", `{"agent":"teller","text":"x"}`, "makes no others"},
		{"or makes one", "one", "create_thread", `{}`, "makes no others"},
		{"a user's own thread", "bob", "ask_agent", `{"agent":"teller","text":"x"}`, `"status":"completed"`},
	} {
		status, text := call(c.who, c.tool, c.args)
		if refused := strings.Contains(text, `"isError":true`); status != http.StatusOK || !strings.Contains(text, c.want) ||
			refused != (c.want == "not_found" || c.want == "forbidden" || c.who == "one") || c.who != "ann" && c.who != "acme" && c.name != "a user's own thread" && strings.Contains(text, "secret") {
			t.Errorf("%s: %d %.300s, want %s", c.name, status, text, c.want)
		}
	}
	if status, text := s.ask("ann", "GET", "/api/threads", ""); status != http.StatusOK || strings.Count(text, `"id":"T-`) != 1 {
		t.Errorf("threads of hers: %d %s", status, text)
	}

	r, err := http.NewRequestWithContext(t.Context(), "POST", s.url+"/mcp", strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	at, ok := strings.CutPrefix(answer.Header.Get("WWW-Authenticate"), `Bearer resource_metadata="`)
	if answer.StatusCode != http.StatusUnauthorized || !ok {
		t.Fatalf("%d %v", answer.StatusCode, answer.Header)
	}
	if status, text := s.ask("", "GET", strings.TrimPrefix(strings.TrimSuffix(at, `"`), s.url), ""); status != http.StatusOK ||
		text != `{"resource":"`+s.url+`/mcp","resource_name":"Skein threads","authorization_servers":["https://login.example.org"],"bearer_methods_supported":["header"]}` {
		t.Errorf("%d %s", status, text)
	}
	// A batch would be many requests for one of each limit.
	if status, text := s.ask("acme", "POST", "/mcp", ` [{"jsonrpc":"2.0","id":1,"method":"ping"}]`, "Accept", "application/json, text/event-stream"); status != http.StatusBadRequest || !strings.Contains(text, "batches") {
		t.Errorf("a batch: %d %s", status, text)
	}
	// A repeat with the same key writes nothing.
	var first string
	for range 2 {
		status, text := s.ask("acme", "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask_agent","arguments":{"agent":"teller","text":"x"}}}`,
			"Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", "2025-06-18", "Idempotency-Key", "k")
		if first == "" {
			first = text
		}
		if status != http.StatusOK || text != first || !strings.Contains(text, `"status":"completed"`) {
			t.Errorf("with a key: %d %s, want %s", status, text, first)
		}
	}
	// What is no request is refused as JSON-RPC has it.
	for name, c := range map[string]struct{ body, accept, kind, want string }{
		"no JSON":            {`{"jsonrpc":`, "application/json, text/event-stream", "application/json", "malformed"},
		"not for a client":   {`{"jsonrpc":"2.0","id":1,"method":"ping"}`, "text/html", "application/json", "Accept"},
		"another type":       {`{"jsonrpc":"2.0","id":1,"method":"ping"}`, "application/json, text/event-stream", "text/csv", "Content-Type"},
		"an unknown version": {`{"jsonrpc":"2.0","id":1,"method":"ping"}`, "application/json, text/event-stream", "application/json", ""},
	} {
		version := "2025-06-18"
		if c.want == "" {
			version, c.want = "1999-01-01", "version"
		}
		status, text := s.ask("acme", "POST", "/mcp", c.body, "Accept", c.accept, "Content-Type", c.kind, "Mcp-Protocol-Version", version)
		if status < 400 || !strings.HasPrefix(text, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":`) || !strings.Contains(text, c.want) {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	for _, method := range []string{"GET", "DELETE"} { // there are no sessions
		if status, _ := s.ask("acme", method, "/mcp", "", "Accept", "text/event-stream"); status != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, status)
		}
	}
}

// A question whose credential is revoked while it waits is answered with that.
func TestHandler_MCPCredentialEnds(t *testing.T) {
	t.Parallel()
	s := newStage(t, map[string]edge.Principal{})
	asked := make(chan struct{})
	s.skein.Must(s.skein.Reactor("slow", func(ctx context.Context, _ *skein.StepInput, _ skein.Stream) (*skein.Reaction, error) {
		close(asked)
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}))
	valid, revoke := context.WithCancel(t.Context())
	defer revoke()
	s.people["ann"] = edge.Principal{Tenant: "acme", Subject: "key:ann", Valid: valid}
	go func() {
		select {
		case <-asked:
		case <-t.Context().Done():
		}
		revoke()
	}()
	status, text := s.ask("ann", "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask_agent","arguments":{"agent":"slow","text":"x"}}}`,
		"Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", "2025-06-18")
	if status != http.StatusOK || !strings.Contains(text, `"isError":true`) || !strings.Contains(text, "revoked") {
		t.Errorf("%d %s", status, text)
	}
}
