package events

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MessageRole is the author of a ThreadMessage.
type MessageRole string

// The roles of messages.
const (
	FromSystem    MessageRole = "system"
	FromUser      MessageRole = "user"
	FromAssistant MessageRole = "assistant"
	FromTool      MessageRole = "tool"
)

// Enum lists the roles.
func (MessageRole) Enum() []string {
	return []string{string(FromSystem), string(FromUser), string(FromAssistant), string(FromTool)}
}

// MessageStatus is the state of a message.
type MessageStatus string

// The states of messages. A message whose item is stored has none.
const (
	MessagePending   MessageStatus = "pending"
	MessageCompleted MessageStatus = "completed"
	MessageFailed    MessageStatus = "failed"
)

// Enum lists the states.
func (MessageStatus) Enum() []string {
	return []string{string(MessagePending), string(MessageCompleted), string(MessageFailed)}
}

// ToolStatus is the outcome of a tool's call.
type ToolStatus string

// The outcomes of calls.
const (
	ToolSuccess ToolStatus = "success"
	ToolError   ToolStatus = "error"
)

// Enum lists the outcomes.
func (ToolStatus) Enum() []string { return []string{string(ToolSuccess), string(ToolError)} }

// ThreadMessage is an item, with the calls that belong to it, in the form of Standard Agents:
// snake_case, every field always present, null where a value is unknown. docs/messages.md
// describes how items become messages.
type ThreadMessage struct {
	ID         string         `json:"id" schema:"required,pattern=id" doc:"The item's id."`
	Role       MessageRole    `json:"role" schema:"required" doc:"Who speaks."`
	Content    *string        `json:"content" schema:"required,nullable" doc:"The text; null if there is none."`
	Name       *string        `json:"name" schema:"required,nullable" doc:"Of a result: the tool's name, if known."`
	ToolCalls  *string        `json:"tool_calls" schema:"required,nullable" doc:"The calls, as JSON text: [{id, type: function, function: {name, arguments}}]."`
	ToolCallID *string        `json:"tool_call_id" schema:"required,nullable" doc:"Of a result: the call that it answers."`
	CreatedAt  int64          `json:"created_at" schema:"required,minimum=0" doc:"The time of creation, in microseconds since the epoch."`
	ParentID   *string        `json:"parent_id" schema:"required,nullable" doc:"The item that it was made for."`
	Depth      int64          `json:"depth" schema:"required,minimum=0" doc:"Its depth; 0 is the conversation itself."`
	Silent     bool           `json:"silent" schema:"required" doc:"Hidden from people, shown to the model."`
	Metadata   JSON           `json:"metadata" schema:"required,object" doc:"The caller's own fields, or {}."`
	Status     *MessageStatus `json:"status" schema:"required,nullable" doc:"Its status; null if unknown."`
	ToolStatus *ToolStatus    `json:"tool_status" schema:"required,nullable" doc:"Of a result: success or error."`
}

// IsMessage reports whether an item is shown as a message of its own. A reference never is,
// and a call that belongs to a message is shown in that message.
func (i *Item) IsMessage() bool { return ShowsAlone(i.Type, i.CallOf != nil) }

// ShowsAlone is Item.IsMessage for an item of that type, which belongs to a message or not.
func ShowsAlone(t ItemType, partOfMessage bool) bool {
	return t == Message || t == ActionResult || t == ActionExecute && !partOfMessage
}

// MessageOf returns an item as a message, with the calls that belong to it in the order in
// which they were made. The first elided calls are shown without their arguments. It returns
// nil for an item that is not a message (see IsMessage).
func MessageOf(i *Item, calls []*Item, elided int) *ThreadMessage {
	if !i.IsMessage() {
		return nil
	}
	m := &ThreadMessage{
		ID: i.ID, CreatedAt: i.micros(), ParentID: textOrNil(i.ParentItemID), Depth: i.Depth, Silent: i.Silent,
		Metadata: i.Metadata, Status: i.messageStatus(),
	}
	if len(m.Metadata) == 0 {
		m.Metadata = JSON("{}")
	}
	switch i.Type {
	case ActionResult:
		var r CallResult
		_ = json.Unmarshal(i.Content, &r) // it was validated when it was written
		m.Role, m.ToolCallID, m.Name = FromTool, textOrNil(r.CallID), textOrNil(r.Name)
		if jsontext.Value(r.Output).Kind() != 'n' && len(r.Output) > 0 {
			text := TextOf(r.Output)
			m.Content = &text
		}
		ended := ToolSuccess
		if r.IsError {
			ended = ToolError
		}
		m.ToolStatus = &ended
	case ActionExecute:
		m.Role, m.ToolCalls = FromAssistant, toolCalls([]*Item{i}, elided)
	default:
		m.Role, m.Content, m.ToolCalls = roleOf(i.Role), textOf(i.Content), toolCalls(calls, elided)
	}
	return m
}

// roleOf maps the role developer to system.
func roleOf(r Role) MessageRole {
	switch r {
	case User:
		return FromUser
	case Assistant:
		return FromAssistant
	default:
		return FromSystem
	}
}

// messageStatus returns how far the message is: failed if its execution or step was,
// nil if it is only stored.
func (i *Item) messageStatus() *MessageStatus {
	s := MessagePending
	switch {
	case i.Failed:
		s = MessageFailed
	case i.Status == ItemCompleted:
		s = MessageCompleted
	case i.Status != ItemPending:
		return nil
	}
	return &s
}

// micros returns when the item was created, in microseconds.
func (i *Item) micros() int64 {
	if i.CreatedAtMicros > 0 {
		return i.CreatedAtMicros
	}
	t, _ := ParseTime(i.CreatedAt) // a document's time is well-formed
	return int64(t)
}

// TextOfParts returns the texts and refusals of a list of parts, joined with newlines.
func TextOfParts(content JSON) string {
	if text := textOf(content); text != nil {
		return *text
	}
	return ""
}

// textOf joins the texts and refusals of a list of parts with newlines. It returns nil if
// there are none.
func textOf(content JSON) *string {
	var parts []struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	}
	_ = json.Unmarshal(content, &parts) // in a part of another type, text may not be a string
	var texts []string
	for _, p := range parts {
		switch p.Type {
		case InputText, OutputText:
			texts = append(texts, p.Text)
		case Refusal:
			texts = append(texts, p.Refusal)
		}
	}
	if texts == nil {
		return nil
	}
	all := strings.Join(texts, "\n")
	return &all
}

func textOrNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
