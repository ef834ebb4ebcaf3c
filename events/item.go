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
	Content      JSON       `json:"content,omitzero" doc:"A message's list of parts, or another kind's content."`
	CreatedAt    string     `json:"createdAt,omitzero" schema:"pattern=time" doc:"The time of creation, if that is not when it was recorded."`
	ParentItemID string     `json:"parentItemId,omitzero" schema:"pattern=id" doc:"The item it was made for."`
	Depth        int64      `json:"depth,omitzero" schema:"minimum=0" doc:"Its depth; 0 is the conversation itself."`
	Silent       bool       `json:"silent,omitzero" doc:"Hidden from people, shown to the model."`
	Metadata     JSON       `json:"metadata,omitzero" schema:"object" doc:"The caller's own fields."`
	CallOf       *int64     `json:"callOf,omitzero" schema:"minimum=0" doc:"Of a call that is part of a message: that message's place."`

	MessageID      *int64 `json:"messageId,omitzero" schema:"minimum=0" doc:"Of a message: its number in the thread. Absent in older logs: the next number."`
	SourceItemID   string `json:"sourceItemId,omitzero" schema:"pattern=id" doc:"Of a copy in a fork: the item of the parent."`
	OutputOf       string `json:"outputOf,omitzero" schema:"pattern=partKey" doc:"In older logs: the part of a step, in the same commit, that holds a large output."`
	ReactionItemID string `json:"reactionItemId,omitzero" schema:"pattern=id" doc:"Of a message that steers a run: the item that answers it; in older logs the run's first item."`
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
		CallOf: d.CallOf, SourceItemID: d.SourceItemID, MessageID: d.MessageID, CreatedAtMicros: int64(made),
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

// CreateItem adds an item to a context of a thread.
type CreateItem struct {
	ContextID string  `json:"contextId,omitzero" schema:"pattern=id" doc:"The context; the default one if absent."`
	Item      NewItem `json:"item" schema:"required" doc:"The item."`
}

// AppendItems adds items to a context of a thread, in order.
type AppendItems struct {
	ContextID string    `json:"contextId,omitzero" schema:"pattern=id" doc:"The context; the default one if absent."`
	Items     []NewItem `json:"items" schema:"required,minItems=1,maxItems=1000" doc:"The items, the first one first; in all at most 512 KiB."`
}

// NewItem is an item as a caller sends it. The rules for its content depend on its type; see
// Check.
type NewItem struct {
	ID           string     `json:"id,omitzero" schema:"pattern=id" doc:"The id, if the caller chooses it."`
	Type         ItemType   `json:"type" schema:"required" doc:"What kind of item it is."`
	Role         Role       `json:"role,omitzero" doc:"Who speaks; a message needs it, others have none."`
	Status       ItemStatus `json:"status,omitzero" doc:"Its first state; stored if absent."`
	Channel      Channel    `json:"channel,omitzero" doc:"The channel through which it came."`
	Content      JSON       `json:"content,omitzero" doc:"A message's list of parts; {callId, name, arguments}; {callId, output, isError?, name?}; {itemId}."`
	CreatedAt    string     `json:"createdAt,omitzero" schema:"pattern=time" doc:"The time of creation, if that is not now."`
	ParentItemID string     `json:"parentItemId,omitzero" schema:"pattern=id" doc:"The item it was made for."`
	Depth        *int64     `json:"depth,omitzero" schema:"minimum=0,maximum=1000" doc:"Its depth; 0 is the conversation itself."`
	Silent       bool       `json:"silent,omitzero" doc:"Hidden from people, shown to the model."`
	Metadata     JSON       `json:"metadata,omitzero" schema:"object" doc:"The caller's own fields."`
}

// Check validates what spans more than one field: a message has a role and a list of parts;
// the other types have no role, and content of their own form.
func (i NewItem) Check() error {
	switch i.Type {
	case Message:
		if i.Role == "" {
			return Invalid("/role", "a message needs a role")
		}
		return checkParts(i.Content)
	case ActionExecute:
		return i.other(func() error { return checkFields[actionExecute](i.Content) })
	case ActionResult:
		return i.other(func() error { return checkFields[actionResult](i.Content) })
	case ItemReference:
		return i.other(func() error { return checkFields[itemReference](i.Content) })
	}
	return nil
}

func (i NewItem) other(check func() error) error {
	if i.Role != "" {
		return Invalid("/role", "only a message has a role")
	}
	return check()
}

// Constraint returns the rules of Check as JSON Schema.
func (NewItem) Constraint() string {
	other := func(t ItemType, content string) string {
		return `{"if":{"properties":{"type":{"const":"` + string(t) + `"}},"required":["type"]},` +
			`"then":{"properties":{"role":{"enum":["",null]},"content":` + content + `},"required":["content"]}}`
	}
	return `{"allOf":[` +
		`{"if":{"properties":{"type":{"const":"message"}},"required":["type"]},` +
		`"then":{"properties":{"role":{"type":"string","minLength":1},"content":` + partsSchema + `},"required":["role","content"]}},` +
		other(ActionExecute, actionExecuteSchema) + `,` +
		other(ActionResult, actionResultSchema) + `,` +
		other(ItemReference, itemReferenceSchema) + `]}`
}

// SetItemStatus moves an item's state machine.
type SetItemStatus struct {
	ItemID string     `json:"itemId" schema:"required,pattern=id" doc:"The item."`
	To     ItemStatus `json:"to" schema:"required" doc:"The state to move to."`
}

// EditMessage changes what an item shows. At least one field must be set.
type EditMessage struct {
	ItemID   string     `json:"itemId" schema:"required,pattern=id" doc:"The item."`
	Content  JSON       `json:"content,omitzero" doc:"The whole new content."`
	Parts    []PartEdit `json:"parts,omitempty" doc:"Of a message: parts to put into the content, in order; the others stay. Not with content."`
	Metadata JSON       `json:"metadata,omitzero" schema:"object" doc:"Fields to set; the others stay."`
	Silent   *bool      `json:"silent,omitzero" doc:"Hidden from people, shown to the model."`
}

// PartEdit is a part to put into the content of a message.
type PartEdit struct {
	Place *int64 `json:"place" schema:"required,minimum=0" doc:"Its place in the content, from 0. A place past the end appends it."`
	Part  JSON   `json:"part" schema:"required" doc:"The part."`
}

// DeleteMessage hides an item from every view.
type DeleteMessage struct {
	ItemID string `json:"itemId" schema:"required,pattern=id" doc:"The item."`
}

func itemCommands() []Command {
	return []Command{
		command("item.create", "Adds an item to a context.",
			CreateItem{Item: NewItem{Type: Message, Role: User, Channel: Web, Content: exampleText("Where is my order?")}}, ItemCreatedType),
		command("item.append", "Adds items to a context: all of them, or none. The result names the last one.",
			AppendItems{Items: []NewItem{
				{Type: Message, Role: User, Content: exampleText("Where is my order?")},
				{Type: Message, Role: Assistant, Content: JSON(`[{"type":"output_text","text":"On its way."}]`)},
			}}, ItemCreatedType),
		command("item.status", "Changes the state of an item.",
			SetItemStatus{ItemID: exampleAnswer, To: ItemCompleted}, ItemStatusChangedType),
		command("message.edit", "Changes what an item shows.",
			EditMessage{ItemID: exampleQuestion, Content: exampleText("Where is order 42?")}, MessageEditedType),
		command("message.delete", "Hides an item from every view.", DeleteMessage{ItemID: exampleQuestion}, MessageDeletedType),
	}
}
