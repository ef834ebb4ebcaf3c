package events

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxRelationships bounds the relationships in which a thread is the parent: truncating it
// writes to each of those threads in one atomic batch, of which the server takes 1,000.
const MaxRelationships = 500

// The events of relationships between threads, and of keys.
const (
	RelationshipAddedType   Type = "relationship.added"
	RelationshipRemovedType Type = "relationship.removed"
	KeyClaimedType          Type = "key.claimed"
	KeyReleasedType         Type = "key.released"
)

// RelationshipKind says how two threads are related.
type RelationshipKind string

// The kinds of relationships.
const (
	ForkRelation    RelationshipKind = "fork"
	HandoffRelation RelationshipKind = "handoff"
	MentionRelation RelationshipKind = "mention"
)

// Enum lists the kinds.
func (RelationshipKind) Enum() []string {
	return []string{string(ForkRelation), string(HandoffRelation), string(MentionRelation)}
}

// RelationshipRole is the role of the thread that holds the record.
type RelationshipRole string

// The roles. The thread that forks, hands off or mentions is the parent.
const (
	ParentRole RelationshipRole = "parent"
	ChildRole  RelationshipRole = "child"
)

// Enum lists the roles.
func (RelationshipRole) Enum() []string { return []string{string(ParentRole), string(ChildRole)} }

// RelationshipAdded relates this thread to another, which holds the matching record.
type RelationshipAdded struct {
	ThreadID     string           `json:"threadId" schema:"required,pattern=thread" doc:"The other thread."`
	Type         RelationshipKind `json:"type" schema:"required" doc:"The kind of relation."`
	Role         RelationshipRole `json:"role" schema:"required" doc:"The role of the thread that holds this record."`
	MessageIndex *int64           `json:"messageIndex,omitzero" schema:"minimum=0" doc:"Where it was made."`
	ItemID       string           `json:"itemId,omitzero" schema:"pattern=id" doc:"The item at that place."`
	Comment      string           `json:"comment,omitzero" schema:"maxLength=65536" doc:"What it is for."`
}

// RelationshipRemoved removes a relationship to another thread.
type RelationshipRemoved struct {
	ThreadID string           `json:"threadId" schema:"required,pattern=thread" doc:"The other thread."`
	Type     RelationshipKind `json:"type" schema:"required" doc:"The kind of relation."`
	Role     RelationshipRole `json:"role" schema:"required" doc:"The role of the thread that held the record."`
}

// MentionThread relates a thread to another one that it refers to. Of each pair of threads one
// mention is recorded: a further one changes nothing.
type MentionThread struct {
	MentionedID  string `json:"mentionedId" schema:"required,pattern=threadRef" doc:"The thread that is mentioned."`
	Comment      string `json:"comment,omitzero" schema:"maxLength=65536" doc:"What it is mentioned for."`
	MessageIndex *int64 `json:"messageIndex,omitzero" schema:"minimum=0" doc:"The message that mentions it, from 0, among those shown; the last one if absent."`
}

// ForkThread copies a thread's history up to a point into a new one: exactly one of
// messageIndex, itemId and version names the point.
type ForkThread struct {
	MessageIndex *int64 `json:"messageIndex,omitzero" schema:"minimum=0" doc:"The last message that is copied, from 0, among those shown."`
	ItemID       string `json:"itemId,omitzero" schema:"pattern=id" doc:"The last message that is copied, by its item."`
	Version      *int64 `json:"version,omitzero" schema:"minimum=1" doc:"The version of the thread that is copied, as the thread was then."`
	Key          string `json:"key,omitzero" schema:"pattern=key" doc:"The new thread's public name, unique in the tenant."`
	Title        string `json:"title,omitzero" schema:"maxLength=1024" doc:"The new thread's title; if absent, made of its parent's."`
}

// Check validates what spans more than one field.
func (f ForkThread) Check() error {
	points := 0
	for _, given := range []bool{f.MessageIndex != nil, f.ItemID != "", f.Version != nil} {
		if given {
			points++
		}
	}
	if points != 1 {
		return Invalid("", "a fork needs exactly one of messageIndex, itemId and version")
	}
	return nil
}

// Constraint returns the rules of Check as JSON Schema.
func (ForkThread) Constraint() string {
	return `{"oneOf":[{"required":["messageIndex"],"properties":{"messageIndex":{"type":"number"}}},` +
		`{"required":["itemId"],"properties":{"itemId":{"type":"string","minLength":1}}},` +
		`{"required":["version"],"properties":{"version":{"type":"number"}}}]}`
}

// MaxSummary is the number of characters that the summary of a handoff may have.
const MaxSummary = 65536

// HandoffThread continues a thread in a new one, which knows only a summary.
type HandoffThread struct {
	AgentID string `json:"agentId,omitzero" schema:"pattern=name" doc:"The agent in charge of the new thread; the thread's own if absent."`
	Summary string `json:"summary,omitzero" schema:"maxLength=65536" doc:"The new thread's first message; if absent, agentId writes it, or else the agent of the policy handoff."`
	Comment string `json:"comment,omitzero" schema:"maxLength=65536" doc:"What the thread is handed off for."`
	Key     string `json:"key,omitzero" schema:"pattern=key" doc:"The new thread's public name, unique in the tenant."`
}

// Handoff says what becomes of the summary that a run writes: it is the first message of a new
// thread, which is created when the run ends.
type Handoff struct {
	ThreadID string `json:"threadId" schema:"required,pattern=thread" doc:"The thread that is to be created."`
	AgentID  string `json:"agentId,omitzero" schema:"pattern=name" doc:"The agent that is to be in charge of it; that of the thread if absent."`
	Key      string `json:"key,omitzero" schema:"pattern=key" doc:"Its public name."`
	Comment  string `json:"comment,omitzero" schema:"maxLength=65536" doc:"What the thread is handed off for."`
}

// CheckSummary refuses a summary that says nothing, or is too long.
func CheckSummary(text string) error {
	switch n := utf8.RuneCountInString(text); {
	case strings.TrimSpace(text) == "":
		return Invalid("/summary", "a summary needs a text")
	case n > MaxSummary:
		return Invalid("/summary", "a summary has at most %d characters, and this one has %d", MaxSummary, n)
	}
	return nil
}

// TruncateThread hides the messages after one. Relationships that were made at a hidden message
// are removed, on the other threads too.
type TruncateThread struct {
	MessageIndex *int64 `json:"messageIndex" schema:"required,minimum=0" doc:"The last message that stays, from 0, among those shown."`
	Interrupt    bool   `json:"interrupt,omitzero" doc:"Abort what runs; without it, a thread that runs is not truncated."`
}

// Relationship is the document of a relationship: what one thread records of another, which
// holds the matching record with the other role.
type Relationship struct {
	ThreadID     string           `json:"threadId" schema:"required,pattern=thread" doc:"The other thread."`
	Type         RelationshipKind `json:"type" schema:"required" doc:"The kind of relation."`
	Role         RelationshipRole `json:"role" schema:"required" doc:"The role of the thread that holds this record."`
	MessageIndex *int64           `json:"messageIndex,omitzero" schema:"minimum=0" doc:"The parent's message at which it was made, from 0, among those shown then."`
	ItemID       string           `json:"itemId,omitzero" schema:"pattern=id" doc:"The item at that place, in the thread that holds this record."`
	CreatedAt    string           `json:"createdAt" schema:"required,pattern=time" doc:"When it was made."`
	Comment      string           `json:"comment,omitzero" schema:"maxLength=65536" doc:"What it is for."`
	Stamp
}

// ListRelationships asks for a thread's relationships, oldest first.
type ListRelationships struct {
	ThreadID string           `json:"threadId" schema:"required,pattern=threadRef" doc:"The thread."`
	Type     RelationshipKind `json:"type,omitzero" doc:"Only those of this kind."`
	Role     RelationshipRole `json:"role,omitzero" doc:"Only those in which the thread has this role."`
	Limit    *int64           `json:"limit,omitzero" schema:"minimum=1,maximum=1000" doc:"The largest number to return; as many as one answer holds if absent."`
	Cursor   string           `json:"cursor,omitzero" schema:"maxLength=512" doc:"nextCursor of the page before."`
	At       *At              `json:"at,omitzero" doc:"As they were then."`
	Fresh
}

// RelationshipList is a thread's relationships.
type RelationshipList struct {
	Relationships []Relationship `json:"relationships" schema:"required" doc:"The relationships."`
	NextCursor    string         `json:"nextCursor,omitzero" doc:"The cursor of the next page, if there is one."`
}

func relationshipCommands() []Command {
	mention := command("thread.mention", "Relates a thread to another one that it refers to; once for each pair.",
		MentionThread{MentionedID: exampleChild, Comment: "the earlier order"}, RelationshipAddedType).relating(Relates{Threads: []string{"mentionedId"}})
	mention.Single = true
	fork := command("thread.fork", "Copies a thread's history up to a point into a new thread, and relates the two.",
		ForkThread{MessageIndex: new(int64(3)), Title: "Another way"}, RelationshipAddedType, ThreadCreatedType, ContextCreatedType, KeyClaimedType,
		DirectoryCreatedType, FileWrittenType, ItemCreatedType, HistoryInheritedType).relating(Relates{Child: true})
	fork.Single = true
	truncate := command("thread.truncate", "Hides the messages after one, and removes the relationships that were made at them.",
		TruncateThread{MessageIndex: new(int64(3))}, HistoryTruncatedType, RelationshipRemovedType, RunStoppedType, StepStatusChangedType, ItemCreatedType,
		MessageEditedType, ItemStatusChangedType, ExecutionStatusChangedType, ThreadFinishedType, ContextStatusChangedType, ThreadStatusChangedType,
		QueueDrainedType, ContextResolvedType, ExecutionCreatedType, RunRequestedType)
	truncate.First = true
	return append([]Command{mention, fork, truncate}, handoffCommands()...)
}

func handoffCommands() []Command {
	handoff := command("thread.handoff", "Continues a thread in a new one, which begins with a summary, and relates the two. Without a summary, an agent writes it first.",
		HandoffThread{Summary: "Order 42 was lost; the customer wants the money back.", Comment: "the refund"},
		RelationshipAddedType, ThreadCreatedType, ContextCreatedType, KeyClaimedType, ItemCreatedType,
		ContextResolvedType, ThreadStatusChangedType, ContextStatusChangedType, ExecutionCreatedType, RunRequestedType).relating(Relates{Child: true})
	handoff.Single = true
	return []Command{handoff}
}

func relationshipQueries() []Query {
	return []Query{query("relationship.list", "The threads to which a thread is related, oldest first.",
		ListRelationships{ThreadID: exampleThread, Role: ParentRole})}
}

func relationshipDocuments() []Document {
	return []Document{
		document[Relationship]("relationship", "A relation of a thread to another."),
		document[RelationshipList]("relationship_list", "A thread's relationships."),
	}
}

// KeyClaimed records that a thread holds a key. It is written to the thread and to the key's
// own aggregate in one atomic batch, so that the key is unique.
type KeyClaimed struct {
	Key      string `json:"key" schema:"required,pattern=key" doc:"The key."`
	ThreadID string `json:"threadId" schema:"required,pattern=thread" doc:"The thread that holds it."`
}

// KeyReleased records that a key is free again.
type KeyReleased struct {
	Key      string `json:"key" schema:"required,pattern=key" doc:"The key."`
	ThreadID string `json:"threadId" schema:"required,pattern=thread" doc:"The thread that held it."`
}

type relationshipRules interface {
	RelationshipAdded(e *Event, d RelationshipAdded) error
	RelationshipRemoved(e *Event, d RelationshipRemoved) error
}

func relationshipEvents() []Row {
	return []Row{
		row(RelationshipAddedType, 1, "The thread was related to another.",
			RelationshipAdded{ThreadID: exampleChild, Type: "fork", Role: "parent", MessageIndex: new(int64(3)), ItemID: exampleAnswer}, Rules.RelationshipAdded),
		row(RelationshipRemovedType, 1, "A relation of the thread to another was removed.",
			RelationshipRemoved{ThreadID: exampleChild, Type: "fork", Role: "parent"}, Rules.RelationshipRemoved),
	}
}

type keyRules interface {
	KeyClaimed(e *Event, d KeyClaimed) error
	KeyReleased(e *Event, d KeyReleased) error
}

func keyEvents() []Row {
	return []Row{
		row(KeyClaimedType, 1, "A thread claimed a key.", KeyClaimed{Key: "support/42", ThreadID: exampleThread}, Rules.KeyClaimed),
		row(KeyReleasedType, 1, "A key was released.", KeyReleased{Key: "support/42", ThreadID: exampleThread}, Rules.KeyReleased),
	}
}

// maxTitleLength is the number of characters that a title may have.
const maxTitleLength = 1024

// ForkTitle returns the title of a fork of a thread. It counts up what an earlier fork put in
// front: the result is that of JavaScript's /^Forked(?:\((\d+)\))?: (.+)$/, in which "." is no
// line break. Titles come from callers, so it looks at each character once.
func ForkTitle(of string) string {
	title := "Forked: " + of
	if of == "" {
		title = "Forked: Untitled"
	}
	if count, rest, ok := forked(of); ok {
		title = "Forked(" + count + "): " + rest
	}
	if utf8.RuneCountInString(title) > maxTitleLength {
		title = string([]rune(title)[:maxTitleLength])
	}
	return title
}

// forked splits the title of a fork: next is the number for the next fork, rest the title without
// its prefix.
func forked(title string) (next, rest string, ok bool) {
	after, ok := strings.CutPrefix(title, "Forked")
	if !ok {
		return "", "", false
	}
	digits := "1"
	if inner, has := strings.CutPrefix(after, "("); has {
		if digits, after, ok = strings.Cut(inner, ")"); !ok || digits == "" || strings.Trim(digits, "0123456789") != "" {
			return "", "", false
		}
	}
	rest, ok = strings.CutPrefix(after, ": ")
	if !ok || rest == "" || strings.ContainsAny(rest, "\n\r\u2028\u2029") {
		return "", "", false
	}
	return afterNumber(digits), rest, true
}

// afterNumber adds one to a number, as JavaScript does it: with 53 bits.
func afterNumber(digits string) string {
	n, _ := strconv.ParseFloat(digits, 64) // infinite, if it is out of range
	n++
	switch {
	case math.IsInf(n, 0):
		return "Infinity"
	case n < 1e21:
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	return strconv.FormatFloat(n, 'e', -1, 64)
}

// The document that answers each query, for [QueryFor].
func (ListRelationships) answer() (a RelationshipList) { return a }
