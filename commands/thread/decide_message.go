package thread

import (
	"github.com/skein-threads/skein/events"
)

// addMessage adds the item of a message and the items of its calls.
func (m *decider) addMessage(d events.AddMessage) error {
	item, calls, err := d.Items()
	if err != nil {
		return err
	}
	item.ID = m.id(item.ID, events.ItemPrefix)
	place := m.state.NextItem
	if err := m.createItem(events.CreateItem{ContextID: d.ContextID, Item: item}); err != nil {
		return err
	}
	for _, call := range calls {
		call.ParentItemID = item.ID
		if err := m.createItem(events.CreateItem{ContextID: d.ContextID, Item: call}); err != nil {
			return err
		}
	}
	if d.Status == events.MessageFailed {
		m.emit(events.MessageEditedType, item.ID, "", events.MessageEdited{Index: place, Failed: yes()})
	}
	return nil
}

// updateMessage changes a message.
func (m *decider) updateMessage(d events.UpdateMessage) error {
	i, ok := m.state.item(d.MessageID)
	if !ok || !i.shows() {
		return events.Missing("message", d.MessageID)
	}
	if d.Content == nil && d.Metadata == nil && d.Silent == nil && d.Status == "" && d.ToolStatus == "" {
		return events.Invalid("", "message.update needs at least one field to change")
	}
	edit := i.edit(d.Silent)
	edit.Metadata = d.Metadata
	if d.Content != nil {
		if err := m.maySay(i.System, events.QuoteText(*d.Content)); err != nil {
			return err
		}
		switch i.Type {
		case events.Message:
			edit.Content = events.MessageText(i.Assistant, d.Content)
		case events.ActionResult:
			edit.Output = events.QuoteText(*d.Content)
		default:
			return events.Invalid("/content", "a call that stands alone has no text")
		}
	}
	if d.ToolStatus != "" {
		if i.Type != events.ActionResult {
			return events.Invalid("/toolStatus", "only a tool's message has it")
		}
		failed := d.ToolStatus == events.ToolError
		edit.IsError = &failed
	}
	move, err := m.moveMessage(d, i, &edit)
	if err != nil {
		return err
	}
	onlyMoves := d.Content == nil && d.Metadata == nil && d.Silent == nil && d.ToolStatus == "" && edit.Failed == nil
	if !onlyMoves || move == "" {
		m.emit(events.MessageEditedType, d.MessageID, "", edit)
	}
	if move != "" {
		m.emit(events.ItemStatusChangedType, d.MessageID, "", events.ItemStatusChanged{From: i.Status, To: move})
	}
	m.silence(i, d.Silent)
	return nil
}

// moveMessage returns the status to which the item must change, "" if it already has that status
// or d names none, and sets in edit whether the message failed.
func (m *decider) moveMessage(d events.UpdateMessage, i itemState, edit *events.MessageEdited) (events.ItemStatus, error) {
	if d.Status == "" {
		return "", nil
	}
	if failed := d.Status == events.MessageFailed; failed != i.Failed {
		edit.Failed = &failed
	}
	to := d.Status.Item()
	if to == i.Status {
		return "", nil
	}
	return to, events.ItemMachine().Check(d.MessageID, i.Status, to)
}

// silence changes the visibility of the calls that belong to a message along with it.
func (m *decider) silence(message itemState, silent *bool) {
	if silent == nil {
		return
	}
	for _, id := range message.Calls {
		if c, err := m.itemOf(id); err == nil && c.Silent != *silent {
			m.emit(events.MessageEditedType, id, "", c.edit(silent))
		}
	}
}

// recordTrace records a trace event of a run.
func (m *decider) recordTrace(d events.RecordTrace) error {
	subject := m.command.ThreadID
	if d.ExecutionID != "" {
		x, ok := m.state.execution(d.ExecutionID)
		switch {
		case !ok:
			return events.Missing("execution", d.ExecutionID)
		case d.SessionID != "" && d.SessionID != x.Session:
			return events.Invalid("/sessionId", "execution %s answers session %q, and not %s; leave sessionId out", d.ExecutionID, x.Session, d.SessionID)
		}
		d.SessionID = x.Session
		subject = d.ExecutionID
	}
	m.emit(events.TraceRecordedType, subject, d.ExecutionID, events.TraceRecorded{
		Kind: d.Kind, ExecutionID: d.ExecutionID, SpanID: d.SpanID, ParentID: d.ParentID, Name: d.Name,
		Level: string(d.Level), Text: d.Text, StartedAt: d.StartedAt, Data: d.Data, SessionID: d.SessionID,
	})
	return nil
}

func yes() *bool {
	y := true
	return &y
}
