package main_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// A server and a gateway show what a run cost, each with the prices that it was started with.
func TestConsolePrice_RunShowsCost(t *testing.T) {
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprint(w, "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"status\":\"completed\",\"model\":\"test-1-2026-11\",\"output\":[{\"type\":\"message\",\"id\":\"m1\",\"status\":\"completed\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"annotations\":[],\"text\":\"Hello.\"}]}],\"usage\":{\"input_tokens\":2000,\"input_tokens_details\":{\"cached_tokens\":0},\"output_tokens\":1000,\"output_tokens_details\":{\"reasoning_tokens\":0},\"total_tokens\":3000}}}\n\n")
	}))
	t.Cleanup(endpoint.Close)
	t.Setenv("OPENAI_BASE_URL", endpoint.URL+"/v1")
	t.Setenv("OPENAI_API_KEY", "sk-test")
	s := start(t, t.TempDir(), "--tenant", "acme", "--console-price", "test-*=0.5/2", "--console-price", "other=9/9")
	s.ok("apply", "-f", write(t, "agents.yaml", "kind: model\nname: m\nmodel: test-1\n---\nkind: agent\nname: triage\ntype: ai_human\nmodel: m\n"))
	s.ok("thread", "create", "--key", "order:42", "--agent", "triage")
	s.ok("thread", "react", "key:order:42", "Where is it?", "--wait")
	gateway := (&gates{t: t}).gatewayOf(s.NATS, "--tenant", "acme", "--console-price", "test-1*=5/20")
	cost := regexp.MustCompile(`<span class="quiet">cost</span> ([0-9.]+)`)
	for url, want := range map[string]string{s.HTTP: "0.0030", gateway.url: "0.0300"} {
		page := (&server{t: t, HTTP: url}).page("/console/threads/key:order:42/run")
		if got := cost.FindStringSubmatch(page); got == nil || got[1] != want {
			t.Errorf("%s: a run of 2,000 and 1,000 tokens costs %q, want %s", url, got, want)
		}
	}
}

// A price that cannot be read is wrong usage, and nothing is started.
func TestConsolePrice_IsRefused(t *testing.T) {
	t.Parallel()
	for price, want := range map[string]string{
		"gpt-5":             "it names no model",
		"gpt-5=1":           "it has no two or three prices",
		"gpt-5=1/x":         `"x" is no price`,
		"gpt-5=1/-2":        `"-2" is no price`,
		"gpt-5=1/2,gpt-5=3": "it has no two or three prices",
	} {
		for _, command := range []string{"serve --tenant acme --nats-listen 127.0.0.1:0", "gateway --tenant acme --nats nats://127.0.0.1:1"} {
			o := run(t, nil, "", append(strings.Fields(command), "--http-listen", "127.0.0.1:0", "--console-price", price)...)
			if o.code != 2 || !strings.HasPrefix(o.err, "skein: usage: ") || !strings.Contains(o.err, "--console-price") || !strings.Contains(o.err, want) || !strings.Contains(o.err, "write MODEL=INPUT/OUTPUT") || o.out != "" {
				t.Errorf("skein %s --console-price %s: exit %d: %q %q", command, price, o.code, o.err, o.out)
			}
		}
	}
}
