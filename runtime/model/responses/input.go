package responses

import (
	"strings"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/events/openresponses"
	"github.com/skein-threads/skein/runtime/model"
)

// Prefix and longest form of the ids of reasoning that an endpoint accepts.
const (
	reasoningPrefix = "rs"
	maxItemID       = 64
)

// inputItem is an item of a request's input, of any kind.
type inputItem struct {
	Type      string       `json:"type"`
	Role      events.Role  `json:"role,omitzero"`
	Content   []model.Part `json:"content,omitempty"`
	CallID    string       `json:"call_id,omitzero"`
	Name      string       `json:"name,omitzero"`
	Arguments *string      `json:"arguments,omitzero"`
	Output    *events.JSON `json:"output,omitzero"` // a text, or a list of parts
	Phase     string       `json:"phase,omitzero"`  // of an assistant's message
}

// reasoningItem is an item whose content does not consist of a message's parts.
type reasoningItem struct {
	Type             string        `json:"type"`
	ID               string        `json:"id,omitzero"`
	Summary          []events.JSON `json:"summary"`
	Content          events.JSON   `json:"content,omitzero"`
	EncryptedContent string        `json:"encrypted_content,omitzero"`
}

// inputOf returns the input of a request. An id of reasoning has the endpoint's form, and occurs
// once: a copied or imported item loses its id, which is optional.
func inputOf(items []model.Item) []any {
	input := make([]any, len(items))
	used := map[string]bool{"": true}
	for n, item := range items {
		switch i := item.(type) {
		case model.Message:
			input[n] = inputItem{Type: "message", Role: i.Role, Content: i.Parts, Phase: i.Phase}
		case model.Call:
			input[n] = inputItem{Type: "function_call", CallID: i.ID, Name: i.Name, Arguments: &i.Arguments}
		case model.Result:
			input[n] = inputItem{Type: "function_call_output", CallID: i.CallID, Output: &i.Output}
		case model.Reasoning:
			if !strings.HasPrefix(i.ID, reasoningPrefix) || len(i.ID) > maxItemID || used[i.ID] {
				i.ID = ""
			}
			used[i.ID] = true
			input[n] = reasoningItem{Type: "reasoning", ID: i.ID, Summary: i.Summary, Content: i.Content, EncryptedContent: i.Encrypted}
		case model.Own:
			input[n] = i.Item
		}
	}
	return input
}

// returns reports whether an item is a call that the endpoint made itself and has finished, or what
// it listed for that: it expects to see what it did. So is a compaction that it made. An id that is
// not of the type's form it refuses, with the whole input.
func returns(o openresponses.Item) bool {
	var prefix string
	switch o.Type {
	case "web_search_call":
		prefix = "ws"
	case "file_search_call":
		prefix = "fs"
	case "code_interpreter_call":
		prefix = "ci"
	case "image_generation_call":
		prefix = "ig"
	case "mcp_call", "mcp_list_tools":
		prefix = "mcp"
	case "tool_search_call", "tool_search_output":
	case "compaction":
		return true
	default:
		return false
	}
	finished := o.Status == "" || o.Status == "completed" || o.Status == "failed"
	return finished && o.ID != "" && len(o.ID) <= maxItemID && strings.HasPrefix(o.ID, prefix)
}
