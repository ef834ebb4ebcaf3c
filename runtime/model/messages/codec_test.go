package messages_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/modeltest"
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

// Settings in the names of OpenAI's protocols, and results of calls that failed, are sent in the form
// of this one.
func TestCodec_SettingsAndFailures(t *testing.T) {
	e := modeltest.Serve(t, func(w *modeltest.Stream, _ *http.Request) {
		w.Data(modeltest.Protocols()[2].Tell(modeltest.Answer{Text: []string{"fine"}})...)
	})
	called := func(rest string) events.Item {
		return modeltest.Message("itm_2", events.Assistant, `{"type":"tool-f","toolCallId":"c1","input":{},`+rest+`}`)
	}
	for name, c := range map[string]struct {
		params string
		item   events.Item
		want   string
	}{
		"the least effort":       {`{"reasoning":{"effort":"minimal"}}`, called(`"output":1`), `"output_config":{"effort":"low"}`},
		"the most effort":        {`{"reasoning":{"effort":"xhigh"}}`, called(`"output":1`), `"output_config":{"effort":"high"}`},
		"short answers":          {`{"text":{"verbosity":"low"}}`, called(`"output":1`), `"system":"Keep your answers short."`},
		"a JSON object":          {`{"text":{"format":{"type":"json_object"}}}`, called(`"output":1`), `"system":"Answer with one JSON object, and with nothing before or after it."`},
		"allowed tools":          {`{"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"g"}]}}`, called(`"output":1`), `"tools":[{"name":"g","input_schema":{"type":"object","properties":{}}}],"tool_choice":{"type":"any"}`},
		"a result":               {`{}`, called(`"output":"one"`), `{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"one"}]}`},
		"a call that failed":     {`{}`, called(`"state":"output-error","errorText":"broke"`), `"content":[{"type":"text","text":"Error: broke"}],"is_error":true}`},
		"a caller's that failed": {`{}`, modeltest.Item("itm_4", events.ActionResult, `{"callId":"c0","isError":true,"output":"broke"}`), `"content":[{"type":"text","text":"broke"}],"is_error":true}`},
	} {
		in := modeltest.Input(modeltest.Message("itm_1", events.User, `{"type":"input_text","text":"hello"}`), modeltest.Item("itm_3", events.ActionExecute, `{"callId":"c0","name":"f","arguments":{}}`), c.item)
		in.Model.Params, in.Tools = events.JSON(c.params), []runtime.ToolSpec{{Name: "f"}, {Name: "g"}}
		if _, err := e.Reactor(t, messages.Codec{}).React(t.Context(), in, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if body := string(e.Body(t, e.Count()-1)); !strings.Contains(body, c.want) {
			t.Errorf("%s: sent\n%s\nwithout\n%s", name, body, c.want)
		}
	}
}
