package openresponses_test

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// What the protocol wants of responses, items, parts and events: the fields of each and their
// types. A name that ends with ? may be absent, and one that ends with ° may be null. A type is a
// kind of JSON, another shape, a list of one ([]shape), the shape that a value's type names
// (shape*), or the texts that there are (a|b).
func shapes() map[string]string {
	return map[string]string{
		"response": `id:string object:response| created_at:int completed_at°:int status:queued|in_progress|completed|incomplete|failed|cancelled incomplete_details°:incomplete
			model:string previous_response_id°:string instructions°:string output:[]item* error°:failure tools:[]tool tool_choice:choice truncation:auto|disabled
			parallel_tool_calls:bool text:text top_p:number presence_penalty:number frequency_penalty:number top_logprobs:int temperature:number
			reasoning°:reasoning usage°:usage max_output_tokens°:int max_tool_calls°:int store:bool background:bool service_tier:string metadata:object
			safety_identifier°:string prompt_cache_key°:string user?:string conversation?:conversation`,
		"incomplete":   `reason:string`,
		"failure":      `type:string code:string message:string`,
		"conversation": `id:string`,
		"tool":         `type:function| name:string description°:string parameters°:object strict°:bool`,
		"reasoning":    `effort°:none|minimal|low|medium|high|xhigh summary°:concise|detailed|auto`,
		"text":         `format:format* verbosity?:low|medium|high`,
		"usage":        `input_tokens:int input_tokens_details:cached output_tokens:int output_tokens_details:thought total_tokens:int`,
		"cached":       `cached_tokens:int`,
		"thought":      `reasoning_tokens:int`,
		"compaction":   `id:string object:response.compaction| created_at:int output:[]item* usage:usage`,

		"format text":        `type:string`,
		"format json_object": `type:string`,
		// The published schema wants null as the schema. Clients read what they have sent.
		"format json_schema": `type:string name:string description°:string schema:object strict:bool`,

		"choice function":      `type:string name?:string`,
		"choice allowed_tools": `type:string tools:[]choice* mode:none|auto|required`,

		"item message":              `type:string id:string status:in_progress|completed|incomplete role:user|assistant|system|developer content:[]part* phase?:commentary|final_answer`,
		"item function_call":        `type:string id:string status:in_progress|completed|incomplete call_id:string name:string arguments:string`,
		"item function_call_output": `type:string id:string status:in_progress|completed|incomplete call_id:string output:result`,
		"item reasoning":            `type:string id:string summary:[]part* content?:[]part* encrypted_content?:string`,
		"item compaction":           `type:string id:string encrypted_content:string created_by?:string`,

		// Of OpenAI's own endpoint, for tools that it makes calls of.
		"item mcp_call":             `type:string id:string status:completed|failed name:string arguments:string output°:string error°:string server_label:string approval_request_id?:string`,
		"item mcp_approval_request": `type:string id:string name:string arguments:string server_label:string`,
		"item web_search_call":      `type:string id:string status:completed|failed action:object`,

		"part input_text":     `type:string text:string`,
		"part input_image":    `type:string image_url°:string detail:low|high|auto`,
		"part input_file":     `type:string filename?:string file_url?:string file_data?:string`,
		"part output_text":    `type:string text:string annotations:[]annotation* logprobs:[]logprob`,
		"part refusal":        `type:string refusal:string`,
		"part summary_text":   `type:string text:string`,
		"part reasoning_text": `type:string text:string`,

		"annotation url_citation": `type:string url:string start_index:int end_index:int title:string`,
		"logprob":                 `token:string logprob:number bytes:array top_logprobs:[]toplogprob`,
		"toplogprob":              `token:string logprob:number bytes:array`,

		"event response.created":                       `response:response`,
		"event response.queued":                        `response:response`,
		"event response.in_progress":                   `response:response`,
		"event response.completed":                     `response:response`,
		"event response.failed":                        `response:response`,
		"event response.incomplete":                    `response:response`,
		"event response.output_item.added":             `output_index:int item:item*`,
		"event response.output_item.done":              `output_index:int item:item*`,
		"event response.content_part.added":            `item_id:string output_index:int content_index:int part:part*`,
		"event response.content_part.done":             `item_id:string output_index:int content_index:int part:part*`,
		"event response.output_text.delta":             `item_id:string output_index:int content_index:int delta:string logprobs:[]logprob`,
		"event response.output_text.annotation.added":  `item_id:string output_index:int content_index:int annotation_index:int annotation:annotation*`,
		"event response.output_text.done":              `item_id:string output_index:int content_index:int text:string logprobs:[]logprob`,
		"event response.refusal.delta":                 `item_id:string output_index:int content_index:int delta:string`,
		"event response.refusal.done":                  `item_id:string output_index:int content_index:int refusal:string`,
		"event response.function_call_arguments.delta": `item_id:string output_index:int delta:string`,
		"event response.function_call_arguments.done":  `item_id:string output_index:int name?:string arguments:string`,
		"event response.reasoning_summary_part.added":  `item_id:string output_index:int summary_index:int part:part*`,
		"event response.reasoning_summary_part.done":   `item_id:string output_index:int summary_index:int part:part*`,
		"event response.reasoning_summary_text.delta":  `item_id:string output_index:int summary_index:int delta:string`,
		"event response.reasoning_summary_text.done":   `item_id:string output_index:int summary_index:int text:string`,
		"event error": `error:problem`,

		"problem":      `type:string code°:string message:string param°:string`,
		"socket error": `type:error| status:int error:refused`,
		"refused":      `code:string message:string type?:string param?:string`,
	}
}

// fits reports everything in which a value differs from its shape. Values of a kind that the
// protocol does not have, and fields that it does not have, do not fit.
func fits(at, shape string, v any) []string {
	o, ok := v.(object)
	if !ok {
		return []string{fmt.Sprintf("%s is %v, and no object", at, v)}
	}
	if kind, ok := strings.CutSuffix(shape, "*"); ok {
		shape = kind + " " + fmt.Sprint(o["type"])
	}
	fields, known := shapes()[shape]
	if !known {
		return []string{fmt.Sprintf("%s: the protocol has no %s", at, shape)}
	}
	if strings.HasPrefix(shape, "event ") {
		fields += " type:string sequence_number:int stream_id?:any"
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
	return wrong
}

func fitsKind(at, kind string, v any) (wrong []string) {
	ok := false
	text, isText := v.(string)
	list, isList := v.([]any)
	number, isNumber := v.(float64)
	switch {
	case strings.HasPrefix(kind, "[]"):
		for i, one := range list {
			wrong = append(wrong, fits(fmt.Sprintf("%s[%d]", at, i), kind[2:], one)...)
		}
		ok = isList
	case strings.Contains(kind, "|"):
		ok = isText && slices.Contains(strings.Split(strings.TrimSuffix(kind, "|"), "|"), text)
	case kind == "choice" && isText:
		ok = slices.Contains([]string{"none", "auto", "required"}, text)
	case kind == "choice":
		return fits(at, "choice*", v)
	case kind == "result" && isList:
		return fitsKind(at, "[]part*", v)
	case kind == "string", kind == "result":
		ok = isText
	case kind == "number":
		ok = isNumber
	case kind == "int":
		ok = isNumber && number == math.Trunc(number)
	case kind == "bool":
		_, ok = v.(bool)
	case kind == "array":
		ok = isList
	case kind == "object":
		_, ok = v.(object)
	case kind == "any":
		ok = true
	default:
		return fits(at, kind, v)
	}
	if !ok {
		wrong = append(wrong, fmt.Sprintf("%s is %v, and no %s", at, v, kind))
	}
	return wrong
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
		for _, wrong := range fits(fmt.Sprint(n), "event*", e) {
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
	var ended []any // the ids of items
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
			if n := len(ended); n > 0 && ended[n-1] == item["id"] { // the model was asked again
				ended = ended[:n-1]
			}
			ended = append(ended, item["id"])
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
	var output []any // at the indexes that the stream has named
	for _, o := range end["response"].(object)["output"].([]any) {
		output = append(output, o.(object)["id"])
	}
	if !reflect.DeepEqual(ended, output) {
		t.Errorf("the stream has the items %v, and the response %v: %s", ended, output, kinds(list))
	}
	return end["response"].(object)
}
