package events

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// OpenForm says how to write items of a thread for a reader of Open Responses. The zero value
// writes each item as one, its parts unchanged, and nothing that only a thread has.
type OpenForm struct {
	// Split writes reasoning and calls that are parts of a message as items of their own, in
	// their place, as model endpoints and their clients do. Parts that Open Responses does not
	// have are omitted, unless Exact is set.
	Split bool
	// Exact loses nothing: what Open Responses does not have is written in the field
	// skein:item of the items, from which ReadOpenResponses restores the thread's items
	// unchanged. It is for readers that ignore unknown fields.
	Exact bool
}

// OpenItem is an item of Open Responses, of any type.
type OpenItem struct {
	Type             string      `json:"type,omitzero"`
	ID               string      `json:"id,omitzero"`
	Role             Role        `json:"role,omitzero"`
	Status           string      `json:"status,omitzero"`
	Content          JSON        `json:"content,omitzero"`
	CallID           string      `json:"call_id,omitzero"`
	Name             string      `json:"name,omitzero"`
	Arguments        *string     `json:"arguments,omitzero"`
	Output           JSON        `json:"output,omitzero"`
	Summary          JSON        `json:"summary,omitzero"`
	EncryptedContent JSON        `json:"encrypted_content,omitzero"`
	Origin           *OpenOrigin `json:"skein:item,omitzero"`

	Rest map[string]JSON `json:",embed"` // its other fields
}

// OpenOrigin describes what an item of Open Responses was in its thread.
type OpenOrigin struct {
	ID   string   `json:"id"`            // of the thread's item
	Item *NewItem `json:"item,omitzero"` // in the first item written from it: what Open Responses has no field for
	Part JSON     `json:"part,omitzero"` // the part itself, where the item does not hold all of it
}

// The types of items that have other names in Open Responses.
const (
	functionCall       = "function_call"
	functionCallOutput = "function_call_output"
	openReasoning      = "reasoning"
)

// ToolPart is the prefix of the type of a part that is a call of a tool.
const ToolPart = "tool-"

// OpenExtension is the prefix of the type of a part that holds an item of Open Responses of a
// type that a thread does not have, such as open.web_search_call.
const OpenExtension = "open."

// elidedResult replaces a result that was omitted when its thread was written.
const elidedResult = "(the result was too long and was left out)"

// openMetadata is the key in an item's metadata for fields of an item of Open Responses that a
// thread does not have.
const openMetadata = "openResponses"

// Write returns an item of a thread in Open Responses: one item or more, or none if a reader
// that needs Split cannot have it. The error says that the content does not fit the item's
// type.
func (f OpenForm) Write(i *Item) ([]OpenItem, error) {
	var list []OpenItem
	if f.Split && i.Type == Message {
		list = f.split(i)
		if kept, ok := keptOpen(i); ok {
			list = f.again(kept, list)
		}
	} else {
		one, err := writeOpen(i)
		if err != nil {
			return nil, err
		}
		list = []OpenItem{one}
	}
	if f.Exact {
		return withOrigin(i, list), nil
	}
	return list, nil
}

// again returns the item that a message was created from, in place of those that it was split
// into.
func (f OpenForm) again(kept OpenItem, list []OpenItem) []OpenItem {
	message := kept.Type == "" || kept.Type == string(Message)
	switch {
	case f.Exact, !message, jsontext.Value(kept.Content).Kind() == '"':
	case len(list) == 1 && list[0].Type == string(Message):
		kept.Content = list[0].Content
	default: // readers must see its parts as items
		return list
	}
	return []OpenItem{kept}
}

// split splits a message: consecutive parts without a call or reasoning become one message.
func (f OpenForm) split(i *Item) []OpenItem {
	var parts []JSON
	if json.Unmarshal(i.Content, &parts) != nil {
		return nil
	}
	var list []OpenItem
	var now []JSON
	flush := func() {
		if len(now) == 0 {
			return
		}
		content, _ := json.Marshal(now) // of valid JSON
		one := OpenItem{Type: string(Message), ID: i.ID, Role: i.Role, Status: openStatus(i.Status), Content: content}
		now = nil
		if len(list) > 0 { // an id belongs to one item
			one.ID = ""
		}
		list = append(list, one)
	}
	for _, raw := range parts {
		made := openPart(raw)
		if f.Exact {
			made = exactPart(i.ID, raw, made)
		}
		switch {
		case len(made) > 0:
			flush()
			list = append(list, made...)
		case f.Exact:
			now = append(now, raw)
		default:
			if part, ok := plainPart(raw, i.Role); ok {
				now = append(now, part)
			}
		}
	}
	flush()
	return list
}

// exactPart returns the items that a part was written as, with the part itself if reading them
// would return another part.
func exactPart(id string, raw JSON, made []OpenItem) []OpenItem {
	if len(made) == 0 {
		return nil
	}
	made[0].Origin = &OpenOrigin{ID: id}
	for i := range made[1:] {
		made[1+i].Origin = &OpenOrigin{ID: id}
	}
	read := partsOf(made)
	if len(read) != 1 || !sameValue(read[0], raw) {
		made[0].Origin.Part = raw
	}
	return made
}

// withOrigin adds to the items that one of a thread was written as what they lack.
func withOrigin(i *Item, list []OpenItem) []OpenItem {
	whole := NewItem{
		ID: i.ID, Type: i.Type, Role: i.Role, Status: i.Status, Channel: i.Channel, Content: i.Content, ParentItemID: i.ParentItemID,
		Silent: i.Silent, Metadata: i.Metadata,
	}
	if i.Depth != 0 {
		whole.Depth = &i.Depth
	}
	if len(list) == 0 { // a message without parts
		list = []OpenItem{{Type: string(Message), ID: i.ID, Role: i.Role, Content: JSON("[]")}}
	}
	for n := range list {
		if list[n].Origin == nil {
			list[n].Origin = &OpenOrigin{ID: i.ID}
		}
	}
	rest := whole
	rest.Content = nil
	list[0].Origin.Item = &rest
	if read, err := ReadOpenResponses(list); err != nil || len(read) != 1 || !sameValue(read[0].Content, whole.Content) {
		rest.Content = whole.Content
	}
	return list
}

// sameValue reports whether two values are the same JSON, regardless of spaces and the order
// of members.
func sameValue(a, b JSON) bool {
	a, b = bytes.Clone(a), bytes.Clone(b)
	same := jsontext.ReorderRawObjects(true)
	return (*jsontext.Value)(&a).Format(same) == nil && (*jsontext.Value)(&b).Format(same) == nil && bytes.Equal(a, b)
}

// openPart returns a part of a message as items of their own: reasoning, a call and its
// result, or an item of Open Responses unchanged. It returns none for a part that stays a part
// or is omitted.
func openPart(raw JSON) []OpenItem {
	var p struct {
		Type       string `json:"type"`
		ToolCallID JSON   `json:"toolCallId"`
		Input      JSON   `json:"input"`
		Output     JSON   `json:"output"`
		ErrorText  JSON   `json:"errorText"`
		Item       JSON   `json:"item"`
		Elided     bool   `json:"elided"`
	}
	if json.Unmarshal(raw, &p) != nil {
		return nil
	}
	var one OpenItem
	name, isCall := strings.CutPrefix(p.Type, ToolPart)
	switch {
	case isCall && name != "":
		said := "{}"
		if p.Input != nil {
			said = asText(p.Input)
		}
		call := OpenItem{Type: functionCall, CallID: saidIn(p.ToolCallID), Name: name, Arguments: &said}
		var output string
		switch {
		case saidIn(p.ErrorText) != "":
			output = "Error: " + saidIn(p.ErrorText)
		case p.Output != nil:
			output = asText(p.Output)
		case p.Elided:
			output = elidedResult
		default:
			return []OpenItem{call}
		}
		return []OpenItem{call, {Type: functionCallOutput, CallID: call.CallID, Output: quote(output)}}
	case p.Type == Reasoning && json.Unmarshal(raw, &one) == nil && one.Origin == nil:
		return []OpenItem{one}
	case strings.HasPrefix(p.Type, OpenExtension) && jsontext.Value(p.Item).Kind() == '{' && json.Unmarshal(p.Item, &one) == nil && one.Origin == nil:
		if one.Type == strings.TrimPrefix(p.Type, OpenExtension) {
			return []OpenItem{one}
		}
	}
	return nil
}

// saidIn returns a value as a string, empty if it is none.
func saidIn(v JSON) (s string) {
	if jsontext.Value(v).Kind() != '"' || json.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}

// quote encodes a string as JSON.
func quote(s string) JSON {
	v, err := jsontext.AppendQuote(nil, s)
	if err != nil { // it is invalid UTF-8 and was decoded from JSON
		return JSON(`""`)
	}
	return v
}
