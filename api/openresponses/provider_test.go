package openresponses_test

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// What only the provider of a model makes reaches clients as it is: its own calls, and the phase
// and the annotations of messages, in the stream as in the response.
func TestCreate_ProviderItems(t *testing.T) {
	t.Parallel()
	w := start(t)
	const note = `{"type":"url_citation","url":"https://example.com","title":"x","start_index":0,"end_index":2}`
	large := 0
	w.model.answers(func(a *answer, _ map[string]any) {
		a.thinks("I wonder.")
		made := func(item string) {
			a.event("response.output_item.done", `"output_index":%d,"item":%s`, len(a.items), item)
			a.items = append(a.items, item)
		}
		made(`{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"x"}}`)
		made(`{"type":"mcp_call","id":"mcp_1","status":"completed","server_label":"docs","name":"find","arguments":"{}","output":"x","error":null}`)
		for n, text := range []string{"I look.", "It is."} {
			phase, notes := "commentary", ""
			if n == 1 {
				phase, notes = "final_answer", note
				made(`{"type":"web_search_call","id":"ws_2","status":"completed","action":{"type":"search","query":"` + strings.Repeat("x", large) + `"}}`)
			}
			head := fmt.Sprintf(`"type":"message","id":"msg_%d","role":"assistant","phase":%q`, n, phase)
			a.event("response.output_item.added", `"output_index":%d,"item":{%s,"content":[]}`, len(a.items), head)
			a.event("response.output_text.delta", `"item_id":"msg_%d","output_index":%d,"content_index":0,"delta":%q`, n, len(a.items), text)
			made(fmt.Sprintf(`{%s,"status":"completed","content":[{"type":"output_text","text":%q,"annotations":[%s]}]}`, head, text, notes))
		}
		a.ends("response.completed", "")
	})
	for name, size := range map[string]int{"a small item": 10, "an item that no chunk has": 100_000} {
		large = size
		list := w.stream("POST", "/v1/responses", `{"model":"triage","input":"hello","stream":true}`)
		output := streams(t, list)["output"].([]any)
		if texts(output) != "(reasoning) (web_search_call) (mcp_call) I look. (web_search_call) It is." {
			t.Fatalf("%s: %.1000v", name, output)
		}
		for _, o := range output {
			if o.(object)["skein:provider"] != nil {
				t.Errorf("%s: %v", name, o)
			}
		}
		if m := output[5].(object); m["phase"] != "final_answer" || output[3].(object)["phase"] != "commentary" || len(m["content"].([]any)[0].(object)["annotations"].([]any)) != 1 {
			t.Errorf("%s: %v", name, output)
		}
		notes := 0
		var ended []any
		for _, e := range list {
			switch e["type"] {
			case "response.output_text.annotation.added":
				notes++
			case "response.output_item.done":
				ended = append(ended, e["item"])
			}
		}
		if notes != 1 || !reflect.DeepEqual(ended, output) {
			t.Errorf("%s: %d annotations: %s", name, notes, kinds(list))
		}
	}
}

// A response that failed says why, where the provider of its model has said it; and what a model
// did not count, nobody counts.
func TestCreate_FailureCodes(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.define("agent", `{"name":"hasty","type":"ai_human","model":"m","retries":{"attempts":1}}`)
	for code, want := range map[string][2]string{
		"rate_limit_exceeded":      {"too_many_requests", "rate_limit_exceeded"},
		"insufficient_quota":       {"too_many_requests", "insufficient_quota"},
		"content_policy_violation": {"invalid_request", "content_policy_violation"},
		"invalid_api_key":          {"server_error", "invalid_api_key"},
		"server_error":             {"server_error", "server_error"},
	} {
		w.model.answers(func(a *answer, _ map[string]any) {
			a.w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprintf(a.w, `{"error":{"code":%q,"message":"it said no"}}`, code)
		})
		got := w.must("POST", "/v1/responses", `{"model":"hasty","input":"hello"}`)
		if e := got["error"].(object); e["type"] != want[0] || e["code"] != want[1] || got["usage"] != nil || got["status"] != "failed" {
			t.Errorf("%s: %v", code, got)
		}
	}
	w.model.answers(func(a *answer, _ map[string]any) {
		a.says("Hello.")
		a.event("response.completed", `"response":{"id":"resp_m","status":"completed","model":"test-1","output":[%s]}`, a.items[0])
	})
	if got := w.must("POST", "/v1/responses", `{"model":"triage","input":"hello"}`); got["usage"] != nil || texts(got["output"]) != "Hello." {
		t.Errorf("%v", got)
	}
}
