package thread

import (
	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
)

// placeStep sets the item that a new step writes. If others have added a message since the run's
// item was created, the item is completed and the step writes a new one: the message then stands
// between what the run wrote before it and after it. The new item's place is reserved now, because
// more messages may arrive before its first part.
func (m *decider) placeStep(execution string, step *events.StepCreated) error {
	x, _ := m.state.execution(execution)
	step.EventID = x.writes()
	if x.Run.Handoff != nil {
		return nil
	}
	if x.Steps > 0 { // earlier steps have an item, even if they wrote nothing
		if err := m.addToReaction(execution, nil); err != nil {
			return err
		}
		x, _ = m.state.execution(execution)
	}
	i, made := m.state.item(step.EventID)
	switch {
	case !made:
	case i.Deleted || x.Run.Said <= i.Index+1:
		return nil
	default:
		if err := m.completeItem(execution); err != nil {
			return err
		}
		step.EventID = x.answersIn(m.command.Tenant, m.command.ThreadID, execution)
		if x.Run.Steered > i.Index+1 {
			step.SteeredBy = x.Run.Steers
		}
	}
	step.Place = new(m.state.NextItem)
	return nil
}

// completeItem completes the item that a run writes, if it exists and is not complete.
func (m *decider) completeItem(execution string) error {
	x, _ := m.state.execution(execution)
	i, made := m.state.item(x.writes())
	if !made || i.Deleted || i.Status == events.ItemCompleted {
		return nil
	}
	m.emit(events.ItemStatusChangedType, x.writes(), execution, events.ItemStatusChanged{From: i.Status, To: events.ItemCompleted})
	return nil
}

// putResults merges the results of calls into their parts, and adds an item for each result.
func (m *decider) putResults(execution string, results []CallResult) error {
	x, _ := m.state.execution(execution)
	step := x.Run.Step
	var placed []events.PlacedPart
	for _, r := range results {
		c := x.Run.call(r.CallID)
		if c == nil || c.Is == callDone {
			return events.Invalid("/results", "call %s has a result, or is none of the step's", r.CallID)
		}
		n := c.Idx
		if err := m.putPart(events.PutPart{StepID: step, ExecutionID: execution, Idx: &n, Type: ToolPart + c.Name, Part: r.Part}); err != nil {
			return err
		}
		placed = append(placed, events.PlacedPart{Place: x.Run.Base + c.Idx, Part: r.Part})
		raw, err := json.Marshal(events.CallResult{CallID: r.CallID, Output: r.Output, IsError: r.IsError, Name: c.Name}, json.Deterministic(true))
		if err != nil {
			return events.Invalid("/results", "%w", err)
		}
		if err := m.putItem(events.NewItem{
			ID: m.derive(x, step+":result", int(c.Idx)), Type: events.ActionResult, Status: events.ItemCompleted,
			ParentItemID: m.reactionItem(x), Content: raw,
		}, x.Context, execution); err != nil {
			return err
		}
		if r.Skill != nil && !r.IsError {
			m.activate(execution, *r.Skill)
		}
	}
	if len(placed) > 0 {
		m.emit(events.MessageEditedType, x.writes(), execution, events.MessageEdited{Parts: placed})
	}
	return nil
}
