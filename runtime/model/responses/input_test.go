package responses_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/modeltest"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/model"
	"github.com/skein-threads/skein/runtime/model/responses"
)

// digest matches an id that is made of a digest.
var digest = regexp.MustCompile(`call_[0-9a-f]{32}`)

// What a model is shown of each kind of part and item: EK-42, EK-43, EK-44, EK-45,
// EK-46, EK-47, EK-48, EK-49; each call once, in its place: C-9.
func TestInput(t *testing.T) {
	e := serve(t, func(w *modeltest.Stream, _ *http.Request) { completed(w) })
	user := func(parts ...string) events.Item { return modeltest.Message("itm_1", events.User, parts...) }
	said := func(parts ...string) events.Item { return modeltest.Message("itm_1", events.Assistant, parts...) }
	sent := func(i events.Item, as string) events.Item { // by a caller of Open Responses
		i.Metadata = events.JSON(`{"openResponses":` + as + `}`)
		return i
	}
	const (
		parts  = `[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"data:,"}]`
		call   = `{"type":"function_call","call_id":"c1","name":"f","arguments":"{\"a\":1}"}`
		result = `{"type":"function_call_output","call_id":"c1","output":`
		none   = `"(there is no result of this call)"`
	)
	long := strings.Repeat("x", 65)
	for name, c := range map[string]struct {
		items []events.Item
		want  string
		shown string // default itm_1
	}{
		"text of a user":             {[]events.Item{user(`{"type":"input_text","text":"a"}`)}, `{"type":"message","role":"user","content":[{"type":"input_text","text":"a"}]}`, ""},
		"text of an assistant":       {[]events.Item{said(`{"type":"output_text","text":"a"}`, `{"type":"input_text","text":"b"}`)}, `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"},{"type":"output_text","text":"b"}]}`, ""},
		"output_text of a user":      {[]events.Item{user(`{"type":"output_text","text":"a"}`)}, `{"type":"message","role":"user","content":[{"type":"input_text","text":"a"}]}`, ""},
		"system":                     {[]events.Item{modeltest.Message("itm_1", events.System, `{"type":"input_text","text":"a"}`)}, `{"type":"message","role":"system","content":[{"type":"input_text","text":"a"}]}`, ""},
		"developer":                  {[]events.Item{modeltest.Message("itm_1", events.Developer, `{"type":"input_text","text":"a"}`)}, `{"type":"message","role":"developer","content":[{"type":"input_text","text":"a"}]}`, ""},
		"refusal":                    {[]events.Item{said(`{"type":"refusal","refusal":"no"}`)}, `{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"no"}]}`, ""},
		"image":                      {[]events.Item{user(`{"type":"input_image","image_url":"https://x/y","detail":"low","z":1}`)}, `{"type":"message","role":"user","content":[{"type":"input_image","image_url":"https://x/y","detail":"low"}]}`, ""},
		"image of the chat format":   {[]events.Item{user(`{"type":"image_url","image_url":{"url":"https://x/y"}}`)}, `{"type":"message","role":"user","content":[{"type":"input_image","image_url":"https://x/y"}]}`, ""},
		"file":                       {[]events.Item{user(`{"type":"input_file","filename":"a.pdf","file_data":"data:,"}`, `{"type":"input_file","file_id":"file_1","file_url":null}`)}, `{"type":"message","role":"user","content":[{"type":"input_file","file_data":"data:,","filename":"a.pdf"},{"type":"input_file","file_id":"file_1"}]}`, ""},
		"extension":                  {[]events.Item{user(`{"type":"codex-event","state":"output-available"}`, `{"type":"input_text","text":"a"}`)}, `{"type":"message","role":"user","content":[{"type":"input_text","text":"a"}]}`, ""},
		"nothing but an extension":   {[]events.Item{user(`{"type":"codex-event"}`)}, ``, ""},
		"reference":                  {[]events.Item{modeltest.Item("itm_1", events.ItemReference, `{"itemId":"itm_0"}`)}, ``, ""},
		"reasoning":                  {[]events.Item{said(`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"t"}],"encrypted_content":"e"}`, `{"type":"output_text","text":"a"}`)}, `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"t"}],"encrypted_content":"e"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}`, ""},
		"reasoning that led nowhere": {[]events.Item{said(`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e"}`, `{"type":"output_text","text":""}`), modeltest.Message("itm_2", events.User, `{"type":"input_text","text":"a"}`)}, `{"type":"message","role":"user","content":[{"type":"input_text","text":"a"}]}`, "itm_2"},
		"reasoning for people":       {[]events.Item{said(`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"t"}]}`, `{"type":"reasoning","text":"t"}`)}, ``, ""},
		"call and result":            {[]events.Item{said(`{"type":"output_text","text":"a"}`, `{"type":"tool-f","toolCallId":"c1","state":"output-available","input":{"a":1},"output":{"ok":true}}`, `{"type":"output_text","text":"b"}`)}, `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]},` + call + `,` + result + `"{\"ok\":true}"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"b"}]}`, ""},
		"result that is a text":      {[]events.Item{said(`{"type":"tool-f","toolCallId":"c1","input":{"a":1},"output":"fine"}`)}, call + `,` + result + `"fine"}`, ""},
		"result that is an error":    {[]events.Item{said(`{"type":"tool-f","toolCallId":"c1","state":"output-error","input":{"a":1},"errorText":"broke"}`)}, call + `,` + result + `"Error: broke"}`, ""},
		"call without a result":      {[]events.Item{said(`{"type":"tool-f","toolCallId":"c1","input":{"a":1}}`)}, call + `,` + result + none + `}`, ""},
		"call that was left out":     {[]events.Item{said(`{"type":"tool-f","toolCallId":"c1","state":"output-available","elided":true}`)}, `{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},` + result + `"(the result was too long and was left out)"}`, ""},
		"arguments that are a text":  {[]events.Item{said(`{"type":"tool-f","toolCallId":"c1","input":"{\"a\":","output":1}`)}, `{"type":"function_call","call_id":"c1","name":"f","arguments":"{\"a\":"},` + result + `"1"}`, ""},
		"a name no function has":     {[]events.Item{said(`{"type":"tool-a.b ä","toolCallId":"c1","input":{"a":1},"output":1}`)}, strings.Replace(call, `"f"`, `"a_b__"`, 1) + `,` + result + `"1"}`, ""},
		"an id twice":                {[]events.Item{said(`{"type":"tool-f","toolCallId":"c1","input":{"a":1},"output":1}`, `{"type":"tool-f","toolCallId":"c1","input":{"a":1},"output":2}`)}, call + `,` + result + `"1"},{"type":"function_call","call_id":"call_ID","name":"f","arguments":"{\"a\":1}"},{"type":"function_call_output","call_id":"call_ID","output":"2"}`, ""},
		"an id that is long":         {[]events.Item{said(`{"type":"tool-f","toolCallId":"` + long + `","output":1}`)}, `{"type":"function_call","call_id":"call_ID","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"call_ID","output":"1"}`, ""},
		"items of a call":            {[]events.Item{modeltest.Item("itm_1", events.ActionExecute, `{"callId":"c1","name":"f","arguments":{"a":1}}`), modeltest.Message("itm_2", events.User, `{"type":"input_text","text":"a"}`), modeltest.Item("itm_3", events.ActionResult, `{"callId":"c1","output":[1]}`)}, call + `,` + result + `"[1]"},{"type":"message","role":"user","content":[{"type":"input_text","text":"a"}]}`, "itm_1 itm_2 itm_3"},
		"a result of parts":          {[]events.Item{modeltest.Item("itm_1", events.ActionExecute, `{"callId":"c1","name":"f","arguments":{"a":1}}`), sent(modeltest.Item("itm_3", events.ActionResult, `{"callId":"c1","output":`+parts+`}`), `{"type":"function_call_output","call_id":"c1","output":`+parts+`}`)}, call + `,` + result + parts + `}`, "itm_1 itm_3"},
		"a result of other parts":    {[]events.Item{modeltest.Item("itm_1", events.ActionExecute, `{"callId":"c1","name":"f","arguments":{"a":1}}`), modeltest.Item("itm_3", events.ActionResult, `{"callId":"c1","output":[{"type":"row"}]}`)}, call + `,` + result + `"[{\"type\":\"row\"}]"}`, "itm_1 itm_3"},
		"a result without its call":  {[]events.Item{modeltest.Item("itm_1", events.ActionResult, `{"callId":"c1","output":1}`)}, ``, ""},
		"an item without its result": {[]events.Item{modeltest.Item("itm_1", events.ActionExecute, `{"callId":"c1","name":"f","arguments":{"a":1}}`)}, call + `,` + result + none + `}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := e.Count()
			got, err := reactor(t, e).React(t.Context(), modeltest.Input(c.items...), nil)
			if c.want == "" { // endpoints refuse an empty input
				if err == nil || !strings.Contains(err.Error(), "add a message") || e.Count() != n {
					t.Errorf("%d requests, %v", e.Count()-n, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			sent := string(field(t, e.Body(t, n), "input"))
			sent = digest.ReplaceAllString(sent, "call_ID")
			if sent != "["+c.want+"]" {
				t.Errorf("sent\n%s\nnot\n[%s]", sent, c.want)
			}
			want := c.shown
			if want == "" {
				want = "itm_1"
			}
			if shown := strings.Join(got.MessagesForModel.Items, " "); shown != want {
				t.Errorf("shown %q, not %q", shown, want)
			}
		})
	}
}

// EK-45: open models are sent the text of their reasoning.
func TestRawReasoning(t *testing.T) {
	e := serve(t, func(w *modeltest.Stream, _ *http.Request) { completed(w) })
	r := reactor(t, e, func(c *model.Config) { c.RawReasoning = true })
	_, err := r.React(t.Context(), modeltest.Input(modeltest.Message("itm_1", events.Assistant,
		`{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"a"}]}`, `{"type":"reasoning","text":"b"}`)), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(field(t, e.Body(t, 0), "input")), `[{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"a"}]},`+
		`{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"b"}]}]`; got != want {
		t.Errorf("%s\nnot\n%s", got, want)
	}
}

// EK-42, EK-49: a model's output is shown to it unchanged in the next step.
func TestThereAndBack(t *testing.T) {
	e := serve(t, func(w *modeltest.Stream, _ *http.Request) {
		completed(w, `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e"}`, says("a"),
			`{"type":"function_call","call_id":"c1","name":"f","arguments":"{\"a\":1}"}`)
	})
	r := reactor(t, e)
	first, err := r.React(t.Context(), modeltest.Input(), nil)
	if err != nil {
		t.Fatal(err)
	}
	in := modeltest.Input(events.Item{ID: "itm_2", Type: events.Message, Role: events.Assistant, Content: events.JSON(modeltest.Written(t, first.AssistantEvent.Content))})
	if _, err := r.React(t.Context(), in, nil); err != nil {
		t.Fatal(err)
	}
	if got, want := string(field(t, e.Body(t, 1), "input")), `[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e"},`+
		`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]},{"type":"function_call","call_id":"c1","name":"f","arguments":"{\"a\":1}"},`+
		`{"type":"function_call_output","call_id":"c1","output":"(there is no result of this call)"}]`; got != want {
		t.Errorf("%s\nnot\n%s", got, want)
	}
}

// Params that a model must not set are refused before anything is sent.
func TestParams(t *testing.T) {
	e := serve(t, func(w *modeltest.Stream, _ *http.Request) { completed(w) })
	r := reactor(t, e)
	for params, want := range map[string]string{
		`[]`: "not a JSON object", `{"input":[]}`: "input may not be set", `{"stream":false}`: "stream may not be set", `{"tools":{}}`: "tools is of the wrong kind",
	} {
		in := modeltest.Input()
		in.Model.Params = events.JSON(params)
		if _, err := r.React(t.Context(), in, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", params, err)
		}
	}
	in := modeltest.Input()
	in.Model = runtime.Model{}
	if _, err := r.React(t.Context(), in, nil); err == nil || !strings.Contains(err.Error(), "no model") {
		t.Errorf("without a model: %v", err)
	}
	if e.Count() != 0 {
		t.Errorf("%d requests were sent", e.Count())
	}
	in = modeltest.Input()
	in.Model.MaxOutputTokens = 5
	in.Model.Params = events.JSON(`{"max_output_tokens":7,"reasoning":{"effort":"low"},"include":["reasoning.encrypted_content"]}`)
	if _, err := r.React(t.Context(), in, nil); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"max_output_tokens": "7", "store": "false", "reasoning": `{"effort":"low"}`, "stream": "true"} {
		if got := string(field(t, e.Body(t, 0), name)); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A model's params are sent with the operator's key: they may shape the answer, and use
// nothing else that the key permits, unless the operator permits it.
func TestParams_ReachNothingOfTheOperators(t *testing.T) {
	e := serve(t, func(w *modeltest.Stream, _ *http.Request) { completed(w) })
	ask := func(params string, allowed ...string) error {
		r := reactor(t, e, func(c *model.Config) { c.Params = allowed })
		in := modeltest.Input()
		in.Model.Params = events.JSON(params)
		_, err := r.React(t.Context(), in, nil)
		return err
	}
	search := `{"tools":[{"type":"file_search","vector_store_ids":["vs_other"]}]}`
	for params, want := range map[string]string{
		`{"store":true}`: "--model-param store", `{"service_tier":"priority"}`: "--model-param service_tier", search: "--model-param tools.file_search",
		`{"tools":[{"type":"mcp","server_url":"http://10.0.0.1"}]}`: "--model-param tools.mcp", `{"tools":[{"type":"function","name":"f"}]}`: "tools.function",
		`{"include":["file_search_call.results"]}`: "--model-param include", `{"include":"all"}`: "include is of the wrong kind", `{"metadata":{}}`: "--model-param metadata",
		`{"mcp_servers":[]}`: "--model-param mcp_servers", `{"extra_headers":{}}`: "--model-param extra_headers",
	} {
		if err := ask(params); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", params, err)
		}
	}
	if e.Count() != 0 {
		t.Errorf("%d requests were sent", e.Count())
	}
	for params, allowed := range map[string]string{
		`{"store":true}`: "store", search: "tools.file_search", `{"tools":[{"type":"web_search"}]}`: "tools", `{"include":["file_search_call.results"]}`: "include",
	} {
		if err := ask(params, allowed); err != nil {
			t.Errorf("%s with %s: %v", params, allowed, err)
		}
	}
	for _, name := range []string{"", "model", "tools.", "tools.function", "tools.A b"} {
		if _, err := responses.New(model.Config{Params: []string{name}}); err == nil {
			t.Errorf("%q was allowed", name)
		}
	}
}
