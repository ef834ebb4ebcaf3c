package events

// The events of an item.
const (
	ItemCreatedType       Type = "item.created"
	ItemStatusChangedType Type = "item.status.changed"
)

// ItemCreated records that an item was added to a context of the thread.
type ItemCreated struct {
	ID           string     `json:"id" schema:"required,pattern=id" doc:"The item's id."`
	ContextID    string     `json:"contextId" schema:"required,pattern=id" doc:"The context it belongs to."`
	Index        int64      `json:"index" schema:"required,minimum=0" doc:"Its place in the thread, from 0; never reused."`
	Type         ItemType   `json:"type" schema:"required" doc:"What kind of item it is."`
	Role         Role       `json:"role,omitzero" doc:"Who speaks; of a message."`
	Status       ItemStatus `json:"status" schema:"required" doc:"Its first state."`
	Channel      Channel    `json:"channel,omitzero" doc:"The channel through which it came."`
	Content      JSON       `json:"content,omitzero" doc:"A message's list of parts; the content of another kind."`
	CreatedAt    string     `json:"createdAt,omitzero" schema:"pattern=time" doc:"The time of creation, if that is not when it was recorded."`
	ParentItemID string     `json:"parentItemId,omitzero" schema:"pattern=id" doc:"The item it was made for."`
	Depth        int64      `json:"depth,omitzero" schema:"minimum=0" doc:"Its depth; 0 is the conversation itself."`
	Silent       bool       `json:"silent,omitzero" doc:"Hidden from people, shown to the model."`
	Metadata     JSON       `json:"metadata,omitzero" schema:"object" doc:"The caller's own fields."`
	CallOf       *int64     `json:"callOf,omitzero" schema:"minimum=0" doc:"Of a call that is part of a message: that message's place."`

	SourceItemID   string `json:"sourceItemId,omitzero" schema:"pattern=id" doc:"Of a copy in a fork: the item of the parent."`
	OutputOf       string `json:"outputOf,omitzero" schema:"pattern=partKey" doc:"Of a large result: the part of a step that holds its output, in the same commit."`
	ReactionItemID string `json:"reactionItemId,omitzero" schema:"pattern=id" doc:"Of a message that steers a run: the item with which that run answers."`
}

// Item returns the document of an item that an event of a thread creates at a time.
func (d ItemCreated) Item(thread string, at Time) Item {
	made := at
	if d.CreatedAt != "" {
		if t, err := ParseTime(d.CreatedAt); err == nil {
			made = t
		}
	}
	return Item{
		ID: d.ID, ThreadID: thread, ContextID: d.ContextID, Type: d.Type, Role: d.Role, Status: d.Status,
		Channel: d.Channel, Content: d.Content, CreatedAt: made.ISO(), Index: d.Index,
		ParentItemID: d.ParentItemID, Depth: d.Depth, Silent: d.Silent, Metadata: d.Metadata,
		CallOf: d.CallOf, SourceItemID: d.SourceItemID, CreatedAtMicros: int64(made),
	}
}

// ItemStatusChanged records a move of the item's state machine.
type ItemStatusChanged struct {
	From ItemStatus `json:"from" schema:"required" doc:"The state before."`
	To   ItemStatus `json:"to" schema:"required" doc:"The state after."`
}

type itemRules interface {
	ItemCreated(e *Event, d ItemCreated) error
	ItemStatusChanged(e *Event, d ItemStatusChanged) error
}

func itemEvents() []Row {
	return []Row{
		row(ItemCreatedType, 1, "An item was added to a context.",
			ItemCreated{ID: exampleQuestion, ContextID: exampleContext, Type: Message, Role: User, Status: ItemStored, Channel: Web, Content: exampleText("Where is my order?")}, Rules.ItemCreated),
		row(ItemStatusChangedType, 1, "The state of the item changed.", ItemStatusChanged{From: ItemPending, To: ItemCompleted}, Rules.ItemStatusChanged),
	}
}
