package events

import "github.com/go-json-experiment/json"

// The events of the queue of messages that wait for the agent.
const (
	QueuePushedType  Type = "queue.pushed"
	QueueDrainedType Type = "queue.drained"
	QueueRemovedType Type = "queue.removed"
	QueueEditedType  Type = "queue.edited"
	QueueMovedType   Type = "queue.moved"
)

// QueuePushed records that a message waits until the agent is free.
//
// A call of a tool waits in the same way: its item is an action_execute.
type QueuePushed struct {
	ID        string `json:"id" schema:"required,maxLength=128" doc:"The waiting message's id."`
	Item      JSON   `json:"item" schema:"required,object" doc:"The item that it becomes."`
	ContextID string `json:"contextId,omitzero" schema:"pattern=id" doc:"The context it is meant for."`
	AgentID   string `json:"agentId,omitzero" schema:"pattern=name" doc:"The agent that is to answer it."`
	MessageID int64  `json:"messageId,omitzero" schema:"minimum=0" doc:"The message's number in the thread."`
	First     bool   `json:"first,omitzero" doc:"It precedes those that wait."`
	Once      bool   `json:"once,omitzero" doc:"Of a call of a tool: the call gets its own run, which ends with it."`

	ExecutionID    string `json:"executionId,omitzero" schema:"pattern=id" doc:"Of a message: the id of the execution that will answer it."`
	ReactionItemID string `json:"reactionItemId,omitzero" schema:"pattern=id" doc:"Of a message: the id of the item that will answer it."`
	SessionID      string `json:"sessionId,omitzero" schema:"pattern=session" doc:"Of a message: the session that its execution will have."`

	Settings *RunSettings `json:"settings,omitzero" doc:"Of a message: the settings that its run will have."`
	Rights   *Rights      `json:"rights,omitzero" doc:"The rights with which it is answered, or the call made; absent: the whole tenant."`
}

// IsCall reports whether a call of a tool waits, which has no number.
func (d QueuePushed) IsCall() bool {
	var item struct {
		Type ItemType `json:"type"`
	}
	return json.Unmarshal(d.Item, &item) == nil && item.Type == ActionExecute
}

// QueueDrained records that waiting messages were taken out of the queue.
type QueueDrained struct {
	IDs []string `json:"ids" schema:"required" doc:"The messages that left the queue, in order."`
}

// QueueRemoved records that a waiting entry was removed.
type QueueRemoved struct {
	ID          string `json:"id" schema:"required,maxLength=128" doc:"The id under which it waited."`
	ExecutionID string `json:"executionId,omitzero" schema:"pattern=id" doc:"Of a message: the execution that will not exist."`
}

// QueueEdited records that a waiting message was replaced. Its place and the ids of its item
// and its execution stay the same.
type QueueEdited struct {
	ID   string `json:"id" schema:"required,maxLength=128" doc:"The id under which it waits."`
	Item JSON   `json:"item" schema:"required,object" doc:"The item that it becomes now."`

	Rights *Rights `json:"rights,omitzero" doc:"The rights of the credential that replaced it; absent: the whole tenant."`
}

// QueueMoved records that a waiting entry has another place in the queue.
type QueueMoved struct {
	ID     string `json:"id" schema:"required,maxLength=128" doc:"The id under which it waits."`
	Before string `json:"before,omitzero" schema:"maxLength=128" doc:"The one that it precedes; absent: it is last."`
}

type queueRules interface {
	QueuePushed(e *Event, d QueuePushed) error
	QueueDrained(e *Event, d QueueDrained) error
	QueueRemoved(e *Event, d QueueRemoved) error
	QueueEdited(e *Event, d QueueEdited) error
	QueueMoved(e *Event, d QueueMoved) error
}

func queueEvents() []Row {
	return []Row{
		row(QueuePushedType, 1, "A message was queued until the agent is free.",
			QueuePushed{ID: "q-1", Item: JSON(`{"type":"message","role":"user","content":[{"type":"input_text","text":"And the invoice?"}]}`)}, Rules.QueuePushed),
		row(QueueDrainedType, 1, "Queued messages left the queue.", QueueDrained{IDs: []string{"q-1"}}, Rules.QueueDrained),
		row(QueueRemovedType, 1, "A queued entry was removed.", QueueRemoved{ID: "q-1", ExecutionID: exampleExecution}, Rules.QueueRemoved),
		row(QueueEditedType, 1, "A waiting message was replaced.",
			QueueEdited{ID: "q-1", Item: JSON(`{"type":"message","role":"user","content":[{"type":"input_text","text":"And the receipt?"}]}`)}, Rules.QueueEdited),
		row(QueueMovedType, 1, "A queued entry was moved.", QueueMoved{ID: "q-2", Before: "q-1"}, Rules.QueueMoved),
	}
}

// Data of the commands.
type (
	// RemoveQueued removes a message, or a call of a tool, from the queue.
	RemoveQueued struct {
		QueuedID string `json:"queuedId" schema:"required,maxLength=128" doc:"The id under which it waits."`
	}
	// EditQueued replaces a waiting message. Its place in the queue and the ids of its item
	// and its execution stay the same.
	EditQueued struct {
		QueuedID string  `json:"queuedId" schema:"required,maxLength=128" doc:"The id under which it waits."`
		Item     NewItem `json:"item" schema:"required" doc:"The new message, with the same id or without one."`
	}
	// MoveQueued moves a waiting entry to another place in the queue.
	MoveQueued struct {
		QueuedID string `json:"queuedId" schema:"required,maxLength=128" doc:"The id under which it waits."`
		Before   string `json:"before,omitzero" schema:"maxLength=128" doc:"The queuedId to precede; absent: it is last."`
	}
)

func queueCommands() []Command {
	return []Command{
		command("queue.remove", "Removes a message, or a call of a tool, from the agent's queue.",
			RemoveQueued{QueuedID: "q-1"}, QueueRemovedType),
		command("queue.edit", "Replaces a message that waits for the agent.",
			EditQueued{QueuedID: "q-1", Item: NewItem{Type: Message, Role: User, Content: exampleText("And the receipt?")}}, QueueEditedType),
		command("queue.move", "Moves what waits for the agent to another place in the queue.",
			MoveQueued{QueuedID: "q-2", Before: "q-1"}, QueueMovedType),
	}
}

// ListQueue returns what waits for a thread's agent, in the order in which the agent takes it,
// except that calls of tools go first.
type ListQueue struct {
	ThreadID string `json:"threadId" schema:"required,pattern=threadRef" doc:"The thread."`
	Limit    *int64 `json:"limit,omitzero" schema:"minimum=1,maximum=1000" doc:"The largest number to return; as many as one answer holds if absent."`
	Cursor   string `json:"cursor,omitzero" schema:"maxLength=512" doc:"nextCursor of the page before."`
	Fresh
}

// QueueList is the queue of a thread's agent.
type QueueList struct {
	ThreadID   string   `json:"threadId" schema:"required,pattern=thread" doc:"The thread."`
	Queued     []Queued `json:"queued" schema:"required" doc:"What waits, the next one first."`
	Active     string   `json:"active,omitzero" schema:"pattern=id" doc:"The current execution."`
	Seq        int64    `json:"seq" schema:"required,minimum=0" doc:"The sequence in the log of the thread's last commit that it shows."`
	NextCursor string   `json:"nextCursor,omitzero" doc:"The cursor of the next page, if there is one."`
}

// Queued is a message, or a call of a tool, that waits for the agent.
type Queued struct {
	ID             string `json:"id" schema:"required,maxLength=128" doc:"The id under which it waits: queuedId."`
	Item           JSON   `json:"item" schema:"required,object" doc:"The item that it becomes."`
	ExecutionID    string `json:"executionId,omitzero" schema:"pattern=id" doc:"Of a message: the execution that will answer it; absent in older logs."`
	ReactionItemID string `json:"reactionItemId,omitzero" schema:"pattern=id" doc:"Of a message: the item that will answer it."`
	MessageID      int64  `json:"messageId,omitzero" schema:"minimum=0" doc:"Of a message: its number in the thread."`
	ContextID      string `json:"contextId,omitzero" schema:"pattern=id" doc:"The context it is meant for; absent: the default one."`
	AgentID        string `json:"agentId,omitzero" schema:"pattern=name" doc:"The agent that is to answer it; absent: the thread's own."`
}

func queueQueries() []Query {
	return []Query{query("queue.list", "What waits for a thread's agent.", ListQueue{ThreadID: exampleThread})}
}

// The document that answers each query, for [QueryFor].
func (ListQueue) answer() (a QueueList) { return a }
