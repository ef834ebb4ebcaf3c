package openresponses_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// What the protocol wants of responses, items, parts and events: the fields of each and their
// types. A name that ends with ? may be absent, and one that ends with ° may be null.
func shapes() map[string]string {
	return map[string]string{
		"response": `id:string object:string created_at:number completed_at°:number status:string incomplete_details°:object model:string previous_response_id°:string
			instructions°:string output:array error°:object tools:array tool_choice:any truncation:string parallel_tool_calls:bool text:object top_p:number
			presence_penalty:number frequency_penalty:number top_logprobs:number temperature:number reasoning°:object usage°:object max_output_tokens°:number
			max_tool_calls°:number store:bool background:bool service_tier:string metadata:object safety_identifier°:string prompt_cache_key°:string conversation?:object`,
		"tool":  `type:string name:string description°:string parameters°:object strict°:bool`,
		"usage": `input_tokens:number input_tokens_details:object output_tokens:number output_tokens_details:object total_tokens:number`,

		"item message":       `type:string id:string status:string role:string content:array phase?:string`,
		"item function_call": `type:string id:string status:string call_id:string name:string arguments:string`,
		"item reasoning":     `type:string id:string summary:array content?:array encrypted_content?:string`,
		"item compaction":    `type:string id:string encrypted_content:string created_by?:string`,

		"part output_text":  `type:string text:string annotations:array logprobs:array`,
		"part refusal":      `type:string refusal:string`,
		"part summary_text": `type:string text:string`,

		"event response.created":                       `response:response`,
		"event response.queued":                        `response:response`,
		"event response.in_progress":                   `response:response`,
		"event response.completed":                     `response:response`,
		"event response.failed":                        `response:response`,
		"event response.incomplete":                    `response:response`,
		"event response.output_item.added":             `output_index:number item:item`,
		"event response.output_item.done":              `output_index:number item:item`,
		"event response.content_part.added":            `item_id:string output_index:number content_index:number part:part`,
		"event response.content_part.done":             `item_id:string output_index:number content_index:number part:part`,
		"event response.output_text.delta":             `item_id:string output_index:number content_index:number delta:string logprobs:array`,
		"event response.output_text.done":              `item_id:string output_index:number content_index:number text:string logprobs:array`,
		"event response.refusal.delta":                 `item_id:string output_index:number content_index:number delta:string`,
		"event response.refusal.done":                  `item_id:string output_index:number content_index:number refusal:string`,
		"event response.function_call_arguments.delta": `item_id:string output_index:number delta:string`,
		"event response.function_call_arguments.done":  `item_id:string output_index:number name?:string arguments:string`,
		"event response.reasoning_summary_part.added":  `item_id:string output_index:number summary_index:number part:part`,
		"event response.reasoning_summary_part.done":   `item_id:string output_index:number summary_index:number part:part`,
		"event response.reasoning_summary_text.delta":  `item_id:string output_index:number summary_index:number delta:string`,
		"event response.reasoning_summary_text.done":   `item_id:string output_index:number summary_index:number text:string`,
		"event error": `error:object`,
	}
}

// fits reports everything in which a value differs from its shape. Values of a kind that the
// protocol does not have, and fields that it does not have, do not fit.
func fits(at, shape string, v any) []string {
	o, ok := v.(object)
	if !ok {
		return []string{fmt.Sprintf("%s is %v, and no object", at, v)}
	}
	switch shape {
	case "item", "part", "event":
		shape += " " + fmt.Sprint(o["type"])
	}
	fields, known := shapes()[shape]
	if !known {
		return []string{fmt.Sprintf("%s: the protocol has no %s", at, shape)}
	}
	if strings.HasPrefix(shape, "event ") {
		fields += " type:string sequence_number:number stream_id?:any"
	}
	var wrong, names []string
	for field := range strings.FieldsSeq(fields) {
		name, kind, _ := strings.Cut(field, ":")
		plain := strings.TrimRight(name, "?°")
		names = append(names, plain)
		value, there := o[plain]
		at := at + "." + plain
		switch {
		case !there && !strings.HasSuffix(name, "?"):
			wrong = append(wrong, at+" is absent")
		case there && value == nil && !strings.HasSuffix(name, "°"):
			wrong = append(wrong, at+" is null")
		case value != nil:
			wrong = append(wrong, fitsKind(at, kind, value)...)
		}
	}
	for name := range o {
		if !slices.Contains(names, name) {
			wrong = append(wrong, fmt.Sprintf("%s: the protocol has no field %s", at, name))
		}
	}
	if shape == "response" {
		wrong = append(wrong, fitsResponse(at, o)...)
	}
	if content, ok := o["content"].([]any); ok && shape == "item message" {
		for i, p := range content {
			wrong = append(wrong, fits(fmt.Sprintf("%s.content[%d]", at, i), "part", p)...)
		}
	}
	return wrong
}

func fitsResponse(at string, o object) (wrong []string) {
	for i, item := range o["output"].([]any) {
		wrong = append(wrong, fits(fmt.Sprintf("%s.output[%d]", at, i), "item", item)...)
	}
	for i, tool := range o["tools"].([]any) {
		wrong = append(wrong, fits(fmt.Sprintf("%s.tools[%d]", at, i), "tool", tool)...)
	}
	if o["usage"] != nil {
		wrong = append(wrong, fits(at+".usage", "usage", o["usage"])...)
	}
	if e, ok := o["error"].(object); ok && (e["code"] == nil || e["message"] == nil) {
		wrong = append(wrong, fmt.Sprintf("%s.error is %v", at, e))
	}
	return wrong
}

func fitsKind(at, kind string, v any) []string {
	ok := false
	switch kind {
	case "string":
		_, ok = v.(string)
	case "number":
		_, ok = v.(float64)
	case "bool":
		_, ok = v.(bool)
	case "array":
		_, ok = v.([]any)
	case "object":
		_, ok = v.(object)
	case "any":
		ok = true
	default:
		return fits(at, kind, v)
	}
	if !ok {
		return []string{fmt.Sprintf("%s is %v, and no %s", at, v, kind)}
	}
	return nil
}

// conforms fails the test if a response is not one of the protocol's, or is not complete.
func conforms(t *testing.T, r object) {
	t.Helper()
	for _, wrong := range fits("response", "response", r) {
		t.Error(wrong)
	}
	if r["status"] != "completed" || len(r["output"].([]any)) == 0 {
		t.Errorf("the response is %v, with %v", r["status"], r["output"])
	}
}

// streams fails the test if the events of a stream are not those of the protocol in its order.
// It returns the response of the last.
func streams(t *testing.T, list []object) object {
	t.Helper()
	for n, e := range list {
		for _, wrong := range fits(fmt.Sprint(n), "event", e) {
			t.Error(wrong)
		}
		if e["sequence_number"] != float64(n) {
			t.Errorf("event %d has the number %v", n, e["sequence_number"])
		}
	}
	if got := kinds(list); !strings.HasPrefix(got, "created in_progress") && !strings.HasPrefix(got, "created queued in_progress") {
		t.Errorf("it begins with %s", got)
	}
	var item object // that is open
	part := ""      // the index of the open part
	items := 0
	for n, e := range list {
		kind := strings.TrimPrefix(e["type"].(string), "response.")
		if e["item_id"] != nil && (item == nil || e["item_id"] != item["id"] || e["output_index"] != float64(items)) {
			t.Errorf("event %d, %s, is of an item that is not open: %v", n, kind, e)
		}
		index := fmt.Sprint(e["content_index"], e["summary_index"])
		switch {
		case kind == "output_item.added":
			if item != nil || e["output_index"] != float64(items) {
				t.Errorf("event %d opens an item out of order: %v", n, e)
			}
			item = e["item"].(object)
		case kind == "output_item.done":
			if item == nil || part != "" || e["item"].(object)["id"] != item["id"] {
				t.Errorf("event %d ends an item out of order: %v", n, e)
			}
			item = nil
			items++
		case strings.HasSuffix(kind, "part.added"):
			if part != "" {
				t.Errorf("event %d opens a part out of order: %v", n, e)
			}
			part = index
		case strings.HasSuffix(kind, "part.done"):
			if part != index {
				t.Errorf("event %d ends a part that is not open: %v", n, e)
			}
			part = ""
		case strings.HasPrefix(kind, "output_text."), strings.HasPrefix(kind, "refusal."), strings.HasPrefix(kind, "reasoning_summary_text."):
			if part != index {
				t.Errorf("event %d is of a part that is not open: %v", n, e)
			}
		}
	}
	end := list[len(list)-1]
	if item != nil || part != "" || end["response"] == nil {
		t.Errorf("it ends with %v, while %v is open", end, item)
	}
	return end["response"].(object)
}
