package openresponses_test

import (
	"reflect"
	"testing"
)

// The items that a stream has ended are those of its response, in their order: clients that
// stream know of nothing else, and send them back.
func TestStream_ItemsAreThoseOfTheResponse(t *testing.T) {
	t.Parallel()
	w := start(t)
	for name, write := range map[string]func(a *answer){
		"a reasoning with a summary": func(a *answer) {
			a.thinks("Let me see.")
			a.says("Let", " me", " look.")
			a.ends("response.completed", "")
		},
		"a reasoning without one": func(a *answer) {
			a.thinks("")
			a.says("Done.")
			a.ends("response.completed", "")
		},
		"arguments with spaces": func(a *answer) {
			a.thinks("")
			a.calls("call_1", "weather", `{"city": "Porto Santo", "\u0064ays" : [1, 2]}`)
			a.calls("call_2", "weather", `{}`)
			a.ends("response.completed", "")
		},
		"a text that was cut off": func(a *answer) {
			a.says("Once", " upon")
			a.ends("response.incomplete", `,"incomplete_details":{"reason":"max_output_tokens"}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w.model.answers(func(a *answer, _ map[string]any) { write(a) })
			list := w.stream("POST", "/v1/responses", `{"model":"triage","input":"hello","stream":true,"tools":[{"type":"function","name":"weather","parameters":{"type":"object"}}]}`)
			last := streams(t, list)
			var ended []any
			for _, e := range list {
				if e["type"] == "response.output_item.done" {
					ended = append(ended, e["item"])
				}
			}
			if !reflect.DeepEqual(ended, last["output"]) {
				t.Errorf("the stream ended\n%v\nand the response has\n%v", ended, last["output"])
			}
			if got := w.must("GET", "/v1/responses/"+last["id"].(string), ""); !reflect.DeepEqual(got, last) {
				t.Errorf("retrieved\n%v\nand streamed\n%v", got, last)
			}
		})
	}
}
