package openresponses

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/skein-threads/skein/events"
)

// writeItem returns an item as one of Open Responses: message and item_reference unchanged,
// action_execute as function_call, action_result as function_call_output (incomplete if it
// failed).
func writeItem(i *events.Item) (Item, error) {
	if kept, ok := keptItem(i); ok {
		return kept, nil
	}
	out := Item{ID: i.ID, Status: statusOf(i.Status)}
	wrong := func(err error) (Item, error) { return Item{}, fmt.Errorf("item %s: %w", i.ID, err) }
	switch i.Type {
	case events.Message:
		out.Type, out.Role, out.Content = string(events.Message), i.Role, i.Content
	case events.ActionExecute:
		var c events.Call
		if err := json.Unmarshal(i.Content, &c); err != nil {
			return wrong(err)
		}
		text := events.TextOf(c.Arguments)
		out.Type, out.CallID, out.Name, out.Arguments = functionCall, c.CallID, c.Name, &text
	case events.ActionResult:
		var c events.CallResult
		if err := json.Unmarshal(i.Content, &c); err != nil {
			return wrong(err)
		}
		out.Type, out.CallID, out.Output = functionCallOutput, c.CallID, events.Quote(events.TextOf(c.Output))
		if c.IsError {
			out.Status = incomplete
		}
	case events.ItemReference:
		var r events.Reference
		if err := json.Unmarshal(i.Content, &r); err != nil {
			return wrong(err)
		}
		return Item{Type: string(events.ItemReference), ID: r.ItemID}, nil
	default:
		return wrong(fmt.Errorf("unknown type %.80q", i.Type))
	}
	return out, nil
}

// keptItem returns the item of Open Responses that an item was created from, if that has
// something for which a thread has no field and the item was not changed since.
func keptItem(i *events.Item) (Item, bool) {
	var metadata struct {
		Kept *Item `json:"openResponses"`
	}
	if i.Metadata == nil || json.Unmarshal(i.Metadata, &metadata) != nil || metadata.Kept == nil || metadata.Kept.Origin != nil {
		return Item{}, false
	}
	kept := *metadata.Kept
	if i.Type == events.Message && kept.Content == nil && (kept.Type == "" || kept.Type == string(events.Message)) {
		kept.Content = i.Content
	}
	if i.Type == events.Message && string(kept.Content) == textKept {
		kept.Content = onlyText(i.Content)
	}
	read, err := readItem(kept)
	if err == nil && read.Status == "" && i.Status == events.ItemStored { // what has no status is stored
		read.Status = i.Status
	}
	if err != nil || read.Type != i.Type || read.Role != i.Role || read.Status != i.Status || !sameValue(read.Content, i.Content) {
		return Item{}, false
	}
	return kept, true
}

// Read converts items of Open Responses to those that item.create accepts. What
// [Form].Exact wrote becomes the items of the thread again, unchanged. Otherwise a
// reasoning item becomes an assistant message with a reasoning part, an item without a type is
// a message, and an item of a type that a thread does not have becomes an assistant message
// with a part of type open.TYPE that holds it. Fields that a thread does not have are kept in
// the item's metadata under openResponses, from which they are written again. The error is an
// invalid_request.
func Read(list []Item) ([]events.NewItem, error) {
	items := make([]events.NewItem, 0, len(list))
	for n := 0; n < len(list); {
		to := n + 1
		origin := list[n].Origin
		if origin == nil || origin.Item == nil {
			one := list[n]
			one.Origin = nil
			item, err := readItem(one)
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
	e := *events.AsError(err)
	details := events.ErrorDetails{}
	if e.Details != nil {
		details = *e.Details
	}
	details.Path = fmt.Sprintf("/%d%s", n, details.Path)
	e.Details = &details
	return &e
}

// readOrigin restores an item of a thread from the items that it was written as.
func readOrigin(item events.NewItem, list []Item) (events.NewItem, error) {
	if item.Content == nil {
		if item.Type == events.Message {
			content, err := json.Marshal(partsOf(list), json.Deterministic(true))
			if err != nil {
				return item, events.Invalid("", "not an item: %w", err)
			}
			item.Content = content
		} else {
			one := list[0]
			one.Origin = nil
			read, err := readItem(one)
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
func keep(item events.NewItem, from Item) events.NewItem {
	back, err := (Form{Split: from.Type != string(events.Message) && from.Type != ""}).Write(&events.Item{
		ID: item.ID, Type: item.Type, Role: item.Role, Status: item.Status, Content: item.Content,
	})
	if err == nil && len(back) == 1 && sameValue(valueOf(back[0]), valueOf(from)) {
		return item
	}
	if item.Type == events.Message {
		switch jsontext.Value(from.Content).Kind() {
		case '[':
			from.Content = nil
		case '"':
			from.Content = events.JSON(textKept)
		}
	}
	if metadata, err := json.Marshal(map[string]Item{metadataKey: from}, json.Deterministic(true)); err == nil {
		item.Metadata = metadata
	}
	return item
}

// valueOf returns an item as JSON.
func valueOf(o Item) events.JSON {
	raw, err := json.Marshal(o, json.Deterministic(true))
	if err != nil { // it was decoded from events.JSON, or made from such values
		return nil
	}
	return raw
}

// readItem converts one item that was not written from a thread.
func readItem(in Item) (events.NewItem, error) {
	item := events.NewItem{Status: threadStatus(in.Status)}
	if events.ValidID(in.ID) {
		item.ID = in.ID
	}
	var content any
	switch in.Type {
	case "", string(events.Message):
		item.Type, item.Role = events.Message, in.Role
		item.Content = messageContent(in.Role, in.Content)
		return item, item.Check()
	case functionCall:
		item.Type = events.ActionExecute
		text := ""
		if in.Arguments != nil {
			text = *in.Arguments
		}
		content = events.Call{CallID: in.CallID, Name: in.Name, Arguments: events.FromText(text)}
	case functionCallOutput:
		item.Type = events.ActionResult
		output := in.Output
		if output == nil {
			return events.NewItem{}, events.Invalid("/output", "a function_call_output has an output")
		}
		if jsontext.Value(output).Kind() == '"' {
			output = events.FromText(saidIn(output))
		}
		content = events.CallResult{CallID: in.CallID, Output: output, IsError: in.Status == incomplete}
	case string(events.ItemReference):
		item.Type, item.ID = events.ItemReference, ""
		content = events.Reference{ItemID: in.ID}
	default:
		item.Type, item.Role, content = events.Message, events.Assistant, partsOf([]Item{in})
		if summary, ok := SummaryOf(in); ok {
			item.Role, content = events.Developer, []map[string]string{{"type": events.InputText, "text": summary}}
		}
	}
	var err error
	if item.Content, err = json.Marshal(content, json.Deterministic(true)); err != nil {
		return events.NewItem{}, events.Invalid("", "not an item: %w", err)
	}
	return item, item.Check()
}

// Parts returns an item of Open Responses as parts of a message: those of a message
// unchanged, a reasoning as a part, a call as a part of type tool-NAME, and an item of any
// other type as a part of type open.TYPE.
func Parts(o Item) []events.JSON { return partsOf([]Item{o}) }

// partsOf returns the parts of the message that was written as these items.
func partsOf(list []Item) []events.JSON {
	parts := []events.JSON{}
	for n := 0; n < len(list); n++ {
		o := list[n]
		answered := o.Type == functionCall && n+1 < len(list) && list[n+1].Type == functionCallOutput && list[n+1].CallID == o.CallID
		origin := o.Origin
		o.Origin = nil
		switch {
		case origin != nil && origin.Part != nil:
			parts = append(parts, origin.Part)
		case o.Type == string(events.Message):
			var own []events.JSON
			if json.Unmarshal(o.Content, &own) == nil {
				own = inPhase(own, o.Rest[phaseField])
				parts = append(parts, own...)
			}
		case o.Type == reasoning:
			parts = append(parts, valueOf(o))
		case o.Type == functionCall && o.Arguments != nil:
			fields := map[string]any{"type": events.ToolPart + o.Name, "toolCallId": o.CallID, "input": events.FromText(*o.Arguments)}
			if answered {
				fields["state"], fields["output"] = "output-available", events.FromText(saidIn(list[n+1].Output))
			}
			if part, err := json.Marshal(fields, json.Deterministic(true)); err == nil {
				parts = append(parts, part)
			}
		default:
			if part, err := json.Marshal(map[string]any{"type": ExtensionPart + o.Type, "item": o}, json.Deterministic(true)); err == nil {
				parts = append(parts, part)
			}
		}
		if answered {
			n++
		}
	}
	return parts
}

// inPhase returns the parts of a message with its phase, if it has one.
func inPhase(parts []events.JSON, phase events.JSON) []events.JSON {
	if saidIn(phase) == "" {
		return parts
	}
	for i, raw := range parts {
		var fields map[string]events.JSON
		if json.Unmarshal(raw, &fields) != nil || fields == nil {
			continue
		}
		fields[phaseField] = phase
		if with, err := json.Marshal(fields, json.Deterministic(true)); err == nil {
			parts[i] = with
		}
	}
	return parts
}

// textKept is kept if the content is a string: it is the text of the item's only part.
const textKept = `""`

// onlyText returns the text of the only part of a content, as JSON; nil if it has others.
func onlyText(content events.JSON) events.JSON {
	var parts []struct {
		Text events.JSON `json:"text"`
	}
	if json.Unmarshal(content, &parts) != nil || len(parts) != 1 {
		return nil
	}
	return parts[0].Text
}

// messageContent returns a message's list of parts. In Open Responses the content may also be
// a string.
func messageContent(role events.Role, raw events.JSON) events.JSON {
	if jsontext.Value(raw).Kind() != '"' {
		return raw
	}
	kind := events.InputText
	if role == events.Assistant {
		kind = events.OutputText
	}
	return events.JSON(`[{"type":"` + kind + `","text":` + string(raw) + `}]`)
}

// incomplete is the status of an item that did not finish.
const incomplete = "incomplete"

// statusOf returns Open Responses' status for an item's state; stored has none.
func statusOf(s events.ItemStatus) string {
	switch s {
	case events.ItemPending:
		return "in_progress"
	case events.ItemCompleted:
		return "completed"
	}
	return ""
}

func threadStatus(s string) events.ItemStatus {
	switch s {
	case "in_progress":
		return events.ItemPending
	case "completed", incomplete:
		return events.ItemCompleted
	}
	return ""
}
