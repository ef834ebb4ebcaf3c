package messages_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/model"
	"github.com/skein-threads/skein/runtime/model/messages"
)

// What a step made goes back as one message with its thinking whole, and the results of its calls in
// the next one; to another model it goes without the thinking.
func TestCodec_ThereAndBack(t *testing.T) {
	var asked string
	e := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = r.URL.Path + " " + r.Header.Get("x-api-key") + " " + r.Header.Get("anthropic-version") + " " + string(body)
		w.Header().Set("Content-Type", "text/event-stream")
		for _, data := range []string{
			`{"type":"message_start","message":{"model":"big-1","usage":{"input_tokens":5,"cache_creation_input_tokens":1,"cache_read_input_tokens":4,"output_tokens":1}}}`, `{"type":"ping"}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"sig"}}`, `{"type":"content_block_stop","index":0}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`, `{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"a"}}`, `{"type":"content_block_stop","index":1}`,
			`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"f","input":{}}}`, `{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}`,
			`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}`, `{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":" 1}"}}`,
			`{"type":"content_block_stop","index":2}`, `{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":7}}`, `{"type":"message_stop"}`,
		} {
			_, _ = io.WriteString(w, "event: x\r\ndata: "+data+"\r\n\r\n")
		}
	}))
	defer e.Close()
	r, err := model.New(model.Config{BaseURL: e.URL, APIKey: "sk-ant-test"}, messages.Codec{})
	if err != nil {
		t.Fatal(err)
	}
	user := events.Item{ID: "itm_1", Type: events.Message, Role: events.User, Content: events.JSON(`[{"type":"input_text","text":"hello"},{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]`)}
	in := &runtime.StepInput{Tenant: "acme", StepID: "stp_1", Instructions: "be brief", Model: runtime.Model{Name: "m", Model: "big"}, Items: []events.Item{user}}
	got, err := r.React(t.Context(), in, nil)
	if err != nil {
		t.Fatal(err)
	}
	const first = `{"role":"user","content":[{"type":"text","text":"hello"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]}`
	if want := `/v1/messages sk-ant-test 2023-06-01 {"model":"big","max_tokens":8192,"system":"be brief","messages":[` + first + `],"stream":true}`; asked != want {
		t.Errorf("asked\n%s\nnot\n%s", asked, want)
	}
	if u := got.Usage; u.InputTokens != 10 || u.CachedTokens != 4 || u.OutputTokens != 7 || u.TotalTokens != 17 || u.Model != "big-1" || len(got.ToolCalls) != 1 {
		t.Errorf("usage %+v, calls %+v", u, got.ToolCalls)
	}
	content, err := json.Marshal(got.AssistantEvent.Content)
	if err != nil {
		t.Fatal(err)
	}
	in.Items = append(in.Items, events.Item{ID: "itm_2", Type: events.Message, Role: events.Assistant, Content: events.JSON(strings.Replace(string(content), `"input":{"a":1}`, `"input":{"a":1},"state":"output-available","output":"one"`, 1))})
	const rest = `{"type":"text","text":"a"},{"type":"tool_use","id":"toolu_1","name":"f","input":{"a":1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"one"}]}]}]`
	for of, want := range map[string]string{
		"big":   first + `,{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"sig"},` + rest,
		"other": first + `,{"role":"assistant","content":[` + rest,
	} {
		in.Model.Model = of
		if _, err := r.React(t.Context(), in, nil); err != nil || !strings.Contains(asked, want) {
			t.Errorf("%s: %v, asked\n%s\nnot\n%s", of, err, asked, want)
		}
	}
}
