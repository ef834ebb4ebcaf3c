package api_test

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/internal/protocoltest"
)

// A refusal speaks of what its client has sent: no protocol names the commands that it makes of a
// request, the types that it decodes it into, or the fields of another protocol.
func TestRefusals_SpeakOfTheRequest(t *testing.T) {
	t.Parallel()
	url := start(t, func(o *skein.Options) { o.Tenant = "acme" })
	post := func(path, body string) string {
		r, err := http.NewRequestWithContext(t.Context(), "POST", url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("A2A-Version", "1.0")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		raw, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	if out := post("/api/commands/definition.apply", `{"data":{"definitions":[{"kind":"agent","definition":{"name":"triage","type":"ai_human","reactor":"none"}}]}}`); strings.Contains(out, `"error"`) {
		t.Fatal(out)
	}
	thread := createThread(t, url, "")
	call := func(id, args string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + id + `","arguments":` + args + `}}`
	}
	user := `"messages":[{"role":"user","content":"x"}]`
	long := strings.Repeat("x", 2<<20)
	text := func(s string) string {
		return `{"id":"c1","message":{"id":"m1","role":"user","parts":[{"type":"text","text":` + s + `}]}}`
	}
	run := func(s string) string {
		return `{"threadId":"t1","runId":"r1","state":{},"tools":[],"context":[],"forwardedProps":{},"messages":[` + s + `]}`
	}
	a2a := func(method, params string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`
	}
	internal := protocoltest.InternalWords(`\bmax_output_tokens`)
	responses := protocoltest.InternalWords(`max_completion_tokens`)
	for _, c := range []struct {
		path string
		not  *regexp.Regexp
		body []string
	}{
		{"/api/threads", internal, []string{`[]`, `{"key":7}`, `{"x":1}`, `{`, `{"metadata":[1]}`, `{"key":"a","key":"b"}`, `{"agentId":"a b"}`, `null`, `{"title":"` + long + `"}`}},
		{"/api/threads/" + thread + "/items", internal, []string{`[]`, `{"item":7}`, `{"role":"king","content":"x"}`, `{"type":"none"}`, `{"item":{"role":"user","content":[{"type":"none"}]}}`, `{"item":{"role":"user","content":[{"type":"input_text"}]}}`}},
		{"/api/threads/" + thread + "/messages", internal, []string{`[]`, `{"role":"king","content":"x"}`, `{"role":7}`, `{"role":"user","content":[1]}`, `{}`}},
		{"/api/threads/" + thread + "/react", internal, []string{`[]`, `{"text":7}`, `{"agentId":"nobody","text":"x"}`, `{"settings":{"maxOutputTokens":0},"text":"x"}`, `{"policy":"none","text":"x"}`}},
		{"/api/threads/" + thread + "/approvals/c1", internal, []string{`[]`, `{}`, `{"grant":7}`, `{"grant":true,"deny":true}`, `{"deny":true,"arguments":{}}`, `{"result":1,"reason":"x"}`}},
		{"/v1/responses", responses, []string{`[]`, `{}`, `{`, `{"model":"triage","input":7}`, `{"model":"triage","input":[{"role":"king","content":"x"}]}`, `{"model":"triage","input":[{"type":"function_call_output","call_id":"c","output":"x"}]}`, `{"model":"triage","input":"x","max_output_tokens":0}`, `{"model":"triage","input":"x","max_output_tokens":"a"}`, `{"model":"triage","input":"x","metadata":{"a":1}}`, `{"model":"nobody","input":"x"}`, `{"model":"triage","input":"` + long + `"}`, `{"model":"triage","input":"x","tools":[{"type":"function","name":"a b"}]}`}},
		{"/v1/conversations", responses, []string{`[]`, `{"items":7}`, `{"items":[{"role":"king"}]}`, `{"metadata":{"a":1}}`, `{"items":[{"role":"user","content":"` + long + `"}]}`}},
		{"/v1/chat/completions", internal, []string{`[]`, `{}`, `{`, `{"model":7}`, `{"model":"triage","messages":[7]}`, `{"model":"triage","max_tokens":0,` + user + `}`, `{"model":"triage","max_tokens":"a",` + user + `}`, `{"model":"triage","max_completion_tokens":0,` + user + `}`, `{"model":"triage","max_completion_tokens":1.5,` + user + `}`, `{"model":"triage","temperature":"a",` + user + `}`, `{"model":"triage","tools":[7],` + user + `}`, `{"model":"triage","tools":[{"type":"function"}],` + user + `}`, `{"model":"triage","tools":[{"type":"function","function":{"name":"a b"}}],` + user + `}`, `{"model":"triage","metadata":{"a":1},` + user + `}`, `{"model":"triage","response_format":{"type":"none"},` + user + `}`, `{"model":"triage","stop":[7],` + user + `}`, `{"model":"triage","reasoning_effort":7,` + user + `}`, `{"model":"triage","verbosity":"x",` + user + `}`, `{"model":"triage","messages":[{"role":"user","content":"` + long + `"}]}`}},
		{"/chat", internal, []string{`[]`, `{}`, `{`, text(`7`), text(`""`), `{"id":7}`, `{"id":"c1","message":{"id":"m1","role":"king","parts":[]}}`, `{"id":"c1","message":{"id":"m1","role":"user","parts":[7]}}`, `{"id":"c1","agent":"nobody","message":{"id":"m1","role":"user","parts":[{"type":"text","text":"x"}]}}`, text(`"` + long + `"`), `{"id":"c1","message":{"id":"m 1/","role":"user","parts":[{"type":"file","url":"x","mediaType":"y"}]}}`}},
		{"/agui/triage", internal, []string{`[]`, `{}`, `{`, run(`7`), run(`{"id":"m1","role":"king","content":"x"}`), run(`{"id":"m1","role":"user","content":7}`), run(`{"id":"m1","role":"user","content":[{"type":"none"}]}`), run(`{"id":"m1","role":"tool","toolCallId":"c","content":"x"}`), run(`{"id":"m1","role":"user","content":"` + long + `"}`), `{"threadId":7}`}},
		{"/mcp", internal, []string{`{`, `7`, `{"jsonrpc":"2.0","id":1,"method":"none"}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":7}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}`, call("none", `{}`), call("ask_agent", `7`), call("ask_agent", `{"agent":7}`), call("ask_agent", `{"x":7}`), call("ask_agent", `{"agent":"a b","text":"x"}`), call("ask_agent", `{"agent":"triage","text":"`+long+`"}`), call("add_message", `{"thread":"`+thread+`","text":"x","role":"king"}`), call("create_thread", `{"key":"a\u0000"}`), call("fork_thread", `{"thread":"`+thread+`","message":-7}`), call("approve", `{"thread":"`+thread+`","call":"","decision":"deny"}`), call("approve", `{"thread":"`+thread+`","call":"c","decision":"grant","value":7}`), `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":7}}`, `{"jsonrpc":"2.0","id":1,"method":"resources/list","params":{"cursor":"x"}}`}},
		{"/a2a/triage", internal, []string{`{`, `7`, a2a("none", `{}`), a2a("SendMessage", `7`), a2a("SendMessage", `{}`), a2a("SendMessage", `{"message":7}`), a2a("SendMessage", `{"message":{"messageId":"m","role":"king","parts":[{"text":"x"}]}}`), a2a("SendMessage", `{"message":{"messageId":"m","role":"ROLE_USER","parts":[7]}}`), a2a("SendMessage", `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{}]}}`), a2a("SendMessage", `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"`+long+`"}]}}`), a2a("SendMessage", `{"message":{"messageId":"m","contextId":"a\u0000b","role":"ROLE_USER","parts":[{"text":"x"}]}}`), a2a("SendMessage", `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]},"configuration":{"taskPushNotificationConfig":{"url":"https://example.com","token":"a\nb"},"returnImmediately":true}}`), a2a("SendMessage", `{"message":{"messageId":"m2","role":"ROLE_USER","parts":[{"text":"x"}]},"configuration":{"taskPushNotificationConfig":{"url":"http://10.0.0.1"},"returnImmediately":true}}`), a2a("SendMessage", `{"message":{"messageId":"m3","role":"ROLE_USER","parts":[{"text":"x"}]},"configuration":{"taskPushNotificationConfig":{"url":"https://example.com/`+strings.Repeat("x", 3000)+`"},"returnImmediately":true}}`), a2a("CreateTaskPushNotificationConfig", `{"taskId":7}`), a2a("CreateTaskPushNotificationConfig", `{"taskId":"x","url":"https://example.com"}`), a2a("GetTask", `{"id":7}`), a2a("ListTasks", `{"pageSize":"x"}`)}},
		{"/v1/embeddings", internal, []string{`[]`, `{}`, `{`, `{"model":7}`, `{"model":"x","input":{}}`}},
		{"/v1/files", internal, []string{`[]`, ``}},
	} {
		for _, body := range c.body {
			out := post(c.path, body)
			if bad := c.not.FindString(out); bad != "" {
				t.Errorf("%s %.160s: %q in %.500s", c.path, body, bad, out)
			}
			if !strings.Contains(out, "rror") {
				t.Errorf("%s %.160s: it is not refused: %.200s", c.path, body, out)
			}
		}
	}
}
