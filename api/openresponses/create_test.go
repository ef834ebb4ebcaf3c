package openresponses_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/skein-threads/skein/api/openresponses"
	"github.com/skein-threads/skein/events"
)

// A response has all of its keys, and only those that may be null are.
func TestCreate_Response(t *testing.T) {
	t.Parallel()
	w := start(t)
	got := w.must("POST", "/v1/responses", `{"model":"triage","input":[{"type":"message","role":"user","content":"hello"}],"metadata":{"order":"42"}}`)
	nullable := map[string]bool{
		"completed_at": false, "incomplete_details": true, "previous_response_id": true, "instructions": true, "error": true, "reasoning": true,
		"usage": false, "max_output_tokens": true, "max_tool_calls": true, "safety_identifier": true, "prompt_cache_key": true,
	}
	for _, key := range strings.Fields(`id object created_at completed_at status incomplete_details model previous_response_id instructions output error tools
		tool_choice truncation parallel_tool_calls text top_p presence_penalty frequency_penalty top_logprobs temperature reasoning usage max_output_tokens
		max_tool_calls store background service_tier metadata safety_identifier prompt_cache_key`) {
		v, ok := got[key]
		if !ok || (v == nil) != nullable[key] {
			t.Errorf("%s is %v (%v)", key, v, ok)
		}
	}
	if got["status"] != "completed" || got["object"] != "response" || got["model"] != "triage" || texts(got["output"]) != "Hello, you." || got["metadata"].(object)["order"] != "42" {
		t.Errorf("%v", got)
	}
	use := got["usage"].(object)
	if use["input_tokens"] != 12.0 || use["output_tokens"] != 7.0 || use["total_tokens"] != 19.0 || use["input_tokens_details"].(object)["cached_tokens"] != 4.0 ||
		use["output_tokens_details"].(object)["reasoning_tokens"] != 2.0 {
		t.Errorf("%v", use)
	}
	item := got["output"].([]any)[0].(object)
	part := item["content"].([]any)[0].(object)
	if item["status"] != "completed" || item["role"] != "assistant" || item["id"] == "" || part["type"] != "output_text" || len(part["annotations"].([]any)) != 0 {
		t.Errorf("%v", item)
	}
	again := w.must("GET", "/v1/responses/"+got["id"].(string), "")
	if !reflect.DeepEqual(got, again) {
		t.Errorf("retrieved:\n%v\ncreated:\n%v", again, got)
	}
	input := w.must("GET", "/v1/responses/"+got["id"].(string)+"/input_items", "")
	if texts(input["data"]) != "hello" || input["has_more"] != false || input["first_id"] == "" {
		t.Errorf("%v", input)
	}
}

// The settings of a request reach the model.
func TestCreate_SettingsReachTheModel(t *testing.T) {
	t.Parallel()
	w := start(t)
	got := w.must("POST", "/v1/responses", `{"model":"m","input":"hello","instructions":"Be brief.","temperature":0.5,"top_p":0.9,"max_output_tokens":99,
		"text":{"format":{"type":"json_object"}},"reasoning":{"effort":"low"},"tool_choice":"auto","include":["reasoning.encrypted_content"],
		"tools":[{"type":"function","name":"weather","description":"The weather.","parameters":{"type":"object"},"strict":true}]}`)
	asked := w.model.last()
	for key, want := range map[string]any{
		"instructions": "Be brief.", "temperature": 0.5, "top_p": 0.9, "max_output_tokens": 99.0, "model": "test-1", "tool_choice": "auto",
		"reasoning": object{"effort": "low"}, "text": object{"format": object{"type": "json_object"}}, "include": []any{"reasoning.encrypted_content"},
		"tools": []any{object{"type": "function", "name": "weather", "description": "The weather.", "parameters": object{"type": "object"}, "strict": true}},
	} {
		if !reflect.DeepEqual(asked[key], want) {
			t.Errorf("%s is %v, and not %v", key, asked[key], want)
		}
	}
	if got["instructions"] != "Be brief." || got["temperature"] != 0.5 || got["max_output_tokens"] != 99.0 || got["tools"].([]any)[0].(object)["name"] != "weather" {
		t.Errorf("%v", got)
	}
}

// The events of a stream come in the protocol's order, numbered from 0, and a replay has the
// very same.
func TestStream_OrderAndReplay(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.model.answers(func(a *answer, _ map[string]any) {
		a.thinks("Let me see.")
		a.says("Hel", "lo.")
		a.ends("response.completed", "")
	})
	list := w.stream("POST", "/v1/responses", `{"model":"triage","input":"hello","stream":true}`)
	got := kinds(list)
	for strings.Contains(got, "delta output_text.delta") || strings.Contains(got, ".delta reasoning_summary_text.delta") { // chunks may be joined
		got = strings.Replace(strings.Replace(got, "output_text.delta output_text.delta", "output_text.delta", 1), "reasoning_summary_text.delta reasoning_summary_text.delta", "reasoning_summary_text.delta", 1)
	}
	want := "created in_progress output_item.added reasoning_summary_part.added reasoning_summary_text.delta reasoning_summary_text.done reasoning_summary_part.done output_item.done " +
		"output_item.added content_part.added output_text.delta output_text.done content_part.done output_item.done completed"
	if got != want {
		t.Fatalf("%s\nand not\n%s", got, want)
	}
	for n, e := range list {
		if e["sequence_number"] != float64(n) {
			t.Errorf("event %d has the number %v", n, e["sequence_number"])
		}
	}
	last := list[len(list)-1]["response"].(object)
	output := last["output"].([]any)
	at := 0
	for _, e := range list {
		if e["type"] == "response.output_item.done" {
			streamed, ended := e["item"].(object), output[at].(object)
			if e["output_index"] != float64(at) || streamed["id"] != ended["id"] || streamed["type"] != ended["type"] {
				t.Errorf("item %d was streamed as %v, and is %v", at, streamed, ended)
			}
			at++
		}
	}
	if at != len(output) || texts(output) != "(reasoning) Hello." || output[0].(object)["encrypted_content"] != "sealed" {
		t.Errorf("%d items of %v", at, output)
	}
	path := "/v1/responses/" + last["id"].(string) + "?stream=true"
	if again := w.stream("GET", path, ""); !reflect.DeepEqual(list, again) {
		t.Errorf("the replay differs:\n%s\n%s", kinds(again), kinds(list))
	}
	for _, after := range []int{0, 5, len(list) - 2, len(list) - 1, 1000} {
		rest := w.stream("GET", fmt.Sprintf("%s&starting_after=%d", path, after), "")
		if from := min(after+1, len(list)-1); !reflect.DeepEqual(rest, list[from:]) {
			t.Errorf("after %d: %s", after, kinds(rest))
		}
	}
	if rest := w.stream("GET", "/v1/responses/"+last["id"].(string), `{"stream":true,"starting_after":3}`); !reflect.DeepEqual(rest, list[4:]) {
		t.Errorf("asked in the body: %s", kinds(rest))
	}
}

// A conversation is compacted to a summary that the agent's model writes: a handoff, whose new
// thread begins with it. The compaction is the input of a new response, and its model sees the
// summary.
func TestCompact(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.model.answers(func(a *answer, _ map[string]any) {
		a.says("Order 42 was lost.")
		a.ends("response.completed", "")
	})
	got := w.must("POST", "/v1/responses/compact", `{"model":"triage","prompt_cache_key":"k","input":[{"role":"user","content":"Where is order 42?"},{"role":"assistant","content":"It was lost."}]}`)
	output := got["output"].([]any)
	if got["object"] != "response.compaction" || len(output) != 1 || output[0].(object)["type"] != "compaction" || output[0].(object)["encrypted_content"] == "" || got["usage"].(object)["total_tokens"] != 19.0 {
		t.Fatalf("%v", got)
	}
	raw, err := json.Marshal(append(output, object{"role": "user", "content": "And now?"}))
	if err != nil {
		t.Fatal(err)
	}
	next := w.must("POST", "/v1/responses", fmt.Sprintf(`{"model":"triage","input":%s}`, raw))
	if shown := w.model.shown(); shown != "developer:Order 42 was lost. | user:And now?" {
		t.Errorf("%s", shown)
	}
	input := w.must("GET", "/v1/responses/"+next["id"].(string)+"/input_items?order=asc", "")["data"].([]any)
	if input[0].(object)["type"] != "compaction" || input[0].(object)["encrypted_content"] != output[0].(object)["encrypted_content"] {
		t.Errorf("%v", input)
	}
	if again := w.must("POST", "/v1/responses/compact", fmt.Sprintf(`{"model":"m","previous_response_id":%q}`, next["id"])); len(again["output"].([]any)) != 1 {
		t.Errorf("%v", again)
	}
	for body, want := range map[string]string{`{"input":"x"}`: "400 model", `{"model":"test","input":"x"}`: "400 model", `{"model":"triage"}`: "400 input", `{"model":"triage","previous_response_id":"resp_9"}`: "404 previous_response_id"} {
		if status, e := w.do("POST", "/v1/responses/compact", body); fmt.Sprintf("%d %v", status, e["error"].(object)["param"]) != want {
			t.Errorf("%s: %d %v", body, status, e)
		}
	}
	count := w.must("POST", "/v1/responses/input_tokens", `{"model":"triage","input":"Where is order 42?"}`)
	if n, _ := count["input_tokens"].(float64); count["object"] != "response.input_tokens" || n < 3 || n > 30 {
		t.Errorf("%v", count)
	}
}

// With store: false a summary leaves nothing: neither the input, nor a copy of the response that it
// continues, nor the thread with the summary, and its id is not found. What was stored before stays.
func TestCompact_NotStored(t *testing.T) {
	t.Parallel()
	w := start(t)
	stored := w.must("POST", "/v1/responses", `{"model":"triage","input":"Where is order 42?"}`)
	threads := w.threads()
	for _, body := range []string{
		`{"model":"triage","store":false,"input":"secret"}`,
		fmt.Sprintf(`{"model":"triage","store":false,"input":"secret","previous_response_id":%q}`, stored["id"]),
		fmt.Sprintf(`{"model":"triage","store":false,"previous_response_id":%q}`, stored["id"]),
	} {
		got := w.must("POST", "/v1/responses/compact", body)
		if output := got["output"].([]any); len(output) != 1 || output[0].(object)["type"] != "compaction" {
			t.Errorf("%s: %v", body, got)
		}
		if status, _ := w.do("GET", fmt.Sprintf("/v1/responses/%v", got["id"]), ""); status != http.StatusNotFound {
			t.Errorf("%s: its id is answered with %d", body, status)
		}
		if now := w.threads(); now != threads {
			t.Errorf("%s: %d threads became %d", body, threads, now)
		}
	}
	if got := w.must("GET", fmt.Sprintf("/v1/responses/%v", stored["id"]), ""); texts(got["output"]) != "Hello, you." {
		t.Errorf("%v", got)
	}
	if d := w.event(events.EffectScheduledType).Data.(events.EffectScheduled); d.Name != events.PurgeEffect || string(d.Args) != `{"handoffs":true}` {
		t.Errorf("the log does not know that it is to go: %+v", d)
	}
}

// What has no effect is refused, with the parameter at fault, before anything is written.
func TestCreate_Refusals(t *testing.T) {
	t.Parallel()
	w := start(t)
	for body, want := range map[string]string{
		`{"input":"x"}`:                  "400 invalid_request model",
		`{"model":"nobody","input":"x"}`: "404 model_not_found model",
		`{"model":"a b","input":"x"}`:    "404 model_not_found model",
		`{"model":"triage"}`:             "400 invalid_request input",
		`[]`:                             "400 invalid_request ",
		`{"model":"triage","input":"x","stream":"yes"}`:                                                          "400 invalid_request stream",
		`{"model":"triage","input":"x","tools":[{"type":7}]}`:                                                    "400 invalid_request tools/0/type",
		`{"model":"triage","input":""}`:                                                                          "400 invalid_request input",
		`{"model":"triage","input":[{"role":"user","content":""}]}`:                                              "400 invalid_request input",
		`{"model":"triage","input":7}`:                                                                           "400 invalid_request input",
		`{"model":"triage","input":[7]}`:                                                                         "400 invalid_request input",
		`{"model":"triage","input":["x",{"role":"king","content":"x"}]}`:                                         "400 invalid_request input/0",
		`{"model":"triage","input":[{"role":"user","content":"x"},{"role":"king","content":"x"}]}`:               "400 invalid_request input/1/role",
		`{"model":"triage","input":[{"role":"user","content":[{"type":"input_image"}]}]}`:                        "400 invalid_request input/0/content/0",
		`{"model":"triage","input":[{"role":"user","content":[{"type":"input_file"}]}]}`:                         "400 invalid_request input/0/content/0",
		`{"model":"triage","input":[{"type":"function_call_output","call_id":"c","output":null}]}`:               "400 invalid_request input/0/output",
		`{"model":"triage","input":[{"type":"function_call_output","call_id":"c","output":{}}]}`:                 "400 invalid_request input/0/output",
		`{"model":"triage","input":"x","tools":[{"type":"function","name":"a"},{"type":"function","name":"a"}]}`: "400 invalid_request tools/1/name",
		`{"model":"triage","input":"x","text":{"format":{"type":"xml"}}}`:                                        "400 invalid_request text/format/type",
		`{"model":"triage","input":"x","text":{"format":{"type":"json_schema","schema":{}}}}`:                    "400 invalid_request text/format/name",
		`{"model":"triage","input":"x","text":{"format":{"type":"json_schema","name":"a"}}}`:                     "400 invalid_request text/format/schema",
		`{"model":"triage","input":"x","text":{"verbosity":"loud"}}`:                                             "400 invalid_request text/verbosity",
		`{"model":"triage","input":"x","text":7}`:                                                                "400 invalid_request text",
		`{"model":"triage","input":"x","reasoning":"high"}`:                                                      "400 invalid_request reasoning",
		`{"model":"triage","input":"x","tools":[{"type":"web_search"}]}`:                                         "400 invalid_request tools/0/type",
		`{"model":"triage","input":"x","tools":[{"type":"function","name":"a b"}]}`:                              "400 invalid_request tools/0/name",
		`{"model":"triage","input":"x","include":["file_search_call.results"]}`:                                  "400 invalid_request include/0",
		`{"model":"triage","input":"x","service_tier":"flex"}`:                                                   "400 invalid_request service_tier",
		`{"model":"triage","input":"x","temperature":3}`:                                                         "400 invalid_request temperature",
		`{"model":"triage","input":"x","previous_response_id":"resp_1"}`:                                         "404 previous_response_not_found previous_response_id",
		`{"model":"triage","input":"x","previous_response_id":"resp_1","conversation":"c"}`:                      "400 invalid_request conversation",
		`{"model":"triage","input":"x","conversation":"conv_00000000000000000000000000000000"}`:                  "404 not_found ",
		`{"model":"triage","input":"x","prompt":{"id":"p"}}`:                                                     "400 invalid_request prompt",
		`{"model":"triage","input":[{"type":"function_call_output","call_id":"c9","output":"x"}]}`:               "400 invalid_request input/0/call_id",
		`{"model":"triage","input":[{"type":"item_reference","id":"msg_0_1"}]}`:                                  "400 invalid_request input/0/id",
		`{"model":"triage","input":"x","background":true,"store":false}`:                                         "400 invalid_request background",
		`{"model":`:                "400 invalid_request ",
		strings.Repeat(`[`, 12000): "400 invalid_request ",
	} {
		status, got := w.do("POST", "/v1/responses", body)
		e := got["error"].(object)
		if said := fmt.Sprintf("%d %v %v", status, e["code"], e["param"]); !strings.HasPrefix(said, want) || e["message"] == "" || e["type"] == "" || strings.Contains(e["message"].(string), "Go ") || strings.Contains(e["message"].(string), "/data/") || strings.Contains(e["message"].(string), "jsontext") {
			t.Errorf("%.120s: %s: %v", body, said, e)
		}
	}
	if status, got := w.do("POST", "/v1/responses", `{"input":"`+strings.Repeat("x", 33<<20)+`"}`); status != http.StatusRequestEntityTooLarge {
		t.Errorf("33 MiB: %d %.1000v", status, got)
	}
	if status, got := w.do("GET", "/v1/responses/resp_1", ""); status != 404 || got["error"].(object)["code"] != "not_found" {
		t.Errorf("%d %v", status, got)
	}
}

// What a reactor records without streaming it is in the stream in the order of the output, with
// the same ids: every time, although the read models may lag behind the chunks.
func TestStream_ReactorThatDoesNotStream(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.model.answers(func(a *answer, _ map[string]any) {
		a.items = []string{
			`{"type":"message","id":"msg_m0","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"text":"Let me look."}]}`,
			`{"type":"function_call","id":"fc_m1","call_id":"call_1","name":"weather","arguments":"{}","status":"completed"}`,
		}
		a.ends("response.completed", "")
	})
	for range 20 {
		list := w.stream("POST", "/v1/responses", `{"model":"triage","input":"hello","stream":true,"tools":[{"type":"function","name":"weather"}]}`)
		var streamed []any
		for _, e := range list {
			if e["type"] == "response.output_item.done" {
				streamed = append(streamed, e["item"])
			}
		}
		if output := list[len(list)-1]["response"].(object)["output"]; len(streamed) != 2 || !reflect.DeepEqual(output, any(streamed)) {
			t.Fatalf("%s: %v\nand not\n%v", kinds(list), streamed, output)
		}
	}
}

// FuzzCreate decodes requests that a client made up: none panics, and what is accepted names a
// model that could exist.
func FuzzCreate(f *testing.F) {
	for _, seed := range []string{
		`{"model":"m","input":"x"}`, `{"model":"m","input":[{"role":"user","content":[{"type":"input_image","image_url":"data:,"}]}],"tools":[{"type":"function","name":"a","strict":null}]}`,
		`{"model":"m","input":[{"type":"compaction","encrypted_content":"skein.summary."}],"tool_choice":{"type":"function","name":"a"}}`, `{"model":null,"text":7}`, `[]`, `{"metadata":{"a":1}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if err := openresponses.Check(body); err != nil && err.Error() == "" {
			t.Error("a refusal says nothing")
		}
	})
}
