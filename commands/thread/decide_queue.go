package thread

import (
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// waiting returns the queue entry with an id.
func (m *decider) waiting(id string) (queued, error) {
	i := m.state.placeInQueue(id)
	if i < 0 {
		return queued{}, events.Missing("queued message", id)
	}
	return m.state.Queue[i], nil
}

func (m *decider) removeQueued(d events.RemoveQueued) error {
	q, err := m.waiting(d.QueuedID)
	if err != nil {
		return err
	}
	m.emit(events.QueueRemovedType, q.ID, "", events.QueueRemoved{ID: q.ID, ExecutionID: q.Execution})
	return nil
}

// editQueued replaces a queued message. The message keeps the id of its item.
func (m *decider) editQueued(d events.EditQueued) error {
	q, err := m.waiting(d.QueuedID)
	if err != nil {
		return err
	}
	if q.Tool || d.Item.Type == events.ActionExecute {
		return events.Invalid("/item/type", "only a message can be replaced; remove the call %s and queue another one", q.ID)
	}
	was, err := q.item()
	if err != nil {
		return err
	}
	if d.Item.ID != "" && d.Item.ID != was.ID {
		return events.Invalid("/item/id", "the message keeps the id of its item, %s; leave it out", was.ID)
	}
	d.Item.ID = ""
	if _, err := m.checkItem(d.Item); err != nil {
		return err
	}
	d.Item.ID = was.ID
	raw, err := json.Marshal(d.Item, json.Deterministic(true))
	if err != nil {
		return events.Invalid("/item", "%w", err)
	}
	m.emit(events.QueueEditedType, q.ID, "", events.QueueEdited{ID: q.ID, Item: raw, Rights: m.command.Rights.Recorded()})
	return nil
}

func (m *decider) moveQueued(d events.MoveQueued) error {
	q, err := m.waiting(d.QueuedID)
	if err != nil {
		return err
	}
	if d.Before == d.QueuedID {
		return events.Invalid("/before", "%s cannot go before itself", d.Before)
	}
	if d.Before != "" {
		if _, err := m.waiting(d.Before); err != nil {
			return err
		}
	}
	m.emit(events.QueueMovedType, q.ID, "", events.QueueMoved{ID: q.ID, Before: d.Before})
	return nil
}

// executionIsNew refuses an id that an existing execution has, or that is reserved for a queue
// entry.
func (m *decider) executionIsNew(id string) error {
	_, taken := m.state.execution(id)
	if taken || slices.ContainsFunc(m.state.Queue, func(q queued) bool { return q.Execution == id }) {
		return events.Taken("execution", id)
	}
	return nil
}

// placeInQueue returns the index of the queue entry with an id, or -1.
func (s *State) placeInQueue(id string) int {
	return slices.IndexFunc(s.Queue, func(q queued) bool { return q.ID == id })
}

// dequeue removes the entries with the ids from the queue.
func (s *State) dequeue(ids ...string) {
	kept := make([]queued, 0, len(s.Queue))
	for _, q := range s.Queue {
		if slices.Contains(ids, q.ID) {
			s.bytes -= q.size()
			continue
		}
		kept = append(kept, q)
	}
	s.Queue = kept
}

// leave removes the entries with the ids from the queue because they start. A message keeps its
// number when it becomes an item.
func (s *State) leave(ids []string) {
	for i := range s.Queue {
		if q := s.Queue[i]; !q.Tool && slices.Contains(ids, q.ID) {
			s.Left = &q.Message
		}
	}
	s.dequeue(ids...)
}

// numberOf returns the message number of a new item of type t: the number that it had in the
// queue, or the next one. It returns nil if the item is not a message.
func (s *State) numberOf(t events.ItemType) *int64 {
	switch {
	case t != events.Message:
		return nil
	case s.Left != nil:
		return s.Left
	}
	return new(s.Messages)
}

// numbered records the message number of a new item. Events of older versions have no number;
// there a message that was queued is counted a second time.
func (s *State) numbered(d events.ItemCreated) {
	if d.Type != events.Message {
		return
	}
	number := s.Messages
	if d.MessageID != nil {
		number = *d.MessageID
	}
	s.Messages, s.Left = max(s.Messages, number+1), nil
}

// requeue replaces the item of the queue entry with an id.
func (s *State) requeue(id string, item []byte, by *events.Rights) {
	i := s.placeInQueue(id)
	if i < 0 {
		return
	}
	s.Queue = slices.Clone(s.Queue)
	s.bytes -= s.Queue[i].size()
	s.Queue[i].Item = content(item)
	s.Queue[i].Rights = s.Queue[i].Rights.Intersect(by)
	s.bytes += s.Queue[i].size()
}

// moveQueued moves the queue entry with an id before another, or to the end.
func (s *State) moveQueued(id, before string) {
	i := s.placeInQueue(id)
	if i < 0 {
		return
	}
	moved := s.Queue[i]
	s.Queue = slices.Delete(slices.Clone(s.Queue), i, i+1)
	to := s.placeInQueue(before)
	if to < 0 {
		to = len(s.Queue)
	}
	s.Queue = slices.Insert(s.Queue, to, moved)
}

// Queued returns the thread's queue, in order.
func (s *State) Queued() []events.Queued {
	list := make([]events.Queued, len(s.Queue))
	for i, q := range s.Queue {
		list[i] = events.Queued{
			ID: q.ID, Item: q.Item, ExecutionID: q.Execution, ReactionItemID: q.Reaction, MessageID: q.Message, ContextID: q.Context, AgentID: q.Agent,
		}
	}
	return list
}
