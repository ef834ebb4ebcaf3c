package openresponses_test

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// Images, by URL and with their data, and files reach the model as they were sent. EK-46, EK-47
func TestInput_PartsReachTheModel(t *testing.T) {
	t.Parallel()
	w := start(t)
	parts := []any{
		object{"type": "input_text", "text": "What is in these?"},
		object{"type": "input_image", "image_url": heart, "detail": "low"},
		object{"type": "input_image", "image_url": "https://example.com/a.png"},
		object{"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="},
		object{"type": "input_file", "file_url": "https://example.com/a.pdf"},
	}
	got := w.must("POST", "/v1/responses", fmt.Sprintf(`{"model":"triage","input":[{"role":"user","content":%s}]}`, raw(parts)))
	sent := w.model.last()["input"].([]any)[0].(object)["content"].([]any)
	if len(sent) != len(parts) {
		t.Fatalf("%v", sent)
	}
	for i, p := range parts {
		for name, v := range p.(object) {
			if sent[i].(object)[name] != v {
				t.Errorf("part %d has %s %v, and not %v", i, name, sent[i].(object)[name], v)
			}
		}
	}
	shown := w.must("GET", fmt.Sprintf("/v1/responses/%v/input_items", got["id"]), "")["data"].([]any)[0].(object)["content"].([]any)
	for i, p := range parts {
		for name, v := range p.(object) {
			if shown[i].(object)[name] != v {
				t.Errorf("input item: part %d has %s %v, and not %v", i, name, shown[i].(object)[name], v)
			}
		}
	}
}

// Each parameter reaches the model, and the response repeats it.
func TestParameters_ReachTheModelAndComeBack(t *testing.T) {
	t.Parallel()
	w := start(t)
	for name, value := range map[string]string{
		"instructions": `"Be brief."`, "temperature": `0.5`, "top_p": `0.25`, "presence_penalty": `0.5`, "frequency_penalty": `-0.5`, "top_logprobs": `2`,
		"max_output_tokens": `77`, "max_tool_calls": `3`, "parallel_tool_calls": `false`, "truncation": `"auto"`, "safety_identifier": `"u-1"`,
		"text":        `{"format":{"type":"json_schema","name":"answer","schema":{"type":"object","properties":{"n":{"type":"number"}},"required":["n"],"additionalProperties":false},"strict":true},"verbosity":"low"}`,
		"reasoning":   `{"effort":"low","summary":"auto"}`,
		"tool_choice": `"none"`,
		"metadata":    `{"order":"42"}`, "prompt_cache_key": `"k"`,
	} {
		got := w.must("POST", "/v1/responses", `{"model":"triage","input":"x",`+fmt.Sprintf("%q:%s", name, value)+`}`)
		want := decoded(t, []byte(`{"v":`+value+`}`))["v"]
		if name == "text" { // the format is repeated with what the protocol wants of it
			if format := got[name].(object)["format"].(object); format["type"] != "json_schema" || format["name"] != "answer" || got[name].(object)["verbosity"] != "low" {
				t.Errorf("text comes back as %v", got[name])
			}
		} else if !reflect.DeepEqual(got[name], want) {
			t.Errorf("%s comes back as %v, and not %v", name, got[name], want)
		}
		if name == "metadata" || name == "prompt_cache_key" { // repeated only
			continue
		}
		if asked := w.model.last(); !reflect.DeepEqual(asked[name], want) {
			t.Errorf("the model has %s %v, and not %v", name, asked[name], want)
		}
	}
	w.must("POST", "/v1/responses", `{"model":"triage","input":"x","include":["reasoning.encrypted_content","message.output_text.logprobs"]}`)
	if got := fmt.Sprint(w.model.last()["include"]); got != "[reasoning.encrypted_content message.output_text.logprobs]" {
		t.Errorf("include: %s", got)
	}
}

// What the protocol bounds is refused beyond that, with the field.
func TestParameters_Bounds(t *testing.T) {
	t.Parallel()
	w := start(t)
	many := []string{}
	for i := range 17 {
		many = append(many, fmt.Sprintf(`"k%d":"v"`, i))
	}
	for name, c := range map[string]struct{ body, param string }{
		"17 keys of metadata":             {`"metadata":{` + strings.Join(many, ",") + `}`, "metadata"},
		"a key of 65 characters":          {`"metadata":{"` + strings.Repeat("k", 65) + `":"v"}`, "metadata"},
		"a value of 513 characters":       {`"metadata":{"k":"` + strings.Repeat("v", 513) + `"}`, "metadata"},
		"metadata of numbers":             {`"metadata":{"k":1}`, ""},
		"max_output_tokens of 0":          {`"max_output_tokens":0`, "max_output_tokens"},
		"a temperature of 3":              {`"temperature":3`, "temperature"},
		"a top_p of 2":                    {`"top_p":2`, "top_p"},
		"a top_logprobs of 21":            {`"top_logprobs":21`, "top_logprobs"},
		"a presence_penalty of 3":         {`"presence_penalty":3`, "presence_penalty"},
		"a frequency_penalty of -3":       {`"frequency_penalty":-3`, "frequency_penalty"},
		"max_tool_calls of 0":             {`"max_tool_calls":0`, "max_tool_calls"},
		"another truncation":              {`"truncation":"middle"`, "truncation"},
		"an include without effect":       {`"include":["file_search_call.results"]`, "include/0"},
		"a tool_choice of a number":       {`"tool_choice":1`, "tool_choice"},
		"a choice without a type":         {`"tool_choice":{}`, "tool_choice/type"},
		"a choice without a name":         {`"tool_choice":{"type":"function"}`, "tool_choice/name"},
		"a choice of the server's kind":   {`"tool_choice":{"type":"web_search"}`, "tool_choice/type"},
		"a tool that nobody has":          {`"tool_choice":{"type":"function","name":"get_weather"}`, "tool_choice/name"},
		"a tool that is another":          {`"tools":[{"type":"function","name":"a"}],"tool_choice":{"type":"function","name":"b"}`, "tool_choice/name"},
		"no allowed tools":                {`"tool_choice":{"type":"allowed_tools","tools":[]}`, "tool_choice/tools"},
		"allowed tools that nobody has":   {`"tools":[{"type":"function","name":"a"}],"tool_choice":{"type":"allowed_tools","tools":[{"type":"function","name":"a"},{"type":"function","name":"b"}]}`, "tool_choice/tools/1/name"},
		"allowed tools of another type":   {`"tool_choice":{"type":"allowed_tools","tools":[{"type":"mcp"}]}`, "tool_choice/tools/0/type"},
		"another mode of allowed tools":   {`"tools":[{"type":"function","name":"a"}],"tool_choice":{"type":"allowed_tools","mode":"any","tools":[{"type":"function","name":"a"}]}`, "tool_choice/mode"},
		"another effort":                  {`"reasoning":{"effort":"huge"}`, "reasoning/effort"},
		"an effort of a number":           {`"reasoning":{"effort":1}`, "reasoning/effort"},
		"another summary":                 {`"reasoning":{"summary":"long"}`, "reasoning/summary"},
		"a reasoning of a text":           {`"reasoning":"low"`, "reasoning"},
		"another verbosity":               {`"text":{"verbosity":"huge"}`, "text/verbosity"},
		"another format":                  {`"text":{"format":{"type":"xml"}}`, "text/format/type"},
		"a name of a format with blanks":  {`"text":{"format":{"type":"json_schema","name":"a b","schema":{}}}`, "text/format/name"},
		"a prompt_cache_key of 65":        {`"prompt_cache_key":"` + strings.Repeat("k", 65) + `"`, "prompt_cache_key"},
		"a safety_identifier of 65":       {`"safety_identifier":"` + strings.Repeat("k", 65) + `"`, "safety_identifier"},
		"another service_tier":            {`"service_tier":"huge"`, "service_tier"},
		"a tool without a name":           {`"tools":[{"type":"function"}]`, "tools/0/name"},
		"two tools with one name":         {`"tools":[{"type":"function","name":"a"},{"type":"function","name":"a"}]`, ""},
		"a background that is not stored": {`"background":true,"store":false`, "background"},
	} {
		status, got := w.do("POST", "/v1/responses", `{"model":"triage","input":"x",`+c.body+`}`)
		e, _ := got["error"].(object)
		if status != http.StatusBadRequest || e["code"] != "invalid_request" || c.param != "" && e["param"] != c.param {
			t.Errorf("%s: %d %v", name, status, got)
		}
	}
	if status, e := w.do("POST", "/v1/conversations", `{"metadata":{`+strings.Join(many, ",")+`}}`); status != http.StatusBadRequest {
		t.Errorf("a conversation with 17 keys of metadata: %d %v", status, e)
	}
	if n := w.threads(); n != 0 {
		t.Errorf("refused requests wrote %d threads", n)
	}
	w.must("POST", "/v1/responses", `{"model":"triage","input":"x","metadata":{"`+strings.Repeat("é", 64)+`":"`+strings.Repeat("é", 512)+`"}}`)
	for _, effort := range []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"} {
		w.must("POST", "/v1/responses", fmt.Sprintf(`{"model":"triage","input":"x","reasoning":{"effort":%q,"summary":"concise","generate_summary":"auto"}}`, effort))
	}
}

// A tool_choice may name a tool that the agent has, and what a reactor of one's own has is not
// known.
func TestParameters_ChoiceOfTheAgent(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.define("tool", `{"name":"find","description":"Finds.","type":"nats"}`, "tool", `{"name":"docs","description":"Docs.","type":"mcp","server":{"url":"https://example.com/mcp"}}`,
		"agent", `{"name":"own","type":"ai_human","model":"m","tools":["find","docs"]}`, "agent", `{"name":"custom","type":"ai_human","reactor":"test","model":"m"}`,
		"skill", `{"name":"deploy","description":"Deploys.","text":"Deploy."}`, "agent", `{"name":"skilled","type":"ai_human","model":"m","skills":["deploy"]}`)
	ask := func(agent, tool string) int {
		status, _ := w.do("POST", "/v1/responses", fmt.Sprintf(`{"model":%q,"input":"x","background":true,"tool_choice":{"type":"function","name":%q}}`, agent, tool))
		return status
	}
	for _, c := range []struct {
		agent, tool string
		want        int
	}{
		{"own", "find", 200}, {"own", "docs__search", 200}, {"own", "other", 400}, {"own", "docs_search", 400}, {"triage", "find", 400}, {"m", "find", 400},
		{"custom", "anything", 200}, {"skilled", "skill", 200}, {"test", "anything", 200},
	} {
		if got := ask(c.agent, c.tool); got != c.want {
			t.Errorf("%s may call %s: %d, want %d", c.agent, c.tool, got, c.want)
		}
	}
}

// Fields that Skein does not know, and nulls, change nothing.
func TestParameters_UnknownAndNull(t *testing.T) {
	t.Parallel()
	w := start(t)
	got := w.must("POST", "/v1/responses", `{"model":"triage","input":"x","verbosity_of_tomorrow":{"a":[1]},"stream":null,"store":null,"tools":null,"metadata":null,"instructions":null,
		"previous_response_id":null,"conversation":null,"temperature":null,"top_p":null,"max_output_tokens":null,"text":null,"reasoning":null,"tool_choice":null,"include":null,"truncation":null,
		"parallel_tool_calls":null,"service_tier":null,"prompt_cache_key":null,"safety_identifier":null,"user":null,"background":null,"stream_options":{"include_obfuscation":false}}`)
	conforms(t, got)
}

// A refusal of the model is a refusal in the response, and in its stream. EK-48
func TestResponse_Refusal(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.model.answers(func(a *answer, _ map[string]any) {
		a.event("response.refusal.delta", `"item_id":"msg_m0","output_index":0,"content_index":0,"delta":"I can not."`)
		a.items = append(a.items, `{"type":"message","id":"msg_m0","status":"completed","role":"assistant","content":[{"type":"refusal","refusal":"I can not."}]}`)
		a.ends("response.completed", "")
	})
	got := w.must("POST", "/v1/responses", `{"model":"triage","input":"x"}`)
	conforms(t, got)
	part := got["output"].([]any)[0].(object)["content"].([]any)[0].(object)
	if part["type"] != "refusal" || part["refusal"] != "I can not." {
		t.Errorf("%v", part)
	}
	list := w.stream("POST", "/v1/responses", `{"model":"triage","input":"x","stream":true}`)
	last := streams(t, list)
	if part := last["output"].([]any)[0].(object)["content"].([]any)[0].(object); part["type"] != "refusal" {
		t.Errorf("%v", part)
	}
}
