package events

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// openItem is an item as Open Responses has it, of any kind that a thread can
// hold (EK 10).
type openItem struct {
	Type      string         `json:"type,omitzero"`
	ID        string         `json:"id,omitzero"`
	Role      Role           `json:"role,omitzero"`
	Status    string         `json:"status,omitzero"`
	Content   jsontext.Value `json:"content,omitzero"`
	CallID    string         `json:"call_id,omitzero"`
	Name      string         `json:"name,omitzero"`
	Arguments *string        `json:"arguments,omitzero"`
	Output    jsontext.Value `json:"output,omitzero"`
}

// The kinds of items that Open Responses has other names for.
const (
	functionCall       = "function_call"
	functionCallOutput = "function_call_output"
	openReasoning      = "reasoning"
)

// Call is the content of an action_execute.
type Call struct {
	CallID    string         `json:"callId"`
	Name      string         `json:"name"`
	Arguments jsontext.Value `json:"arguments"`
}

// CallResult is the content of an action_result.
type CallResult struct {
	CallID  string         `json:"callId"`
	Output  jsontext.Value `json:"output"`
	IsError bool           `json:"isError,omitzero"`
	Name    string         `json:"name,omitzero"` // of the tool
}

// Reference is the content of an item_reference.
type Reference struct {
	ItemID string `json:"itemId"`
}

// ToOpenResponses writes an item as Open Responses has it: message as it is,
// action_execute as function_call, action_result as function_call_output (a
// failed one is incomplete), item_reference as it is (EK-10, EK-11,
// EK-166..EK-169). What belongs to threads alone (thread, context, index) is
// left out. The error says that the content is not of the item's kind.
func ToOpenResponses(i *Item) (jsontext.Value, error) {
	out := openItem{ID: i.ID, Status: openStatus(i.Status)}
	switch i.Type {
	case Message:
		out.Type, out.Role, out.Content = string(Message), i.Role, i.Content
	case ActionExecute:
		var c Call
		if err := json.Unmarshal(i.Content, &c); err != nil {
			return nil, fmt.Errorf("item %s: %w", i.ID, err)
		}
		text := asText(c.Arguments)
		out.Type, out.CallID, out.Name, out.Arguments = functionCall, c.CallID, c.Name, &text
	case ActionResult:
		var c CallResult
		if err := json.Unmarshal(i.Content, &c); err != nil {
			return nil, fmt.Errorf("item %s: %w", i.ID, err)
		}
		quoted, err := jsontext.AppendQuote(nil, asText(c.Output))
		if err != nil {
			return nil, fmt.Errorf("item %s: %w", i.ID, err)
		}
		out.Type, out.CallID, out.Output = functionCallOutput, c.CallID, quoted
		if c.IsError {
			out.Status = "incomplete"
		}
	case ItemReference:
		var r Reference
		if err := json.Unmarshal(i.Content, &r); err != nil {
			return nil, fmt.Errorf("item %s: %w", i.ID, err)
		}
		return json.Marshal(openItem{Type: string(ItemReference), ID: r.ItemID})
	}
	return json.Marshal(out)
}

// FromOpenResponses reads an item of Open Responses as one that item.create
// takes. A reasoning item becomes an assistant message with a reasoning part
// (EK-171, EK-172); an item without a type is a message. The error is an
// invalid_request: of a kind that a thread has no place for, or not an item.
func FromOpenResponses(raw jsontext.Value) (NewItem, error) {
	var in openItem
	if err := json.Unmarshal(raw, &in); err != nil {
		return NewItem{}, Invalid("", "not an item: %w", err)
	}
	item := NewItem{ID: in.ID, Status: threadStatus(in.Status)}
	var content any
	switch in.Type {
	case "", string(Message):
		item.Type, item.Role = Message, in.Role
		item.Content = messageContent(in.Role, in.Content)
		return item, item.Check()
	case functionCall:
		item.Type = ActionExecute
		text := ""
		if in.Arguments != nil {
			text = *in.Arguments
		}
		content = Call{CallID: in.CallID, Name: in.Name, Arguments: fromText(text)}
	case functionCallOutput:
		item.Type = ActionResult
		output := in.Output
		if output == nil {
			return NewItem{}, Invalid("/output", "a function_call_output has an output")
		}
		var text string
		if output.Kind() == '"' && json.Unmarshal(output, &text) == nil {
			output = fromText(text)
		}
		content = CallResult{CallID: in.CallID, Output: output, IsError: in.Status == "incomplete"}
	case string(ItemReference):
		item.Type, item.ID = ItemReference, ""
		content = Reference{ItemID: in.ID}
	case openReasoning:
		part, err := reasoningPart(raw)
		if err != nil {
			return NewItem{}, err
		}
		item.Type, item.Role, item.Content = Message, Assistant, append(append(jsontext.Value("["), part...), ']')
		return item, item.Check()
	default:
		return NewItem{}, Invalid("/type", "a thread has no place for an item of type %s", clip(in.Type))
	}
	var err error
	if item.Content, err = json.Marshal(content, json.Deterministic(true)); err != nil {
		return NewItem{}, Invalid("", "not an item: %w", err)
	}
	return item, item.Check()
}

// reasoningPart makes a message part of a reasoning item: what it holds, but
// for what the message holds already.
func reasoningPart(raw jsontext.Value) (jsontext.Value, error) {
	var fields map[string]jsontext.Value
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, Invalid("", "not an item: %w", err)
	}
	delete(fields, "id")
	delete(fields, "status")
	return json.Marshal(fields, json.Deterministic(true))
}

// messageContent gives a message's list of parts: Open Responses allows a text
// alone.
func messageContent(role Role, raw jsontext.Value) jsontext.Value {
	if raw.Kind() != '"' {
		return raw
	}
	kind := InputText
	if role == Assistant {
		kind = OutputText
	}
	return jsontext.Value(`[{"type":"` + kind + `","text":` + string(raw) + `}]`)
}

// asText gives a JSON value as the text that Open Responses wants: a text as it
// is, anything else as JSON.
func asText(v jsontext.Value) string {
	var s string
	if v.Kind() == '"' && json.Unmarshal(v, &s) == nil {
		return s
	}
	return string(v)
}

// fromText gives the JSON value that asText makes that text of: the value, if
// the text is JSON just as it would be written, and else the text itself.
func fromText(text string) jsontext.Value {
	v := jsontext.Value(text)
	if k := v.Kind(); (k == '{' || k == '[') && v.IsValid() {
		compact := v.Clone()
		if compact.Compact() == nil && string(compact) == text {
			return v
		}
	}
	quoted, err := jsontext.AppendQuote(nil, text)
	if err != nil { // a text that was decoded from JSON is valid
		return jsontext.Value(`""`)
	}
	return quoted
}

// openStatus gives Open Responses' word for an item's state; stored has none.
func openStatus(s ItemStatus) string {
	switch s {
	case ItemPending:
		return "in_progress"
	case ItemCompleted:
		return "completed"
	}
	return ""
}

func threadStatus(s string) ItemStatus {
	switch s {
	case "in_progress":
		return ItemPending
	case "completed", "incomplete":
		return ItemCompleted
	}
	return ""
}
