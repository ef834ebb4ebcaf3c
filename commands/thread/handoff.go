package thread

import (
	"cmp"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// HandoffOf returns the id of the thread that a handoff creates: the same for a repeat.
func HandoffOf(c *Command) string {
	return events.DeriveThreadID(c.Tenant, "handoff "+c.ThreadID+" "+c.ID)
}

// handoffThread continues the thread in a new one, or has an agent write the summary first.
func (m *maker) handoffThread(d events.HandoffThread) error {
	own := m.command.ThreadID
	child := m.group[HandoffOf(m.command)]
	switch {
	case !m.state.Exists():
		return events.MissingThread(own)
	case child == nil:
		return events.Invalid("", "a handoff is decided with its new thread only")
	case child.state.Created:
		return events.Taken("thread", child.command.ThreadID)
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

// beginHandoff starts the run that writes the summary. It reads the conversation up to the
// last message, which is its trigger, and adds none.
func (m *maker) beginHandoff(d events.HandoffThread, child string) error {
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
		handoff: &events.Handoff{ThreadID: child, AgentID: d.AgentID, Key: d.Key, Comment: d.Comment},
	})
}

// endHandoff creates the thread that begins with the summary that a run has written.
func (m *maker) endHandoff(x executionState, d ReactStep) error {
	h := *x.Run.Handoff
	child := m.group[h.ThreadID]
	switch {
	case child == nil || d.HandoffTo != h.ThreadID || len(d.Calls) > 0:
		return events.Invalid("/stepId", "step %s ends with the summary for thread %s, and nothing else", d.StepID, h.ThreadID)
	case child.state.Created:
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

// handOff creates the thread of a handoff with its first message, and relates the two. The new
// thread has the owner of this one, and nothing else of it.
func (m *maker) handOff(child *maker, h events.Handoff, message, summary string, index *int64, item string) error {
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
