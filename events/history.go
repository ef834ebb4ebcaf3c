package events

import (
	"github.com/go-json-experiment/json"
)

// The events that change how items are shown.
const (
	MessageEditedType    Type = "message.edited"
	MessageDeletedType   Type = "message.deleted"
	HistoryTruncatedType Type = "history.truncated"
)

// MessageEdited records that an item's content, metadata or visibility changed. Its status and
// the parts of its step stay the same.
type MessageEdited struct {
	Content  JSON         `json:"content,omitzero" doc:"The whole new content."`
	Parts    []PlacedPart `json:"parts,omitempty" doc:"Parts that are put into the content, in order; the others stay."`
	Metadata JSON         `json:"metadata,omitzero" schema:"object" doc:"Fields to set in the metadata; those not named stay."`
	Silent   *bool        `json:"silent,omitzero" doc:"Hidden from people, shown to the model."`

	Index     int64 `json:"index,omitzero" schema:"minimum=0" doc:"Its place in the thread."`
	WasSilent *bool `json:"wasSilent,omitzero" doc:"If silent is set: its previous value."`
	Output    JSON  `json:"output,omitzero" doc:"Of a result: the new output; the rest of its content stays."`
	IsError   *bool `json:"isError,omitzero" doc:"Of a result: the tool failed, or did not."`
	Failed    *bool `json:"failed,omitzero" doc:"The message is to show as failed, or not."`
}

// PlacedPart is a part of a message and its index in the content. An index equal to the
// content's length appends it.
type PlacedPart struct {
	Place int64  `json:"place" schema:"required,minimum=0" doc:"Its place in the content, from 0."`
	Part  JSON   `json:"part" schema:"required" doc:"The part."`
	Key   string `json:"key,omitzero" schema:"pattern=partKey" doc:"Of a large part: the part of a step that it is, which the same commit holds."`
}

// MessageDeleted records that an item is hidden from every view.
type MessageDeleted struct {
	ContextID string   `json:"contextId" schema:"required,pattern=id" doc:"The context it belonged to."`
	Type      ItemType `json:"type" schema:"required" doc:"What kind of item it was."`
	Index     int64    `json:"index" schema:"required,minimum=0" doc:"Its place in the thread."`
}

// HistoryTruncated records that the items from one on are hidden.
type HistoryTruncated struct {
	FromIndex int64 `json:"fromIndex" schema:"required,minimum=0" doc:"The first place that is hidden."`
}

// PlaceParts returns a message's content with the parts put into it. An index past the end
// appends the part, and content that is not a list is treated as empty, so that no stored
// event is without effect.
func PlaceParts(content JSON, parts []PlacedPart) JSON {
	var list []JSON
	if len(content) > 0 && json.Unmarshal(content, &list) != nil {
		list = nil
	}
	for _, p := range parts {
		if p.Place < int64(len(list)) {
			list[p.Place] = p.Part
			continue
		}
		list = append(list, p.Part)
	}
	size := 2
	for _, p := range list {
		size += len(p) + 1
	}
	out := append(make([]byte, 0, size), '[')
	for i, p := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, p...)
	}
	return append(out, ']')
}

type historyRules interface {
	MessageEdited(e *Event, d MessageEdited) error
	MessageDeleted(e *Event, d MessageDeleted) error
	HistoryTruncated(e *Event, d HistoryTruncated) error
}

func historyEvents() []Row {
	return []Row{
		row(MessageEditedType, 1, "An item's content, metadata or visibility was changed.",
			MessageEdited{Content: exampleText("Where is order 42?")}, Rules.MessageEdited),
		row(MessageDeletedType, 1, "An item was hidden from every view.",
			MessageDeleted{ContextID: exampleContext, Type: Message, Index: 3}, Rules.MessageDeleted),
		row(HistoryTruncatedType, 1, "The items from one place on were hidden.", HistoryTruncated{FromIndex: 4}, Rules.HistoryTruncated),
	}
}
