package events

import (
	"strings"

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
	HistoryInherited(e *Event, d HistoryInherited) error
}

func historyEvents() []Row {
	return []Row{
		row(MessageEditedType, 1, "An item's content, metadata or visibility was changed.",
			MessageEdited{Content: exampleText("Where is order 42?")}, Rules.MessageEdited),
		row(MessageDeletedType, 1, "An item was hidden from every view.",
			MessageDeleted{ContextID: exampleContext, Type: Message, Index: 3}, Rules.MessageDeleted),
		row(HistoryTruncatedType, 1, "The items from one place on were hidden.", HistoryTruncated{FromIndex: 4}, Rules.HistoryTruncated),
		row(HistoryInheritedType, 1, "The thread begins with the history of another one.", HistoryInherited{
			ThreadID: exampleThread, Version: 30000, ContextID: exampleContext, NextIndex: 1024,
			Pages: []HistoryPart{
				{Digest: strings.Repeat("4f", 32), Size: 130000, Items: ItemCounts{Message: 512}, Messages: []int64{512}},
				{Digest: strings.Repeat("9a", 32), Size: 128000, From: 512, Items: ItemCounts{Message: 500}, Messages: []int64{500}},
			},
		}, Rules.HistoryInherited),
	}
}

// Queries of what is stored, in the order of storage. They let a tenant read its share of
// streams that all tenants have in common.
type (
	// GetHistory returns the end of the log.
	GetHistory struct {
		MinSeq *int64 `json:"minSeq,omitzero" schema:"minimum=0" doc:"The sequence that the log must have reached."`
	}
	// HistoryEnd is the end of the log.
	HistoryEnd struct {
		LastSeq int64 `json:"lastSeq" schema:"required,minimum=0" doc:"The sequence of the log's last commit, of any tenant; 0 if it has none."`
	}
	// ListHistory returns the tenant's events in the order of the log.
	ListHistory struct {
		ThreadID     string `json:"threadId,omitzero" schema:"pattern=threadRef" doc:"Only those of this thread."`
		FromSeq      *int64 `json:"fromSeq,omitzero" schema:"minimum=1" doc:"The sequence of the first commit that is shown; 1 if absent."`
		AfterVersion *int64 `json:"afterVersion,omitzero" schema:"minimum=0" doc:"Of the commit fromSeq, only events after this version of their thread."`
		Limit        *int64 `json:"limit,omitzero" schema:"minimum=1,maximum=1000" doc:"The largest number to return; 500 if absent."`
		MinSeq       *int64 `json:"minSeq,omitzero" schema:"minimum=0" doc:"The sequence that the log must have reached."`
	}
	// HistoryEntry is an event and its sequence in the log, or a commit that cannot be
	// decoded.
	HistoryEntry struct {
		Seq      int64  `json:"seq" schema:"required,minimum=1" doc:"The sequence in the log of the event's commit."`
		Event    JSON   `json:"event,omitzero" doc:"The event: a CloudEvent as it is in the log. Absent if broken."`
		ThreadID string `json:"threadId,omitzero" doc:"With broken: the thread whose commit it is."`
		Broken   bool   `json:"broken,omitzero" doc:"Whether there is a commit that cannot be read, instead of an event."`
	}
	// HistoryList is a page of the log. NextSeq and NextVersion are the fromSeq and
	// afterVersion of the next page, if there is one.
	HistoryList struct {
		Entries     []HistoryEntry `json:"entries" schema:"required" doc:"The events, in the order of the log."`
		NextSeq     int64          `json:"nextSeq,omitzero" schema:"minimum=1" doc:"The fromSeq of what follows, if more does."`
		NextVersion int64          `json:"nextVersion,omitzero" schema:"minimum=1" doc:"Its afterVersion, if a commit is not shown whole."`
	}
	// ListChunks returns the stored chunks of an execution, in order.
	ListChunks struct {
		ThreadID    string `json:"threadId" schema:"required,pattern=threadRef" doc:"The thread."`
		ExecutionID string `json:"executionId" schema:"required,pattern=id" doc:"The execution."`
		FromIndex   *int64 `json:"fromIndex,omitzero" schema:"minimum=0" doc:"The first number that is wanted; some before it may be shown."`
		FromSeq     *int64 `json:"fromSeq,omitzero" schema:"minimum=1" doc:"Only chunks from this sequence of the stream on."`
		Limit       *int64 `json:"limit,omitzero" schema:"minimum=1,maximum=1000" doc:"The largest number to return; 256 if absent."`
		MinSeq      *int64 `json:"minSeq,omitzero" schema:"minimum=0" doc:"The sequence that the log must have reached."`
	}
	// StoredChunk is a chunk and its sequence in the stream of chunks.
	StoredChunk struct {
		Seq   int64 `json:"seq" schema:"required,minimum=1" doc:"The sequence in the stream of chunks."`
		Event JSON  `json:"event" schema:"required" doc:"The CloudEvent chunk.emitted."`
	}
	// ChunkList is a page of the chunks of an execution.
	ChunkList struct {
		Chunks  []StoredChunk `json:"chunks" schema:"required" doc:"The chunks."`
		NextSeq int64         `json:"nextSeq,omitzero" schema:"minimum=1" doc:"The fromSeq of what follows, if more does."`
	}
)
