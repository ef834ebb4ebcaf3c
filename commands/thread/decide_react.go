package thread

import (
	"errors"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// react requests an agent's answer to an item. While a run is active, the thread's policy decides
// whether the item is queued, refused, steers the run or interrupts it.
func (m *decider) react(d events.ReactThread) error {
	return m.reactFor(d, nil)
}

// ReactFor is a thread.react on behalf of a call on another thread.
type ReactFor struct {
	events.ReactThread
	Parent events.Parent
}

func (m *decider) reactForParent(d ReactFor) error { return m.reactFor(d.ReactThread, &d.Parent) }

func (m *decider) reactFor(d events.ReactThread, parent *events.Parent) error {
	item, err := trigger(d)
	if err != nil {
		return err
	}
	if _, err := m.checkItem(item); err != nil {
		return err
	}
	if item.ID != "" && item.ID == d.ReactionItemID { // the answer is an item of its own
		return events.Taken("item", item.ID)
	}
	if err := m.mayInstruct(d.Settings); err != nil {
		return err
	}
	if err := firstFault(m.mayTrigger(item.Type), m.mayAsk(d.AgentID)); err != nil {
		return err
	}
	if err := d.Settings.CheckTools(); err != nil {
		return err
	}
	agent, err := m.agentFor(d.AgentID)
	if err != nil {
		return err
	}
	if m.state.Profile.Mode != "" {
		d.AgentID = agent // a queued message is answered by the agent of the mode in which it was sent
	}
	if m.state.Status != events.ThreadStreaming {
		return m.start(begin{item: item, context: d.ContextID, agent: agent, execution: d.ExecutionID, reaction: d.ReactionItemID, parent: parent, session: d.SessionID, settings: d.Settings, rights: m.command.Rights})
	}
	policy := d.Policy
	if policy == "" {
		policy = m.state.Policy
	}
	if policy == "" {
		policy = m.command.Policy
	}
	switch policy {
	case events.Reject:
		return m.refuseDuringRun()
	case events.Interrupt:
		if err := m.push(item, d, true); err != nil {
			return err
		}
		return m.stop(m.state.head.Active, events.RunStopped{Abort: true, Reason: "interrupted by a message"})
	case events.Steer:
		if x, _ := m.state.execution(m.state.head.Active); x.Run != nil && x.Run.Handoff == nil && d.Settings == nil {
			return m.steer(item)
		}
	}
	return m.push(item, d, false)
}

// refuseDuringRun refuses a message on a thread whose policy is to refuse messages during a
// run.
func (m *decider) refuseDuringRun() error {
	err := events.ThreadMachine().Check(m.command.ThreadID, m.state.Status, events.ThreadStreaming)
	var transition *events.TransitionError
	if errors.As(err, &transition) {
		transition.Instead = "a run is in progress, and the policy is reject: wait for its end, or send the message with the policy enqueue, steer or interrupt"
	}
	return err
}

// trigger returns the item to be answered.
func trigger(d events.ReactThread) (events.NewItem, error) {
	if err := d.Check(); err != nil {
		return events.NewItem{}, err
	}
	if d.Item != nil {
		return *d.Item, nil
	}
	text, err := json.Marshal(*d.Text)
	if err != nil {
		return events.NewItem{}, events.Invalid("/text", "%w", err)
	}
	return events.NewItem{
		Type: events.Message, Role: events.User, Content: events.JSON(`[{"type":"input_text","text":` + string(text) + `}]`),
	}, nil
}

// push adds an item to the queue.
func (m *decider) push(item events.NewItem, d events.ReactThread, first bool) error {
	waiting := 0
	for _, q := range m.state.Queue {
		if !q.Tool {
			waiting++
		}
	}
	if waiting >= events.MaxQueuedMessages {
		return events.Errorf(events.QueueFull, "%d messages wait for the agent, the maximum; try again when it has answered", waiting)
	}
	if _, _, err := m.writable(d.ContextID); err != nil {
		return err
	}
	execution, reaction, err := m.idsOf(d.ExecutionID, d.ReactionItemID)
	if err != nil {
		return err
	}
	item.ID = m.id(item.ID, events.ItemPrefix)
	raw, err := json.Marshal(item, json.Deterministic(true))
	if err != nil {
		return events.Invalid("/item", "%w", err)
	}
	m.ids++
	id := "queued-" + events.EventID(m.command.Tenant, m.command.ThreadID, m.command.ID, -m.ids)
	m.emit(events.QueuePushedType, id, "", events.QueuePushed{
		ID: id, Item: raw, ContextID: d.ContextID, AgentID: d.AgentID, MessageID: m.state.Messages, First: first,
		ExecutionID: execution, ReactionItemID: reaction, SessionID: d.SessionID, Settings: d.Settings, Rights: m.command.Rights.Recorded(),
	})
	return nil
}

// steer adds an item that the next step of the current run reads.
func (m *decider) steer(item events.NewItem) error {
	x, _ := m.state.execution(m.state.head.Active)
	if _, _, err := m.writable(x.Context); err != nil {
		return err
	}
	m.steers = x.answersIn(m.command.Tenant, m.command.ThreadID, m.state.head.Active)
	defer func() { m.steers = "" }()
	m.limit(m.state.head.Active, m.command.Rights)
	return m.putItem(item, x.Context, m.state.head.Active)
}

// idsOf returns the ids of a new run and of its reaction item: the caller's ids, which must not be
// in use, or derived ones.
func (m *decider) idsOf(givenExecution, givenReaction string) (execution, reaction string, err error) {
	execution = m.id(givenExecution, events.ExecutionPrefix)
	if err := m.executionIsNew(execution); err != nil {
		return "", "", err
	}
	reaction = m.id(givenReaction, events.ItemPrefix)
	return execution, reaction, m.itemIsNew(events.NewItem{ID: reaction})
}

// begin holds the arguments of start.
type begin struct {
	item      events.NewItem
	context   string
	agent     string
	execution string
	reaction  string
	calls     []events.ToolCall
	parent    *events.Parent
	once      bool            // it ends after the calls
	retryOf   string          // the failed execution that it retries; item is the trigger of both
	handoff   *events.Handoff // it writes a summary of the messages up to item, which exists already
	session   string          // of the request

	settings *events.RunSettings
	rights   *events.Rights
}

// start starts an execution: it creates the context, then the trigger, then the execution. A
// failed thread is opened first.
func (m *decider) start(b begin) error {
	ctx, c, err := m.writable(b.context)
	if err != nil {
		return err
	}
	m.emit(events.ContextResolvedType, ctx, "", events.ContextResolved{})
	trigger := m.id(b.item.ID, events.ItemPrefix)
	b.item.ID = trigger
	execution, reaction, err := m.idsOf(b.execution, b.reaction)
	if err != nil {
		return err
	}
	if b.retryOf == "" && b.handoff == nil {
		if err := m.putItem(b.item, ctx, ""); err != nil {
			return err
		}
	}
	if m.state.Status == events.ThreadFailed {
		if err := m.moveThread(events.ThreadOpen, ""); err != nil {
			return err
		}
	}
	if err := m.moveThread(events.ThreadStreaming, ""); err != nil {
		return err
	}
	if c.Status != events.ContextStreaming {
		if err := m.moveContext(ctx, events.ContextStreaming, execution); err != nil {
			return err
		}
	}
	m.emit(events.ExecutionCreatedType, execution, execution, events.ExecutionCreated{
		ID: execution, ContextID: ctx, TriggerItemID: trigger, ReactionItemID: reaction, Status: events.ExecutionMachine().Initial(), SessionID: b.session,
	})
	for i := range b.calls {
		b.calls[i].ItemID = trigger
	}
	m.emit(events.RunRequestedType, execution, execution, events.RunRequested{AgentID: b.agent, Calls: b.calls, Parent: b.parent, Once: b.once, RetryOf: b.retryOf, Handoff: b.handoff, Settings: b.settings, Rights: b.rights.Recorded()})
	return nil
}

func (m *decider) moveThread(to events.ThreadStatus, reason string) error {
	return m.setThreadStatus(events.SetThreadStatus{To: to, Reason: reason})
}

func (m *decider) moveContext(id string, to events.ContextStatus, execution string) error {
	c, _ := m.state.context(id)
	if err := events.ContextMachine().Check(id, c.Status, to); err != nil {
		return err
	}
	m.emit(events.ContextStatusChangedType, id, execution, events.ContextStatusChanged{From: c.Status, To: to})
	return nil
}

// next starts the next queue entry if the thread is free; tool calls go first. It is part of the
// end of a run, so it must not fail: an entry starts without its references to entities that were
// deleted, and an entry that no context accepts stays in the queue.
func (m *decider) next() error {
	if m.ending || m.state.Status == events.ThreadStreaming || m.state.Status == events.ThreadClosed {
		return nil
	}
	for _, tools := range []bool{true, false} {
		for _, q := range m.state.Queue {
			context, open := m.openContext(q.Context)
			if q.Tool != tools || !open {
				continue
			}
			return m.startWaiting(q, context)
		}
	}
	return nil
}

// openContext returns the context for a queue entry. If the entry's own context was closed
// meanwhile, it is the default one.
func (m *decider) openContext(id string) (string, bool) {
	for _, id := range []string{id, ""} {
		if _, c, err := m.contextOf(id); err == nil && c.Status != events.ContextClosed {
			return id, true
		}
	}
	return "", false
}

func (m *decider) startWaiting(q queued, context string) error {
	item, err := q.item()
	if err != nil {
		return err
	}
	m.emit(events.QueueDrainedType, q.ID, "", events.QueueDrained{IDs: []string{q.ID}})
	if m.itemIsNew(item) != nil { // the run that has just ended used its id
		item.ID = ""
	}
	if _, err := m.itemOf(item.ParentItemID); err != nil { // it was deleted meanwhile
		item.ParentItemID = ""
	}
	b := begin{item: item, context: context, agent: q.Agent, execution: q.Execution, reaction: q.Reaction, session: q.Session, settings: q.Settings, rights: q.Rights}
	if m.itemIsNew(events.NewItem{ID: b.reaction}) != nil { // that run used the id that was reserved for the reaction
		b.reaction = ""
	}
	if b.agent == "" {
		b.agent = m.state.Agent
	}
	if q.Tool {
		call, err := callFrom(item)
		if err != nil {
			return err
		}
		b.calls, b.once = []events.ToolCall{call}, q.Once
	}
	return m.start(b)
}

func callFrom(item events.NewItem) (events.ToolCall, error) {
	var c events.ToolCall
	if err := json.Unmarshal(item.Content, &c); err != nil {
		return c, events.Invalid("/item/content", "%w", err)
	}
	return c, nil
}

// queueTool queues a tool call for the current run, or for a run of its own. A call with once set
// always gets a run of its own.
func (m *decider) queueTool(d events.QueueTool) error {
	if m.state.Status == events.ThreadClosed { // no run will ever make it
		return events.ThreadMachine().Check(m.command.ThreadID, m.state.Status, events.ThreadStreaming)
	}
	if err := m.mayCall(d); err != nil {
		return err
	}
	id := m.id(d.CallID, "call_")
	if err := m.callIsNew(id); err != nil {
		return err
	}
	if d.Arguments == nil {
		d.Arguments = events.JSON("{}")
	}
	raw, err := json.Marshal(events.ToolCall{CallID: id, Name: d.Name, Arguments: d.Arguments}, json.Deterministic(true))
	if err != nil {
		return events.Invalid("/arguments", "%w", err)
	}
	item := events.NewItem{ID: m.id("", events.ItemPrefix), Type: events.ActionExecute, Status: events.ItemCompleted, Content: raw}
	whole, err := json.Marshal(item, json.Deterministic(true))
	if err != nil {
		return events.Invalid("/arguments", "%w", err)
	}
	m.emit(events.QueuePushedType, id, "", events.QueuePushed{ID: id, Item: whole, AgentID: d.AgentID, Once: d.Once, Rights: m.command.Rights.Recorded()})
	return m.next()
}

// callIsNew refuses the id of a call that is queued, that the current run will make in its next
// step, or that is in the open step.
func (m *decider) callIsNew(id string) error {
	x, _ := m.state.execution(m.state.head.Active)
	taken := m.state.placeInQueue(id) >= 0
	if x.Run != nil {
		taken = taken || x.Run.call(id) != nil || hasCall(x.Run.First, id)
	}
	if taken {
		return events.Taken("call", id)
	}
	return nil
}

func hasCall(calls []events.ToolCall, id string) bool {
	return slices.ContainsFunc(calls, func(c events.ToolCall) bool { return c.CallID == id })
}

func (m *decider) assignAgent(d events.AssignAgent) error {
	if err := m.mayAsk(d.AgentID); err != nil {
		return err
	}
	m.emit(events.AgentAssignedType, m.command.ThreadID, m.state.head.Active,
		events.AgentAssigned{AgentID: d.AgentID, From: m.state.Agent, Reason: d.Reason})
	return nil
}
