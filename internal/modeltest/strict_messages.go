package modeltest

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

const messagesFields = "model max_tokens messages system stream temperature top_p top_k stop_sequences tools tool_choice thinking metadata service_tier output_config cache_control"

// blockFields returns the fields that a block may have, and the role that it is of.
func blockFields(kind string) (names, role string) {
	switch kind {
	case "text":
		return "type text cache_control citations", "user assistant"
	case "image":
		return "type source cache_control", "user"
	case "document":
		return "type source title context citations cache_control", "user"
	case "tool_use":
		return "type id name input cache_control", "assistant"
	case "tool_result":
		return "type tool_use_id content is_error cache_control", "user"
	case "thinking":
		return "type thinking signature", "assistant"
	case "redacted_thinking":
		return "type data", "assistant"
	}
	return "", ""
}

func messagesRefusals(request map[string]any, s *Strict) (bad []string) {
	var r refused
	r.unknown("request", request, messagesFields)
	most, _ := request["max_tokens"].(float64)
	if most < 1 {
		r.add("max_tokens: field required")
	}
	thinking := object(request["thinking"])
	budget, _ := thinking["budget_tokens"].(float64)
	if thinking["type"] == "enabled" && (budget < 1024 || budget >= most) {
		r.add("`max_tokens` must be greater than `thinking.budget_tokens`")
	}
	if t, ok := request["temperature"].(float64); ok && (t < 0 || t > 1 || t != 1 && (thinking["type"] == "enabled" || thinking["type"] == "adaptive")) {
		r.add("temperature: %v", t)
	}
	if has(request, "system") && said(request["system"]) == "" {
		r.add("system: text content blocks must be non-empty")
	}
	names := r.tools(list(request["tools"]), func(t map[string]any) (string, map[string]any) {
		r.unknown("tool", t, "name description input_schema type cache_control strict input_examples eager_input_streaming")
		return said(t["name"]), object(t["input_schema"])
	})
	if c := object(request["tool_choice"]); has(request, "tool_choice") {
		r.unknown("tool_choice", c, "type name disable_parallel_tool_use")
		if len(names) == 0 || !slices.Contains([]string{"auto", "any", "tool", "none"}, said(c["type"])) || c["type"] == "tool" && !names[said(c["name"])] {
			r.add("tool_choice: %v", c)
		}
	}
	messages := list(request["messages"])
	if len(messages) == 0 {
		return append(r, "messages: at least one message is required")
	}
	if object(messages[0])["role"] != "user" || object(messages[len(messages)-1])["role"] != "user" {
		r.add("the conversation must begin and end with a user message")
	}
	ids, due := map[string]bool{}, map[string]bool{}
	for n, v := range messages {
		m := object(v)
		r.unknown("message", m, "role content")
		r.results(n, m, due)
		due = r.blocks(n, m, ids, s)
	}
	return r
}

// results checks that the results of the calls before come first in a message, once each.
func (r *refused) results(n int, m map[string]any, due map[string]bool) {
	seen, over := map[string]bool{}, false
	for _, v := range list(m["content"]) {
		b := object(v)
		if b["type"] != "tool_result" {
			over = true
			continue
		}
		id := said(b["tool_use_id"])
		if over || !due[id] || seen[id] {
			r.add("messages.%d: the result of %s is not first, of no call before, or a second one", n, id)
		}
		seen[id] = true
	}
	if len(seen) < len(due) || len(due) > 0 && m["role"] != "user" {
		r.add("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %v", n, slices.Sorted(maps.Keys(due)))
	}
}

// blocks checks the blocks of a message, and returns the calls that wait for their results.
func (r *refused) blocks(n int, m map[string]any, ids map[string]bool, s *Strict) map[string]bool {
	due := map[string]bool{}
	content := list(m["content"])
	if len(content) == 0 {
		r.add("messages.%d: all messages must have non-empty content", n)
	}
	begun := false // what may not precede thinking
	for k, v := range content {
		b := object(v)
		kind := said(b["type"])
		names, roles := blockFields(kind)
		if !slices.Contains(strings.Fields(roles), said(m["role"])) {
			r.add("messages.%d.content.%d: unexpected %s for %v", n, k, kind, m["role"])
			continue
		}
		r.unknown(kind, b, names)
		switch kind {
		case "text":
			r.blockText(b)
		case "image", "document":
			r.source(b)
		case "tool_use":
			id := said(b["id"])
			if !wireID.MatchString(id) || ids[id] || object(b["input"]) == nil {
				r.add("messages.%d.content.%d: %v", n, k, b)
			}
			ids[id], due[id] = true, true
		case "tool_result":
			for _, v := range list(b["content"]) {
				x := object(v)
				if r.blockText(x); b["is_error"] == true && x["type"] != "text" {
					r.add("all content must be type \"text\" if `is_error` is true")
				}
			}
		case "thinking":
			was, known := s.Seals[said(b["signature"])]
			if !known || was != b["thinking"] || begun {
				r.add("messages.%d.content.%d: an invalid signature, other thinking, or not at the front: %v", n, k, b)
			}
		}
		begun = begun || !strings.HasSuffix(kind, "thinking")
	}
	return due
}

// blockText checks a block if it is a text.
func (r *refused) blockText(b map[string]any) {
	if b["type"] == "text" && strings.TrimSpace(said(b["text"])) == "" {
		r.add("text content blocks must contain non-whitespace text")
	}
}

var base64Data = regexp.MustCompile(`^[A-Za-z0-9+/]+=*$`)

// source checks what an image or a document shows.
func (r *refused) source(b map[string]any) {
	s := object(b["source"])
	switch kind := said(s["type"]); {
	case kind == "base64" && base64Data.MatchString(said(s["data"])) && (b["type"] == "document" || strings.HasPrefix(said(s["media_type"]), "image/")):
	case kind == "url" && strings.HasPrefix(said(s["url"]), "http"):
	case kind == "text" && b["type"] == "document" && said(s["data"]) != "":
	default:
		r.add("%s.source: %.80v", b["type"], s)
	}
}
