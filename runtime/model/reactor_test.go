package model_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/model"
	"github.com/skein-threads/skein/runtime/model/chat"
)

// A protocol that has neither items nor a last event needs a codec alone: the thread is shown in its
// form, and what was streamed is the answer.
func TestReactor_ProtocolWithoutItems(t *testing.T) {
	item := func(id string, role events.Role, parts string) events.Item {
		return events.Item{ID: id, Type: events.Message, Role: role, Content: events.JSON("[" + parts + "]")}
	}
	in := &runtime.StepInput{Tenant: "acme", StepID: "stp_1", Model: runtime.Model{Name: "m", Model: "small", Params: events.JSON(`{"temperature":0.5}`)}, Items: []events.Item{
		item("itm_1", events.User, `{"type":"input_text","text":"hello"}`),
		item("itm_2", events.Assistant, `{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]},`+
			`{"type":"tool-look","toolCallId":"c1","input":{"n":1},"output":"one"},{"type":"tool-look","toolCallId":"c2","input":{"n":2},"output":"two"},`+
			`{"type":"open.web_search_call","skein:provider":"chat-00000000","item":{"type":"web_search_call","id":"ws_1","status":"completed"}}`),
		item("itm_3", events.User, `{"type":"input_text","text":"and?"}`),
	}}
	for name, c := range map[string]struct {
		answer, want, calls, finish, fails string
	}{
		"text and reasoning": {
			`{"choices":[{"delta":{"role":"assistant","reasoning_content":"thi"}}]}|{"choices":[{"delta":{"reasoning_content":"nk"}}]}|{"choices":[{"delta":{"content":"It "}}]}|` +
				`{"choices":[{"delta":{"content":"is."}}]}|{"choices":[{"delta":{},"finish_reason":"stop"}]}|{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}}|[DONE]`,
			`"type":"reasoning_text","text":"think"|"text":"It is.","type":"output_text"`, `null`, "", "",
		},
		"a call in pieces, and no [DONE]": {
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c9","type":"function","function":{"name":"look","arguments":"{\"n\":"}}]}}]}|` +
				`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":" 3}"}}]}}]}|{"choices":[{"delta":{},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":7,"completion_tokens":3}}`,
			`"toolCallId":"c9","input":{"n":3}`, `[{"callId":"c9","name":"look","arguments":{"n":3}}]`, "", "",
		},
		"cut off by its length": {
			`{"choices":[{"delta":{"content":"so far"}}]}|{"choices":[{"delta":{},"finish_reason":"length"}],"usage":{"prompt_tokens":7,"completion_tokens":3}}|[DONE]`,
			`"text":"so far"`, `null`, events.FinishLength, "",
		},
		"no finish_reason":       {`{"choices":[{"delta":{"content":"so far"}}]}|[DONE]`, "", "", "", "ended without a finish_reason"},
		"an error in the middle": {`{"choices":[{"delta":{"content":"so far"}}]}|{"error":{"type":"overloaded_error","message":"busy"}}`, "", "", "", "the model failed (overloaded_error): busy"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked string
			e := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				asked = r.URL.Path + " " + string(body)
				w.Header().Set("Content-Type", "text/event-stream")
				for data := range strings.SplitSeq(c.answer, "|") {
					_, _ = io.WriteString(w, "data: "+data+"\r\n\r\n")
				}
			}))
			defer e.Close()
			r, err := model.New(model.Config{BaseURL: e.URL + "/v1/", APIKey: "sk-test", RawReasoning: true, Timeout: time.Minute, Idle: time.Minute}, chat.Codec{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := r.React(t.Context(), in, nil)
			const want = `/v1/chat/completions {"model":"small","messages":[{"role":"user","content":"hello"},{"role":"assistant","reasoning_content":"hm","tool_calls":[` +
				`{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"n\":1}"}},{"id":"c2","type":"function","function":{"name":"look","arguments":"{\"n\":2}"}}]},` +
				`{"role":"tool","content":"one","tool_call_id":"c1"},{"role":"tool","content":"two","tool_call_id":"c2"},` +
				`{"role":"user","content":"and?"}],"temperature":0.5,"stream":true,"stream_options":{"include_usage":true}}`
			if asked != want {
				t.Errorf("asked\n%s\nnot\n%s", asked, want)
			}
			if c.fails != "" {
				var later *runtime.RetryError
				var broke *runtime.BrokenOffError
				if err == nil || !strings.Contains(err.Error(), c.fails) || !errors.As(err, &later) || !errors.As(err, &broke) {
					t.Errorf("%#v, not %q", err, c.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			content, _ := json.Marshal(got.AssistantEvent.Content)
			calls, _ := json.Marshal(got.ToolCalls, json.FormatNilSliceAsNull(true))
			for part := range strings.SplitSeq(c.want, "|") {
				if !strings.Contains(string(content), part) {
					t.Errorf("the answer is %s, without %s", content, part)
				}
			}
			if string(calls) != c.calls || got.FinishReason != c.finish || got.Usage.InputTokens != 7 || got.Usage.OutputTokens != 3 || got.Usage.Provider != "chat" {
				t.Errorf("calls %s, finish %q, usage %+v", calls, got.FinishReason, got.Usage)
			}
		})
	}
}
