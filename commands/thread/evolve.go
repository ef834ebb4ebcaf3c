package thread

import (
	"bytes"
	"iter"
	"math"
	"slices"

	"github.com/skein-threads/skein/events"
)

// Evolve applies an event to s and returns s. It never validates, and ignores what decisions
// do not need.
func Evolve(s *State, e *events.Event) *State {
	s.Version, s.Time = e.Version, e.Time
	s.postpone(e)
	switch d := e.Data.(type) {
	case events.ThreadCreated, events.ThreadStatusChanged, events.ThreadFinished, events.LifecycleDeleted, events.KeyReleased:
		s.evolveThread(e)
	case events.ContextCreated, events.ContextStatusChanged, events.StateChanged:
		s.evolveContext(e)
	case events.ItemCreated, events.ItemStatusChanged, events.MessageEdited, events.MessageDeleted, events.HistoryTruncated, events.HistoryInherited:
		s.evolveItem(e)
	case events.ExecutionCreated, events.ExecutionStatusChanged, events.StepCreated, events.StepStatusChanged, events.PartCreated:
		s.evolveExecution(e)
	case events.StateRenewed, events.StateReleased, events.StateClosed, events.LifecycleDestroyed:
		s.evolveLife(e)
	case events.EffectScheduled, events.EffectCancelled, events.EffectStarted, events.EffectCompleted, events.EffectFailed:
		s.evolveEffect(e)
	case events.RelationshipAdded, events.RelationshipRemoved:
		s.evolveRelation(e)
	case events.DefinitionChanged:
		s.setDefinition(events.DefinitionRef{Kind: d.Kind, Name: d.Name}.ID(), definitionOf(d))
	case events.WriterClaimed, events.WriterRenewed, events.WriterReleased:
		s.evolveWriter(e)
	case events.ShareCreated, events.ShareRevoked:
		s.foldShare(e)
	case events.SessionStarted:
		s.Sessions = s.Sessions.with(d)
	case events.SessionCompleted:
		s.Sessions = s.Sessions.without(d.ID)
	default:
		s.foldFile(e)
	}
	evolveRun(s, e)
	s.evolveOpening(e)
	return s
}

// evolveThread folds what happens to the thread itself.
func (s *State) evolveThread(e *events.Event) {
	switch d := e.Data.(type) {
	case events.ThreadCreated:
		// Older versions created a purged thread again. Its documents show it as open, so it is
		// open here, too: it can be read and erased.
		s.Deleted, s.Purged = false, false
		s.Status, s.Agent, s.User, s.CreatedTime = d.Status, d.AgentID, d.UserID, e.Time
		if d.Key != nil {
			s.Key = *d.Key
		}
		s.head.Profile.Untitled = d.MainThreadID == "" && d.Title == ""
	case events.ThreadStatusChanged:
		s.Status = d.To
	case events.ThreadFinished:
		if x, ok := s.execution(d.ExecutionID); ok {
			x.Finished = true
			s.setExecution(d.ExecutionID, x)
		}
	case events.LifecycleDeleted:
		s.Purged = d.Purge
		s.clear()
	case events.KeyReleased:
		s.Key = ""
	}
}

// evolveContext folds the states of contexts.
func (s *State) evolveContext(e *events.Event) {
	switch d := e.Data.(type) {
	case events.ContextCreated:
		c := contextState{Status: d.Status, Type: d.Type, Content: content(d.Content)}
		if d.Key != nil {
			c.Key = *d.Key
		}
		if d.Default {
			s.Default = d.ID
		}
		s.setContext(d.ID, c)
		if n, ok := events.ParseLifeKey(c.Key); ok {
			s.Life = lifeState{N: n, Context: d.ID}
		}
	case events.ContextStatusChanged:
		c, _ := s.context(e.Subject)
		c.Status = d.To
		s.setContext(e.Subject, c)
	case events.StateChanged:
		c, _ := s.context(e.Subject)
		if after, err := d.After(c.Content); err == nil {
			c.Content = content(after)
		}
		s.setContext(e.Subject, c)
		s.renew(e.Subject, e.Time)
	}
}

// evolveItem folds items, and what hides, changes or inherits them.
func (s *State) evolveItem(e *events.Event) {
	switch d := e.Data.(type) {
	case events.ItemCreated:
		s.setItem(d.ID, itemState{
			Context: d.ContextID, Type: d.Type, Status: d.Status, Index: d.Index,
			Assistant: d.Role == events.Assistant, System: d.Role.Instructs(), Silent: d.Silent, Depth: int32(min(d.Depth, math.MaxInt32)), PartOf: d.CallOf != nil,
		})
		if message, ok := s.item(d.ParentItemID); ok && d.CallOf != nil {
			message.Calls = append(message.Calls[:len(message.Calls):len(message.Calls)], d.ID)
			s.setItem(d.ParentItemID, message)
		}
		s.NextItem = max(s.NextItem, d.Index+1)
	case events.ItemStatusChanged:
		i, _ := s.item(e.Subject)
		i.Status = d.To
		s.setItem(e.Subject, i)
	case events.MessageEdited:
		i, _ := s.item(e.Subject)
		if d.Silent != nil {
			i.Silent = *d.Silent
		}
		if d.Failed != nil {
			i.Failed = *d.Failed
		}
		s.setItem(e.Subject, i)
	case events.MessageDeleted:
		i, _ := s.item(e.Subject)
		i.Deleted = true
		s.setItem(e.Subject, i)
	case events.HistoryTruncated:
		s.truncate(d.FromIndex)
	case events.HistoryInherited:
		s.Pending = &pending{Tenant: e.Tenant, Thread: e.ThreadID, History: d}
		s.NextItem, s.Messages = d.NextIndex, d.NextMessageID
	}
}

// evolveExecution folds executions, their steps and the parts of these.
func (s *State) evolveExecution(e *events.Event) {
	switch d := e.Data.(type) {
	case events.ExecutionCreated:
		s.setExecution(d.ID, executionState{Context: d.ContextID, Trigger: d.TriggerItemID, Reaction: d.ReactionItemID, Status: d.Status, Session: d.SessionID})
	case events.ExecutionStatusChanged:
		x, _ := s.execution(e.Subject)
		x.Status = d.To
		s.setExecution(e.Subject, x)
		s.setFailed(d.ReactionItemID, d.To == events.ExecutionFailed)
	case events.StepCreated:
		s.setStep(d.ID, stepState{Execution: d.ExecutionID, Status: d.Status})
		x, _ := s.execution(d.ExecutionID)
		x.Steps = max(x.Steps, d.Iteration+1)
		s.setExecution(d.ExecutionID, x)
	case events.StepStatusChanged:
		t, _ := s.step(e.Subject)
		t.Status = d.To
		s.setStep(e.Subject, t)
		if d.To == events.StepFailed {
			x, _ := s.execution(d.ExecutionID)
			x.Stumbled = true
			s.setExecution(d.ExecutionID, x)
			s.setFailed(d.ReactionItemID, true)
		}
	case events.PartCreated:
		t, _ := s.step(d.StepID)
		t.Parts = t.Parts.with(d.Idx)
		s.setStep(d.StepID, t)
	}
}

// Apply applies a stored commit to s and returns s. Commits must be applied in the log's
// order.
func Apply(s *State, c *events.Commit) *State {
	for i := range c.Events {
		Evolve(s, &c.Events[i])
	}
	s.stored(c)
	return s
}

// stored records the commit's position in the log.
func (s *State) stored(c *events.Commit) {
	s.Version, s.Seq, s.Chain = c.Version, c.Seq, c.Chain
	last := ""
	for i := range c.Events {
		e := &c.Events[i]
		if e.Type == events.SubthreadAddedType { // the receipt of the command is on the thread that it created
			continue
		}
		if e.CommandID != last && e.CommandID != "" {
			last = e.CommandID
			s.receipts.add(last, e.CommandDigest, c.Seq, e.Time)
		}
	}
}

// clear empties the state of a deleted thread, except its version, position and receipts. A purged
// thread has no receipts either: its state is the same whether its history or only its tombstone
// was folded.
func (s *State) clear() {
	if s.Purged {
		s.head = head{Version: s.Version, Seq: s.Seq, Chain: s.Chain, Time: s.Time, Purged: true}
		if s.parent == nil {
			s.receipts = receipts{}
		}
	}
	s.Deleted, s.head.Active, s.Queue, s.Effects, s.Parents, s.Writer, s.Shares, s.Life, s.Ended = true, "", nil, 0, 0, writer{}, nil, lifeState{}, nil
	s.Sessions = nil
	s.Pending = nil
	if s.parent != nil { // merging a layer cannot remove entries; this is safe because a deletion is alone in its commit
		return
	}
	*s = State{head: s.head, definitions: s.definitions, receipts: s.receipts}
	s.NumFiles = 0
}

// setFailed records whether the item of an execution is shown as failed. The id may be empty.
func (s *State) setFailed(item string, failed bool) {
	if i, ok := s.item(item); ok {
		i.Failed = failed
		s.setItem(item, i)
	}
}

func (s *State) truncate(from int64) {
	for l := s; l != nil; l = l.parent {
		for id, i := range l.items.All(l.pool) {
			if cur, _ := s.item(id); i.Index >= from && !cur.Deleted {
				cur.Deleted = true
				s.setItem(id, cur)
			}
		}
	}
}

// content returns a copy of a JSON value, nil for null. Without the copy, a small value would keep
// its whole commit in memory.
func content(raw []byte) []byte {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return bytes.Clone(raw)
}

// pending is an inherited history. Its items are in pages, and not in the state yet. Until Inherit
// adds them, events can be applied, and pending keeps what they do to these items, but no command
// can be decided.
type pending struct {
	Tenant  string                  `json:"tenant"`
	Thread  string                  `json:"thread"`
	History events.HistoryInherited `json:"history"`
	Edits   []inheritedEdit         `json:"edits,omitempty"`
	Cut     *int64                  `json:"cut,omitzero"` // the first place that is hidden; nil: none is
}

// inheritedEdit is the effect of an event on one inherited item.
type inheritedEdit struct {
	Item    string `json:"item"`
	Silent  *bool  `json:"silent,omitzero"`
	Failed  *bool  `json:"failed,omitzero"`
	Deleted bool   `json:"deleted,omitzero"`
}

// has reports whether a visible item of the inherited history is not in the state yet.
func (p *pending) has(item string) bool {
	if p == nil {
		return false
	}
	at, ok := events.InheritedPlace(p.Tenant, p.Thread, item)
	hidden := p.Cut != nil && at >= *p.Cut || slices.ContainsFunc(p.Edits, func(e inheritedEdit) bool { return e.Deleted && e.Item == item })
	return ok && at < p.History.NextIndex && !hidden
}

// Inherits returns the inherited history that must be passed to Inherit before a command can be
// decided; nil if there is none.
func (s *State) Inherits() *events.HistoryInherited {
	if s.Pending == nil {
		return nil
	}
	return &s.Pending.History
}

// postpone records what an event does to items that are not in the state yet.
func (s *State) postpone(e *events.Event) {
	if s.Pending == nil {
		return
	}
	p := *s.Pending
	edit := inheritedEdit{Item: e.Subject}
	switch d := e.Data.(type) {
	case events.MessageEdited:
		edit.Silent, edit.Failed = d.Silent, d.Failed
	case events.MessageDeleted:
		edit.Deleted = true
	case events.HistoryTruncated:
		if p.Cut == nil || d.FromIndex < *p.Cut {
			p.Cut = &d.FromIndex
			s.Pending = &p
		}
		return
	default:
		return
	}
	if p.has(e.Subject) {
		p.Edits = append(slices.Clip(p.Edits), edit)
		s.Pending = &p
	}
}

// Inherit adds the items of all pages of an inherited history, and what events have done to
// them since. After an error the state is as it was.
func (s *State) Inherit(pages iter.Seq2[*events.HistoryPage, error]) error {
	p := s.Pending
	if p == nil {
		return nil
	}
	type inherited struct {
		id    string
		state itemState
	}
	var items []inherited // the pages are not kept, because they hold the contents
	calls := map[string][]string{}
	for page, err := range pages {
		if err != nil {
			return err
		}
		for n := range page.Items {
			d := page.Items[n].Created(p.Tenant, p.Thread, p.History.ContextID)
			items = append(items, inherited{d.ID, itemState{
				Context: d.ContextID, Type: d.Type, Status: d.Status, Index: d.Index, Assistant: d.Role == events.Assistant, System: d.Role.Instructs(), Silent: d.Silent,
				Depth: int32(min(d.Depth, math.MaxInt32)), PartOf: d.CallOf != nil, Deleted: p.Cut != nil && d.Index >= *p.Cut,
			}})
			if d.CallOf != nil {
				calls[d.ParentItemID] = append(calls[d.ParentItemID], d.ID)
			}
		}
	}
	s.Pending = nil
	for _, i := range items {
		s.setItem(i.id, i.state)
	}
	for id, of := range calls {
		if message, ok := s.item(id); ok {
			message.Calls = of
			s.setItem(id, message)
		}
	}
	for _, edit := range p.Edits {
		i, ok := s.item(edit.Item)
		if !ok {
			continue
		}
		if edit.Silent != nil {
			i.Silent = *edit.Silent
		}
		if edit.Failed != nil {
			i.Failed = *edit.Failed
		}
		i.Deleted = i.Deleted || edit.Deleted
		s.setItem(edit.Item, i)
	}
	return nil
}
