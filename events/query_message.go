package events

// GetMessagesOptions selects messages. The zero value selects all that are not silent, newest
// first.
type GetMessagesOptions struct {
	Limit         *int64 `json:"limit,omitzero" schema:"minimum=0" doc:"The largest number to return; no limit if absent."`
	Offset        *int64 `json:"offset,omitzero" schema:"minimum=0" doc:"How many to skip; 0 if absent."`
	Order         Order  `json:"order,omitzero" doc:"desc (newest first), the default, or asc."`
	IncludeSilent bool   `json:"includeSilent,omitzero" doc:"Silent messages too."`
	MaxDepth      *int64 `json:"maxDepth,omitzero" schema:"minimum=0" doc:"Only messages nested no deeper; no cap if absent."`
	ContextID     string `json:"contextId,omitzero" schema:"pattern=id" doc:"Only messages of this context; of all if absent."`
}

// ListMessages returns a page of a thread's messages: at most 1,000, and no more than fit in
// the reply. hasMore and nextCursor say that there are more.
type ListMessages struct {
	ThreadID string `json:"threadId" schema:"required,pattern=threadRef" doc:"The thread."`
	GetMessagesOptions
	Cursor string `json:"cursor,omitzero" schema:"maxLength=256" doc:"nextCursor of the page before, in place of an offset; new messages do not shift it."`
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
