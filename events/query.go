package events

import "time"

// FreshWait is how long a query waits, in all, until its read model shows what its Fresh names.
const FreshWait = 5 * time.Second

// Fresh says how recent a reply must be. The query waits until its read model has caught up that
// far, at most FreshWait and a little less than its sender waits for the answer; otherwise the
// error is projection_behind.
type Fresh struct {
	MinSeq     *int64 `json:"minSeq,omitzero" schema:"minimum=0" doc:"The sequence in the log that the answer must show."`
	MinVersion *int64 `json:"minVersion,omitzero" schema:"minimum=0" doc:"The version of the thread that the answer must show."`
}

// At is a point in a thread's life: exactly one of a version and a time.
type At struct {
	Version *int64 `json:"version,omitzero" schema:"minimum=1" doc:"The thread's version."`
	Time    string `json:"time,omitzero" schema:"pattern=time" doc:"A time: the state at that moment."`
}

// Check validates what spans more than one field.
func (a At) Check() error {
	if (a.Version == nil) == (a.Time == "") {
		return Invalid("", "exactly one of version and time is needed")
	}
	return nil
}

// Bound returns the last version and the last time that belong to the point; the one that it
// does not name is 0.
func (a At) Bound() (version int64, until Time, err error) {
	if a.Version != nil {
		return *a.Version, 0, nil
	}
	if until, err = ParseTime(a.Time); err != nil {
		return 0, 0, Invalid("/at/time", "%w", err)
	}
	if until%1000 == 0 {
		until += 999 // documents show milliseconds: all of that one
	}
	return 0, until, nil
}

// Constraint returns the rules of Check as JSON Schema.
func (At) Constraint() string {
	return `{"oneOf":[{"required":["version"],"properties":{"version":{"type":"number"}}},{"required":["time"],"properties":{"time":{"type":"string","minLength":1}}}]}`
}

// Data of the queries. ThreadID is an id or "key:" and a key.
type (
	// GetThread returns a thread's document.
	GetThread struct {
		ThreadID string `json:"threadId" schema:"required,pattern=threadRef" doc:"The thread."`
		At       *At    `json:"at,omitzero" doc:"As it was then."`
		Fresh
	}
	// ListThreads returns the tenant's threads, newest change first.
	ListThreads struct {
		Status       ThreadStatus `json:"status,omitzero" doc:"Only those in this state."`
		Archived     *bool        `json:"archived,omitzero" doc:"Only archived threads; else only others."`
		AgentID      string       `json:"agentId,omitzero" schema:"pattern=name" doc:"Only those of this agent."`
		UserID       string       `json:"userId,omitzero" schema:"maxLength=256" doc:"Only those of this user."`
		KeyPrefix    string       `json:"keyPrefix,omitzero" schema:"pattern=key" doc:"Only those whose key has this prefix."`
		UpdatedAfter string       `json:"updatedAfter,omitzero" schema:"pattern=time" doc:"Only those that changed after this time."`
		Limit        *int64       `json:"limit,omitzero" schema:"minimum=1,maximum=1000" doc:"The largest number to return; 50 if absent."`
		Cursor       string       `json:"cursor,omitzero" schema:"maxLength=256" doc:"nextCursor of the page before."`
		Fresh
	}
	// GetContext returns a context's document.
	GetContext struct {
		ThreadID  string `json:"threadId,omitzero" schema:"pattern=threadRef" doc:"The thread; finds the context faster, and is needed for the default one."`
		ContextID string `json:"contextId,omitzero" schema:"pattern=id" doc:"The context; the default one of the thread if absent."`
		At        *At    `json:"at,omitzero" doc:"As it was then; needs threadId."`
		Fresh
	}
	// ListContexts returns a thread's contexts, oldest first.
	ListContexts struct {
		ThreadID string `json:"threadId" schema:"required,pattern=threadRef" doc:"The thread."`
		Limit    *int64 `json:"limit,omitzero" schema:"minimum=1,maximum=1000" doc:"The largest number to return; as many as one answer holds if absent."`
		Cursor   string `json:"cursor,omitzero" schema:"maxLength=512" doc:"nextCursor of the page before."`
		At       *At    `json:"at,omitzero" doc:"As they were then."`
		Fresh
	}
	// GetItem returns an item's document.
	GetItem struct {
		ThreadID string `json:"threadId,omitzero" schema:"pattern=threadRef" doc:"The thread; finds the item faster."`
		ItemID   string `json:"itemId" schema:"required,pattern=id" doc:"The item."`
		At       *At    `json:"at,omitzero" doc:"As it was then; needs threadId."`
		Fresh
	}
	// ListItems returns a thread's items, in the order in which they were created.
	ListItems struct {
		ThreadID  string   `json:"threadId" schema:"required,pattern=threadRef" doc:"The thread."`
		ContextID string   `json:"contextId,omitzero" schema:"pattern=id" doc:"Only those of this context."`
		Type      ItemType `json:"type,omitzero" doc:"Only those of this kind."`
		Order     Order    `json:"order,omitzero" doc:"asc: oldest first, the default."`
		Limit     *int64   `json:"limit,omitzero" schema:"minimum=1,maximum=1000" doc:"The largest number to return; 100 if absent."`
		Cursor    string   `json:"cursor,omitzero" schema:"maxLength=256" doc:"nextCursor of the page before."`
		At        *At      `json:"at,omitzero" doc:"As they were then."`
		Fresh
	}
	// GetExecution returns an execution's document.
	GetExecution struct {
		ThreadID    string `json:"threadId,omitzero" schema:"pattern=threadRef" doc:"The thread; finds the execution faster."`
		ExecutionID string `json:"executionId" schema:"required,pattern=id" doc:"The execution."`
		At          *At    `json:"at,omitzero" doc:"As it was then; needs threadId."`
		Fresh
	}
	// ListExecutions returns a thread's executions, in the order in which they were created.
	ListExecutions struct {
		ThreadID  string          `json:"threadId" schema:"required,pattern=threadRef" doc:"The thread."`
		ContextID string          `json:"contextId,omitzero" schema:"pattern=id" doc:"Only those of this context."`
		Status    ExecutionStatus `json:"status,omitzero" doc:"Only those in this state."`
		Order     Order           `json:"order,omitzero" doc:"asc: oldest first, the default."`
		Limit     *int64          `json:"limit,omitzero" schema:"minimum=1,maximum=1000" doc:"The largest number to return; as many as one answer holds if absent."`
		Cursor    string          `json:"cursor,omitzero" schema:"maxLength=256" doc:"nextCursor of the page before."`
		At        *At             `json:"at,omitzero" doc:"As they were then."`
		Fresh
	}
	// ListSteps returns an execution's steps, by iteration.
	ListSteps struct {
		ThreadID    string `json:"threadId,omitzero" schema:"pattern=threadRef" doc:"The thread; finds the steps faster."`
		ExecutionID string `json:"executionId" schema:"required,pattern=id" doc:"The execution."`
		At          *At    `json:"at,omitzero" doc:"As they were then; needs threadId."`
		Fresh
	}
	// ListParts returns a step's parts, by idx.
	ListParts struct {
		ThreadID string `json:"threadId,omitzero" schema:"pattern=threadRef" doc:"The thread; finds the parts faster."`
		StepID   string `json:"stepId" schema:"required,pattern=id" doc:"The step."`
		Idx      *int64 `json:"idx,omitzero" schema:"minimum=0" doc:"Only the part at that place; for parts that one answer cannot hold together."`
		At       *At    `json:"at,omitzero" doc:"As they were then; needs threadId."`
		Fresh
	}
	// GetDefinition returns a definition of the tenant.
	GetDefinition struct {
		Kind    DefinitionKind `json:"kind" schema:"required" doc:"What it defines."`
		Name    string         `json:"name" schema:"required,pattern=name" doc:"Its name."`
		Version *int64         `json:"version,omitzero" schema:"minimum=1" doc:"The definition's version to show; the present one if absent."`
		Fresh
	}
	// ListDefinitions returns the tenant's definitions, by kind and name.
	ListDefinitions struct {
		Kind   DefinitionKind `json:"kind,omitzero" doc:"Only those of this kind."`
		Bare   bool           `json:"bare,omitzero" doc:"Leave out the definitions themselves."`
		Limit  *int64         `json:"limit,omitzero" schema:"minimum=1,maximum=1000" doc:"The largest number to return; 100 if absent."`
		Cursor string         `json:"cursor,omitzero" schema:"maxLength=512" doc:"nextCursor of the page before."`
		Fresh
	}
	// GetAgent returns whether there is an agent of that name: one that the tenant defines, a
	// reactor of the server itself, or one that a process serves, or has ever served, on NATS.
	GetAgent struct {
		Name string `json:"name" schema:"required,pattern=name" doc:"Its name."`
		Fresh
	}
	// ListEvents returns a thread's events from the log.
	ListEvents struct {
		ThreadID    string   `json:"threadId" schema:"required,pattern=threadRef" doc:"The thread."`
		FromVersion *int64   `json:"fromVersion,omitzero" schema:"minimum=1" doc:"The first version that is shown; 1 if absent. A version beyond the thread's next is refused with position_ahead."`
		Log         string   `json:"log,omitzero" schema:"pattern=id" doc:"The log of fromVersion, from history.get; another is refused with position_ahead."`
		ToVersion   *int64   `json:"toVersion,omitzero" schema:"minimum=1" doc:"The last version that is shown; the thread's if absent."`
		Types       []string `json:"types,omitzero" schema:"maxItems=64" doc:"Only events of these types; item.* takes all of an entity."`
		Limit       *int64   `json:"limit,omitzero" schema:"minimum=1,maximum=1000" doc:"The largest number to return; 100 if absent."`
		Fresh
	}
)

// Order is the order of a list.
type Order string

// Enum lists the orders.
func (Order) Enum() []string { return []string{"asc", "desc"} }

// The queries' replies, where they are more than a document.
type (
	// ThreadList is a page of threads.
	ThreadList struct {
		Threads    []Thread `json:"threads" schema:"required" doc:"The threads."`
		NextCursor string   `json:"nextCursor,omitzero" doc:"The cursor of the next page, if there is one."`
	}
	// ContextList is a thread's contexts.
	ContextList struct {
		Contexts   []Context `json:"contexts" schema:"required" doc:"The contexts."`
		NextCursor string    `json:"nextCursor,omitzero" doc:"The cursor of the next page, if there is one."`
	}
	// ItemList is a page of items; Total counts all that match the filters.
	ItemList struct {
		Items      []Item `json:"items" schema:"required" doc:"The items."`
		Total      int64  `json:"total" schema:"required,minimum=0" doc:"How many match the filters, on all pages."`
		NextCursor string `json:"nextCursor,omitzero" doc:"The cursor of the next page, if there is one."`
	}
	// ExecutionList is a page of a thread's executions.
	ExecutionList struct {
		Executions []Execution `json:"executions" schema:"required" doc:"The executions."`
		NextCursor string      `json:"nextCursor,omitzero" doc:"The cursor of the next page, if there is one."`
	}
	// StepList is an execution's steps.
	StepList struct {
		Steps []Step `json:"steps" schema:"required" doc:"The steps."`
	}
	// PartList is a step's parts.
	PartList struct {
		Parts []Part `json:"parts" schema:"required" doc:"The parts."`
	}
	// DefinitionList is a page of definitions.
	DefinitionList struct {
		Definitions []Definition `json:"definitions" schema:"required" doc:"The definitions."`
		NextCursor  string       `json:"nextCursor,omitzero" doc:"The cursor of the next page, if there is one."`
	}
	// Agent describes an agent.
	Agent struct {
		Name    string    `json:"name" schema:"required,pattern=name" doc:"Its name."`
		Type    AgentType `json:"type" schema:"required" doc:"The agent's type."`
		Version int64     `json:"version,omitzero" schema:"minimum=1" doc:"The version of its definition; absent: a reactor of the server without one."`
	}
	// EventList is a page of a thread's history: CloudEvents as they are in the log.
	// NextVersion is the fromVersion of the next page, if there is one. A page may be short, or empty,
	// before the last: one query looks at a limited part of the log.
	EventList struct {
		Events      []JSON `json:"events" schema:"required" doc:"CloudEvents as they are in the log."`
		NextVersion int64  `json:"nextVersion,omitzero" schema:"minimum=1" doc:"The fromVersion of what follows, if more does. A page looks at some 10,000 events, and has fewer than the limit, or none, if few are of the types."`
		Seq         int64  `json:"seq,omitzero" schema:"minimum=0" doc:"The sequence in the log of the last event here; absent if there is none."`
		Log         string `json:"log,omitzero" schema:"pattern=id" doc:"The log that the versions are of."`
	}
)

func threadQueries() []Query {
	return append([]Query{
		query("thread.get", "A thread's document, now or as it was.",
			GetThread{ThreadID: "key:support/42", At: &At{Version: new(int64(7))}}),
		query("thread.list", "The tenant's threads, newest change first.",
			ListThreads{Status: ThreadOpen, Limit: new(int64(20))}).listing("threads", "id"),
		query("thread.document", "A thread as one document with its messages, in the form of Amp.", GetThreadDocument{ThreadID: exampleThread}),
		query("thread.history", "Summaries of the tenant's threads, newest change first, in the form of Amp.",
			ListThreadHistory{Limit: new(int64(50))}).listing("threads", "id"),
		query("context.get", "A context's document.", GetContext{ThreadID: exampleThread}),
		query("context.list", "A thread's contexts.", ListContexts{ThreadID: exampleThread}),
		query("item.get", "An item's document.", GetItem{ItemID: exampleQuestion}),
		query("item.list", "A thread's items.",
			ListItems{ThreadID: exampleThread, Order: "desc", Limit: new(int64(20)), Fresh: Fresh{MinSeq: new(int64(1204))}}),
		query("message.get", "A message, or null, in the words of Standard Agents.",
			GetMessage{ThreadID: exampleThread, MessageID: exampleQuestion}),
		query("message.list", "A thread's messages, newest first, in the words of Standard Agents.",
			ListMessages{ThreadID: exampleThread, GetMessagesOptions: GetMessagesOptions{Limit: new(int64(50)), IncludeSilent: true}}),
		query("execution.get", "An execution's document.", GetExecution{ExecutionID: exampleExecution}),
		query("execution.list", "A thread's executions.", ListExecutions{ThreadID: exampleThread}),
		query("step.list", "An execution's steps.", ListSteps{ExecutionID: exampleExecution}),
		query("part.list", "A step's parts.", ListParts{StepID: exampleStep}),
		query("definition.get", "A definition of the tenant, now or as it was.",
			GetDefinition{Kind: AgentKind, Name: "triage"}).of(OfDefinitions),
		query("definition.list", "The tenant's definitions, by kind and name.",
			ListDefinitions{Kind: AgentKind, Limit: new(int64(20))}).of(OfDefinitions),
		query("agent.get", "Whether an agent of that name exists: a defined one, a reactor of the server, or one that a process serves or has served.",
			GetAgent{Name: "triage"}).of(Unscoped),
		query("log.list", "A thread's log lines, newest first.",
			ListLogs{ThreadID: exampleThread, GetLogsOptions: GetLogsOptions{Level: LogError, FlowID: exampleExecution}}),
		query("event.list", "A thread's events.",
			ListEvents{ThreadID: exampleThread, FromVersion: new(int64(1)), Types: []string{"item.*"}}),
		query("effect.list", "The pending effects of a thread or of the tenant, the earliest due first.",
			ListEffects{ThreadID: exampleThread, Name: "remind"}).listing("effects", "threadId"),
		query("history.get", "Where the log ends. It waits for no read model.", GetHistory{}).of(Unscoped),
		query("history.list", "The tenant's events, of all threads or of one, in the order of the log. It waits for no read model.",
			ListHistory{FromSeq: new(int64(1204)), Limit: new(int64(100))}).listing("entries", ""),
		query("chunk.list", "The stored chunks of an execution.",
			ListChunks{ThreadID: exampleThread, ExecutionID: exampleExecution, FromIndex: new(int64(7))}),
		query("consumer.create", "Creates a durable consumer of the timeline, or changes its filter. It changes no thread. A consumer of that name with another start is refused with already_exists: delete it first.",
			CreateConsumer{Name: "mailer", Types: []string{"item.created"}}).of(WholeTenant),
		query("consumer.next", "The next event of a consumer, or with a limit the next events, in the order of the log. A delivery must be settled before the next one.",
			NextOfConsumer{Name: "mailer", Limit: new(int64(100)), WaitMs: new(int64(5000))}).of(WholeTenant),
		query("consumer.settle", "Settles a delivery: acknowledges it, extends it, or asks for another.",
			SettleConsumer{Name: "mailer", Token: "$JS.ACK.SKEIN_TIMELINE.acme=mailer.1.1204.1.1771588800000000000.0", As: SettledDone}).of(WholeTenant),
		query("consumer.delete", "Deletes a consumer.", DeleteConsumer{Name: "mailer"}).of(WholeTenant),
		query("webhook.list", "The tenant's webhooks, and how far their deliveries are.", ListWebhooks{}).of(OfDefinitions),
	}, shareQueries()...)
}

// The document that answers each query, for [QueryFor].
func (GetThread) answer() (a Thread)                 { return a }
func (ListThreads) answer() (a ThreadList)           { return a }
func (GetThreadDocument) answer() (a ThreadDocument) { return a }
func (ListThreadHistory) answer() (a ThreadHistory)  { return a }
func (GetContext) answer() (a Context)               { return a }
func (ListContexts) answer() (a ContextList)         { return a }
func (GetItem) answer() (a Item)                     { return a }
func (ListItems) answer() (a ItemList)               { return a }
func (GetMessage) answer() (a ThreadMessage)         { return a }
func (ListMessages) answer() (a MessageList)         { return a }
func (GetExecution) answer() (a Execution)           { return a }
func (ListExecutions) answer() (a ExecutionList)     { return a }
func (ListSteps) answer() (a StepList)               { return a }
func (ListParts) answer() (a PartList)               { return a }
func (GetDefinition) answer() (a Definition)         { return a }
func (ListDefinitions) answer() (a DefinitionList)   { return a }
func (GetAgent) answer() (a Agent)                   { return a }
func (ListLogs) answer() (a LogList)                 { return a }
func (ListEvents) answer() (a EventList)             { return a }
func (ListEffects) answer() (a EffectList)           { return a }
func (GetHistory) answer() (a HistoryEnd)            { return a }
func (ListHistory) answer() (a HistoryList)          { return a }
func (ListChunks) answer() (a ChunkList)             { return a }
func (CreateConsumer) answer() (a ConsumerRef)       { return a }
func (NextOfConsumer) answer() (a Delivery)          { return a }
func (SettleConsumer) answer() (a ConsumerRef)       { return a }
func (DeleteConsumer) answer() (a ConsumerRef)       { return a }
func (ListWebhooks) answer() (a WebhookList)         { return a }
