package events

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ToolPart is the prefix of the type of a part that is a call of a tool.
const ToolPart = "tool-"

// Call is the content of an action_execute.
type Call struct {
	CallID    string `json:"callId"`
	Name      string `json:"name"`
	Arguments JSON   `json:"arguments"`
}

// CallResult is the content of an action_result.
type CallResult struct {
	CallID  string `json:"callId"`
	Output  JSON   `json:"output"`
	IsError bool   `json:"isError,omitzero"`
	Name    string `json:"name,omitzero"` // of the tool
}

// Reference is the content of an item_reference.
type Reference struct {
	ItemID string `json:"itemId"`
}

// TextOf returns a JSON value as the string that protocols of models have for arguments and
// outputs: a string unchanged, any other value as JSON.
func TextOf(v JSON) string {
	if jsontext.Value(v).Kind() != '"' {
		return string(v)
	}
	var s string
	_ = json.Unmarshal(v, &s) // "" if it is not valid
	return s
}

// FromText is the inverse of TextOf: it returns the value if the text is a compact JSON
// object or array, and otherwise the text itself as a JSON string.
func FromText(text string) JSON {
	v := jsontext.Value(text)
	if k := v.Kind(); (k == '{' || k == '[') && v.IsValid() {
		compact := v.Clone()
		if compact.Compact() == nil && string(compact) == text {
			return JSON(v)
		}
	}
	return Quote(text)
}

// Quote returns a string as JSON.
func Quote(s string) JSON {
	v, err := jsontext.AppendQuote(nil, s)
	if err != nil { // it is not valid UTF-8, and was not decoded from JSON
		return JSON(`""`)
	}
	return v
}
