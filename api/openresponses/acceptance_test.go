package openresponses_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// heart is a picture, as clients send them.
const heart = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="

// acceptable answers as a model does to which the acceptance tests of Open Responses are put:
// it calls the tool that it has, unless it has called it, and says what else it sees.
func acceptable(a *answer, asked map[string]any) {
	input := fmt.Sprint(asked["input"])
	switch {
	case asked["tools"] != nil && !strings.Contains(input, "function_call_output"):
		a.calls("call_1", "get_weather", `{"location":"San Francisco, CA"}`)
	case strings.Contains(input, heart):
		a.says("A red ", "heart.")
	case strings.Contains(input, "pirate"):
		a.says("Ahoy!")
	case strings.Contains(input, "Alice"):
		a.says("You are Alice.")
	default:
		a.says("One, ", "two.")
	}
	a.ends("response.completed", "")
}

const weatherTool = `"tools":[{"type":"function","name":"get_weather","description":"The weather of a place.","parameters":{"type":"object","properties":{"location":{"type":"string"}},"required":["location"]}}]`

// What the acceptance tests of Open Responses ask over HTTP, one by one. EK-3, EK-6, EK-7, EK-8
func TestAcceptance_HTTP(t *testing.T) {
	w := start(t)
	w.model.answers(acceptable)
	for _, c := range []struct{ name, body, says string }{
		{"basic-response", `"input":[{"type":"message","role":"user","content":"Say hello in exactly 3 words."}]`, "One, two."},
		{"assistant-phase", `"input":[{"type":"message","role":"user","content":"Count."},{"type":"message","role":"assistant","phase":"commentary","content":"I think."},
			{"type":"message","role":"assistant","phase":"final_answer","content":[{"type":"output_text","text":"One."}]},{"type":"message","role":"user","content":"Go on."}]`, "One, two."},
		{"system-prompt", `"input":[{"type":"message","role":"system","content":"You are a pirate."},{"type":"message","role":"user","content":"Say hello."}]`, "Ahoy!"},
		{"tool-calling", `"input":[{"type":"message","role":"user","content":"What is the weather like in San Francisco?"}],` + weatherTool, "(function_call)"},
		{"image-input", `"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"What is in it?"},{"type":"input_image","image_url":"` + heart + `"}]}]`, "A red heart."},
		{"multi-turn", `"input":[{"type":"message","role":"user","content":"My name is Alice."},{"type":"message","role":"assistant","content":"Hello!"},{"type":"message","role":"user","content":"What is my name?"}]`, "You are Alice."},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := w.must("POST", "/v1/responses", `{"model":"triage",`+c.body+`}`)
			conforms(t, got)
			if said := texts(got["output"]); said != c.says {
				t.Errorf("%s", said)
			}
			// The same as a stream: streaming-response, and tool-calling-streaming.
			streamed := streams(t, w.stream("POST", "/v1/responses", `{"model":"triage","stream":true,`+c.body+`}`))
			conforms(t, streamed)
			if said := texts(streamed["output"]); said != c.says {
				t.Errorf("streamed: %s", said)
			}
		})
	}
	t.Run("compact-response", func(t *testing.T) {
		t.Parallel()
		got := w.must("POST", "/v1/responses/compact", `{"model":"triage","prompt_cache_key":"k","input":[{"type":"message","role":"user","content":"One."},{"type":"message","role":"assistant","content":"Two."}]}`)
		if wrong := fits("compaction", "compaction", got); len(wrong) > 0 || kindsOf(got["output"]) != "compaction" {
			t.Errorf("%v %v", wrong, got)
		}
	})
	t.Run("compact-missing-model", func(t *testing.T) {
		t.Parallel()
		if status, e := w.do("POST", "/v1/responses/compact", `{"input":"x"}`); status != http.StatusBadRequest || e["error"].(object)["param"] != "model" {
			t.Errorf("%d %v", status, e)
		}
	})
	t.Run("function-call-roundtrip", func(t *testing.T) {
		t.Parallel()
		first := w.must("POST", "/v1/responses", `{"model":"triage","input":"The weather?",`+weatherTool+`}`)
		call := first["output"].([]any)[0].(object)
		got := w.must("POST", "/v1/responses", fmt.Sprintf(`{"model":"triage","previous_response_id":%q,"input":[{"type":"function_call_output","call_id":%q,"output":"Sunny."}],%s}`, first["id"], call["call_id"], weatherTool))
		conforms(t, got)
		if got["previous_response_id"] != first["id"] || texts(got["output"]) != "One, two." {
			t.Errorf("%v", got)
		}
	})
	t.Run("file-input", func(t *testing.T) {
		t.Parallel()
		conforms(t, w.must("POST", "/v1/responses", `{"model":"triage","input":[{"role":"user","content":[{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0="}]}]}`))
	})
}

// What the acceptance tests of Open Responses ask on a WebSocket, one by one.
func TestAcceptance_WebSocket(t *testing.T) {
	w := start(t)
	w.model.answers(acceptable)
	ask := func(t *testing.T, l *line, body string) object {
		t.Helper()
		got := streams(t, l.ask(`{"type":"response.create","model":"triage",`+body+`}`))
		conforms(t, got)
		return got
	}
	notFound := func(t *testing.T, list []object) {
		t.Helper()
		e, _ := list[0]["error"].(object)
		for _, wrong := range fits("envelope", "socket error", list[0]) {
			t.Error(wrong)
		}
		if len(list) != 1 || list[0]["type"] != "error" || list[0]["status"] != 404.0 || e["code"] != "previous_response_not_found" || e["param"] != "previous_response_id" {
			t.Errorf("%v", list)
		}
	}
	t.Run("websocket-response, sequential-responses", func(t *testing.T) {
		t.Parallel()
		l := w.connect()
		for range 2 {
			ask(t, l, `"input":[{"type":"message","role":"user","content":"Count."}]`)
		}
	})
	t.Run("websocket-continuation, reconnect-store-false-recovery", func(t *testing.T) {
		t.Parallel()
		l := w.connect()
		first := ask(t, l, `"store":false,"input":[{"type":"message","role":"user","content":"My name is Alice."}]`)
		second := ask(t, l, fmt.Sprintf(`"store":false,"previous_response_id":%q,"input":"What is my name?"`, first["id"]))
		if second["previous_response_id"] != first["id"] || second["store"] != false || texts(second["output"]) != "You are Alice." {
			t.Errorf("%v", second)
		}
		again := w.connect()
		notFound(t, again.ask(fmt.Sprintf(`{"type":"response.create","model":"triage","store":false,"previous_response_id":%q,"input":"Go on."}`, second["id"])))
		ask(t, again, `"store":false,"input":"Count."`)
	})
	t.Run("websocket-previous-response-not-found", func(t *testing.T) {
		t.Parallel()
		l := w.connect()
		notFound(t, l.ask(`{"type":"response.create","model":"triage","previous_response_id":"resp_nobody","input":"Go on."}`))
		ask(t, l, `"input":"Count."`)
	})
	t.Run("websocket-failed-continuation-evicts-cache", func(t *testing.T) {
		t.Parallel()
		l := w.connect()
		first := ask(t, l, `"store":false,"input":"Count."`)
		failed := l.ask(fmt.Sprintf(`{"type":"response.create","model":"triage","store":false,"previous_response_id":%q,"input":[{"type":"function_call_output","call_id":"call_of_nobody","output":"x"}]}`, first["id"]))
		if failed[0]["type"] != "error" || failed[0]["status"] != 400.0 {
			t.Errorf("%v", failed)
		}
		notFound(t, l.ask(fmt.Sprintf(`{"type":"response.create","model":"triage","store":false,"previous_response_id":%q,"input":"Go on."}`, first["id"])))
	})
	t.Run("websocket-generate-false", func(t *testing.T) {
		t.Parallel()
		for _, store := range []string{"true", "false"} {
			l := w.connect()
			list := l.ask(`{"type":"response.create","model":"triage","generate":false,"store":` + store + `,"input":[{"type":"message","role":"user","content":"My name is Alice."}]}`)
			warm := streams(t, list)
			if kinds(list) != "created in_progress completed" || warm["status"] != "completed" || len(warm["output"].([]any)) != 0 {
				t.Errorf("%v", list)
			}
			next := ask(t, l, fmt.Sprintf(`"store":%s,"previous_response_id":%q,"input":"What is my name?"`, store, warm["id"]))
			if next["previous_response_id"] != warm["id"] || texts(next["output"]) != "You are Alice." {
				t.Errorf("%v", next)
			}
			ask(t, l, fmt.Sprintf(`"store":%s,"previous_response_id":%q,"input":"Again?"`, store, next["id"]))
			notFound(t, l.ask(fmt.Sprintf(`{"type":"response.create","model":"triage","store":%s,"previous_response_id":%q,"input":"Go on."}`, store, warm["id"])))
			again := w.connect()
			notFound(t, again.ask(fmt.Sprintf(`{"type":"response.create","model":"triage","store":%s,"previous_response_id":%q,"input":"Go on."}`, store, warm["id"])))
		}
		if status, e := w.do("POST", "/v1/responses", `{"model":"triage","generate":false,"input":"x"}`); status != http.StatusBadRequest || e["error"].(object)["param"] != "generate" {
			t.Errorf("over HTTP: %d %v", status, e)
		}
	})
	t.Run("websocket-compact-new-chain", func(t *testing.T) {
		t.Parallel()
		l := w.connect()
		first := ask(t, l, `"input":"Count."`)
		compacted := w.must("POST", "/v1/responses/compact", fmt.Sprintf(`{"model":"triage","previous_response_id":%q}`, first["id"]))
		items := string(raw(compacted["output"]))
		ask(t, l, `"store":false,"input":`+strings.TrimSuffix(items, "]")+`,{"type":"message","role":"user","content":"Go on."}]`)
	})
}

// kindsOf returns the types of the items in a list.
func kindsOf(list any) string {
	var kinds []string
	for _, item := range list.([]any) {
		kinds = append(kinds, fmt.Sprint(item.(object)["type"]))
	}
	return strings.Join(kinds, " ")
}

// A response is one of the protocol's whatever its request says, and however it ends; so are the
// items of its input.
func TestAcceptance_EveryForm(t *testing.T) {
	w := start(t)
	w.model.answers(acceptable)
	for name, body := range map[string]string{
		"an effort":                   `"reasoning":{"effort":"low"}`,
		"a summary":                   `"reasoning":{"summary":"auto"}`,
		"an empty reasoning":          `"reasoning":{}`,
		"a text":                      `"text":{"format":{"type":"text"}}`,
		"an empty text":               `"text":{}`,
		"a format of null":            `"text":{"format":null,"verbosity":"high"}`,
		"a json_object":               `"text":{"format":{"type":"json_object"}}`,
		"a json_schema":               `"text":{"format":{"type":"json_schema","name":"a","schema":{"type":"object"}}}`,
		"a json_schema, not strict":   `"text":{"format":{"type":"json_schema","name":"a","schema":{},"strict":null,"description":"d"}}`,
		"a tool by name":              `"tools":[{"type":"function","name":"get_weather"}],"tool_choice":{"type":"function","name":"get_weather"}`,
		"a tool of nulls":             `"tools":[{"type":"function","name":"get_weather","description":null,"parameters":null,"strict":null}],"tool_choice":"required"`,
		"allowed tools":               weatherTool + `,"tool_choice":{"type":"allowed_tools","tools":[{"type":"function","name":"get_weather"}]}`,
		"allowed tools with a mode":   weatherTool + `,"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"get_weather"}]}`,
		"numbers":                     `"top_p":1,"temperature":0,"presence_penalty":0,"frequency_penalty":0,"top_logprobs":0,"max_output_tokens":16,"max_tool_calls":1`,
		"texts":                       `"metadata":{},"user":"u","safety_identifier":"s","prompt_cache_key":"k","service_tier":"default","truncation":"auto"`,
		"not stored":                  `"store":false`,
		"a picture without a detail":  `"input":[{"role":"user","content":[{"type":"input_image","image_url":"` + heart + `"}]}]`,
		"a file by its address":       `"input":[{"role":"user","content":[{"type":"input_file","file_url":"https://example.com/a.pdf"}]}]`,
		"a call and its output":       `"input":[{"type":"message","role":"user","content":"x"},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"1"}]`,
		"an output of parts":          `"input":[{"role":"user","content":"x"},{"type":"function_call","id":null,"status":null,"call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"1"},{"type":"input_image","image_url":"` + heart + `"}]}]`,
		"a reasoning":                 `"input":[{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"content":null,"encrypted_content":null},{"role":"assistant","content":[{"type":"output_text","text":"One."}]},{"role":"user","content":"x"}]`,
		"a developer, and a citation": `"input":[{"type":"message","role":"developer","content":[{"type":"input_text","text":"Be brief."}]},{"role":"assistant","status":"completed","content":[{"type":"output_text","text":"One.","annotations":[{"type":"url_citation","start_index":0,"end_index":1,"url":"https://example.com","title":"t"}]}]},{"role":"user","content":"x"}]`,
		"a refusal":                   `"input":[{"role":"assistant","content":[{"type":"refusal","refusal":"No."}]},{"role":"user","content":"x"}]`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(body, `"input"`) {
				body += `,"input":"x"`
			}
			got := w.must("POST", "/v1/responses", `{"model":"triage",`+body+`}`)
			conforms(t, got)
			conforms(t, streams(t, w.stream("POST", "/v1/responses", `{"model":"triage","stream":true,`+body+`}`)))
			if got["store"] == false {
				return
			}
			conforms(t, w.must("GET", fmt.Sprintf("/v1/responses/%v", got["id"]), ""))
			for _, item := range w.must("GET", fmt.Sprintf("/v1/responses/%v/input_items", got["id"]), "")["data"].([]any) {
				for _, wrong := range fits("input", "item*", item) {
					t.Error(wrong)
				}
			}
		})
	}
}
