package events

import (
	"github.com/go-json-experiment/json"
)

// AddMessage adds a message in the vocabulary of Standard Agents: one item, and one more for
// each of its calls.
type AddMessage struct {
	ID         string        `json:"id,omitzero" schema:"pattern=id" doc:"The id, if the caller chooses it."`
	ContextID  string        `json:"contextId,omitzero" schema:"pattern=id" doc:"The context; the default one if absent."`
	Role       MessageRole   `json:"role" schema:"required" doc:"Who speaks."`
	Content    *string       `json:"content,omitzero" doc:"The text; no text if absent."`
	Name       string        `json:"name,omitzero" schema:"maxLength=256" doc:"Of a result: the tool's name."`
	ToolCalls  string        `json:"toolCalls,omitzero" doc:"Of an assistant: the calls, as JSON text: [{id, type: function, function: {name, arguments}}]."`
	ToolCallID string        `json:"toolCallId,omitzero" schema:"maxLength=256" doc:"Of a result, which needs it: the call that it answers."`
	ParentID   string        `json:"parentId,omitzero" schema:"pattern=id" doc:"The item that it is made for."`
	Depth      *int64        `json:"depth,omitzero" schema:"minimum=0,maximum=1000" doc:"Its depth; 0 is the conversation itself."`
	Silent     bool          `json:"silent,omitzero" doc:"Hidden from people, shown to the model."`
	Metadata   JSON          `json:"metadata,omitzero" schema:"object" doc:"The caller's own fields."`
	Status     MessageStatus `json:"status,omitzero" doc:"Its status."`
	ToolStatus ToolStatus    `json:"toolStatus,omitzero" doc:"Of a result: success, if absent, or error."`
}

// MessageUpdates says what to change in a message. At least one field must be set.
type MessageUpdates struct {
	Content    *string       `json:"content,omitzero" doc:"The whole new text."`
	Metadata   JSON          `json:"metadata,omitzero" schema:"object" doc:"Fields to set; the others stay."`
	Silent     *bool         `json:"silent,omitzero" doc:"Hidden from people, shown to the model."`
	Status     MessageStatus `json:"status,omitzero" doc:"Its status. A completed message does not become pending again."`
	ToolStatus ToolStatus    `json:"toolStatus,omitzero" doc:"Of a result: success or error."`
}

// UpdateMessage changes a message in the vocabulary of Standard Agents.
type UpdateMessage struct {
	MessageID string `json:"messageId" schema:"required,pattern=id" doc:"The message."`
	MessageUpdates
}

// Items returns the message's own item and those of its calls. The items lack ids, and the
// calls their parent. The error is an invalid_request for a field that a message of that role
// does not have.
func (m AddMessage) Items() (item NewItem, calls []NewItem, err error) {
	if err := m.check(); err != nil {
		return NewItem{}, nil, err
	}
	item = NewItem{
		ID: m.ID, Type: Message, ParentItemID: m.ParentID, Depth: m.Depth, Silent: m.Silent, Metadata: m.Metadata, Status: m.Status.Item(),
	}
	if m.Role == FromTool {
		r := CallResult{CallID: m.ToolCallID, Output: JSON("null"), IsError: m.ToolStatus == ToolError, Name: m.Name}
		if m.Content != nil {
			r.Output = QuoteText(*m.Content)
		}
		item.Type = ActionResult
		item.Content, err = json.Marshal(r, json.Deterministic(true))
		return item, nil, err
	}
	item.Role = Role(m.Role)
	item.Content = MessageText(m.Role == FromAssistant, m.Content)
	if m.ToolCalls == "" {
		return item, nil, nil
	}
	list, err := ParseToolCalls(m.ToolCalls)
	if err != nil {
		return NewItem{}, nil, within("/toolCalls", err)
	}
	for _, c := range list {
		call := NewItem{Type: ActionExecute, Depth: m.Depth, Silent: m.Silent, Status: item.Status}
		if call.Content, err = json.Marshal(c, json.Deterministic(true)); err == nil {
			err = call.Check()
		}
		if err != nil {
			return NewItem{}, nil, within("/toolCalls", err)
		}
		calls = append(calls, call)
	}
	return item, calls, nil
}

// check refuses fields that would be ignored.
func (m AddMessage) check() error {
	switch {
	case m.Role == FromTool && m.ToolCallID == "":
		return Invalid("/toolCallId", "a tool's message names the call that it answers")
	case m.Role != FromTool && m.ToolCallID != "":
		return Invalid("/toolCallId", "only a tool's message answers a call")
	case m.Role != FromTool && m.Name != "":
		return Invalid("/name", "name is the tool's, of a tool's message")
	case m.Role != FromTool && m.ToolStatus != "":
		return Invalid("/toolStatus", "only a tool's message has it")
	case m.Role != FromAssistant && m.ToolCalls != "":
		return Invalid("/toolCalls", "only an assistant calls tools")
	}
	return nil
}

// Item returns the state of the item behind a message. A failed message's item is completed,
// and marked as failed.
func (s MessageStatus) Item() ItemStatus {
	switch s {
	case MessagePending:
		return ItemPending
	case MessageCompleted, MessageFailed:
		return ItemCompleted
	default:
		return ItemStored
	}
}

// MessageText returns a text as the parts of a message, and an empty list for nil.
func MessageText(assistant bool, text *string) JSON {
	if text == nil {
		return JSON("[]")
	}
	kind := InputText
	if assistant {
		kind = OutputText
	}
	return JSON(`[{"type":"` + kind + `","text":` + string(QuoteText(*text)) + `}]`)
}

// UserText returns the item of a text that a user wrote.
func UserText(text string) NewItem {
	return NewItem{Type: Message, Role: User, Content: MessageText(false, &text)}
}

// within prefixes the path of an error with the command's field in which it was found.
func within(path string, err error) error {
	e := *AsError(err)
	e.Details = &ErrorDetails{Path: path}
	return &e
}

func messageCommands() []Command {
	return []Command{
		command("message.add", "Adds a message, in the words of Standard Agents.", AddMessage{
			Role: FromAssistant, ToolCalls: `[{"id":"tc_1","type":"function","function":{"name":"find_order","arguments":"{\"order\":42}"}}]`,
			Status: MessagePending,
		}, ItemCreatedType, MessageEditedType),
		command("message.update", "Changes a message, in the words of Standard Agents.",
			UpdateMessage{MessageID: exampleAnswer, MessageUpdates: MessageUpdates{Content: new("It was shipped today."), Status: MessageCompleted}}, MessageEditedType, ItemStatusChangedType),
	}
}

// GetMessagesOptions selects messages. The zero value selects all that are not silent, newest
// first.
type GetMessagesOptions struct {
	Limit         *int64 `json:"limit,omitzero" schema:"minimum=0" doc:"The largest number to return; no limit if absent."`
	Offset        *int64 `json:"offset,omitzero" schema:"minimum=0" doc:"How many to skip; 0 if absent."`
	Order         Order  `json:"order,omitzero" doc:"desc: newest first, the default."`
	IncludeSilent bool   `json:"includeSilent,omitzero" doc:"Silent messages too."`
	MaxDepth      *int64 `json:"maxDepth,omitzero" schema:"minimum=0" doc:"Only messages nested no deeper; no cap if absent."`
	ContextID     string `json:"contextId,omitzero" schema:"pattern=id" doc:"Only messages of this context; of all if absent."`
}

// ListMessages returns a page of a thread's messages: at most 1,000, and no more than fit in
// the reply. hasMore and nextCursor say that there are more.
type ListMessages struct {
	ThreadID string `json:"threadId" schema:"required,pattern=threadRef" doc:"The thread."`
	GetMessagesOptions
	Cursor string `json:"cursor,omitzero" schema:"maxLength=256" doc:"nextCursor of the page before, instead of an offset; new messages do not shift it."`
	At     *At    `json:"at,omitzero" doc:"As they were then."`
	Fresh
}

// GetMessage returns one message.
type GetMessage struct {
	ThreadID  string `json:"threadId" schema:"required,pattern=threadRef" doc:"The thread."`
	MessageID string `json:"messageId" schema:"required,minLength=1,maxLength=256" doc:"The message; the answer is null if there is none."`
	At        *At    `json:"at,omitzero" doc:"As it was then."`
	Fresh
}

// MessageList is a page of messages, MessagesResult of Standard Agents.
type MessageList struct {
	Messages   []ThreadMessage `json:"messages" schema:"required" doc:"The messages."`
	Total      int64           `json:"total" schema:"required,minimum=0" doc:"How many match the filters, on all pages."`
	HasMore    bool            `json:"hasMore" schema:"required" doc:"More match after these."`
	NextCursor string          `json:"nextCursor,omitzero" doc:"The cursor of the next page, if there is one."`
}
