package responses_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/model"
)

// A whole step: EK-102 (called once, one request), EK-103 (parts), EK-104 (calls),
// EK-105 (what was shown), EK-106 (usage), EK-44, EK-45, EK-49, and the stream.
func TestStep(t *testing.T) {
	const (
		reasoning = `{"type":"reasoning","id":"rs_1","status":"completed","summary":[{"type":"summary_text","text":"think"}],"encrypted_content":"e+"}`
		call      = `{"type":"function_call","id":"fc_1","call_id":"call_9","status":"completed","name":"plan_writer","arguments":"{\"n\": 1}"}`
	)
	e := serve(t, func(w *stream, r *http.Request) {
		w.event("response.created", `"response":{"id":"resp_1","status":"in_progress","output":[]}`)
		w.raw(": keep alive\n\n")
		w.event("response.output_item.added", `"output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[]}`)
		w.event("response.reasoning_summary_text.delta", `"output_index":0,"item_id":"rs_1","summary_index":0,"delta":"thi"`)
		w.event("response.reasoning_text.delta", `"output_index":0,"item_id":"rs_1","content_index":0,"delta":"nk"`)
		w.event("response.output_item.done", `"output_index":0,"item":%s`, reasoning)
		w.event("response.output_text.delta", `"output_index":1,"item_id":"msg_1","content_index":0,"delta":"I "`)
		w.event("response.output_text.delta", `"output_index":1,"item_id":"msg_1","content_index":0,"delta":"plan."`)
		w.event("response.output_item.done", `"output_index":1,"item":%s`, says("I plan."))
		w.event("response.output_item.added", `"output_index":2,"item":{"type":"function_call","id":"fc_1","call_id":"call_9","name":"plan_writer","arguments":""}`)
		w.event("response.function_call_arguments.delta", `"output_index":2,"item_id":"fc_1","delta":"{\"n\":"`)
		w.event("response.function_call_arguments.delta", `"output_index":2,"item_id":"fc_1","delta":" 1}"`)
		w.event("response.output_item.done", `"output_index":2,"item":%s`, call)
		w.event("response.something_new", `"x":1`)
		w.completed(reasoning, says("I plan."), call)
	})
	in := input()
	in.Instructions = "Be brief."
	in.Model.MaxOutputTokens = 99
	in.Model.Params = events.JSON(`{"include":["reasoning.encrypted_content"],"tools":[{"type":"web_search"}]}`)
	in.Tools = []runtime.ToolSpec{
		{Name: "plan_writer", Description: "Writes.", Parameters: events.JSON(`{"type":"object","properties":{"n":{"type":"integer"}}}`)},
		{Name: "look"},
	}
	w := &watch{}
	got, err := e.reactor(t, func(c *model.Config) { c.Params = []string{"tools.web_search"} }).React(t.Context(), in, w)
	if err != nil {
		t.Fatal(err)
	}
	if e.count() != 1 || e.asked[0].path != "/v1/responses" || e.asked[0].method != "POST" || e.asked[0].key != "Bearer "+key {
		t.Errorf("asked: %d times, %+v", e.count(), e.asked[0])
	}
	const sent = `[{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}]`
	want := `{"model":"test-model","instructions":"Be brief.","input":` + sent + `,"tools":[` +
		`{"type":"function","name":"plan_writer","description":"Writes.","parameters":{"type":"object","properties":{"n":{"type":"integer"}}},"strict":false},` +
		`{"type":"function","name":"look","parameters":{"type":"object","properties":{}},"strict":false},{"type":"web_search"}],` +
		`"max_output_tokens":99,"store":false,"include":["reasoning.encrypted_content"],"stream":true}`
	if got := string(e.body(t, 0)); got != want {
		t.Errorf("sent\n%s\nnot\n%s", got, want)
	}
	sum := sha256.Sum256([]byte(sent))
	if s := got.MessagesForModel; s == nil || strings.Join(s.Items, " ") != "itm_1" || s.Digest != hex.EncodeToString(sum[:]) {
		t.Errorf("shown: %+v", s)
	}
	if s, want := unmarked(written(t, got.AssistantEvent)), `{"content":[{"encrypted_content":"e+","id":"rs_1","summary":[{"type":"summary_text","text":"think"}],"type":"reasoning"},`+
		`{"text":"I plan.","type":"output_text"},{"type":"tool-plan_writer","toolCallId":"call_9","input":{"n":1}}]}`; s != want {
		t.Errorf("parts\n%s\nnot\n%s", s, want)
	}
	if s, want := written(t, got.ToolCalls), `[{"callId":"call_9","name":"plan_writer","arguments":{"n":1}}]`; s != want {
		t.Errorf("calls %s", s)
	}
	u := *got.Usage
	if u.LatencyMs < 0 || u.LatencyMs > 60_000 {
		t.Errorf("latency %d", u.LatencyMs)
	}
	u.LatencyMs = 0
	if u != (runtime.Usage{Provider: "openai", Model: "test-model-1", InputTokens: 120, CachedTokens: 100, OutputTokens: 30, ReasoningTokens: 20, TotalTokens: 150}) {
		t.Errorf("usage %+v", u)
	}
	wantChunks := []string{
		`reasoning-delta {"id":"rs_1","delta":"thi"}`,
		`reasoning-delta {"id":"rs_1","delta":"nk"}`,
		`reasoning-end {"id":"rs_1","encryptedContent":"e+"}`,
		`text-delta {"id":"msg_1","delta":"I "}`,
		`text-delta {"id":"msg_1","delta":"plan."}`,
		`tool-input-start {"toolCallId":"call_9","toolName":"plan_writer"}`,
		`tool-input-delta {"toolCallId":"call_9","inputTextDelta":"{\"n\":"}`,
		`tool-input-delta {"toolCallId":"call_9","inputTextDelta":"1}"}`,
		`tool-input-available {"toolCallId":"call_9","toolName":"plan_writer","input":{"n":1}}`,
	}
	if got, want := strings.Join(w.chunks, "\n"), strings.Join(wantChunks, "\n"); got != want {
		t.Errorf("chunks\n%s\nnot\n%s", got, want)
	}
}

// Chunks arrive while the model still writes.
func TestChunksComeAtOnce(t *testing.T) {
	w := &watch{came: make(chan struct{})}
	e := serve(t, func(s *stream, _ *http.Request) {
		s.event("response.output_text.delta", `"output_index":0,"item_id":"m","delta":"a"`)
		<-w.came // the end is not written before
		s.completed(says("a"))
	})
	if _, err := e.reactor(t).React(t.Context(), input(), w); err != nil {
		t.Fatal(err)
	}
}

// EK-107, EK-108: output of the protocol without a type in threads is stored in a
// namespaced part. A refusal (EK-48), and an answer without items in its last event,
// are answers like any other.
func TestOtherOutput(t *testing.T) {
	const search = `{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"x"}}`
	e := serve(t, func(w *stream, _ *http.Request) {
		w.event("response.refusal.delta", `"output_index":1,"item_id":"msg_1","delta":"No."`)
		w.event("response.output_item.done", `"output_index":1,"item":{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"No."}]}`)
		w.event("response.output_item.done", `"output_index":0,"item":%s`, search)
		w.completed()
	})
	w := &watch{}
	got, err := e.reactor(t).React(t.Context(), input(), w)
	if err != nil {
		t.Fatal(err)
	}
	if s, want := unmarked(written(t, got.AssistantEvent.Content)), `[{"item":`+search+`,"type":"open.web_search_call"},{"refusal":"No.","type":"refusal"}]`; s != want {
		t.Errorf("%s\nnot\n%s", s, want)
	}
	if len(got.ToolCalls) != 0 || unmarked(strings.Join(w.chunks, ", ")) != `text-delta {"id":"msg_1","delta":"No."}, provider-item {"part":{"item":`+search+`,"type":"open.web_search_call"}}` {
		t.Errorf("%v, %v", got.ToolCalls, w.chunks)
	}
}

// Calls have ids that are unique in the whole thread, and arguments that are not an
// object reach the tool unchanged: EK-104.
func TestCallsAreTheirOwn(t *testing.T) {
	call := func(id, arguments string) string {
		return `{"type":"function_call","call_id":"` + id + `","name":"f","arguments":"` + arguments + `"}`
	}
	e := serve(t, func(w *stream, _ *http.Request) {
		w.event("response.output_item.added", `"output_index":0,"item":{"type":"function_call","call_id":"call_0","name":"f","arguments":""}`)
		w.completed(call("call_0", ""), call("", "[1]"), call("call_1", "{\\\"a\\\":"), call("call_1", "{}"), call("call_x", "{}"))
	})
	w := &watch{}
	got, err := e.reactor(t).React(t.Context(), input(
		message("itm_1", events.User, `{"type":"input_text","text":"hello"}`),
		message("itm_2", events.Assistant, `{"type":"tool-f","toolCallId":"call_0","input":{},"output":1}`),
		item("itm_3", events.ActionExecute, `{"callId":"call_x","name":"f","arguments":{}}`),
	), w)
	if err != nil {
		t.Fatal(err)
	}
	if s, want := written(t, got.ToolCalls), `[{"callId":"call_stp_1-0","name":"f","arguments":{}},{"callId":"call_stp_1-1","name":"f","arguments":"[1]"},`+
		`{"callId":"call_1","name":"f","arguments":"{\"a\":"},{"callId":"call_stp_1-3","name":"f","arguments":{}},{"callId":"call_stp_1-4","name":"f","arguments":{}}]`; s != want {
		t.Errorf("%s\nnot\n%s", s, want)
	}
	if len(w.chunks) != 1 || !strings.Contains(w.chunks[0], `"call_stp_1-0"`) {
		t.Errorf("the stream names another call: %v", w.chunks)
	}
}

// A call of what cannot be a tool's name is a call of a tool that does not exist, and not the end
// of the run; its stream names the same tool.
func TestCallsOfNamesThatNoToolHas(t *testing.T) {
	e := serve(t, func(w *stream, _ *http.Request) {
		w.event("response.output_item.added", `"output_index":0,"item":{"type":"function_call","call_id":"c0","name":"find order","arguments":""}`)
		w.completed(`{"type":"function_call","call_id":"c0","name":"find order","arguments":"{}"}`, `{"type":"function_call","call_id":"c1","name":"größe\u0000"}`,
			`{"type":"function_call","call_id":"c2","name":"`+strings.Repeat("ä", 200)+`"}`, `{"type":"function_call","call_id":"c3","name":"find_order"}`,
			`{"type":"function_call","call_id":"c4","name":"","arguments":"{\"a\":1,\"a\":2}"}`, `{"type":"function_call","call_id":"c5","name":"__proto__","arguments":"{\"a\":\"\\ud83d\"}"}`)
	})
	w := &watch{}
	got, err := e.reactor(t).React(t.Context(), input(message("itm_1", events.User, `{"type":"input_text","text":"hello"}`)), w)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range got.ToolCalls {
		names = append(names, c.Name)
	}
	if s, want := strings.Join(names, " "), "unknown_find_order unknown_gr__e_ unknown_"+strings.Repeat("_", 32)+" find_order unknown_ unknown___proto__"; s != want {
		t.Errorf("%s\nnot\n%s", s, want)
	}
	if len(w.chunks) != 1 || !strings.Contains(w.chunks[0], `"unknown_find_order"`) {
		t.Errorf("the stream: %v", w.chunks)
	}
}

// Half of a surrogate pair in a model's text is replaced, as any decoder of UTF-16 does.
func TestTextWithHalfASurrogatePair(t *testing.T) {
	e := serve(t, func(w *stream, _ *http.Request) {
		w.completed(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a\ud83db"}]}`)
	})
	got, err := e.reactor(t).React(t.Context(), input(message("itm_1", events.User, `{"type":"input_text","text":"hello"}`)), &watch{})
	if err != nil {
		t.Fatal(err)
	}
	if s, want := written(t, got.AssistantEvent.Content), "[{\"text\":\"a\ufffdb\",\"type\":\"output_text\"}]"; s != want {
		t.Errorf("%s, not %s", s, want)
	}
}

// An incomplete answer keeps its parts and says why; the call that was being written is
// not made.
func TestIncomplete(t *testing.T) {
	for reason, want := range map[string]string{"max_output_tokens": "length", "content_filter": "content-filter", "steered": "other", "": "other"} {
		e := serve(t, func(w *stream, _ *http.Request) {
			w.event("response.incomplete", `"response":{"status":"incomplete","incomplete_details":{"reason":%q},"output":[%s,%s,%s]}`, reason, says("so far"),
				`{"type":"function_call","call_id":"c1","name":"f","status":"completed","arguments":"{}"}`,
				`{"type":"function_call","call_id":"c2","name":"f","status":"incomplete","arguments":"{\"a"}`)
		})
		got, err := e.reactor(t).React(t.Context(), input(), nil)
		if err != nil {
			t.Fatal(err)
		}
		content := got.AssistantEvent.Content
		if len(content) != 2 || got.FinishReason != want || len(got.ToolCalls) != 1 || got.ToolCalls[0].CallID != "c1" {
			t.Errorf("%s: %s, %+v", reason, content, got.ToolCalls)
		}
	}
}

// What came as deltas alone is part of the answer: it was shown. An item that has it comes once.
func TestAnswer_OfDeltasAlone(t *testing.T) {
	think := func(w *stream) {
		w.event("response.reasoning_summary_text.delta", `"output_index":0,"item_id":"rs_1","delta":"thi"`)
		w.event("response.reasoning_summary_text.delta", `"output_index":0,"item_id":"rs_1","delta":"nk"`)
	}
	say := func(w *stream) {
		w.event("response.output_text.delta", `"output_index":1,"item_id":"msg_1","delta":"so "`)
		w.event("response.output_text.delta", `"output_index":1,"item_id":"msg_1","delta":"far"`)
	}
	const (
		thought = `{"summary":[{"text":"think","type":"summary_text"}],"type":"reasoning"}`
		said    = `{"text":"so far","type":"output_text"}`
		call    = `{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}`
		called  = `{"type":"tool-f","toolCallId":"c1","input":{}}`
	)
	for name, c := range map[string]struct {
		answer func(w *stream)
		want   string
	}{
		"no items":            {func(w *stream) { think(w); say(w); w.completed() }, thought + "," + said},
		"an empty message":    {func(w *stream) { say(w); w.completed(call, `{"type":"message","role":"assistant","content":[]}`) }, called + "," + said},
		"a call in its place": {func(w *stream) { say(w); w.completed(call, call) }, called + `,{"type":"tool-f","toolCallId":"call_stp_1-1","input":{}},` + said},
		"the item has it":     {func(w *stream) { say(w); w.completed(says("so far, and more")) }, `{"text":"so far, and more","type":"output_text"}`},
		"a refusal": {func(w *stream) {
			w.event("response.refusal.delta", `"output_index":0,"item_id":"msg_1","delta":"No."`)
			w.completed()
		}, `{"refusal":"No.","type":"refusal"}`},
		"cut off by its length": {func(w *stream) {
			say(w)
			w.event("response.incomplete", `"response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]}`)
		}, said},
	} {
		e := serve(t, func(w *stream, _ *http.Request) { c.answer(w) })
		got, err := e.reactor(t).React(t.Context(), input(), nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if s := unmarked(written(t, got.AssistantEvent.Content)); s != "["+c.want+"]" {
			t.Errorf("%s: %s, not [%s]", name, s, c.want)
		}
	}
}

// The configuration bounds the attempts at a step, whatever its agent permits.
func TestAttempts(t *testing.T) {
	e := serve(t, func(w *stream, _ *http.Request) { w.w.WriteHeader(http.StatusServiceUnavailable) })
	r := e.reactor(t, func(c *model.Config) { c.Attempts = 2 })
	for attempt := 1; attempt <= 3; attempt++ {
		in := input()
		in.Attempt = attempt
		_, err := r.React(t.Context(), in, nil)
		var later *runtime.RetryError
		if again := errors.As(err, &later); err == nil || again != (attempt < 2) {
			t.Errorf("attempt %d: %#v", attempt, err)
		}
	}
}

// A reactor is safe for concurrent use.
func TestConcurrentCalls(t *testing.T) {
	e := serve(t, func(w *stream, _ *http.Request) {
		w.event("response.output_text.delta", `"output_index":0,"item_id":"m","delta":"a"`)
		w.completed(says("a"))
	})
	r := e.reactor(t)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if got, err := r.React(t.Context(), input(), &watch{}); err != nil || len(got.AssistantEvent.Content) != 1 {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
	all.Wait()
}
