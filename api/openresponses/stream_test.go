package openresponses_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/events"
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

// Calls that the server makes are shown in their order, after what the model has written with them,
// whichever of them ends first.
func TestStream_CallsThatEndInAnotherOrder(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.s.Must(w.s.Tool(skein.NewTool("slow", func(context.Context, struct{}) (any, error) {
		w.event(events.PartUpdatedType) // the other one has ended
		return "slow", nil
	}, skein.Description("Waits."))))
	w.s.Must(w.s.Tool(skein.NewTool("fast", func(context.Context, struct{}) (any, error) { return "fast", nil }, skein.Description("Does not."))))
	w.define("tool", `{"name":"slow","description":"Waits.","type":"go"}`, "tool", `{"name":"fast","description":"Does not.","type":"go"}`,
		"agent", `{"name":"racer","type":"ai_human","model":"m","tools":["slow","fast"]}`)
	w.model.answers(func(a *answer, asked map[string]any) {
		if len(asked["input"].([]any)) == 1 {
			a.says("I look.")
			a.calls("call_1", "slow", `{}`)
			a.thinks("Hm.")
			a.calls("call_2", "fast", `{}`)
		} else {
			a.says("Done.")
		}
		a.ends("response.completed", "")
	})
	list := w.stream("POST", "/v1/responses", `{"model":"racer","input":"hello","stream":true,"include":["skein.server_tools"]}`)
	last := streams(t, list)
	output := last["output"].([]any)
	if texts(output) != "I look. (reasoning) (mcp_call) (mcp_call) Done." || output[2].(object)["name"] != "slow" {
		t.Fatalf("%v", output)
	}
	var ended []any
	for _, e := range list {
		if e["type"] == "response.output_item.done" {
			ended = append(ended, e["item"])
		}
	}
	if !reflect.DeepEqual(ended, output) {
		t.Errorf("the stream ended\n%v\nand the response has\n%v", ended, output)
	}
	if got := w.must("GET", "/v1/responses/"+last["id"].(string)+"?include=skein.server_tools", ""); !reflect.DeepEqual(got, last) {
		t.Errorf("retrieved\n%v\nand streamed\n%v", got, last)
	}
}
