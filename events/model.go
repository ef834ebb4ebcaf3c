package events

// ItemType is one of the four types of items. Any other is refused.
type ItemType string

// The types of items.
const (
	Message       ItemType = "message"
	ActionExecute ItemType = "action_execute"
	ActionResult  ItemType = "action_result"
	ItemReference ItemType = "item_reference"
)

// Enum lists the types.
func (ItemType) Enum() []string {
	return []string{string(Message), string(ActionExecute), string(ActionResult), string(ItemReference)}
}

// Role is the author of a message.
type Role string

// The roles of Open Responses.
const (
	User      Role = "user"
	Assistant Role = "assistant"
	System    Role = "system"
	Developer Role = "developer"
)

// Enum lists the roles.
func (Role) Enum() []string {
	return []string{string(User), string(Assistant), string(System), string(Developer)}
}

// Instructs reports whether a model takes what the role says as its operator's.
func (r Role) Instructs() bool { return r == System || r == Developer }

// Channel says how an item arrived.
type Channel string

// The channels.
const (
	Web      Channel = "web"
	WhatsApp Channel = "whatsapp"
	Email    Channel = "email"
)

// Enum lists the channels.
func (Channel) Enum() []string { return []string{string(Web), string(WhatsApp), string(Email)} }

// Stamp says which state of the log a document shows: the thread's version, and the sequence
// in the log of the commit that last changed the document.
type Stamp struct {
	Version int64 `json:"version" schema:"required,minimum=1" doc:"The thread's version after the change that made this document."`
	Seq     int64 `json:"seq" schema:"required,minimum=1" doc:"The sequence in the log of that change's commit."`
}

// Thread is the document of a thread. It adds fields to the five of the Ekairos specification,
// so that a reader of those can still read it.
type Thread struct {
	ID        string       `json:"id" schema:"required,pattern=thread" doc:"The internal id."`
	Key       *string      `json:"key" schema:"required,nullable,pattern=key" doc:"The stable public name, unique in the tenant."`
	Status    ThreadStatus `json:"status" schema:"required" doc:"The state of the thread's machine."`
	CreatedAt string       `json:"createdAt" schema:"required,pattern=time" doc:"The time of creation."`
	UpdatedAt string       `json:"updatedAt,omitzero" schema:"pattern=time" doc:"When it last changed, if it did."`

	ContextID       string     `json:"contextId,omitzero" schema:"pattern=id" doc:"The default context."`
	AgentID         string     `json:"agentId,omitzero" schema:"pattern=name" doc:"The agent in charge."`
	UserID          string     `json:"userId,omitzero" schema:"maxLength=256" doc:"The user it belongs to."`
	Title           string     `json:"title,omitzero" schema:"maxLength=1024" doc:"A title for lists."`
	Archived        bool       `json:"archived,omitzero" doc:"Hidden from the main list."`
	Draft           string     `json:"draft,omitzero" schema:"maxLength=65536" doc:"An unsent message."`
	AutoSubmitDraft bool       `json:"autoSubmitDraft,omitzero" doc:"The draft is sent when a run has completed and nothing waits; then both are cleared."`
	AgentMode       string     `json:"agentMode,omitzero" schema:"maxLength=128" doc:"Picks the agent, by the policy modes."`
	MaxTokens       *int64     `json:"maxTokens,omitzero" schema:"minimum=1" doc:"The cap on a run's output tokens in all steps."`
	Metadata        JSON       `json:"metadata,omitzero" schema:"object" doc:"The caller's own fields."`
	Env             JSON       `json:"env,omitzero" schema:"object" doc:"What is known of the workspace."`
	MainThreadID    string     `json:"mainThreadId,omitzero" schema:"pattern=thread" doc:"The thread that this one works for."`
	OriginThreadID  string     `json:"originThreadId,omitzero" schema:"pattern=thread" doc:"Of a fork: the thread that it was copied from."`
	ForkPointIndex  *int64     `json:"forkPointIndex,omitzero" schema:"minimum=0" doc:"Of a fork: the last message that was copied, from 0."`
	Policy          Policy     `json:"policy,omitzero" doc:"What happens to a message during a run; absent: the running agent's policy."`
	Run             *ThreadRun `json:"run,omitzero" doc:"The current run; absent if there is none."`
	Queued          int64      `json:"queued,omitzero" schema:"minimum=0" doc:"How many messages wait for the agent."`
	Items           int64      `json:"items,omitzero" schema:"minimum=0" doc:"How many items it has, without deleted ones."`
	ItemTypes       ItemCounts `json:"itemTypes,omitzero" doc:"The number by kind."`
	NextItem        int64      `json:"nextItem,omitzero" schema:"minimum=0" doc:"The place that the next item will take."`
	CreatedAtMicros int64      `json:"createdAtMicros,omitzero" schema:"minimum=0" doc:"createdAt in microseconds since the epoch."`
	MessageBlocks   [][]int64  `json:"messageBlocks,omitempty" doc:"Internal: the number of its messages, for pages; not in answers."`
	ListedSeq       int64      `json:"listedSeq,omitzero" schema:"minimum=0" doc:"Internal: its place in lists, if an archive came after it; not in answers."`

	ActivatedSkills []ActivatedSkill `json:"activatedSkills,omitempty" doc:"The active skills, in their order."`

	Changes              int64      `json:"changes,omitzero" schema:"minimum=0" doc:"How many changes there were after its creation: v of thread.document."`
	NextMessageID        int64      `json:"nextMessageId,omitzero" schema:"minimum=0" doc:"The number that the next message will take."`
	UserLastInteractedAt int64      `json:"userLastInteractedAt,omitzero" schema:"minimum=0" doc:"When a user last wrote, in milliseconds since the epoch."`
	DiffStats            *DiffStats `json:"diffStats,omitzero" doc:"Changes of its files; absent if there was none."`

	Parents []DocumentRelation `json:"parents,omitempty" doc:"Internal: the relationships in which it is the child; not in answers."`
	Stamp
}

// ItemCounts counts items by type.
type ItemCounts struct {
	Message       int64 `json:"message,omitzero" schema:"minimum=0" doc:"Messages."`
	ActionExecute int64 `json:"action_execute,omitzero" schema:"minimum=0" doc:"Calls of tools."`
	ActionResult  int64 `json:"action_result,omitzero" schema:"minimum=0" doc:"Results of tools."`
	ItemReference int64 `json:"item_reference,omitzero" schema:"minimum=0" doc:"References."`
}

// Of returns a pointer to the count of one type.
func (c *ItemCounts) Of(t ItemType) *int64 {
	switch t {
	case ActionExecute:
		return &c.ActionExecute
	case ActionResult:
		return &c.ActionResult
	case ItemReference:
		return &c.ItemReference
	default:
		return &c.Message
	}
}

// Add adds other counts.
func (c *ItemCounts) Add(more ItemCounts) {
	c.Message += more.Message
	c.ActionExecute += more.ActionExecute
	c.ActionResult += more.ActionResult
	c.ItemReference += more.ItemReference
}

// Total returns the number of items of all types.
func (c ItemCounts) Total() int64 {
	return c.Message + c.ActionExecute + c.ActionResult + c.ItemReference
}

// Context is the document of a context: typed state that belongs to one thread. Content is any
// JSON, or null.
type Context struct {
	ID        string        `json:"id" schema:"required,pattern=id" doc:"The id."`
	Key       *string       `json:"key" schema:"required,nullable,pattern=key" doc:"Its name in the thread."`
	ThreadID  string        `json:"threadId" schema:"required,pattern=thread" doc:"The one thread it belongs to."`
	Status    ContextStatus `json:"status" schema:"required" doc:"The state of the context's machine."`
	Type      string        `json:"type,omitzero" schema:"pattern=name" doc:"The definition that its content must fit."`
	Content   JSON          `json:"content" schema:"required" doc:"The state itself."`
	CreatedAt string        `json:"createdAt" schema:"required,pattern=time" doc:"The time of creation."`
	UpdatedAt string        `json:"updatedAt,omitzero" schema:"pattern=time" doc:"When it last changed, if it did."`
	ItemTypes ItemCounts    `json:"itemTypes,omitzero" doc:"How many items it has, without deleted ones."`
	Stamp
}

// Item is the document of an item, with the ids of its thread and context.
type Item struct {
	ID        string     `json:"id" schema:"required,pattern=id" doc:"The id."`
	ThreadID  string     `json:"threadId" schema:"required,pattern=thread" doc:"The thread it belongs to."`
	ContextID string     `json:"contextId" schema:"required,pattern=id" doc:"The context it belongs to."`
	Type      ItemType   `json:"type" schema:"required" doc:"What kind of item it is."`
	Role      Role       `json:"role,omitzero" doc:"Who speaks; of a message."`
	Status    ItemStatus `json:"status,omitzero" doc:"The state of the item's machine."`
	Channel   Channel    `json:"channel,omitzero" doc:"The channel through which it came."`
	Content   JSON       `json:"content,omitzero" doc:"A message's list of parts, or another kind's content."`
	CreatedAt string     `json:"createdAt" schema:"required,pattern=time" doc:"The time of creation."`
	UpdatedAt string     `json:"updatedAt,omitzero" schema:"pattern=time" doc:"When it last changed, if it did."`

	Index        int64  `json:"index" schema:"required,minimum=0" doc:"Its place in the thread, from 0; never reused."`
	ParentItemID string `json:"parentItemId,omitzero" schema:"pattern=id" doc:"The item it was made for."`
	Depth        int64  `json:"depth,omitzero" schema:"minimum=0" doc:"Its depth; 0 is the conversation itself."`
	Silent       bool   `json:"silent,omitzero" doc:"Hidden from people, shown to the model."`
	Metadata     JSON   `json:"metadata,omitzero" schema:"object" doc:"The caller's own fields."`
	Edited       bool   `json:"edited,omitzero" doc:"Its content was changed after it was made."`
	Failed       bool   `json:"failed,omitzero" doc:"Its execution or a step of it failed, or its writer says so."`
	CallOf       *int64 `json:"callOf,omitzero" schema:"minimum=0" doc:"Of a call that is part of a message: that message's place."`
	SourceItemID string `json:"sourceItemId,omitzero" schema:"pattern=id" doc:"Of a copy in a fork: the item of the parent."`
	MessageID    *int64 `json:"messageId,omitzero" schema:"minimum=0" doc:"Of a message: its number in the thread."`

	CreatedAtMicros int64 `json:"createdAtMicros,omitzero" schema:"minimum=0" doc:"createdAt in microseconds since the epoch."`
	Stamp
}

// Execution is the document of an execution.
type Execution struct {
	ID             string              `json:"id" schema:"required,pattern=id" doc:"The id."`
	ThreadID       string              `json:"threadId" schema:"required,pattern=thread" doc:"The thread it belongs to."`
	ContextID      string              `json:"contextId" schema:"required,pattern=id" doc:"The context it works in."`
	TriggerItemID  string              `json:"triggerItemId" schema:"required,pattern=id" doc:"The item that it answers."`
	ReactionItemID string              `json:"reactionItemId" schema:"required,pattern=id" doc:"The item that it writes."`
	WorkflowRunID  string              `json:"workflowRunId,omitzero" schema:"maxLength=256" doc:"The id of the durable run behind it."`
	SessionID      string              `json:"sessionId,omitzero" schema:"pattern=session" doc:"The request's session."`
	Status         ExecutionStatus     `json:"status" schema:"required" doc:"The state of the execution's machine."`
	ErrorText      string              `json:"errorText,omitzero" doc:"Why it failed."`
	ErrorCode      FailureCode         `json:"errorCode,omitzero" doc:"Why it failed, if its model's endpoint said one of these."`
	Finished       bool                `json:"finished,omitzero" doc:"thread.finished has been recorded for it."`
	AgentID        string              `json:"agentId,omitzero" schema:"pattern=name" doc:"The agent that runs, or ran."`
	Worker         string              `json:"worker,omitzero" doc:"Who runs it, or ran it last."`
	Token          int64               `json:"token,omitzero" schema:"minimum=0" doc:"How often it was claimed."`
	Definitions    []DefinitionVersion `json:"definitions,omitempty" doc:"The definitions that it uses."`
	Waiting        []string            `json:"waiting,omitempty" doc:"The calls that it waits for, without a worker."`
	WaitingFor     []WaitFor           `json:"waitingFor,omitempty" doc:"What it waits for that no process serves now."`
	Approvals      []CallApproval      `json:"approvals,omitempty" doc:"The approvals that were asked for."`
	RetryOf        string              `json:"retryOf,omitzero" schema:"pattern=id" doc:"The failed execution that it takes up again."`
	Parent         *Parent             `json:"parent,omitzero" doc:"The call, on another thread, that waits for it."`
	Stopped        bool                `json:"stopped,omitzero" doc:"It was told to stop."`
	StoppedBy      Side                `json:"stoppedBy,omitzero" doc:"Which side stopped it by its own tool or hook; a for an ai_human agent. Absent if a caller did."`
	StepCount      int64               `json:"stepCount,omitzero" schema:"minimum=0" doc:"Its steps."`
	SideASteps     int64               `json:"sideAStepCount,omitzero" schema:"minimum=0" doc:"Those of side a of a dual_ai agent."`
	SideBSteps     int64               `json:"sideBStepCount,omitzero" schema:"minimum=0" doc:"Those of side b."`
	CreatedAt      string              `json:"createdAt" schema:"required,pattern=time" doc:"The time of creation."`
	UpdatedAt      string              `json:"updatedAt,omitzero" schema:"pattern=time" doc:"When it last changed, if it did."`

	Settings     *RunSettings `json:"settings,omitzero" doc:"The settings of its run."`
	Usage        *Usage       `json:"usage,omitzero" doc:"The sum of what its calls of models used."`
	LaterItems   []LaterItem  `json:"laterItems,omitempty" doc:"The items that continue its answer after messages that came during the run, in order."`
	FinishReason string       `json:"finishReason,omitzero" doc:"Why the model's last answer ended early, if its reactor says so: length, content-filter or other."`
	Stamp
}

// LaterItem is an item in which the answer of an execution goes on.
type LaterItem struct {
	ItemID    string `json:"itemId" schema:"required,pattern=id" doc:"The item."`
	SteeredBy string `json:"steeredBy,omitzero" schema:"pattern=id" doc:"The message that it answers, if one steered the run."`
}

// Items returns the ids of the items that the execution writes, in order.
func (x *Execution) Items() []string {
	ids := []string{x.ReactionItemID}
	for _, i := range x.LaterItems {
		ids = append(ids, i.ItemID)
	}
	return ids
}

// WaitingApprovals returns the calls on which people are to decide.
func (x *Execution) WaitingApprovals() (list []CallApproval) {
	for _, a := range x.Approvals {
		if a.Status == ApprovalWaiting {
			list = append(list, a)
		}
	}
	return list
}

// LastItem returns the id of the item that the execution writes, or wrote last.
func (x *Execution) LastItem() string {
	if n := len(x.LaterItems); n > 0 {
		return x.LaterItems[n-1].ItemID
	}
	return x.ReactionItemID
}

// Step is the document of a step.
type Step struct {
	ID                   string     `json:"id" schema:"required,pattern=id" doc:"The id."`
	ThreadID             string     `json:"threadId" schema:"required,pattern=thread" doc:"The thread it belongs to."`
	ExecutionID          string     `json:"executionId" schema:"required,pattern=id" doc:"The execution it belongs to."`
	Iteration            int64      `json:"iteration" schema:"required,minimum=0" doc:"Its place in the execution, from 0."`
	Status               StepStatus `json:"status" schema:"required" doc:"The state of the step's machine."`
	EventID              string     `json:"eventId" schema:"required,pattern=id" doc:"The id of the item that the step writes."`
	Side                 Side       `json:"side,omitzero" doc:"The side of a dual_ai agent."`
	ToolCalls            JSON       `json:"toolCalls,omitzero" doc:"The calls that the reactor asked for."`
	ToolExecutionResults JSON       `json:"toolExecutionResults,omitzero" doc:"What the tools answered."`
	ContinueLoop         *bool      `json:"continueLoop,omitzero" doc:"Whether another step follows."`
	ErrorText            string     `json:"errorText,omitzero" doc:"Why it failed."`
	CreatedAt            string     `json:"createdAt" schema:"required,pattern=time" doc:"The time of creation."`
	UpdatedAt            string     `json:"updatedAt,omitzero" schema:"pattern=time" doc:"When it last changed, if it did."`
	Stamp
}

// Part is the document of a part: one piece of a step's output, in its authoritative form.
type Part struct {
	Key       string `json:"key" schema:"required,pattern=partKey" doc:"stepId:idx."`
	ThreadID  string `json:"threadId" schema:"required,pattern=thread" doc:"The thread it belongs to."`
	StepID    string `json:"stepId" schema:"required,pattern=id" doc:"The step it belongs to."`
	Idx       int64  `json:"idx" schema:"required,minimum=0" doc:"Its place in the step, from 0."`
	Type      string `json:"type,omitzero" schema:"maxLength=128" doc:"What kind of part it is."`
	Part      JSON   `json:"part,omitzero" doc:"The part itself, stored unchanged."`
	UpdatedAt string `json:"updatedAt,omitzero" schema:"pattern=time" doc:"When it last changed, if it did."`
	Stamp
}

// TraceRun is the document of a run: one for each execution.
type TraceRun struct {
	ID        string          `json:"id" schema:"required,pattern=id" doc:"The execution's id."`
	ThreadID  string          `json:"threadId" schema:"required,pattern=thread" doc:"The thread it belongs to."`
	SessionID string          `json:"sessionId,omitzero" schema:"pattern=session" doc:"The request's session."`
	Status    ExecutionStatus `json:"status" schema:"required" doc:"The execution's state."`
	StartedAt string          `json:"startedAt" schema:"required,pattern=time" doc:"When it began."`
	EndedAt   string          `json:"endedAt,omitzero" schema:"pattern=time" doc:"When it ended."`
	Micros    int64           `json:"micros,omitzero" schema:"minimum=0" doc:"How long it took, in microseconds."`
	Actor     string          `json:"actor,omitzero" doc:"Who asked for it."`
	Trace     string          `json:"traceparent,omitzero" doc:"The W3C trace context of the request."`
	Usage     *Usage          `json:"usage,omitzero" doc:"The sum of what its calls of models used."`
	Stamp
}

// TraceSpan is the document of a span: one for each step, and one for each recorded call of a
// reactor or a tool.
type TraceSpan struct {
	ID        string `json:"id" schema:"required,pattern=id" doc:"The step's id, or the recorded span's."`
	RunID     string `json:"runId" schema:"required,pattern=id" doc:"The run that it is part of."`
	ThreadID  string `json:"threadId" schema:"required,pattern=thread" doc:"The thread it belongs to."`
	SessionID string `json:"sessionId,omitzero" schema:"pattern=session" doc:"The session of its run."`
	ParentID  string `json:"parentId,omitzero" schema:"pattern=id" doc:"The parent span."`
	Name      string `json:"name" schema:"required" doc:"What was done."`
	Status    string `json:"status,omitzero" doc:"Its status."`
	StartedAt string `json:"startedAt" schema:"required,pattern=time" doc:"When it began."`
	EndedAt   string `json:"endedAt,omitzero" schema:"pattern=time" doc:"When it ended."`
	Micros    int64  `json:"micros,omitzero" schema:"minimum=0" doc:"How long it took, in microseconds."`
	Usage     *Usage `json:"usage,omitzero" doc:"What a call of a model used."`
	Shown     *Shown `json:"shown,omitzero" doc:"What a model was shown."`
	Data      JSON   `json:"data,omitzero" doc:"What else was recorded."`
	Stamp
}

// TraceEvent is the document of one record of a run, such as a log line or the usage of a
// model.
type TraceEvent struct {
	ID        string `json:"id" schema:"required" doc:"The event's id."`
	ThreadID  string `json:"threadId" schema:"required,pattern=thread" doc:"The thread it belongs to."`
	RunID     string `json:"runId,omitzero" schema:"pattern=id" doc:"The run that it is part of."`
	SessionID string `json:"sessionId,omitzero" schema:"pattern=session" doc:"The session of its run."`
	SpanID    string `json:"spanId,omitzero" schema:"pattern=id" doc:"The span that it is part of."`
	Kind      string `json:"kind" schema:"required" doc:"log, usage or span."`
	Level     string `json:"level,omitzero" doc:"The level of a log line."`
	Text      string `json:"text,omitzero" doc:"A log line's text."`
	Usage     *Usage `json:"usage,omitzero" doc:"What a call of a model used."`
	Data      JSON   `json:"data,omitzero" doc:"What else was recorded."`
	At        string `json:"at" schema:"required,pattern=time" doc:"When."`
	AtMicros  int64  `json:"atMicros,omitzero" schema:"minimum=0" doc:"The same in microseconds since the epoch."`
	Place     int64  `json:"place,omitzero" schema:"minimum=0" doc:"The thread's version with it, which orders what one commit records."`
	Stamp
}

// Definition is the document of a definition in its current version, or in the version that a
// query names.
type Definition struct {
	Kind       DefinitionKind `json:"kind" schema:"required" doc:"What it defines."`
	Name       string         `json:"name" schema:"required,pattern=name" doc:"Its name."`
	Version    int64          `json:"version" schema:"required,minimum=1" doc:"Its own version, from 1."`
	Digest     string         `json:"digest" schema:"required,maxLength=64" doc:"Its SHA-256, in hex."`
	Definition JSON           `json:"definition,omitzero" schema:"object" doc:"As in schema/files/definitions; not in a bare list."`
	UpdatedAt  string         `json:"updatedAt" schema:"required,pattern=time" doc:"The time of this definition."`
	Seq        int64          `json:"seq" schema:"required,minimum=1" doc:"The sequence in the log of that commit."`
}

// Document returns the definition's document after the event, nil if the event removes it.
func (d DefinitionChanged) Document(at Time, seq int64) *Definition {
	if d.Definition == nil {
		return nil
	}
	digest := d.Digest
	if digest == "" {
		digest = DefinitionDigest(d.Definition)
	}
	return &Definition{Kind: d.Kind, Name: d.Name, Version: d.Version, Digest: digest, Definition: d.Definition, UpdatedAt: at.ISO(), Seq: seq}
}

func threadDocuments() []Document {
	return append([]Document{
		document[Thread]("thread", "A thread."),
		document[Context]("context", "A context: typed state of a thread."),
		document[Item]("item", "An item of a thread."),
		document[Execution]("execution", "An execution: one run of an agent."),
		document[Step]("step", "A step: one call of the reactor and its tools."),
		document[Part]("part", "A part: one piece of a step's output."),
		document[TraceRun]("trace_run", "The trace of one execution."),
		document[TraceSpan]("trace_span", "The trace of one step or call."),
		document[TraceEvent]("trace_event", "One thing that was recorded of a run."),
		document[Definition]("definition", "A definition of the tenant: what one kind and name stand for."),
		document[ThreadList]("thread_list", "A page of threads."),
		document[ThreadDocument]("thread_document", "A thread as one document with its messages."),
		document[ThreadHistory]("thread_history", "A page of summaries of threads."),
		document[ContextList]("context_list", "A thread's contexts."),
		document[ItemList]("item_list", "A page of items."),
		document[ExecutionList]("execution_list", "A thread's executions."),
		document[StepList]("step_list", "An execution's steps."),
		document[PartList]("part_list", "A step's parts."),
		document[DefinitionList]("definition_list", "A page of definitions."),
		document[WebhookList]("webhook_list", "The tenant's webhooks, and how far their deliveries are."),
		document[Agent]("agent", "What is known of an agent."),
		document[EventList]("event_list", "A part of a thread's history."),
		document[ScheduledEffect]("effect", "An effect that has not ended."),
		document[RunList]("run_list", "A page of a tenant's runs."),
		document[ApprovalList]("approval_list", "A page of a tenant's requests for approvals."),
		document[QueueList]("queue_list", "What waits for a thread's agent."),
		document[EffectList]("effect_list", "A page of pending effects."),
		document[HistoryEnd]("history_end", "The end of the log."),
		document[HistoryList]("history_list", "A part of the log: a tenant's events in their order."),
		document[ChunkList]("chunk_list", "A part of the chunks of an execution."),
		document[Delivery]("delivery", "What a consumer has delivered: an event, a batch of events, or nothing."),
		document[ConsumerRef]("consumer", "A consumer's name."),
		document[ThreadMessage]("message", "A message: items in the words of Standard Agents."),
		document[MessageList]("message_list", "A page of messages."),
		document[Log]("log", "A log line: a trace event in the words of Standard Agents."),
		document[LogList]("log_list", "A thread's log lines."),
		document[FileRecord]("file", "A file or directory of a thread."),
		document[FileList]("file_list", "What a directory holds."),
		document[FileStats]("file_stats", "Counts of a thread's files."),
		document[FindList]("find_list", "Paths that match a glob."),
		document[GrepList]("grep_list", "Lines that match a pattern."),
		document[Thumbnail]("thumbnail", "A thumbnail of an image."),
	}, shareDocuments()...)
}
