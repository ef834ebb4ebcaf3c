package thread

import (
	"slices"
	"strconv"
	"strings"

	"github.com/skein-threads/skein/events"
)

func (m *decider) createItem(d events.CreateItem) error {
	if _, _, err := m.writable(d.ContextID); err != nil {
		return err
	}
	return m.addItem(d)
}

func (m *decider) appendItems(d events.AppendItems) error {
	if _, _, err := m.writable(d.ContextID); err != nil {
		return err
	}
	for n, item := range d.Items {
		if err := m.addItem(events.CreateItem{ContextID: d.ContextID, Item: item}); err != nil {
			return inList(err, n)
		}
	}
	return nil
}

// inList returns a refusal of an item with the path of the nth item in a list.
func inList(err error, n int) error {
	e := *events.AsError(err)
	details := events.ErrorDetails{}
	if e.Details != nil {
		details = *e.Details
	}
	details.Path = "/items/" + strconv.Itoa(n) + strings.TrimPrefix(details.Path, "/item")
	e.Details = &details
	return &e
}

// addItem adds an item to a context, even to a closed one, so that a run that started before the
// context was closed can finish.
func (m *decider) addItem(d events.CreateItem) error {
	ctx, _, err := m.contextOf(d.ContextID)
	if err != nil {
		return err
	}
	in := d.Item
	parent, err := m.checkItem(in)
	if err != nil {
		return err
	}
	id := m.id(in.ID, events.ItemPrefix)
	created := events.ItemCreated{
		ID: id, ContextID: ctx, Index: m.state.NextItem, Type: in.Type, Role: in.Role, Status: in.Status,
		Channel: in.Channel, Content: in.Content, CreatedAt: in.CreatedAt, ParentItemID: in.ParentItemID,
		Silent: in.Silent, Metadata: in.Metadata, ReactionItemID: m.steers, SourceItemID: m.source,
	}
	if m.place != nil {
		created.Index = *m.place
	}
	if in.Status == "" {
		created.Status = events.ItemMachine().Initial()
	}
	created.MessageID = m.state.numberOf(in.Type)
	if in.Depth != nil {
		created.Depth = *in.Depth
	}
	if in.Type == events.ActionExecute && parent.Assistant && parent.Context == ctx && int64(parent.Depth) == created.Depth {
		place := parent.Index // the call belongs to that message
		created.CallOf = &place
	}
	m.emit(events.ItemCreatedType, id, m.correlation, created)
	return nil
}

// checkItem validates a new item against the thread, and returns its parent if it has one.
func (m *decider) checkItem(in events.NewItem) (parent itemState, err error) {
	if err := m.maySay(in.Role.Instructs(), in.Content); err != nil {
		return parent, err
	}
	if err := m.itemIsNew(in); err != nil {
		return parent, err
	}
	if in.ParentItemID != "" {
		if parent, err = m.itemOf(in.ParentItemID); err != nil {
			return parent, err
		}
	}
	if in.CreatedAt != "" {
		if _, err := events.ParseTime(in.CreatedAt); err != nil {
			return parent, events.Invalid("/item/createdAt", "%w", err)
		}
	}
	return parent, nil
}

// itemIsNew refuses an id that an existing item or a queued message has, or that the current run
// has reserved for its reaction.
func (m *decider) itemIsNew(item events.NewItem) error {
	if item.ID == "" {
		return nil
	}
	if _, taken := m.state.item(item.ID); taken {
		return events.Taken("item", item.ID)
	}
	if x, ok := m.state.execution(m.state.head.Active); ok && (x.Reaction == item.ID || x.writes() == item.ID) && m.correlation != m.state.head.Active {
		return events.Taken("item", item.ID) // the current run will create it
	}
	for _, q := range m.state.Queue {
		waiting, err := q.item()
		if err != nil {
			return err
		}
		if waiting.ID == item.ID || q.Reaction == item.ID {
			return events.Taken("item", item.ID)
		}
	}
	return nil
}

// itemOf finds an item that exists and was not deleted.
func (m *decider) itemOf(id string) (itemState, error) {
	i, ok := m.state.item(id)
	if !ok || i.Deleted {
		return i, events.Missing("item", id)
	}
	return i, nil
}

func (m *decider) setItemStatus(d events.SetItemStatus) error {
	i, err := m.itemOf(d.ItemID)
	if err != nil {
		return err
	}
	if err := events.ItemMachine().Check(d.ItemID, i.Status, d.To); err != nil {
		return err
	}
	m.emit(events.ItemStatusChangedType, d.ItemID, "", events.ItemStatusChanged{From: i.Status, To: d.To})
	return nil
}

func (m *decider) editMessage(d events.EditMessage) error {
	i, err := m.itemOf(d.ItemID)
	if err != nil {
		return err
	}
	if d.Content == nil && len(d.Parts) == 0 && d.Metadata == nil && d.Silent == nil {
		return events.Invalid("", "message.edit needs at least one field to change")
	}
	if err := m.maySay(i.System, d.Content); err != nil {
		return err
	}
	if d.Content != nil {
		if err := events.CheckContent(i.Type, d.Content); err != nil {
			return err
		}
	}
	edit := i.edit(d.Silent)
	edit.Content, edit.Metadata = d.Content, d.Metadata
	if edit.Parts, err = placedParts(i.Type, d); err != nil {
		return err
	}
	m.emit(events.MessageEditedType, d.ItemID, "", edit)
	return nil
}

// placedParts returns the parts that an edit puts into an item of type t.
func placedParts(t events.ItemType, d events.EditMessage) ([]events.PlacedPart, error) {
	switch {
	case len(d.Parts) == 0:
		return nil, nil
	case d.Content != nil:
		return nil, events.Invalid("/parts", "send content, which replaces all parts, or parts, and not both")
	case t != events.Message:
		return nil, events.Invalid("/parts", "item %s is of the type %s; only a message has parts", d.ItemID, t)
	}
	out := make([]events.PlacedPart, len(d.Parts))
	for n, p := range d.Parts {
		if err := events.CheckContent(events.Message, slices.Concat(events.JSON{'['}, p.Part, events.JSON{']'})); err != nil {
			return nil, events.Invalid("/parts/"+strconv.Itoa(n)+"/part", "%s", events.AsError(err).Message)
		}
		out[n] = events.PlacedPart{Place: *p.Place, Part: p.Part}
	}
	return out, nil
}

// edit returns an event that edits the item.
func (i itemState) edit(silent *bool) events.MessageEdited {
	e := events.MessageEdited{Index: i.Index, Silent: silent}
	if silent != nil {
		e.WasSilent = &i.Silent
	}
	return e
}

func (m *decider) deleteMessage(d events.DeleteMessage) error {
	i, err := m.itemOf(d.ItemID)
	if err != nil {
		return err
	}
	if err := m.notWritten(d.ItemID); err != nil {
		return err
	}
	m.emit(events.MessageDeletedType, d.ItemID, "", events.MessageDeleted{ContextID: i.Context, Type: i.Type, Index: i.Index})
	for _, id := range i.Calls { // they belong to the message
		if c, err := m.itemOf(id); err == nil {
			m.emit(events.MessageDeletedType, id, "", events.MessageDeleted{ContextID: c.Context, Type: c.Type, Index: c.Index})
		}
	}
	return nil
}

// notWritten refuses to change the item that the current run writes: the run's next parts would
// have no message.
func (m *decider) notWritten(item string) error {
	id := m.state.head.Active
	if x, _ := m.state.execution(id); x.Run == nil || x.writes() != item {
		return nil
	}
	e := events.Errorf(events.VersionConflict, "item %s is the answer that execution %s is writing; stop or cancel the run first, or wait until it has ended", item, id)
	e.Details = &events.ErrorDetails{CurrentVersion: new(m.state.Version)}
	return e
}
