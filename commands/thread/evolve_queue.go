package thread

import (
	"slices"

	"github.com/skein-threads/skein/events"
)

// evolveQueue applies the events of the thread's queue.
func (s *State) evolveQueue(e *events.Event) {
	switch d := e.Data.(type) {
	case events.QueuePushed:
		s.enqueue(d)
	case events.QueueRemoved:
		s.dequeue(d.ID)
	case events.QueueEdited:
		s.requeue(d.ID, d.Item, d.Rights)
	case events.QueueMoved:
		s.moveQueued(d.ID, d.Before)
	case events.QueueDrained:
		s.leave(d.IDs)
		s.run(e.Correlation, func(r *runState) { r.Drained = true })
	}
}

// enqueue adds an entry to the queue.
func (s *State) enqueue(d events.QueuePushed) {
	q := queued{
		ID: d.ID, Item: content(d.Item), Context: d.ContextID, Agent: d.AgentID, Tool: isCall(d.Item), Once: d.Once,
		Execution: d.ExecutionID, Reaction: d.ReactionItemID, Message: d.MessageID, Session: d.SessionID, Settings: d.Settings, Rights: d.Rights,
	}
	if d.First {
		s.Queue = append([]queued{q}, s.Queue...)
	} else {
		s.Queue = append(slices.Clip(s.Queue), q)
	}
	if !q.Tool {
		s.Messages = max(s.Messages, d.MessageID+1)
	}
	s.bytes += q.size()
}

// isCall reports whether an item is a call of a tool.
func isCall(item []byte) bool { return events.QueuePushed{Item: item}.IsCall() }
