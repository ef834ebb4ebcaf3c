package events

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MessageRole says who speaks in a ThreadMessage.
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

// MessageStatus says how far a message is.
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

// ToolStatus says how a tool's call ended.
type ToolStatus string

// The ends of calls.
const (
	ToolSuccess ToolStatus = "success"
	ToolError   ToolStatus = "error"
)

// Enum lists the ends.
func (ToolStatus) Enum() []string { return []string{string(ToolSuccess), string(ToolError)} }

// ThreadMessage is an item, with the calls that are part of it, as Standard
// Agents has it: snake_case, every field always there, null where nothing is
// known. docs/messages.md says how items become messages.
type ThreadMessage struct {
	ID         string         `json:"id" schema:"required,pattern=id" doc:"The item's id."`
	Role       MessageRole    `json:"role" schema:"required" doc:"Who speaks."`
	Content    *string        `json:"content" schema:"required,nullable" doc:"The text; null if there is none."`
	Name       *string        `json:"name" schema:"required,nullable" doc:"Of a result: the tool's name, where it is known."`
	ToolCalls  *string        `json:"tool_calls" schema:"required,nullable" doc:"The calls, as JSON text: [{id, type: function, function: {name, arguments}}]."`
	ToolCallID *string        `json:"tool_call_id" schema:"required,nullable" doc:"Of a result: the call that it answers."`
	CreatedAt  int64          `json:"created_at" schema:"required,minimum=0" doc:"The time of creation, in microseconds since the epoch."`
	ParentID   *string        `json:"parent_id" schema:"required,nullable" doc:"The item that it was made for."`
	Depth      int64          `json:"depth" schema:"required,minimum=0" doc:"Its depth; 0 is the conversation itself."`
	Silent     bool           `json:"silent" schema:"required" doc:"Hidden from people, shown to the model."`
	Metadata   JSON           `json:"metadata" schema:"required,object" doc:"The caller's own fields; {} if there are none."`
	Status     *MessageStatus `json:"status" schema:"required,nullable" doc:"Its status; null if unknown."`
	ToolStatus *ToolStatus    `json:"tool_status" schema:"required,nullable" doc:"Of a result: success or error."`
}

// IsMessage reports whether an item shows as a message of its own. A reference
// never does, and a call that is part of a message shows there.
func (i *Item) IsMessage() bool { return ShowsAlone(i.Type, i.CallOf != nil) }

// ShowsAlone is Item.IsMessage for an item of that kind, which is part of a
// message or not.
func ShowsAlone(t ItemType, partOfMessage bool) bool {
	return t == Message || t == ActionResult || t == ActionExecute && !partOfMessage
}

// MessageOf gives an item as a message, with the calls that are part of it in
// the order in which they were made. elided of them, from the first on, are
// shown without their arguments. An item that is none (see IsMessage) gives nil.
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
		_ = json.Unmarshal(i.Content, &r) // it was checked when it came in
		m.Role, m.ToolCallID, m.Name = FromTool, textOrNil(r.CallID), textOrNil(r.Name)
		if jsontext.Value(r.Output).Kind() != 'n' && len(r.Output) > 0 {
			text := asText(r.Output)
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

// roleOf shows developers as the system.
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

// micros gives when the item was made, in microseconds.
func (i *Item) micros() int64 {
	if i.CreatedAtMicros > 0 {
		return i.CreatedAtMicros
	}
	t, _ := ParseTime(i.CreatedAt) // a document's time has the right form
	return int64(t)
}

// textOf joins the texts and refusals of a list of parts, with a new line
// between two. Other parts are the item's own. Nil if there is no text.
func textOf(content JSON) *string {
	var parts []struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	}
	_ = json.Unmarshal(content, &parts) // a part of another type may hold a text that is none
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
