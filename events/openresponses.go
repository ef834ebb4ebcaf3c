package events

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

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

// writeOpen returns an item as one of Open Responses: message and item_reference unchanged,
// action_execute as function_call, action_result as function_call_output (incomplete if it
// failed).
func writeOpen(i *Item) (OpenItem, error) {
	if kept, ok := keptOpen(i); ok {
		return kept, nil
	}
	out := OpenItem{ID: i.ID, Status: openStatus(i.Status)}
	wrong := func(err error) (OpenItem, error) { return OpenItem{}, fmt.Errorf("item %s: %w", i.ID, err) }
	switch i.Type {
	case Message:
		out.Type, out.Role, out.Content = string(Message), i.Role, i.Content
	case ActionExecute:
		var c Call
		if err := json.Unmarshal(i.Content, &c); err != nil {
			return wrong(err)
		}
		text := asText(c.Arguments)
		out.Type, out.CallID, out.Name, out.Arguments = functionCall, c.CallID, c.Name, &text
	case ActionResult:
		var c CallResult
		if err := json.Unmarshal(i.Content, &c); err != nil {
			return wrong(err)
		}
		out.Type, out.CallID, out.Output = functionCallOutput, c.CallID, quote(asText(c.Output))
		if c.IsError {
			out.Status = openIncomplete
		}
	case ItemReference:
		var r Reference
		if err := json.Unmarshal(i.Content, &r); err != nil {
			return wrong(err)
		}
		return OpenItem{Type: string(ItemReference), ID: r.ItemID}, nil
	default:
		return wrong(fmt.Errorf("unknown type %q", clip(i.Type)))
	}
	return out, nil
}

// keptOpen returns the item of Open Responses that an item was created from, if that has
// something for which a thread has no field and the item was not changed since.
func keptOpen(i *Item) (OpenItem, bool) {
	var metadata struct {
		Kept *OpenItem `json:"openResponses"`
	}
	if i.Metadata == nil || json.Unmarshal(i.Metadata, &metadata) != nil || metadata.Kept == nil || metadata.Kept.Origin != nil {
		return OpenItem{}, false
	}
	kept := *metadata.Kept
	if i.Type == Message && kept.Content == nil && (kept.Type == "" || kept.Type == string(Message)) {
		kept.Content = i.Content
	}
	read, err := readOpen(kept)
	if err != nil || read.Type != i.Type || read.Role != i.Role || read.Status != i.Status || !sameValue(read.Content, i.Content) {
		return OpenItem{}, false
	}
	return kept, true
}

// ReadOpenResponses converts items of Open Responses to those that item.create accepts. What
// [OpenForm].Exact wrote becomes the items of the thread again, unchanged. Otherwise a
// reasoning item becomes an assistant message with a reasoning part, an item without a type is
// a message, and an item of a type that a thread does not have becomes an assistant message
// with a part of type open.TYPE that holds it. Fields that a thread does not have are kept in
// the item's metadata under openResponses, from which they are written again. The error is an
// invalid_request.
func ReadOpenResponses(list []OpenItem) ([]NewItem, error) {
	items := make([]NewItem, 0, len(list))
	for n := 0; n < len(list); {
		to := n + 1
		origin := list[n].Origin
		if origin == nil || origin.Item == nil {
			one := list[n]
			one.Origin = nil
			item, err := readOpen(one)
			if err != nil {
				return nil, at(err, n)
			}
			items = append(items, keep(item, one))
			n = to
			continue
		}
		for to < len(list) && list[to].Origin != nil && list[to].Origin.Item == nil && list[to].Origin.ID == origin.ID {
			to++
		}
		item, err := readOrigin(*origin.Item, list[n:to])
		if err != nil {
			return nil, at(err, n)
		}
		items = append(items, item)
		n = to
	}
	return items, nil
}

// at adds the index of the item at fault to an error.
func at(err error, n int) error {
	e := *AsError(err)
	details := ErrorDetails{}
	if e.Details != nil {
		details = *e.Details
	}
	details.Path = fmt.Sprintf("/%d%s", n, details.Path)
	e.Details = &details
	return &e
}

// readOrigin restores an item of a thread from the items that it was written as.
func readOrigin(item NewItem, list []OpenItem) (NewItem, error) {
	if item.Content == nil {
		if item.Type == Message {
			content, err := json.Marshal(partsOf(list), json.Deterministic(true))
			if err != nil {
				return item, Invalid("", "not an item: %w", err)
			}
			item.Content = content
		} else {
			one := list[0]
			one.Origin = nil
			read, err := readOpen(one)
			if err != nil {
				return item, err
			}
			item.Content = read.Content
		}
	}
	return item, item.Check()
}

// keep stores in an item's metadata what it was created from, unless writing the item returns
// the same.
func keep(item NewItem, from OpenItem) NewItem {
	back, err := (OpenForm{Split: from.Type != string(Message) && from.Type != ""}).Write(&Item{
		ID: item.ID, Type: item.Type, Role: item.Role, Status: item.Status, Content: item.Content,
	})
	if err == nil && len(back) == 1 && sameValue(valueOf(back[0]), valueOf(from)) {
		return item
	}
	if item.Type == Message && jsontext.Value(from.Content).Kind() == '[' {
		from.Content = nil
	}
	if metadata, err := json.Marshal(map[string]OpenItem{openMetadata: from}, json.Deterministic(true)); err == nil {
		item.Metadata = metadata
	}
	return item
}

// valueOf returns an item as JSON.
func valueOf(o OpenItem) JSON {
	raw, err := json.Marshal(o, json.Deterministic(true))
	if err != nil { // it was decoded from JSON, or made from such values
		return nil
	}
	return raw
}

// readOpen converts one item that was not written from a thread.
func readOpen(in OpenItem) (NewItem, error) {
	item := NewItem{Status: threadStatus(in.Status)}
	if ValidID(in.ID) {
		item.ID = in.ID
	}
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
		if jsontext.Value(output).Kind() == '"' {
			output = fromText(saidIn(output))
		}
		content = CallResult{CallID: in.CallID, Output: output, IsError: in.Status == openIncomplete}
	case string(ItemReference):
		item.Type, item.ID = ItemReference, ""
		content = Reference{ItemID: in.ID}
	default:
		item.Type, item.Role, content = Message, Assistant, partsOf([]OpenItem{in})
	}
	var err error
	if item.Content, err = json.Marshal(content, json.Deterministic(true)); err != nil {
		return NewItem{}, Invalid("", "not an item: %w", err)
	}
	return item, item.Check()
}

// OpenParts returns an item of Open Responses as parts of a message: those of a message
// unchanged, a reasoning as a part, a call as a part of type tool-NAME, and an item of any
// other type as a part of type open.TYPE.
func OpenParts(o OpenItem) []JSON { return partsOf([]OpenItem{o}) }

// partsOf returns the parts of the message that was written as these items.
func partsOf(list []OpenItem) []JSON {
	parts := []JSON{}
	for n := 0; n < len(list); n++ {
		o := list[n]
		answered := o.Type == functionCall && n+1 < len(list) && list[n+1].Type == functionCallOutput && list[n+1].CallID == o.CallID
		origin := o.Origin
		o.Origin = nil
		switch {
		case origin != nil && origin.Part != nil:
			parts = append(parts, origin.Part)
		case o.Type == string(Message):
			var own []JSON
			if json.Unmarshal(o.Content, &own) == nil {
				parts = append(parts, own...)
			}
		case o.Type == openReasoning:
			parts = append(parts, valueOf(o))
		case o.Type == functionCall && o.Arguments != nil:
			fields := map[string]any{"type": ToolPart + o.Name, "toolCallId": o.CallID, "input": fromText(*o.Arguments)}
			if answered {
				fields["state"], fields["output"] = "output-available", fromText(saidIn(list[n+1].Output))
			}
			if part, err := json.Marshal(fields, json.Deterministic(true)); err == nil {
				parts = append(parts, part)
			}
		default:
			if part, err := json.Marshal(map[string]any{"type": OpenExtension + o.Type, "item": o}, json.Deterministic(true)); err == nil {
				parts = append(parts, part)
			}
		}
		if answered {
			n++
		}
	}
	return parts
}

// messageContent returns a message's list of parts. In Open Responses the content may also be
// a string.
func messageContent(role Role, raw JSON) JSON {
	if jsontext.Value(raw).Kind() != '"' {
		return raw
	}
	kind := InputText
	if role == Assistant {
		kind = OutputText
	}
	return JSON(`[{"type":"` + kind + `","text":` + string(raw) + `}]`)
}

// asText returns a JSON value as the string that Open Responses requires: a string unchanged,
// any other value as JSON.
func asText(v JSON) string {
	if jsontext.Value(v).Kind() == '"' {
		return saidIn(v)
	}
	return string(v)
}

// fromText is the inverse of asText: it returns the value if the text is compact JSON, and
// otherwise the text itself.
func fromText(text string) JSON {
	v := jsontext.Value(text)
	if k := v.Kind(); (k == '{' || k == '[') && v.IsValid() {
		compact := v.Clone()
		if compact.Compact() == nil && string(compact) == text {
			return JSON(v)
		}
	}
	return quote(text)
}

// openIncomplete is the status of an item that did not finish.
const openIncomplete = "incomplete"

// openStatus returns Open Responses' status for an item's state; stored has none.
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
	case "completed", openIncomplete:
		return ItemCompleted
	}
	return ""
}
