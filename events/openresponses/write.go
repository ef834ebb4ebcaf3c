package openresponses

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/skein-threads/skein/events"
)

// Form says how to write items of a thread for a reader of Open Responses. The zero value
// writes each item as one, its parts unchanged, and nothing that only a thread has.
type Form struct {
	// Split writes reasoning and calls that are parts of a message as items of their own, in
	// their place, as model endpoints and their clients do. Parts that Open Responses does not
	// have are omitted, unless Exact is set.
	Split bool
	// Exact loses nothing: what Open Responses does not have is written in the field
	// skein:item of the items, from which Read restores the thread's items
	// unchanged; an item of status stored has none, which means the same. It is for
	// readers that ignore unknown fields.
	Exact bool
}

// Item is an item of Open Responses, of any type.
type Item struct {
	Type             string      `json:"type,omitzero"`
	ID               string      `json:"id,omitzero"`
	Role             events.Role `json:"role,omitzero"`
	Status           string      `json:"status,omitzero"`
	Content          events.JSON `json:"content,omitzero"`
	CallID           string      `json:"call_id,omitzero"`
	Name             string      `json:"name,omitzero"`
	Arguments        *string     `json:"arguments,omitzero"`
	Output           events.JSON `json:"output,omitzero"`
	Summary          events.JSON `json:"summary,omitzero"`
	EncryptedContent events.JSON `json:"encrypted_content,omitzero"`
	Origin           *Origin     `json:"skein:item,omitzero"`

	Rest map[string]events.JSON `json:",embed"` // its other fields
}

// itemFields is an Item without its methods.
type itemFields Item

// MarshalJSON implements json.Marshaler, so that encoding/json writes the item whole: it does not
// know the option that embeds Rest.
func (o Item) MarshalJSON() ([]byte, error) {
	return json.Marshal(itemFields(o), json.Deterministic(true))
}

// MarshalJSONTo implements the same for github.com/go-json-experiment/json.
func (o Item) MarshalJSONTo(to *jsontext.Encoder) error {
	return json.MarshalEncode(to, itemFields(o))
}

// UnmarshalJSON implements json.Unmarshaler; see MarshalJSON.
func (o *Item) UnmarshalJSON(raw []byte) error { return json.Unmarshal(raw, (*itemFields)(o)) }

// UnmarshalJSONFrom implements the same for github.com/go-json-experiment/json.
func (o *Item) UnmarshalJSONFrom(from *jsontext.Decoder) error {
	return json.UnmarshalDecode(from, (*itemFields)(o))
}

// Origin describes what an item of Open Responses was in its thread.
type Origin struct {
	ID   string          `json:"id"`            // of the thread's item
	Item *events.NewItem `json:"item,omitzero"` // in the first item written from it: what Open Responses has no field for
	Part events.JSON     `json:"part,omitzero"` // the part itself, where the item does not hold all of it
}

// The types of items that have other names in Open Responses.
const (
	functionCall       = "function_call"
	functionCallOutput = "function_call_output"
	reasoning          = "reasoning"
)

// ExtensionPart is the prefix of the type of a part that holds an item of Open Responses of a
// type that a thread does not have, such as open.web_search_call.
const ExtensionPart = "open."

// elidedResult replaces a result that was omitted when its thread was written.
const elidedResult = "(the result was too long and was left out)"

// metadataKey is the key in an item's metadata for fields of an item of Open Responses that a
// thread does not have.
const metadataKey = "openResponses"

// Write returns an item of a thread in Open Responses: one item or more, or none if a reader
// that needs Split cannot have it. The error says that the content does not fit the item's
// type.
func (f Form) Write(i *events.Item) ([]Item, error) {
	var list []Item
	if f.Split && i.Type == events.Message {
		list = f.split(i)
		if kept, ok := keptItem(i); ok {
			list = f.again(kept, list)
		}
	} else {
		one, err := writeItem(i)
		if err != nil {
			return nil, err
		}
		list = []Item{one}
	}
	if f.Exact {
		return withOrigin(i, list), nil
	}
	return list, nil
}

// again returns the item that a message was created from, in place of those that it was split
// into.
func (f Form) again(kept Item, list []Item) []Item {
	message := kept.Type == "" || kept.Type == string(events.Message)
	switch {
	case f.Exact, !message, jsontext.Value(kept.Content).Kind() == '"':
	case len(list) == 1 && list[0].Type == string(events.Message):
		kept.Content = list[0].Content
	default: // readers must see its parts as items
		return list
	}
	return []Item{kept}
}

// split splits a message: consecutive parts without a call or reasoning become one message.
func (f Form) split(i *events.Item) []Item {
	var parts []events.JSON
	if json.Unmarshal(i.Content, &parts) != nil {
		return nil
	}
	var list []Item
	var now []events.JSON
	phase := ""
	flush := func() {
		if len(now) == 0 {
			return
		}
		content, _ := json.Marshal(now) // of valid events.JSON
		one := Item{Type: string(events.Message), ID: i.ID, Role: i.Role, Status: statusOf(i.Status), Content: content}
		if phase != "" && !f.Exact {
			one.Rest = map[string]events.JSON{phaseField: events.Quote(phase)}
		}
		now = nil
		if len(list) > 0 { // an id belongs to one item
			one.ID = ""
		}
		list = append(list, one)
	}
	for _, raw := range parts {
		made := partItems(raw)
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
				if of := phaseOf(raw); of != phase {
					flush()
					phase = of
				}
				now = append(now, part)
			}
		}
	}
	flush()
	return list
}

// exactPart returns the items that a part was written as, with the part itself if reading them
// would return another part.
func exactPart(id string, raw events.JSON, made []Item) []Item {
	if len(made) == 0 {
		return nil
	}
	made[0].Origin = &Origin{ID: id}
	for i := range made[1:] {
		made[1+i].Origin = &Origin{ID: id}
	}
	read := partsOf(made)
	if len(read) != 1 || !sameValue(read[0], raw) {
		made[0].Origin.Part = raw
	}
	return made
}

// withOrigin adds to list, the items that were written for i, what is in i and not in them.
func withOrigin(i *events.Item, list []Item) []Item {
	whole := events.NewItem{
		ID: i.ID, Type: i.Type, Role: i.Role, Status: i.Status, Channel: i.Channel, Content: i.Content, ParentItemID: i.ParentItemID,
		Silent: i.Silent, Metadata: i.Metadata, CreatedAt: i.CreatedAt,
	}
	if i.CreatedAtMicros%1000 != 0 { // CreatedAt has milliseconds
		whole.CreatedAt = events.Time(i.CreatedAtMicros).String()
	}
	if whole.Status == events.ItemStored { // which an item without a status has
		whole.Status = ""
	}
	if i.Depth != 0 {
		whole.Depth = &i.Depth
	}
	if len(list) == 0 { // a message without parts
		list = []Item{{Type: string(events.Message), ID: i.ID, Role: i.Role, Content: events.JSON("[]")}}
	}
	for n := range list {
		if list[n].Origin == nil {
			list[n].Origin = &Origin{ID: i.ID}
		}
	}
	rest := whole
	rest.Content = nil
	list[0].Origin.Item = &rest
	if read, err := Read(list); err != nil || len(read) != 1 || !sameValue(read[0].Content, whole.Content) {
		rest.Content = whole.Content
	}
	return list
}

// sameValue reports whether two values are the same JSON, regardless of spaces and the order
// of members.
func sameValue(a, b events.JSON) bool {
	a, b = bytes.Clone(a), bytes.Clone(b)
	same := jsontext.ReorderRawObjects(true)
	return (*jsontext.Value)(&a).Format(same) == nil && (*jsontext.Value)(&b).Format(same) == nil && bytes.Equal(a, b)
}

// partItems returns a part of a message as items of their own: reasoning, a call and its
// result, or an item of Open Responses unchanged. It returns none for a part that stays a part
// or is omitted.
func partItems(raw events.JSON) []Item {
	var p struct {
		Type       string      `json:"type"`
		ToolCallID events.JSON `json:"toolCallId"`
		Input      events.JSON `json:"input"`
		Output     events.JSON `json:"output"`
		ErrorText  events.JSON `json:"errorText"`
		Item       events.JSON `json:"item"`
		Elided     bool        `json:"elided"`
	}
	if json.Unmarshal(raw, &p) != nil {
		return nil
	}
	var one Item
	name, isCall := strings.CutPrefix(p.Type, events.ToolPart)
	switch {
	case isCall && name != "":
		said := "{}"
		if p.Input != nil {
			said = events.TextOf(p.Input)
		}
		call := Item{Type: functionCall, CallID: saidIn(p.ToolCallID), Name: name, Arguments: &said}
		var output string
		switch {
		case saidIn(p.ErrorText) != "":
			output = "Error: " + saidIn(p.ErrorText)
		case p.Output != nil:
			output = events.TextOf(p.Output)
		case p.Elided:
			output = elidedResult
		default:
			return []Item{call}
		}
		return []Item{call, {Type: functionCallOutput, CallID: call.CallID, Output: events.Quote(output)}}
	case p.Type == events.Reasoning && json.Unmarshal(raw, &one) == nil && one.Origin == nil:
		return []Item{one}
	case strings.HasPrefix(p.Type, ExtensionPart) && jsontext.Value(p.Item).Kind() == '{' && json.Unmarshal(p.Item, &one) == nil && one.Origin == nil:
		if one.Type == strings.TrimPrefix(p.Type, ExtensionPart) {
			return []Item{one}
		}
	}
	return nil
}

// saidIn returns a value as a string, empty if it is none.
func saidIn(v events.JSON) (s string) {
	if jsontext.Value(v).Kind() != '"' || json.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}
