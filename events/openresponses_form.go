package events

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// OpenForm says how items of a thread are written for a reader of Open
// Responses. The zero value writes each item as one, its parts as they came, and
// nothing that is the thread's own.
type OpenForm struct {
	// Split writes reasoning and the calls that are parts of a message as items of
	// their own, in their place, as models' endpoints and their clients have them.
	// Parts that Open Responses has no place for are left out, unless Exact is set.
	Split bool
	// Exact loses nothing: what Open Responses has no place for stands in the field
	// skein:item of the items, from which ReadOpenResponses makes the thread's items
	// as they were. It is for readers that pass over fields that they do not know.
	Exact bool
}

// OpenItem is an item of Open Responses, of any kind.
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

	Rest map[string]JSON `json:",embed"` // what else it has
}

// OpenOrigin says what an item of Open Responses was in its thread.
type OpenOrigin struct {
	ID   string   `json:"id"`            // of the thread's item
	Item *NewItem `json:"item,omitzero"` // of the first that is made of it: what Open Responses has no field for
	Part JSON     `json:"part,omitzero"` // the part itself, where the item does not say all of it
}

// The kinds of items that Open Responses has other names for.
const (
	functionCall       = "function_call"
	functionCallOutput = "function_call_output"
	openReasoning      = "reasoning"
)

// ToolPart begins the type of a part that is a call of a tool.
const ToolPart = "tool-"

// OpenExtension begins the type of a part that holds an item of Open Responses
// for which a thread has no kind, such as open.web_search_call.
const OpenExtension = "open."

// elidedResult stands for a result that was left out when its thread was written.
const elidedResult = "(the result was too long and was left out)"

// openMetadata is the member of an item's metadata that holds what an item of
// Open Responses had and a thread has no field for.
const openMetadata = "openResponses"

// Write returns what an item of a thread is in Open Responses: one item or more,
// or none if a reader that needs Split has no place for it. The error says that
// the content is not of the item's kind.
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

// again returns the item that a message was made of, in place of what it is split
// into.
func (f OpenForm) again(kept OpenItem, list []OpenItem) []OpenItem {
	message := kept.Type == "" || kept.Type == string(Message)
	switch {
	case f.Exact, !message, jsontext.Value(kept.Content).Kind() == '"':
	case len(list) == 1 && list[0].Type == string(Message):
		kept.Content = list[0].Content
	default: // it has parts that a reader must see as items
		return list
	}
	return []OpenItem{kept}
}

// split writes a message: its parts up to a call or a reasoning are one message.
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
		if len(list) > 0 { // ids are of one item each
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

// exactPart returns what a part was written as, with the part itself where that
// would be read as another one.
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

// withOrigin adds to the items that one of a thread was written as what they do not
// say of it.
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

// sameValue reports whether two values are the same JSON, byte for byte but for
// spaces and the order of members.
func sameValue(a, b JSON) bool {
	a, b = bytes.Clone(a), bytes.Clone(b)
	same := jsontext.ReorderRawObjects(true)
	return (*jsontext.Value)(&a).Format(same) == nil && (*jsontext.Value)(&b).Format(same) == nil && bytes.Equal(a, b)
}

// openPart returns what a part of a message is as items of their own: reasoning,
// a call and its result, or an item of Open Responses as it came. None: it is a
// part there, too, or nothing.
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

// saidIn returns a text, empty if the value is none.
func saidIn(v JSON) (s string) {
	if jsontext.Value(v).Kind() != '"' || json.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}

// quote returns a text as JSON.
func quote(s string) JSON {
	v, err := jsontext.AppendQuote(nil, s)
	if err != nil { // it is no valid UTF-8, and was decoded from JSON
		return JSON(`""`)
	}
	return v
}
