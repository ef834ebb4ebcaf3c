package thread

import (
	"cmp"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// Copied holds everything that a fork copies of its parent.
type Copied struct {
	Title, AgentID, UserID string
	Env                    events.JSON
	Context                events.JSON // the content of the default context
	ContextType            string
	Items                  []events.InheritedItem   // in order
	Inherited              *events.HistoryInherited // instead of Items, when the history is long; ContextID is not set
	Files                  []any                    // events.FileWritten and events.DirectoryCreated, a directory before what it holds
	Point                  *int64                   // the messageIndex of the last copied message; nil: no message is copied
	PointItem              string                   // the item of that message
}

// ForkOf returns the id of the thread that a fork creates: the same for a repeat.
func ForkOf(c *Command) string {
	return events.DeriveThreadID(c.Tenant, "fork "+c.ThreadID+" "+c.ID)
}

// forkThread creates a thread with a copy of this one's history.
func (m *decider) forkThread(d events.ForkThread) error {
	own, from := m.command.ThreadID, m.command.Copied
	child := m.group[ForkOf(m.command)]
	switch {
	case !m.state.Exists():
		return events.MissingThread(own)
	case child == nil || from == nil:
		return events.Invalid("", "a fork is decided with its parent's history only")
	case child.state.Existed():
		return events.ReusedID(m.command.ID)
	case d.Version != nil && *d.Version > m.state.Version:
		return events.Invalid("/version", "the thread is at version %d, and has no version %d", m.state.Version, *d.Version)
	}
	child.copy(own, d, from)
	item := from.PointItem
	if i, err := m.itemOf(item); err != nil || i.Deleted { // of an earlier version
		item = ""
	}
	return m.relate(child, events.ForkRelation, from.Point, item, "")
}

// copy creates the thread of a fork with what it copies.
func (m *decider) copy(parent string, d events.ForkThread, from *Copied) {
	id := m.command.ThreadID
	created := events.ThreadCreated{
		ID: id, Status: events.ThreadMachine().Initial(), AgentID: from.AgentID, UserID: from.UserID, Env: from.Env,
		Title: d.Title, OriginThreadID: parent, ForkPointIndex: from.Point,
	}
	if d.Title == "" {
		created.Title = events.ForkTitle(from.Title)
	}
	if d.Key != "" {
		created.Key = &d.Key
	}
	m.emit(events.ThreadCreatedType, id, "", created)
	ctx := m.id("", events.ContextPrefix)
	m.emit(events.ContextCreatedType, ctx, "", events.ContextCreated{
		ID: ctx, Status: events.ContextMachine().Initial(), Default: true, Type: from.ContextType, Content: orNull(from.Context),
	})
	if d.Key != "" {
		m.emit(events.KeyClaimedType, id, "", events.KeyClaimed{Key: d.Key, ThreadID: id})
	}
	for _, file := range from.Files {
		switch f := file.(type) {
		case events.DirectoryCreated:
			m.emit(events.DirectoryCreatedType, id, "", f)
		case events.FileWritten:
			f.Since = 0
			m.emit(events.FileWrittenType, id, "", f)
		}
	}
	if from.Inherited != nil {
		inherited := *from.Inherited
		inherited.ContextID = ctx
		m.emit(events.HistoryInheritedType, id, "", inherited)
	}
	copies := make(map[int64]string, len(from.Items))
	for i := range from.Items {
		m.copyItem(ctx, copies, &from.Items[i])
	}
}

// copyItem copies an item into a context. copies maps the place of each copied item to the id of
// its copy; the parent of the new item is looked up there.
func (m *decider) copyItem(ctx string, copies map[int64]string, from *events.InheritedItem) {
	id := m.id("", events.ItemPrefix)
	created := events.ItemCreated{
		ID: id, ContextID: ctx, Index: m.state.NextItem, Type: from.Type, Role: from.Role, Status: events.ItemCompleted,
		Channel: from.Channel, Content: from.Content, CreatedAt: events.Time(from.CreatedAt).String(),
		Depth: from.Depth, Silent: from.Silent, Metadata: from.Metadata, SourceItemID: from.ID, MessageID: m.state.numberOf(from.Type),
	}
	if from.Parent != nil {
		created.ParentItemID = copies[*from.Parent]
	}
	above, _ := m.state.item(created.ParentItemID)
	if from.Type == events.ActionExecute && above.Assistant && above.Context == ctx && int64(above.Depth) == created.Depth {
		place := above.Index
		created.CallOf = &place
	}
	copies[from.Index] = id
	m.emit(events.ItemCreatedType, id, "", created)
}

// cut returns the place of the first item that a truncation hides, -1 if it hides none, and the
// relationships made at or after that place.
func (s *State) cut(d events.TruncateThread) (from int64, relations []relation, err error) {
	if d.MessageIndex == nil {
		return 0, nil, events.Invalid("/messageIndex", "a truncation needs the last message that stays")
	}
	if _, _, err := s.messageAt(d.MessageIndex, "/messageIndex"); err != nil {
		return 0, nil, err
	}
	shown := s.messages()
	if *d.MessageIndex+1 >= int64(len(shown)) {
		return -1, nil, nil
	}
	first, _ := s.item(shown[*d.MessageIndex+1])
	relations = slices.DeleteFunc(s.children(), func(r relation) bool {
		at, ok := s.item(r.item)
		return !ok || at.Index < first.Index
	})
	return first.Index, relations, nil
}

// truncateThread hides all items from the first message after the last one to keep. Queued entries
// are kept, and the next one starts if nothing runs.
func (m *decider) truncateThread(d events.TruncateThread) error {
	from, relations, err := m.state.cut(d)
	if err != nil {
		return err
	}
	if len(m.state.executing()) > 0 || m.state.Status == events.ThreadStreaming {
		if !d.Interrupt {
			e := events.Errorf(events.VersionConflict, "thread %s has a running execution; wait until it has ended, or set interrupt", m.command.ThreadID)
			e.Details = &events.ErrorDetails{CurrentVersion: new(m.state.Version)}
			return e
		}
		if err := m.abort("the thread is truncated"); err != nil {
			return err
		}
		m.ending = false
		if from, relations, err = m.state.cut(d); err != nil { // the run that was ended may have added an item
			return err
		}
	}
	if from >= 0 {
		m.emit(events.HistoryTruncatedType, m.command.ThreadID, "", events.HistoryTruncated{FromIndex: from})
		for _, r := range relations {
			m.unrelate(r)
		}
	}
	if len(m.made) == 0 {
		return nil
	}
	return m.next()
}

// unrelate removes a relationship on both threads. A deleted thread keeps its record.
func (m *decider) unrelate(r relation) {
	own := m.command.ThreadID
	m.emit(events.RelationshipRemovedType, own, "", events.RelationshipRemoved{ThreadID: r.thread, Type: r.kind, Role: events.ParentRole})
	if child := m.group[r.thread]; child != nil && child.state.Exists() && child.state.related(own, r.kind, events.ChildRole) {
		child.emit(events.RelationshipRemovedType, r.thread, "", events.RelationshipRemoved{ThreadID: own, Type: r.kind, Role: events.ChildRole})
	}
}

// HandoffOf returns the id of the thread that a handoff creates: the same for a repeat.
func HandoffOf(c *Command) string {
	return events.DeriveThreadID(c.Tenant, "handoff "+c.ThreadID+" "+c.ID)
}

// handoffThread continues the conversation in a new thread. Without a summary in the command, an
// agent first writes one.
func (m *decider) handoffThread(d events.HandoffThread) error {
	own := m.command.ThreadID
	child := m.group[HandoffOf(m.command)]
	switch {
	case !m.state.Exists():
		return events.MissingThread(own)
	case child == nil:
		return events.Invalid("", "a handoff is decided with its new thread only")
	case child.state.Existed():
		return events.ReusedID(m.command.ID)
	case m.state.Parents >= events.MaxRelationships:
		return m.tooManyChildren()
	}
	if d.Summary == "" {
		return m.beginHandoff(d, child.command.ThreadID)
	}
	if err := events.CheckSummary(d.Summary); err != nil {
		return err
	}
	index, item, err := m.state.messageAt(nil, "")
	if err != nil {
		return err
	}
	h := events.Handoff{AgentID: d.AgentID, Key: d.Key, Comment: d.Comment}
	return m.handOff(child, h, "", d.Summary, index, item)
}

// beginHandoff starts the run that writes the summary. The run reads the conversation up to the
// last message, which is its trigger, and adds no message.
func (m *decider) beginHandoff(d events.HandoffThread, child string) error {
	id := m.command.ThreadID
	agent := cmp.Or(d.AgentID, m.command.Writes)
	if agent == "" {
		return events.Invalid("/summary", "nobody writes the summary of thread %s: give a summary or an agentId, or define the policy %s with an agent", id, events.HandoffPolicy)
	}
	if m.state.Status == events.ThreadStreaming {
		e := events.Errorf(events.VersionConflict, "hand off thread %s: it has a running execution; wait until it has ended, or give the summary", id)
		e.Details = &events.ErrorDetails{CurrentVersion: new(m.state.Version)}
		return e
	}
	_, item, err := m.state.messageAt(nil, "")
	if err != nil {
		return err
	}
	if item == "" {
		return events.Invalid("/summary", "thread %s has no message that an agent could summarize; give the summary", id)
	}
	last, _ := m.state.item(item)
	ctx, open := m.openContext(last.Context)
	if !open {
		return events.ContextMachine().Check(last.Context, events.ContextClosed, events.ContextStreaming)
	}
	return m.start(begin{
		item: events.NewItem{ID: item}, context: ctx, agent: agent,
		handoff: &events.Handoff{ThreadID: child, AgentID: d.AgentID, Key: d.Key, Comment: d.Comment}, rights: m.command.Rights,
	})
}

// endHandoff creates the new thread, which begins with the summary that the run has written.
func (m *decider) endHandoff(x executionState, d ReactStep) error {
	h := *x.Run.Handoff
	child := m.group[h.ThreadID]
	switch {
	case child == nil || d.HandoffTo != h.ThreadID || len(d.Calls) > 0:
		return events.Invalid("/stepId", "step %s ends with the summary for thread %s, and nothing else", d.StepID, h.ThreadID)
	case child.state.Existed():
		return events.Taken("thread", h.ThreadID)
	}
	if err := events.CheckSummary(d.Summary); err != nil {
		return err
	}
	index, item, err := m.state.messageAt(nil, "")
	if at := int64(slices.Index(m.state.messages(), x.Trigger)); at >= 0 { // else it was deleted
		index, item = &at, x.Trigger
	} else if err != nil {
		return err
	}
	return m.handOff(child, h, x.Reaction, d.Summary, index, item)
}

// handOff creates the thread of a handoff with its first message, and records the relationship on
// both threads. The new thread takes the owner of this one and no other setting.
func (m *decider) handOff(child *decider, h events.Handoff, message, summary string, index *int64, item string) error {
	content, err := json.Marshal([]struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}{{events.InputText, summary}})
	if err != nil {
		return events.Invalid("/summary", "%w", err)
	}
	if err := child.createThread(events.CreateThread{AgentID: cmp.Or(h.AgentID, m.state.Agent), UserID: m.state.User, Key: h.Key}); err != nil {
		return err
	}
	if err := child.putItem(events.NewItem{
		ID: message, Type: events.Message, Role: events.System, Status: events.ItemCompleted, Content: content,
	}, child.state.Default, ""); err != nil {
		return err
	}
	return m.relate(child, events.HandoffRelation, index, item, h.Comment)
}
