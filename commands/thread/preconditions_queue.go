package thread

import (
	"slices"

	"github.com/skein-threads/skein/events"
)

func (r preconditions) QueuePushed(e *events.Event, d events.QueuePushed) error {
	waiting, taken := 0, false
	for _, q := range r.state.Queue {
		taken = taken || q.ID == d.ID
		if !q.Tool {
			waiting++
		}
	}
	tool := isCall(d.Item)
	_, err := (&queued{Item: d.Item}).item()
	faults := []error{
		about(e, d.ID, ""), unless(d.ID != "", "it has no id"), err,
		unless(tool || !taken, "%.80q waits already", d.ID),
		unless(tool || waiting < events.MaxQueuedMessages, "%d messages wait already", waiting),
		unless(tool || d.MessageID == r.state.Messages, "its number is %d, and the next one is %d", d.MessageID, r.state.Messages),
	}
	if d.ContextID != "" {
		faults = append(faults, r.needContext(d.ContextID))
	}
	if d.ExecutionID != "" || d.ReactionItemID != "" {
		faults = append(faults, unless(!tool, "a call of a tool answers no message"), r.reserved(d))
	}
	return firstFault(faults...)
}

// reserved checks the ids that are reserved for a queued message.
func (r preconditions) reserved(d events.QueuePushed) error {
	_, execution := r.state.execution(d.ExecutionID)
	_, item := r.state.item(d.ReactionItemID)
	for _, q := range r.state.Queue {
		execution, item = execution || q.Execution == d.ExecutionID, item || q.Reaction == d.ReactionItemID
	}
	return firstFault(isNew(execution, "execution", d.ExecutionID), isNew(item, "item", d.ReactionItemID))
}

func (r preconditions) QueueRemoved(e *events.Event, d events.QueueRemoved) error {
	q, err := r.waits(d.ID)
	return firstFault(about(e, d.ID, ""), err, unless(d.ExecutionID == q.Execution, "it has the execution %.80q, and not %.80q", q.Execution, d.ExecutionID))
}

func (r preconditions) QueueEdited(e *events.Event, d events.QueueEdited) error {
	q, err := r.waits(d.ID)
	if err := firstFault(about(e, d.ID, ""), err); err != nil {
		return err
	}
	was, err := q.item()
	now, nowErr := (&queued{Item: d.Item}).item()
	return firstFault(err, nowErr,
		unless(!q.Tool && !isCall(d.Item), "a call of a tool is not edited"),
		unless(now.ID == was.ID, "its item has the id %.80q, and not %.80q", was.ID, now.ID),
	)
}

func (r preconditions) QueueMoved(e *events.Event, d events.QueueMoved) error {
	_, err := r.waits(d.ID)
	faults := []error{about(e, d.ID, ""), err, unless(d.Before != d.ID, "it goes before itself")}
	if d.Before != "" {
		_, err := r.waits(d.Before)
		faults = append(faults, err)
	}
	return firstFault(faults...)
}

// waits returns the queue entry with an id, or an error if there is none.
func (r preconditions) waits(id string) (queued, error) {
	i := r.state.placeInQueue(id)
	if i < 0 {
		return queued{}, unless(false, "%.80q does not wait", id)
	}
	return r.state.Queue[i], nil
}

func (r preconditions) QueueDrained(e *events.Event, d events.QueueDrained) error {
	faults := []error{
		r.needExecution(e.Correlation), unless(len(d.IDs) > 0, "it takes nothing"),
		unless(len(d.IDs) == 0 || e.Subject == d.IDs[0], "its subject should be the first id, not %.80q", e.Subject),
	}
	for _, id := range d.IDs {
		waits := slices.ContainsFunc(r.state.Queue, func(q queued) bool { return q.ID == id })
		faults = append(faults, unless(waits, "%.80q does not wait", id))
	}
	return firstFault(faults...)
}
