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
	"github.com/skein-threads/skein/internal/modeltest"
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
	e := serve(t, func(w *modeltest.Stream, r *http.Request) {
		w.Event("response.created", `"response":{"id":"resp_1","status":"in_progress","output":[]}`)
		w.Raw(": keep alive\n\n")
		w.Event("response.output_item.added", `"output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[]}`)
		w.Event("response.reasoning_summary_text.delta", `"output_index":0,"item_id":"rs_1","summary_index":0,"delta":"thi"`)
		w.Event("response.reasoning_text.delta", `"output_index":0,"item_id":"rs_1","content_index":0,"delta":"nk"`)
		w.Event("response.output_item.done", `"output_index":0,"item":%s`, reasoning)
		w.Event("response.output_text.delta", `"output_index":1,"item_id":"msg_1","content_index":0,"delta":"I "`)
		w.Event("response.output_text.delta", `"output_index":1,"item_id":"msg_1","content_index":0,"delta":"plan."`)
		w.Event("response.output_item.done", `"output_index":1,"item":%s`, says("I plan."))
		w.Event("response.output_item.added", `"output_index":2,"item":{"type":"function_call","id":"fc_1","call_id":"call_9","name":"plan_writer","arguments":""}`)
		w.Event("response.function_call_arguments.delta", `"output_index":2,"item_id":"fc_1","delta":"{\"n\":"`)
		w.Event("response.function_call_arguments.delta", `"output_index":2,"item_id":"fc_1","delta":" 1}"`)
		w.Event("response.output_item.done", `"output_index":2,"item":%s`, call)
		w.Event("response.something_new", `"x":1`)
		completed(w, reasoning, says("I plan."), call)
	})
	in := modeltest.Input()
	in.Instructions = "Be brief."
	in.Model.MaxOutputTokens = 99
	in.Model.Params = events.JSON(`{"include":["reasoning.encrypted_content"],"tools":[{"type":"web_search"}]}`)
	in.Tools = []runtime.ToolSpec{
		{Name: "plan_writer", Description: "Writes.", Parameters: events.JSON(`{"type":"object","properties":{"n":{"type":"integer"}}}`)},
		{Name: "look"},
	}
	w := &modeltest.Watch{}
	got, err := reactor(t, e, func(c *model.Config) { c.Params = []string{"tools.web_search"} }).React(t.Context(), in, w)
	if err != nil {
		t.Fatal(err)
	}
	if e.Count() != 1 || e.Request(t, 0).Path != "/v1/responses" || e.Request(t, 0).Method != "POST" || e.Request(t, 0).Header.Get("Authorization") != "Bearer "+modeltest.Key {
		t.Errorf("asked: %d times, %+v", e.Count(), e.Request(t, 0))
	}
	const sent = `[{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}]`
	want := `{"model":"test-model","instructions":"Be brief.","input":` + sent + `,"tools":[` +
		`{"type":"function","name":"plan_writer","description":"Writes.","parameters":{"type":"object","properties":{"n":{"type":"integer"}}},"strict":false},` +
		`{"type":"function","name":"look","parameters":{"type":"object","properties":{}},"strict":false},{"type":"web_search"}],` +
		`"max_output_tokens":99,"store":false,"include":["reasoning.encrypted_content"],"stream":true}`
	if got := string(e.Body(t, 0)); got != want {
		t.Errorf("sent\n%s\nnot\n%s", got, want)
	}
	sum := sha256.Sum256([]byte(sent))
	if s := got.MessagesForModel; s == nil || strings.Join(s.Items, " ") != "itm_1" || s.Digest != hex.EncodeToString(sum[:]) {
		t.Errorf("shown: %+v", s)
	}
	if s, want := unmarked(modeltest.Written(t, got.AssistantEvent)), `{"content":[{"encrypted_content":"e+","id":"rs_1","summary":[{"type":"summary_text","text":"think"}],"type":"reasoning"},`+
		`{"text":"I plan.","type":"output_text"},{"type":"tool-plan_writer","toolCallId":"call_9","input":{"n":1}}]}`; s != want {
		t.Errorf("parts\n%s\nnot\n%s", s, want)
	}
	if s, want := modeltest.Written(t, got.ToolCalls), `[{"callId":"call_9","name":"plan_writer","arguments":{"n":1}}]`; s != want {
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
	if got, want := unmarked(strings.Join(w.Chunks, "\n")), strings.Join(wantChunks, "\n"); got != want {
		t.Errorf("chunks\n%s\nnot\n%s", got, want)
	}
}

// Chunks arrive while the model still writes.
func TestChunksComeAtOnce(t *testing.T) {
	w := &modeltest.Watch{Came: make(chan struct{})}
	e := serve(t, func(s *modeltest.Stream, _ *http.Request) {
		s.Event("response.output_text.delta", `"output_index":0,"item_id":"m","delta":"a"`)
		<-w.Came // the end is not written before
		completed(s, says("a"))
	})
	if _, err := reactor(t, e).React(t.Context(), modeltest.Input(), w); err != nil {
		t.Fatal(err)
	}
}

// EK-107, EK-108: output of the protocol without a type in threads is stored in a
// namespaced part. A refusal (EK-48), and an answer without items in its last event,
// are answers like any other.
func TestOtherOutput(t *testing.T) {
	const search = `{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"x"}}`
	e := serve(t, func(w *modeltest.Stream, _ *http.Request) {
		w.Event("response.refusal.delta", `"output_index":1,"item_id":"msg_1","delta":"No."`)
		w.Event("response.output_item.done", `"output_index":1,"item":{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"No."}]}`)
		w.Event("response.output_item.done", `"output_index":0,"item":%s`, search)
		completed(w)
	})
	w := &modeltest.Watch{}
	got, err := reactor(t, e).React(t.Context(), modeltest.Input(), w)
	if err != nil {
		t.Fatal(err)
	}
	if s, want := unmarked(modeltest.Written(t, got.AssistantEvent.Content)), `[{"item":`+search+`,"type":"open.web_search_call"},{"refusal":"No.","type":"refusal"}]`; s != want {
		t.Errorf("%s\nnot\n%s", s, want)
	}
	if len(got.ToolCalls) != 0 || unmarked(strings.Join(w.Chunks, ", ")) != `text-delta {"id":"msg_1","delta":"No."}, provider-item {"part":{"item":`+search+`,"type":"open.web_search_call"}}` {
		t.Errorf("%v, %v", got.ToolCalls, w.Chunks)
	}
}

// Calls have ids that are unique in the whole thread, and arguments that are not an
// object reach the tool unchanged: EK-104.
func TestCallsAreTheirOwn(t *testing.T) {
	call := func(id, arguments string) string {
		return `{"type":"function_call","call_id":"` + id + `","name":"f","arguments":"` + arguments + `"}`
	}
	e := serve(t, func(w *modeltest.Stream, _ *http.Request) {
		w.Event("response.output_item.added", `"output_index":0,"item":{"type":"function_call","call_id":"call_0","name":"f","arguments":""}`)
		completed(w, call("call_0", ""), call("", "[1]"), call("call_1", "{\\\"a\\\":"), call("call_1", "{}"), call("call_x", "{}"))
	})
	w := &modeltest.Watch{}
	got, err := reactor(t, e).React(t.Context(), modeltest.Input(
		modeltest.Message("itm_1", events.User, `{"type":"input_text","text":"hello"}`),
		modeltest.Message("itm_2", events.Assistant, `{"type":"tool-f","toolCallId":"call_0","input":{},"output":1}`),
		modeltest.Item("itm_3", events.ActionExecute, `{"callId":"call_x","name":"f","arguments":{}}`),
	), w)
	if err != nil {
		t.Fatal(err)
	}
	if s, want := modeltest.Written(t, got.ToolCalls), `[{"callId":"call_stp_1-0","name":"f","arguments":{}},{"callId":"call_stp_1-1","name":"f","arguments":"[1]"},`+
		`{"callId":"call_1","name":"f","arguments":"{\"a\":"},{"callId":"call_stp_1-3","name":"f","arguments":{}},{"callId":"call_stp_1-4","name":"f","arguments":{}}]`; s != want {
		t.Errorf("%s\nnot\n%s", s, want)
	}
	if len(w.Chunks) != 1 || !strings.Contains(w.Chunks[0], `"call_stp_1-0"`) {
		t.Errorf("the stream names another call: %v", w.Chunks)
	}
}

// A call of what cannot be a tool's name is a call of a tool that does not exist, and not the end
// of the run; its stream names the same tool.
func TestCallsOfNamesThatNoToolHas(t *testing.T) {
	e := serve(t, func(w *modeltest.Stream, _ *http.Request) {
		w.Event("response.output_item.added", `"output_index":0,"item":{"type":"function_call","call_id":"c0","name":"find order","arguments":""}`)
		completed(w, `{"type":"function_call","call_id":"c0","name":"find order","arguments":"{}"}`, `{"type":"function_call","call_id":"c1","name":"größe\u0000"}`,
			`{"type":"function_call","call_id":"c2","name":"`+strings.Repeat("ä", 200)+`"}`, `{"type":"function_call","call_id":"c3","name":"find_order"}`,
			`{"type":"function_call","call_id":"c4","name":"","arguments":"{\"a\":1,\"a\":2}"}`, `{"type":"function_call","call_id":"c5","name":"__proto__","arguments":"{\"a\":\"\\ud83d\"}"}`)
	})
	w := &modeltest.Watch{}
	got, err := reactor(t, e).React(t.Context(), modeltest.Input(modeltest.Message("itm_1", events.User, `{"type":"input_text","text":"hello"}`)), w)
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
	if len(w.Chunks) != 1 || !strings.Contains(w.Chunks[0], `"unknown_find_order"`) {
		t.Errorf("the stream: %v", w.Chunks)
	}
}

// Half of a surrogate pair in a model's text is replaced, as any decoder of UTF-16 does.
func TestTextWithHalfASurrogatePair(t *testing.T) {
	e := serve(t, func(w *modeltest.Stream, _ *http.Request) {
		completed(w, `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a\ud83db"}]}`)
	})
	got, err := reactor(t, e).React(t.Context(), modeltest.Input(modeltest.Message("itm_1", events.User, `{"type":"input_text","text":"hello"}`)), &modeltest.Watch{})
	if err != nil {
		t.Fatal(err)
	}
	if s, want := modeltest.Written(t, got.AssistantEvent.Content), "[{\"text\":\"a\ufffdb\",\"type\":\"output_text\"}]"; s != want {
		t.Errorf("%s, not %s", s, want)
	}
}

// An incomplete answer keeps its parts and says why; the call that was being written is
// not made.
func TestIncomplete(t *testing.T) {
	for reason, want := range map[string]string{"max_output_tokens": "length", "content_filter": "content-filter", "steered": "other", "": "other"} {
		e := serve(t, func(w *modeltest.Stream, _ *http.Request) {
			w.Event("response.incomplete", `"response":{"status":"incomplete","incomplete_details":{"reason":%q},"output":[%s,%s,%s]}`, reason, says("so far"),
				`{"type":"function_call","call_id":"c1","name":"f","status":"completed","arguments":"{}"}`,
				`{"type":"function_call","call_id":"c2","name":"f","status":"incomplete","arguments":"{\"a"}`)
		})
		got, err := reactor(t, e).React(t.Context(), modeltest.Input(), nil)
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
	think := func(w *modeltest.Stream) {
		w.Event("response.reasoning_summary_text.delta", `"output_index":0,"item_id":"rs_1","delta":"thi"`)
		w.Event("response.reasoning_summary_text.delta", `"output_index":0,"item_id":"rs_1","delta":"nk"`)
	}
	say := func(w *modeltest.Stream) {
		w.Event("response.output_text.delta", `"output_index":1,"item_id":"msg_1","delta":"so "`)
		w.Event("response.output_text.delta", `"output_index":1,"item_id":"msg_1","delta":"far"`)
	}
	const (
		thought = `{"summary":[{"text":"think","type":"summary_text"}],"type":"reasoning"}`
		said    = `{"text":"so far","type":"output_text"}`
		call    = `{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}`
		called  = `{"type":"tool-f","toolCallId":"c1","input":{}}`
	)
	for name, c := range map[string]struct {
		answer func(w *modeltest.Stream)
		want   string
	}{
		"no items": {func(w *modeltest.Stream) { think(w); say(w); completed(w) }, thought + "," + said},
		"an empty message": {func(w *modeltest.Stream) {
			say(w)
			completed(w, call, `{"type":"message","role":"assistant","content":[]}`)
		}, called + "," + said},
		"a call in its place": {func(w *modeltest.Stream) { say(w); completed(w, call, call) }, called + `,{"type":"tool-f","toolCallId":"call_stp_1-1","input":{}},` + said},
		"the item has it":     {func(w *modeltest.Stream) { say(w); completed(w, says("so far, and more")) }, `{"text":"so far, and more","type":"output_text"}`},
		"a refusal": {func(w *modeltest.Stream) {
			w.Event("response.refusal.delta", `"output_index":0,"item_id":"msg_1","delta":"No."`)
			completed(w)
		}, `{"refusal":"No.","type":"refusal"}`},
		"cut off by its length": {func(w *modeltest.Stream) {
			say(w)
			w.Event("response.incomplete", `"response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]}`)
		}, said},
	} {
		e := serve(t, func(w *modeltest.Stream, _ *http.Request) { c.answer(w) })
		got, err := reactor(t, e).React(t.Context(), modeltest.Input(), nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if s := unmarked(modeltest.Written(t, got.AssistantEvent.Content)); s != "["+c.want+"]" {
			t.Errorf("%s: %s, not [%s]", name, s, c.want)
		}
	}
}

// The configuration bounds the attempts at a step, whatever its agent permits.
func TestAttempts(t *testing.T) {
	e := serve(t, func(w *modeltest.Stream, _ *http.Request) { w.W.WriteHeader(http.StatusServiceUnavailable) })
	r := reactor(t, e, func(c *model.Config) { c.Attempts = 2 })
	for attempt := 1; attempt <= 3; attempt++ {
		in := modeltest.Input()
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
	e := serve(t, func(w *modeltest.Stream, _ *http.Request) {
		w.Event("response.output_text.delta", `"output_index":0,"item_id":"m","delta":"a"`)
		completed(w, says("a"))
	})
	r := reactor(t, e)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if got, err := r.React(t.Context(), modeltest.Input(), &modeltest.Watch{}); err != nil || len(got.AssistantEvent.Content) != 1 {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
	all.Wait()
}
