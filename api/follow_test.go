package api_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/api"
	"github.com/skein-threads/skein/api/edge"
)

// asks are the requests that write something and then wait for a run, or stream it.
func asks() map[string]struct{ path, body, accept string } {
	const mcp = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask_agent","arguments":{"agent":"teller","text":"x"}}}`
	return map[string]struct{ path, body, accept string }{
		"a response":            {"/v1/responses", `{"model":"teller","input":"x"}`, ""},
		"a streamed response":   {"/v1/responses", `{"model":"teller","input":"x","stream":true}`, ""},
		"a completion":          {"/v1/chat/completions", `{"model":"teller","messages":[{"role":"user","content":"x"}]}`, ""},
		"a streamed completion": {"/v1/chat/completions", `{"model":"teller","stream":true,"messages":[{"role":"user","content":"x"}]}`, ""},
		"a message of a chat":   {"/chat", `{"id":"c","agent":"teller","message":{"id":"u","role":"user","parts":[{"type":"text","text":"x"}]}}`, ""},
		"a run of AG-UI":        {"/agui/teller", `{"threadId":"t","runId":"r","messages":[{"id":"u","role":"user","content":"x"}]}`, ""},
		"a message of A2A":      {"/a2a/teller", a2aCall("SendMessage"), ""},
		"a streamed A2A task":   {"/a2a/teller", a2aCall("SendStreamingMessage"), ""},
		"a tool of MCP":         {"/mcp", mcp, "application/json, text/event-stream"},
	}
}

// A credential that may not follow a run, and a stream over the limits, are refused before anything is
// written.
func TestHandler_AsksNothingItCannotFollow(t *testing.T) {
	t.Parallel()
	people := map[string]edge.Principal{
		"acme":    {Tenant: "acme", Subject: "key:a"},
		"speaker": {Tenant: "acme", Subject: "key:d", Roles: []string{"publisher"}},
		"writer":  {Tenant: "acme", Subject: "key:w", Can: []edge.Capability{edge.Write}},
	}
	s := newStage(t, people, func(o *api.Options) { o.Listen.KeyLimits = map[string]int{"streams": 1} })
	s.teller()
	if status, text := s.ask("acme", "PUT", "/api/definitions/agent/teller", `{"name":"teller","type":"ai_human","reactor":"teller"}`); status >= 300 {
		t.Fatalf("an agent: %d %s", status, text)
	}
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.url+"/api/events", nil)
	s.skein.Must(err)
	r.Header.Set("Authorization", "acme")
	open, err := http.DefaultClient.Do(r)
	s.skein.Must(err)
	defer open.Body.Close()
	for name, c := range asks() {
		for _, who := range []string{"speaker", "writer"} {
			if status, text := s.ask(who, "POST", c.path, c.body, "Accept", c.accept); status != http.StatusForbidden && !strings.Contains(text, "forbidden") {
				t.Errorf("%s as %s: %d %s", name, who, status, text)
			}
		}
		if streams := strings.Contains(c.body, `"stream":true`) || c.path == "/chat" || strings.HasPrefix(c.path, "/agui") || strings.Contains(c.body, "SendStreamingMessage"); streams {
			if status, text := s.ask("acme", "POST", c.path, c.body); status != http.StatusTooManyRequests {
				t.Errorf("%s over the limit: %d %s", name, status, text)
			}
		}
	}
	if status, text := s.ask("acme", "GET", "/api/threads", ""); status != http.StatusOK || strings.Contains(text, `"id":"T-`) {
		t.Errorf("threads were made: %d %s", status, text)
	}
}

// What waits for a run ends when the edge closes, and the run goes on.
func TestHandler_WaitsEndWithTheEdge(t *testing.T) {
	t.Parallel()
	for name, c := range asks() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, map[string]edge.Principal{"acme": {Tenant: "acme", Subject: "key:a"}})
			begun, goOn := make(chan struct{}), make(chan struct{})
			s.skein.Must(s.skein.Reactor("teller", func(context.Context, *skein.StepInput, skein.Stream) (*skein.Reaction, error) {
				close(begun)
				<-goOn
				return skein.Answer("late"), nil
			}))
			defer s.skein.WaitIdle()
			defer close(goOn)
			if status, text := s.ask("acme", "PUT", "/api/definitions/agent/teller", `{"name":"teller","type":"ai_human","reactor":"teller"}`); status >= 300 {
				t.Fatalf("an agent: %d %s", status, text)
			}
			ended := make(chan string)
			go func() {
				r, err := http.NewRequestWithContext(t.Context(), "POST", s.url+c.path, strings.NewReader(c.body))
				if err != nil {
					ended <- err.Error()
					return
				}
				r.Header.Set("Authorization", "acme")
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Accept", c.accept)
				answer, err := http.DefaultClient.Do(r)
				if err != nil {
					ended <- err.Error()
					return
				}
				_ = answer.Body.Close()
				ended <- ""
			}()
			<-begun
			s.handler.Close() // it waits for what waits
			if err := <-ended; err != "" {
				t.Error(err)
			}
		})
	}
}
