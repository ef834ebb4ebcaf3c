package events

// ThreadDocument is a thread whole, in the form of Amp: one JSON object with its messages,
// whose fields are absent where they are not set. Times are milliseconds since the epoch.
// docs/threads.md describes how a thread becomes a document.
type ThreadDocument struct {
	V                int64              `json:"v" schema:"required,minimum=0" doc:"How many changes there were after its creation."`
	ID               string             `json:"id" schema:"required,pattern=thread" doc:"The thread's id."`
	Created          int64              `json:"created" schema:"required,minimum=0" doc:"The time of creation, in milliseconds since the epoch."`
	Messages         []DocumentMessage  `json:"messages" schema:"required" doc:"The messages, oldest first, without those that are hidden, silent or nested."`
	Title            string             `json:"title,omitzero" schema:"maxLength=1024" doc:"Generated, or set by a user."`
	Archived         bool               `json:"archived,omitzero" doc:"Hidden from the main list."`
	Draft            string             `json:"draft,omitzero" schema:"maxLength=65536" doc:"An unsent message."`
	AutoSubmitDraft  bool               `json:"autoSubmitDraft,omitzero" doc:"The draft is to send itself."`
	AgentMode        string             `json:"agentMode,omitzero" schema:"maxLength=128" doc:"The agent's mode."`
	MaxTokens        *int64             `json:"maxTokens,omitzero" schema:"minimum=1" doc:"The cap on output tokens."`
	NextMessageID    int64              `json:"nextMessageId,omitzero" schema:"minimum=0" doc:"The number of the next message; absent: 0."`
	ActivatedSkills  []DocumentSkill    `json:"activatedSkills,omitempty" doc:"The active skills, in their order."`
	Relationships    []DocumentRelation `json:"relationships,omitempty" doc:"Its relationships, in their order."`
	OriginThreadID   string             `json:"originThreadID,omitzero" schema:"pattern=thread" doc:"Of a fork: its parent."`
	ForkPointIndex   *int64             `json:"forkPointIndex,omitzero" schema:"minimum=0" doc:"Of a fork: the last message that was copied, from 0."`
	MainThreadID     string             `json:"mainThreadID,omitzero" schema:"pattern=thread" doc:"The thread that this one works for."`
	Env              JSON               `json:"env,omitzero" schema:"object" doc:"What is known of the workspace: initial.trees and initial.tags."`
	QueuedMessages   []DocumentQueued   `json:"queuedMessages,omitempty" doc:"What waits for the agent, the next one first; at most 5."`
	NextMessageIndex int64              `json:"nextMessageIndex,omitzero" schema:"minimum=1" doc:"The fromMessage of what follows, if more does."`
}

// DocumentRole is the author of a message in a ThreadDocument.
type DocumentRole string

// The roles of a ThreadDocument.
const (
	DocumentUser      DocumentRole = "user"
	DocumentAssistant DocumentRole = "assistant"
	DocumentInfo      DocumentRole = "info"
)

// Enum lists the roles.
func (DocumentRole) Enum() []string {
	return []string{string(DocumentUser), string(DocumentAssistant), string(DocumentInfo)}
}

// DocumentMessage is a message of a ThreadDocument.
type DocumentMessage struct {
	Role      DocumentRole    `json:"role" schema:"required" doc:"Who speaks; the result of a call is a user's."`
	Content   []DocumentBlock `json:"content" schema:"required" doc:"What is said, in order."`
	MessageID *int64          `json:"messageId,omitzero" schema:"minimum=0" doc:"Its number in the thread; results of calls have none."`
	CreatedAt int64           `json:"createdAt,omitzero" schema:"minimum=0" doc:"The time of creation, in milliseconds since the epoch."`
}

// BlockType is the type of a DocumentBlock.
type BlockType string

// The types of blocks.
const (
	TextBlock       BlockType = "text"
	ImageBlock      BlockType = "image"
	ThinkingBlock   BlockType = "thinking"
	ToolUseBlock    BlockType = "tool_use"
	ToolResultBlock BlockType = "tool_result"
	PartBlock       BlockType = "part" // a part of a type that documents do not have
)

// Enum lists the types.
func (BlockType) Enum() []string {
	return []string{string(TextBlock), string(ImageBlock), string(ThinkingBlock), string(ToolUseBlock), string(ToolResultBlock), string(PartBlock)}
}

// DocumentBlock is a block of a message. Its type says which fields it has.
type DocumentBlock struct {
	Type      BlockType    `json:"type" schema:"required" doc:"What it is."`
	Text      *string      `json:"text,omitzero" doc:"Of text: the text."`
	Source    *ImageSource `json:"source,omitzero" doc:"Of image: where it is."`
	Thinking  *string      `json:"thinking,omitzero" doc:"Of thinking: what the model thought."`
	ID        string       `json:"id,omitzero" schema:"maxLength=256" doc:"Of tool_use: the call's id."`
	Name      string       `json:"name,omitzero" schema:"maxLength=256" doc:"Of tool_use: the tool."`
	Input     JSON         `json:"input,omitzero" doc:"Of tool_use: the arguments."`
	Elided    bool         `json:"elided,omitzero" doc:"Of tool_use: the arguments are left out for size; the item has them."`
	ToolUseID string       `json:"toolUseID,omitzero" schema:"maxLength=256" doc:"Of tool_result: the call that it answers."`
	Run       *ToolResult  `json:"run,omitzero" doc:"Of tool_result: how the call ended."`
	Part      JSON         `json:"part,omitzero" doc:"Of part: the part itself, unchanged."`
}

// ImageSource says where an image is.
type ImageSource struct {
	Type      string `json:"type" schema:"required,maxLength=16" doc:"url or base64."`
	URL       string `json:"url,omitzero" doc:"Of url: its address."`
	MediaType string `json:"mediaType,omitzero" schema:"maxLength=256" doc:"Of base64: the media type."`
	Data      string `json:"data,omitzero" doc:"Of base64: the image."`
}

// DocumentRelation is a relationship of a ThreadDocument.
type DocumentRelation struct {
	ThreadID     string           `json:"threadID" schema:"required,pattern=thread" doc:"The other thread."`
	Type         RelationshipKind `json:"type" schema:"required" doc:"The kind of relation."`
	Role         RelationshipRole `json:"role" schema:"required" doc:"The role of the thread that holds this record."`
	MessageIndex *int64           `json:"messageIndex,omitzero" schema:"minimum=0" doc:"Where it was made."`
	CreatedAt    int64            `json:"createdAt,omitzero" schema:"minimum=0" doc:"When it was made, in milliseconds since the epoch."`
	Comment      string           `json:"comment,omitzero" schema:"maxLength=65536" doc:"What it is for."`
}

// DocumentSkill is a skill that was loaded.
type DocumentSkill struct {
	Name      string `json:"name" schema:"required,pattern=name" doc:"The skill."`
	Arguments JSON   `json:"arguments,omitzero" schema:"object" doc:"The arguments of its first activation."`
}

// DocumentQueued is a message that waits for the agent.
type DocumentQueued struct {
	ID            string          `json:"id" schema:"required,maxLength=128" doc:"The id under which it waits."`
	QueuedMessage DocumentMessage `json:"queuedMessage" schema:"required" doc:"The message."`
}

// GetThreadDocument asks for a thread as one document.
type GetThreadDocument struct {
	ThreadID    string `json:"threadId" schema:"required,pattern=threadRef" doc:"The thread."`
	FromMessage *int64 `json:"fromMessage,omitzero" schema:"minimum=0" doc:"The first message to return, of a thread too large for one answer: nextMessageIndex of the answer before."`
	Fresh
}

// ThreadSummary is a thread in a list: a ThreadDocument without its messages.
type ThreadSummary struct {
	ID                   string             `json:"id" schema:"required,pattern=thread" doc:"The thread's id."`
	V                    int64              `json:"v" schema:"required,minimum=0" doc:"How many changes there were after its creation."`
	Created              int64              `json:"created" schema:"required,minimum=0" doc:"The time of creation, in milliseconds since the epoch."`
	Title                *string            `json:"title" schema:"required,nullable" doc:"The title; null if it has none."`
	UserLastInteractedAt int64              `json:"userLastInteractedAt" schema:"required,minimum=0" doc:"When a user last wrote, in milliseconds since the epoch; if none did, the time of creation."`
	Env                  JSON               `json:"env,omitzero" schema:"object" doc:"What is known of the workspace."`
	OriginThreadID       string             `json:"originThreadID,omitzero" schema:"pattern=thread" doc:"Of a fork: its parent."`
	MainThreadID         string             `json:"mainThreadID,omitzero" schema:"pattern=thread" doc:"The thread that this one works for."`
	ParentRelationships  []DocumentRelation `json:"parentRelationships" schema:"required" doc:"The relationships in which it is the child."`
	SummaryStats         SummaryStats       `json:"summaryStats" schema:"required" doc:"Counts."`
	AgentMode            string             `json:"agentMode,omitzero" schema:"maxLength=128" doc:"The agent's mode."`
	Archived             bool               `json:"archived,omitzero" doc:"Hidden from the main list."`
}

// SummaryStats counts what a thread holds and did.
type SummaryStats struct {
	DiffStats    DiffStats `json:"diffStats" schema:"required" doc:"Changes of the thread's files."`
	MessageCount int64     `json:"messageCount" schema:"required,minimum=0" doc:"How many messages its document has."`
}

// DiffStats counts changes of a thread's files since its creation.
type DiffStats struct {
	Added   int64 `json:"added" schema:"required,minimum=0" doc:"Files written where there was none."`
	Changed int64 `json:"changed" schema:"required,minimum=0" doc:"Files written over."`
	Deleted int64 `json:"deleted" schema:"required,minimum=0" doc:"Files deleted."`
}

// ListThreadHistory asks for summaries of the tenant's threads, newest change first.
type ListThreadHistory struct {
	Archived *bool  `json:"archived,omitzero" doc:"Only archived threads; else only others."`
	Limit    *int64 `json:"limit,omitzero" schema:"minimum=1,maximum=1000" doc:"The largest number to return; 50 if absent."`
	Cursor   string `json:"cursor,omitzero" schema:"maxLength=256" doc:"nextCursor of the page before."`
	Fresh
}

// ThreadHistory is a page of summaries.
type ThreadHistory struct {
	Threads    []ThreadSummary `json:"threads" schema:"required" doc:"The summaries."`
	NextCursor string          `json:"nextCursor,omitzero" doc:"The cursor of the next page, if there is one."`
}

// Summary returns the thread's summary. The number of its messages is the caller's: the
// document counts them in blocks, which only read models know.
func (t *Thread) Summary(messages int64) ThreadSummary {
	s := ThreadSummary{
		ID: t.ID, V: t.Changes, Created: t.CreatedAtMicros / 1000, Title: textOrNil(t.Title), UserLastInteractedAt: t.UserLastInteractedAt,
		Env: t.Env, MainThreadID: t.MainThreadID, OriginThreadID: t.OriginThreadID, ParentRelationships: []DocumentRelation{},
		SummaryStats: SummaryStats{MessageCount: messages}, AgentMode: t.AgentMode, Archived: t.Archived,
	}
	s.ParentRelationships = append(s.ParentRelationships, t.Parents...)
	if t.DiffStats != nil {
		s.SummaryStats.DiffStats = *t.DiffStats
	}
	if s.UserLastInteractedAt == 0 {
		s.UserLastInteractedAt = s.Created
	}
	return s
}
