package openai

import (
	"slices"
	"strings"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/events/openresponses"
)

// Prefix and longest form of the ids of reasoning that an endpoint accepts.
const (
	reasoningPrefix = "rs"
	maxItemID       = 64
)

// acceptable returns an input without the items that an endpoint refuses where they are. Each
// call has its result and an id of its own already; what depends on the neighbours is decided
// here, once all are known:
//
//   - Reasoning is followed by what came of it: a call, an answer, or more reasoning. What
//     followed may be deleted, empty, or of a kind that cannot be sent. An endpoint of an open
//     model, which has the reasoning in plain text (raw), takes it anywhere.
//   - An id of reasoning has the endpoint's form, and occurs once. A copied or imported item
//     loses its id, which is optional.
func acceptable(input []entry, raw bool) []entry {
	out := make([]entry, 0, len(input))
	var next any
	for _, e := range slices.Backward(input) {
		if _, is := e.value.(reasoningItem); is && !raw && !followsReasoning(next) {
			continue
		}
		next = e.value
		out = append(out, e)
	}
	slices.Reverse(out)
	used := map[string]bool{}
	for i, e := range out {
		item, is := e.value.(reasoningItem)
		if !is || item.ID == "" {
			continue
		}
		if !strings.HasPrefix(item.ID, reasoningPrefix) || len(item.ID) > maxItemID || used[item.ID] {
			item.ID = ""
			out[i].value = item
			continue
		}
		used[item.ID] = true
	}
	return out
}

// followsReasoning reports whether a value can be what a model said after reasoning.
func followsReasoning(value any) bool {
	switch v := value.(type) {
	case reasoningItem:
		return true
	case inputItem:
		return v.Type == "function_call" || v.Type == "message" && v.Role == events.Assistant
	case openresponses.Item: // of the endpoint itself
		return strings.HasSuffix(v.Type, "_call") || goesBack(v)
	}
	return false
}
