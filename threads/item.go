package threads

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/skein-threads/skein/events"
)

// itemsOf returns the items that a message becomes: itself, and its calls. The result of a
// call is an item of its own.
func itemsOf(m Message, path string) ([]events.NewItem, error) {
	at := ""
	if m.CreatedAt != 0 {
		at = time.UnixMilli(m.CreatedAt).UTC().Format("2006-01-02T15:04:05.000Z")
	}
	if len(m.Content) == 1 && m.Content[0].Type == events.ToolResultBlock {
		item, err := resultOf(m, path)
		item.CreatedAt = at
		return []events.NewItem{item}, err
	}
	role, err := roleOf(m.Role, path)
	if err != nil {
		return nil, err
	}
	parts := []json.RawMessage{}
	var calls []events.NewItem
	for i, b := range m.Content {
		where := path + "/content/" + strconv.Itoa(i)
		switch b.Type {
		case events.ToolUseBlock:
			if role != events.Assistant {
				return nil, unsupported(where, "only an assistant calls tools")
			}
			call, err := callOf(b, where)
			if err != nil {
				return nil, err
			}
			calls = append(calls, call)
		case events.ToolResultBlock:
			return nil, unsupported(where, "a result is a message of its own, of a user; give it one")
		default:
			if len(calls) > 0 {
				return nil, unsupported(where, "calls follow all that a message says; move it before them")
			}
			part, err := partOf(b, role, where)
			if err != nil {
				return nil, err
			}
			parts = append(parts, part)
		}
	}
	content, err := json.Marshal(parts)
	if err != nil {
		return nil, unsupported(path+"/content", err.Error())
	}
	said := events.NewItem{Type: events.Message, Role: role, Content: content, CreatedAt: at}
	return append([]events.NewItem{said}, calls...), nil
}

func roleOf(r events.DocumentRole, path string) (events.Role, error) {
	switch r {
	case events.DocumentUser:
		return events.User, nil
	case events.DocumentAssistant:
		return events.Assistant, nil
	case events.DocumentInfo:
		return events.System, nil
	}
	return "", unsupported(path+"/role", "the role is user, assistant or info, and not "+strconv.Quote(string(r)))
}

// partOf returns a block as a part of a message.
func partOf(b Block, role events.Role, path string) (json.RawMessage, error) {
	kind := events.InputText
	if role == events.Assistant {
		kind = events.OutputText
	}
	switch {
	case b.Type == events.TextBlock && b.Text != nil:
		return encoded(map[string]any{"type": kind, "text": *b.Text}), nil
	case b.Type == events.ThinkingBlock && b.Thinking != nil:
		return encoded(map[string]any{"type": events.Reasoning, "text": *b.Thinking}), nil
	case b.Type == events.ImageBlock && b.Source != nil && b.Source.Type == "url" && b.Source.URL != "":
		return encoded(map[string]any{"type": "input_image", "image_url": b.Source.URL}), nil
	case b.Type == events.ImageBlock && b.Source != nil && b.Source.Type == "base64" && b.Source.Data != "":
		return encoded(map[string]any{"type": "input_image", "image_url": "data:" + b.Source.MediaType + ";base64," + b.Source.Data}), nil
	case b.Type == events.PartBlock && len(b.Part) > 0:
		return json.RawMessage(b.Part), nil
	}
	return nil, unsupported(path, "a block of type "+strconv.Quote(string(b.Type))+" lacks what it is to hold")
}

func callOf(b Block, path string) (events.NewItem, error) {
	if b.ID == "" || b.Name == "" {
		return events.NewItem{}, unsupported(path, "a call has an id and a name")
	}
	input := b.Input
	if input == nil {
		input = events.JSON("{}")
	}
	return events.NewItem{Type: events.ActionExecute, Content: events.JSON(encoded(events.Call{CallID: b.ID, Name: b.Name, Arguments: input}))}, nil
}

func resultOf(m Message, path string) (events.NewItem, error) {
	b := m.Content[0]
	if m.Role != events.DocumentUser || b.ToolUseID == "" || b.Run == nil {
		return events.NewItem{}, unsupported(path, "a result is a user's, and has a toolUseID and a run")
	}
	result := events.CallResult{CallID: b.ToolUseID, Output: b.Run.Result}
	switch b.Run.Status {
	case events.ToolSuccess:
	case events.ToolError:
		result.IsError, result.Output = true, events.JSON(encoded(b.Run.Error))
	default:
		return events.NewItem{}, unsupported(path+"/content/0/run/status", "the status is success or error")
	}
	if result.Output == nil {
		result.Output = events.JSON("null")
	}
	return events.NewItem{Type: events.ActionResult, Content: events.JSON(encoded(result))}, nil
}
