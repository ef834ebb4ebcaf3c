package events

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"
	"strconv"
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
	Metadata JSON         `json:"metadata,omitzero" schema:"object" doc:"Fields to set; the others stay."`
	Silent   *bool        `json:"silent,omitzero" doc:"Hidden from people, shown to the model."`

	Index     int64 `json:"index,omitzero" schema:"minimum=0" doc:"Its place in the thread."`
	WasSilent *bool `json:"wasSilent,omitzero" doc:"If silent is set: its previous value."`
	Output    JSON  `json:"output,omitzero" doc:"Of a result: the new output; the rest of its content stays."`
	IsError   *bool `json:"isError,omitzero" doc:"Of a result: the tool failed, or did not."`
	Failed    *bool `json:"failed,omitzero" doc:"The message shows as failed, or not."`
}

// PlacedPart is a part of a message and its index in the content. An index equal to the
// content's length appends it.
type PlacedPart struct {
	Place int64  `json:"place" schema:"required,minimum=0" doc:"Its place in the content, from 0."`
	Part  JSON   `json:"part" schema:"required" doc:"The part."`
	Key   string `json:"key,omitzero" schema:"pattern=partKey" doc:"In older logs: the part of a step, in the same commit, that a large part is."`
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
			ThreadID: exampleThread, Version: 30000, ContextID: exampleContext, NextIndex: 1024, NextMessageID: 1012, UserLastInteractedAt: 1767600000000,
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
		LastSeq int64  `json:"lastSeq" schema:"required,minimum=0" doc:"The sequence of the log's last commit, of any tenant; 0 if it has none."`
		Log     string `json:"log,omitzero" schema:"pattern=id" doc:"The name of this log. A restore changes it, and older positions are invalid."`
	}
	// ListHistory returns the tenant's events in the order of the log.
	ListHistory struct {
		ThreadID     string `json:"threadId,omitzero" schema:"pattern=threadRef" doc:"Only those of this thread."`
		FromSeq      *int64 `json:"fromSeq,omitzero" schema:"minimum=1" doc:"The first commit to show, by its sequence; 1 if absent. A sequence beyond the next commit is refused with position_ahead."`
		Log          string `json:"log,omitzero" schema:"pattern=id" doc:"The log of fromSeq, from history.get; another is refused with position_ahead."`
		AfterVersion *int64 `json:"afterVersion,omitzero" schema:"minimum=0" doc:"Of the commit fromSeq, only events after this version of their thread."`
		Limit        *int64 `json:"limit,omitzero" schema:"minimum=1,maximum=1000" doc:"The largest number to return; 500 if absent."`
		MinSeq       *int64 `json:"minSeq,omitzero" schema:"minimum=0" doc:"The sequence that the log must have reached."`
	}
	// HistoryEntry is an event and its sequence in the log, or a commit that cannot be
	// decoded.
	HistoryEntry struct {
		Seq      int64  `json:"seq" schema:"required,minimum=1" doc:"The sequence in the log of the event's commit."`
		Event    JSON   `json:"event,omitzero" doc:"A CloudEvent as it is in the log. Absent if broken."`
		ThreadID string `json:"threadId,omitzero" doc:"With broken: the thread whose commit it is."`
		Broken   bool   `json:"broken,omitzero" doc:"A commit cannot be read."`
	}
	// HistoryList is a page of the log. NextSeq and NextVersion are the fromSeq and
	// afterVersion of the next page, if there is one.
	HistoryList struct {
		Entries     []HistoryEntry `json:"entries" schema:"required" doc:"The events, in the order of the log."`
		NextSeq     int64          `json:"nextSeq,omitzero" schema:"minimum=1" doc:"The fromSeq of what follows, if more does."`
		NextVersion int64          `json:"nextVersion,omitzero" schema:"minimum=1" doc:"Its afterVersion, if a commit is not shown whole."`
		Log         string         `json:"log,omitzero" schema:"pattern=id" doc:"The log that the sequences are of."`
	}
	// ListChunks returns the stored chunks of an execution, in order.
	ListChunks struct {
		ThreadID    string `json:"threadId" schema:"required,pattern=threadRef" doc:"The thread."`
		ExecutionID string `json:"executionId" schema:"required,pattern=id" doc:"The execution."`
		FromIndex   *int64 `json:"fromIndex,omitzero" schema:"minimum=0" doc:"The first chunk to return; some before it may come, too."`
		AfterIndex  *int64 `json:"afterIndex,omitzero" schema:"minimum=0" doc:"Instead of fromIndex: the last chunk that was seen. One that an active run has not written is refused with position_ahead."`
		Log         string `json:"log,omitzero" schema:"pattern=id" doc:"The log of the execution, from history.get; another is refused with position_ahead."`
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

// HistoryInheritedType is the type of HistoryInherited.
const HistoryInheritedType Type = "history.inherited"

// HistoryInherited records that a thread begins with the history of another one, too long to be
// copied into its own commit. The items keep their places. They are in pages: contents of the
// tenant, each of which any number of threads may name.
type HistoryInherited struct {
	ThreadID  string        `json:"threadId" schema:"required,pattern=thread" doc:"The thread whose history it is."`
	Version   int64         `json:"version" schema:"required,minimum=1" doc:"Its version up to which it is inherited."`
	ContextID string        `json:"contextId" schema:"required,pattern=id" doc:"The context that the items belong to."`
	Pages     []HistoryPart `json:"pages" schema:"required,maxItems=2000" doc:"The pages, in the order of their places."`
	NextIndex int64         `json:"nextIndex" schema:"required,minimum=1" doc:"The place of the thread's first item of its own."`

	NextMessageID        int64 `json:"nextMessageId,omitzero" schema:"minimum=0" doc:"The number of the thread's first message of its own."`
	UserLastInteractedAt int64 `json:"userLastInteractedAt,omitzero" schema:"minimum=0" doc:"When a user last wrote, in milliseconds since the epoch."`
}

// HistoryPart names a page and says what it holds. The items of a page are within one block of
// HistoryBlock places.
type HistoryPart struct {
	Digest   string     `json:"digest" schema:"required,minLength=64,maxLength=64" doc:"SHA-256 of the page, in hex."`
	Size     int64      `json:"size" schema:"required,minimum=0" doc:"Bytes of the page."`
	From     int64      `json:"from" schema:"required,minimum=0" doc:"The first place that it covers; the next page begins where it ends."`
	Items    ItemCounts `json:"items,omitzero" doc:"How many items it holds, by kind."`
	Messages []int64    `json:"messages,omitempty" doc:"How many are shown as messages, by class: four times the depth, and one more if silent."`
}

// HistoryBlock is how many places one page covers at most; none covers a part of two blocks.
const HistoryBlock = 512

// HistoryAlign is what the place of a thread's first own item is a multiple of.
const HistoryAlign = 16

// HistoryPage is the content of a page.
type HistoryPage struct {
	Items []InheritedItem `json:"items"` // by place; one that was hidden is not there
}

// InheritedItem is an item of a page. Its id is that of the item from which the page was made.
type InheritedItem struct {
	Index     int64    `json:"index"`
	ID        string   `json:"id"`
	Type      ItemType `json:"type"`
	Role      Role     `json:"role,omitzero"`
	Channel   Channel  `json:"channel,omitzero"`
	Content   JSON     `json:"content,omitzero"`
	CreatedAt int64    `json:"createdAt"` // in microseconds
	Parent    *int64   `json:"parent,omitzero"`
	Depth     int64    `json:"depth,omitzero"`
	Silent    bool     `json:"silent,omitzero"`
	Metadata  JSON     `json:"metadata,omitzero"`
	CallOf    *int64   `json:"callOf,omitzero"`
	MessageID *int64   `json:"messageId,omitzero"`
	Calls     []int64  `json:"calls,omitempty"` // the places of the calls that belong to it
}

// Created returns the event with which the item would have been copied into a thread.
func (i *InheritedItem) Created(tenant, thread, context string) ItemCreated {
	d := ItemCreated{
		ID: InheritedItemID(tenant, thread, i.Index), ContextID: context, Index: i.Index, Type: i.Type, Role: i.Role, Status: ItemCompleted,
		Channel: i.Channel, Content: i.Content, CreatedAt: Time(i.CreatedAt).String(), Depth: i.Depth, Silent: i.Silent, Metadata: i.Metadata,
		CallOf: i.CallOf, MessageID: i.MessageID, SourceItemID: i.ID,
	}
	if i.Parent != nil {
		d.ParentItemID = InheritedItemID(tenant, thread, *i.Parent)
	}
	return d
}

// EncodeHistoryPage returns the bytes of a page and their digest: the same items always yield
// the same bytes.
func EncodeHistoryPage(items []InheritedItem) (content []byte, digest string, err error) {
	content, err = json.Marshal(HistoryPage{Items: items}, json.Deterministic(true))
	if err != nil {
		return nil, "", fmt.Errorf("encode a page of a history: %w", err)
	}
	sum := sha256.Sum256(content)
	return content, hex.EncodeToString(sum[:]), nil
}

// DecodeHistoryPage decodes a page that has a digest, or returns an error that says that these
// are other bytes.
func DecodeHistoryPage(content []byte, digest string) (*HistoryPage, error) {
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != digest {
		return nil, fmt.Errorf("page %s of a history has other bytes, of digest %x", digest, sum)
	}
	page := &HistoryPage{}
	if err := json.Unmarshal(content, page); err != nil {
		return nil, fmt.Errorf("decode page %s of a history: %w", digest, err)
	}
	return page, nil
}

// Contents yields the digests of the contents that the event names, and their sizes.
func (e *Event) Contents() iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		switch d := e.Data.(type) {
		case FileWritten:
			if d.Digest != "" {
				yield(d.Digest, d.Size)
			}
		case HistoryInherited:
			for _, page := range d.Pages {
				if !yield(page.Digest, page.Size) {
					return
				}
			}
		}
	}
}

// Find returns the item at a place, nil if the page has none.
func (p *HistoryPage) Find(place int64) *InheritedItem {
	i, ok := slices.BinarySearchFunc(p.Items, place, func(i InheritedItem, at int64) int { return int(i.Index - at) })
	if !ok {
		return nil
	}
	return &p.Items[i]
}

// Part returns the page that covers a place, nil if none does.
func (d *HistoryInherited) Part(place int64) *HistoryPart {
	i, found := slices.BinarySearchFunc(d.Pages, place, func(p HistoryPart, at int64) int { return int(p.From - at) })
	if !found {
		i--
	}
	if i < 0 || place >= d.NextIndex {
		return nil
	}
	return &d.Pages[i]
}

// Count adds an item to what the page holds.
func (p *HistoryPart) Count(i *InheritedItem) {
	*p.Items.Of(i.Type)++
	if !ShowsAlone(i.Type, i.CallOf != nil) {
		return
	}
	class := MessageClass(i.Depth, false, i.Silent)
	for len(p.Messages) <= class {
		p.Messages = append(p.Messages, 0)
	}
	p.Messages[class]++
}

// deepest is the class of every depth from here on.
const deepest = 8

// MessageClass returns the index of a class of messages in counts of them: by depth, by context
// (the thread's default one or another) and by whether they are silent. All depths from 8 on
// are one.
func MessageClass(depth int64, foreign, silent bool) int {
	class := int(min(max(depth, 0), deepest)) * 4
	if foreign {
		class += 2
	}
	if silent {
		class++
	}
	return class
}

// The id of an inherited item is a digest of its thread, and its place.
const (
	inheritedDigest = 24 // digits of the digest
	inheritedPlace  = 8  // digits of the place
)

// InheritedItemID returns the id that the item at a place has in a thread that inherits it.
func InheritedItemID(tenant, thread string, place int64) string {
	digits := strconv.FormatInt(place, 16)
	return InheritedPrefix(tenant, thread) + strings.Repeat("0", max(0, inheritedPlace-len(digits))) + digits
}

// InheritedPlace returns the place of an id that InheritedItemID returned for a thread.
func InheritedPlace(tenant, thread, id string) (place int64, ok bool) {
	_, digits, _ := CutInherited(id)
	place, err := strconv.ParseInt(digits, 16, 64)
	return place, err == nil && id == InheritedItemID(tenant, thread, place)
}

// CutInherited splits an id that may be one of InheritedItemID after its InheritedPrefix.
func CutInherited(id string) (prefix, place string, ok bool) {
	const cut = len(ItemPrefix) + inheritedDigest
	if len(id) != cut+inheritedPlace || !strings.HasPrefix(id, ItemPrefix) {
		return "", "", false
	}
	return id[:cut], id[cut:], true
}

// InheritedPrefix returns what the ids of a thread's inherited items begin with.
func InheritedPrefix(tenant, thread string) string {
	sum := sha256.Sum256(appendParts(make([]byte, 0, 256), "inherited", tenant, thread))
	return ItemPrefix + hex.EncodeToString(sum[:])[:inheritedDigest]
}
