package events

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// toolCall is a call in tool_calls, in the form of OpenAI's chat API.
type toolCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function toolFunction `json:"function"`
	Elided   bool         `json:"elided,omitzero"` // its arguments are omitted, as the message would be too large
}

type toolFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// toolCalls encodes calls as the JSON text of tool_calls, nil if there are none.
func toolCalls(items []*Item, elided int) *string {
	var list []toolCall
	for n, i := range items {
		var c Call
		_ = json.Unmarshal(i.Content, &c) // it was validated when it was written
		call := toolCall{ID: c.CallID, Type: "function", Function: toolFunction{Name: c.Name, Arguments: TextOf(c.Arguments)}}
		if n < elided {
			call.Function.Arguments, call.Elided = "", true
		}
		list = append(list, call)
	}
	if list == nil {
		return nil
	}
	raw, err := json.Marshal(list, json.Deterministic(true))
	if err != nil { // strings decoded from JSON
		return nil
	}
	text := string(raw)
	return &text
}

// ParseToolCalls parses tool_calls. Arguments that are a JSON object or list without spaces
// are stored as JSON and others as a string, so that they are returned unchanged. The error is
// an invalid_request.
func ParseToolCalls(text string) ([]Call, error) {
	var list []struct {
		ID       *string `json:"id"`
		Type     *string `json:"type"`
		Function *struct {
			Name      *string `json:"name"`
			Arguments *string `json:"arguments"`
		} `json:"function"`
	}
	if err := json.Unmarshal([]byte(text), &list, json.RejectUnknownMembers(true)); err != nil {
		return nil, Invalid("", `tool calls are JSON text such as [{"id":"call_1","type":"function","function":{"name":"find","arguments":"{}"}}]: %w`, err)
	}
	calls := make([]Call, len(list))
	for n, c := range list {
		switch {
		case c.ID == nil || *c.ID == "" || c.Function == nil || c.Function.Name == nil || *c.Function.Name == "" || c.Function.Arguments == nil:
			return nil, Invalid("", "tool call %d needs id, function.name and function.arguments, a text", n)
		case c.Type != nil && *c.Type != "function":
			return nil, Invalid("", "tool call %d is a %s; only functions can be called", n, clip(*c.Type))
		}
		calls[n] = Call{CallID: *c.ID, Name: *c.Function.Name, Arguments: FromText(*c.Function.Arguments)}
	}
	return calls, nil
}

// QuoteText encodes a string that was decoded from JSON.
func QuoteText(s string) JSON {
	b, err := jsontext.AppendQuote(nil, s)
	if err != nil { // such a string is valid UTF-8
		return JSON(`""`)
	}
	return b
}
