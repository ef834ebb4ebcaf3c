package responses_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/modeltest"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/model"
)

// What an endpoint has made goes back to it on the next turn, with the phase and the annotations of
// its messages, and to no other endpoint: that could not read it.
func TestInput_ProviderItemsGoBackToTheirProvider(t *testing.T) {
	const (
		reasoning = `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"sealed"}`
		search    = `{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"x"}}`
		running   = `{"type":"code_interpreter_call","id":"ci_1","status":"in_progress","container_id":"c","code":"1","outputs":null}`
		note      = `{"type":"url_citation","url":"https://example.com","title":"x","start_index":0,"end_index":2}`
		comment   = `{"type":"message","id":"msg_1","status":"completed","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"I look.","annotations":[]}]}`
		answer    = `{"type":"message","id":"msg_2","status":"completed","role":"assistant","phase":"final_answer","content":[{"type":"output_text","text":"It is.","annotations":[` + note + `]}]}`
		asked     = `{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}`
		said      = `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look."}],"phase":"commentary"},` +
			`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"It is.","annotations":[` + note + `]}],"phase":"final_answer"}`
	)
	e := serve(t, func(w *modeltest.Stream, _ *http.Request) { completed(w, reasoning, search, running, comment, answer) })
	got, err := reactor(t, e).React(t.Context(), modeltest.Input(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var parts []string
	for _, p := range got.AssistantEvent.Content {
		parts = append(parts, string(p))
	}
	thread := func(parts ...string) *runtime.StepInput {
		return modeltest.Input(modeltest.Message("itm_1", events.User, `{"type":"input_text","text":"hello"}`), modeltest.Message("itm_2", events.Assistant, parts...),
			modeltest.Message("itm_3", events.User, `{"type":"input_text","text":"hello"}`))
	}
	other := serve(t, func(w *modeltest.Stream, _ *http.Request) { completed(w, says("fine")) })
	for name, c := range map[string]struct {
		to    *modeltest.Endpoint
		parts []string
		want  string
	}{
		"its own endpoint":            {e, parts, reasoning + "," + search + "," + said},
		"another":                     {other, parts, said},
		"another, without reasoning":  {other, parts[1:], said},
		"without its reasoning":       {e, append([]string{strings.Replace(parts[0], "encrypted_content", "x", 1)}, parts[1:]...), said},
		"twice in a thread":           {e, append(parts[1:2:2], parts[1]), search},
		"an id of another form":       {e, append([]string{parts[0], strings.Replace(parts[1], "ws_1", "x_1", 1)}, parts[3:]...), reasoning + "," + said},
		"of a log without its origin": {e, []string{`{"type":"open.web_search_call","item":` + search + `}`, parts[3], parts[4]}, said},
	} {
		before := c.to.Count()
		if _, err := reactor(t, c.to).React(t.Context(), thread(c.parts...), nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got, want := string(field(t, c.to.Body(t, before), "input")), "["+asked+","+c.want+","+asked+"]"; modeltest.Canonical(t, got) != modeltest.Canonical(t, want) {
			t.Errorf("%s: sent\n%s\nnot\n%s", name, got, want)
		}
	}
}

// Deltas say the phase of their message once, and its annotations come before its end.
func TestChunks_PhaseAndAnnotations(t *testing.T) {
	e := serve(t, func(w *modeltest.Stream, _ *http.Request) {
		w.Event("response.output_item.added", `"output_index":0,"item":{"type":"message","id":"msg_1","role":"assistant","phase":"commentary","content":[]}`)
		w.Event("response.output_text.delta", `"output_index":0,"item_id":"msg_1","delta":"I "`)
		w.Event("response.output_text.delta", `"output_index":0,"item_id":"msg_1","delta":"look."`)
		w.Event("response.output_item.done", `"output_index":0,"item":{"type":"message","id":"msg_1","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"I look.","annotations":[{"type":"url_citation"}]}]}`)
		completed(w)
	})
	w := &modeltest.Watch{}
	if _, err := reactor(t, e).React(t.Context(), modeltest.Input(), w); err != nil {
		t.Fatal(err)
	}
	want := `text-delta {"id":"msg_1","delta":"I ","phase":"commentary"}, text-delta {"id":"msg_1","delta":"look."}, text-annotations {"id":"msg_1","annotations":[{"type":"url_citation"}]}`
	if got := strings.Join(w.Chunks, ", "); got != want {
		t.Errorf("%s\nnot\n%s", got, want)
	}
}

// Encrypted reasoning is asked for where the model reasons and the endpoint stores nothing, so that
// it can be sent back; not where the endpoint takes the text, or a definition includes nothing.
func TestRequest_AsksForEncryptedReasoning(t *testing.T) {
	const sealed = `["reasoning.encrypted_content"]`
	raw := func(c *model.Config) { c.RawReasoning = true }
	store := func(c *model.Config) { c.Store = true }
	as := func(*model.Config) {}
	for _, c := range []struct {
		model, params string
		config        func(*model.Config)
		want          string
	}{
		{"test", ``, as, ``},
		{"test", `{"reasoning":{"effort":"low"}}`, as, sealed},
		{"test", `{"reasoning":{"effort":"none"}}`, as, ``},
		{"gpt-5", ``, as, sealed},
		{"gpt-5.1-codex", ``, as, sealed},
		{"openai/o3-mini", ``, as, sealed},
		{"gpt-5-chat-latest", ``, as, ``},
		{"gpt-5", `{"reasoning":{"effort":"none"}}`, as, ``},
		{"gpt-5", `{"include":["message.output_text.logprobs"]}`, as, `["message.output_text.logprobs","reasoning.encrypted_content"]`},
		{"gpt-5", `{"include":["reasoning.encrypted_content"]}`, as, sealed},
		{"gpt-5", `{"include":[]}`, as, `[]`},
		{"gpt-5", ``, raw, ``},
		{"gpt-5", ``, store, ``},
		{"gpt-4o", ``, as, ``},
		{"o1000", ``, as, ``},
	} {
		e := serve(t, func(w *modeltest.Stream, _ *http.Request) { completed(w) })
		in := modeltest.Input()
		in.Model.Model, in.Model.Params = c.model, events.JSON(c.params)
		if c.params == "" {
			in.Model.Params = nil
		}
		if _, err := reactor(t, e, c.config).React(t.Context(), in, nil); err != nil {
			t.Fatal(err)
		}
		if got := string(field(t, e.Body(t, 0), "include")); got != c.want {
			t.Errorf("%s %s: include %s, not %s", c.model, c.params, got, c.want)
		}
	}
}

// A failure says whether it is the rate, the quota, a policy or the key, where the endpoint does.
func TestFailures_Codes(t *testing.T) {
	for _, c := range []struct {
		status int
		code   string
		want   events.FailureCode
		retry  bool
	}{
		{429, "rate_limit_exceeded", events.FailedRateLimit, true},
		{429, "", events.FailedRateLimit, true},
		{429, "insufficient_quota", events.FailedQuota, false},
		{402, "", events.FailedQuota, false},
		{401, "invalid_api_key", events.FailedKey, false},
		{403, "", events.FailedKey, false},
		{400, "content_policy_violation", events.FailedPolicy, false},
		{400, "invalid_value", "", false},
		{500, "", "", true},
		{200, "rate_limit_exceeded", events.FailedRateLimit, true},
		{200, "insufficient_quota", events.FailedQuota, false},
		{200, "content_filter", events.FailedPolicy, false},
		{200, "server_error", "", true},
	} {
		e := serve(t, func(w *modeltest.Stream, _ *http.Request) {
			if c.status == 200 {
				w.Event("response.failed", `"response":{"error":{"code":%q,"message":"no"}}`, c.code)
				return
			}
			w.W.WriteHeader(c.status)
			_, _ = fmt.Fprintf(w.W, `{"error":{"code":%q,"message":"no"}}`, c.code)
		})
		_, err := reactor(t, e).React(t.Context(), modeltest.Input(), nil)
		err = runtime.Returned(err)
		var coded *runtime.FailureError
		var later *runtime.RetryError
		got := events.FailureCode("")
		if errors.As(err, &coded) {
			got = coded.Code
		}
		if got != c.want || errors.As(err, &later) != c.retry {
			t.Errorf("%d %s: %#v", c.status, c.code, err)
		}
	}
}
