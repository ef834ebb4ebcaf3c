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

// writeOpen writes an item as one of Open Responses: message as it is,
// action_execute as function_call, action_result as function_call_output (a
// failed one is incomplete), item_reference as it is.
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
		return wrong(fmt.Errorf("there is no item of type %q", clip(i.Type)))
	}
	return out, nil
}

// keptOpen returns the item of Open Responses that an item was made of, if it
// says something for which a thread has no field, and the item still says the
// same.
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

// ReadOpenResponses reads items of Open Responses as those that item.create
// takes. What was written with [OpenForm].Exact becomes the items of the thread
// as they were. Of others, a reasoning item becomes an assistant message with a
// reasoning part, an item without a type is a message, and one that a thread has
// no kind for becomes an assistant message with a part of type open.TYPE that
// holds it. What has no field in a thread stands in the item's metadata, under
// openResponses, and is written again from there. The error is an
// invalid_request: it is no item.
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

// at says which item of the list is at fault.
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

// readOrigin reads what an item of a thread was written as.
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

// keep notes in the metadata of an item what it was made of, if it would not be
// written as that again.
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
	if err != nil { // it was decoded from JSON, or made of it
		return nil
	}
	return raw
}

// readOpen reads one item that was not written from a thread.
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

// OpenParts returns what an item of Open Responses is as parts of a message: the
// parts of a message as they came, a reasoning as a part, a call as a part of type
// tool-NAME, and an item of any other kind as a part of type open.TYPE.
func OpenParts(o OpenItem) []JSON { return partsOf([]OpenItem{o}) }

// partsOf returns the parts of a message that was written as these items.
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

// messageContent gives a message's list of parts: Open Responses allows a text
// alone.
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

// asText gives a JSON value as the text that Open Responses wants: a text as it
// is, anything else as JSON.
func asText(v JSON) string {
	if jsontext.Value(v).Kind() == '"' {
		return saidIn(v)
	}
	return string(v)
}

// fromText gives the JSON value that asText makes that text of: the value, if
// the text is JSON just as it would be written, and else the text itself.
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

// openIncomplete is the status of an item that did not come to its end.
const openIncomplete = "incomplete"

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
	case "completed", openIncomplete:
		return ItemCompleted
	}
	return ""
}
