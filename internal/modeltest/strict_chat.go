package modeltest

import (
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
)

const chatFields = "model messages stream stream_options tools tool_choice parallel_tool_calls temperature top_p max_tokens max_completion_tokens stop response_format reasoning_effort seed presence_penalty " +
	"frequency_penalty logprobs top_logprobs n user metadata store service_tier logit_bias verbosity prompt_cache_key safety_identifier"

// messageFields returns the fields that a message of a role may have.
func messageFields(role string, raw bool) string {
	switch role {
	case "assistant":
		if raw {
			return "role content name tool_calls refusal reasoning_content"
		}
		return "role content name tool_calls refusal"
	case "tool":
		return "role content tool_call_id"
	case "system", "developer", "user":
		return "role content name"
	}
	return ""
}

func chatRefusals(request map[string]any, s *Strict) (bad []string) {
	var r refused
	r.unknown("request", request, chatFields)
	if has(request, "max_tokens") && has(request, "max_completion_tokens") {
		r.add("setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported")
	}
	names := r.tools(list(request["tools"]), func(t map[string]any) (string, map[string]any) {
		r.unknown("tool", t, "type function")
		f := object(t["function"])
		r.unknown("function", f, "name description parameters strict")
		return said(f["name"]), object(f["parameters"])
	})
	if has(request, "tools") && len(names) == 0 || len(names) == 0 && (has(request, "tool_choice") || has(request, "parallel_tool_calls")) {
		r.add("tools is empty, or something is only permitted with tools")
	}
	if c := object(request["tool_choice"]); c != nil && !names[said(object(c["function"])["name"])] {
		r.add("the tool choice %v is not found in tools", c)
	}
	if f := object(request["response_format"]); f["type"] == "json_schema" && (said(object(f["json_schema"])["name"]) == "" || object(f["json_schema"])["schema"] == nil) {
		r.add("missing required parameter: response_format.json_schema")
	}
	messages := list(request["messages"])
	if len(messages) == 0 {
		r.add("invalid messages: empty array")
	}
	ids, due := map[string]bool{}, map[string]bool{}
	for n, v := range messages {
		m := object(v)
		role := said(m["role"])
		if messageFields(role, s.Raw) == "" {
			r.add("messages[%d].role %q", n, role)
			continue
		}
		r.unknown("message of "+role, m, messageFields(role, s.Raw))
		if role == "tool" {
			if id := said(m["tool_call_id"]); !due[id] {
				r.add("messages[%d] answers no call of the message before, or one that is answered: %s", n, id)
			} else {
				delete(due, id)
			}
			if _, isText := m["content"].(string); !isText {
				r.add("messages[%d].content of a tool is %T", n, m["content"])
			}
			continue
		}
		if len(due) > 0 {
			r.add("messages[%d] comes before the results of %v", n, slices.Sorted(maps.Keys(due)))
		}
		due = r.chatCalls(n, m, ids)
		r.chatContent(n, role, m)
	}
	if len(due) > 0 {
		r.add("there are no results of %v", slices.Sorted(maps.Keys(due)))
	}
	return r
}

// chatCalls checks the calls of a message, and returns those that wait for their results.
func (r *refused) chatCalls(n int, m map[string]any, ids map[string]bool) map[string]bool {
	due := map[string]bool{}
	if has(m, "tool_calls") && len(list(m["tool_calls"])) == 0 {
		r.add("messages[%d].tool_calls: empty array", n)
	}
	for _, v := range list(m["tool_calls"]) {
		c := object(v)
		r.unknown("call", c, "id type function")
		f, id := object(c["function"]), said(c["id"])
		var arguments map[string]any
		if c["type"] != "function" || id == "" || len(id) > 64 || ids[id] || !wireName.MatchString(said(f["name"])) || json.Unmarshal([]byte(said(f["arguments"])), &arguments) != nil {
			r.add("messages[%d]: the call %v", n, c)
		}
		ids[id], due[id] = true, true
	}
	return due
}

// chatContent checks the content of a message that is not a tool's.
func (r *refused) chatContent(n int, role string, m map[string]any) {
	parts := list(m["content"])
	if said(m["content"]) == "" && len(parts) == 0 && (role != "assistant" || len(list(m["tool_calls"])) == 0 && said(m["refusal"]) == "") {
		r.add("messages[%d].content is %v", n, m["content"])
	}
	for _, v := range parts {
		p := object(v)
		permitted := []string{"text"}
		switch role {
		case "user":
			permitted = []string{"text", "image_url", "file", "input_audio"}
		case "assistant":
			permitted = []string{"text", "refusal"}
		}
		kind := said(p["type"])
		if !slices.Contains(permitted, kind) || kind == "text" && said(p["text"]) == "" || kind == "image_url" && !imageData.MatchString(said(object(p["image_url"])["url"])) {
			r.add("messages[%d].content has %v of %s", n, p, role)
		}
	}
}
