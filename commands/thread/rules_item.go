package thread

import (
	"fmt"

	"github.com/skein-threads/skein/events"
)

func (r rules) ContextCreated(e *events.Event, d events.ContextCreated) error {
	_, taken := r.state.context(d.ID)
	faults := []error{
		about(e, d.ID, ""), isNew(taken, "context", d.ID),
		unless(d.Status == events.ContextMachine().Initial(), "a context begins as %q, and not as %.40q", events.ContextMachine().Initial(), d.Status),
		unless(d.Default == (e.Version == 2), "the default context is the thread's first, and no other"),
		unless(len(d.Content) <= events.MaxStateBytes, "its content has %d bytes", len(d.Content)),
	}
	if d.Key != nil {
		_, used := r.state.contextByKey(*d.Key)
		faults = append(faults, unless(!used, "the key %.80q is that of another context", *d.Key))
	}
	return firstFault(faults...)
}

func (r rules) ContextResolved(e *events.Event, d events.ContextResolved) error {
	c, ok := r.state.context(e.Subject)
	created := false
	if r.before != nil {
		made, is := r.before.Data.(events.ContextCreated)
		created = is && !made.Default && made.ID == e.Subject && d.Key != nil
	}
	return firstFault(
		about(e, e.Subject, ""), exists(ok, "context", e.Subject),
		unless(d.Key == nil || *d.Key == c.Key, "the context's key is %.80q", c.Key),
		unless(!d.Created || created, "it says that the context was created, and it was there"),
	)
}

func (r rules) ContextStatusChanged(e *events.Event, d events.ContextStatusChanged) error {
	c, ok := r.state.context(e.Subject)
	return firstFault(
		exists(ok, "context", e.Subject),
		unless(d.From == c.Status, "the context is %s, and not %.40q", c.Status, d.From),
		events.ContextMachine().Check(e.Subject, d.From, d.To),
	)
}

func (r rules) StateChanged(e *events.Event, d events.StateChanged) error {
	c, ok := r.state.context(e.Subject)
	after := []byte(d.Content)
	if d.Patch != nil {
		var err error
		if after, err = events.MergePatch(c.Content, d.Patch); err != nil {
			return fmt.Errorf("invalid patch: %w", err)
		}
	}
	return firstFault(
		about(e, e.Subject, ""), exists(ok, "context", e.Subject),
		unless((d.Content == nil) != (d.Patch == nil), "it has either content or a patch"),
		unless(len(after) <= events.MaxStateBytes, "the content after it has %d bytes", len(after)),
	)
}

// No command of this version writes StateClosed. It needs its context.
func (r rules) StateClosed(e *events.Event, _ events.StateClosed) error {
	return firstFault(about(e, e.Subject, ""), r.needContext(e.Subject))
}

func (r rules) ItemCreated(e *events.Event, d events.ItemCreated) error {
	_, taken := r.state.item(d.ID)
	var parent itemState
	faults := []error{
		about(e, d.ID, e.Correlation), isNew(taken, "item", d.ID), r.needContext(d.ContextID), r.needExecution(e.Correlation),
		unless(d.Index == r.state.NextItem, "its place is %d, and the next one is %d", d.Index, r.state.NextItem),
	}
	if d.ParentItemID != "" {
		parent, _ = r.state.item(d.ParentItemID)
		faults = append(faults, r.needItem(d.ParentItemID))
	}
	if d.ReactionItemID != "" { // it steers a run
		x, _ := r.state.execution(e.Correlation)
		faults = append(faults, unless(x.Run != nil && x.Reaction == d.ReactionItemID, "execution %.80q answers with item %.80q, and not with %.80q", e.Correlation, x.Reaction, d.ReactionItemID))
	}
	x, _ := r.state.execution(e.Correlation)
	faults = append(faults, unless(d.OutputOf == "" || d.Type == events.ActionResult && x.Run != nil, "only the result of a run's call has its output in a part"))
	part := d.Type == events.ActionExecute && parent.Assistant && parent.Context == d.ContextID && int64(parent.Depth) == d.Depth
	return firstFault(append(faults,
		unless(part == (d.CallOf != nil), "it is part of a message, or not, against what its parent says"),
		unless(d.CallOf == nil || *d.CallOf == parent.Index, "its message stands at %d", parent.Index),
	)...)
}

func (r rules) ItemStatusChanged(e *events.Event, d events.ItemStatusChanged) error {
	i, _ := r.state.item(e.Subject)
	return firstFault(
		r.needItem(e.Subject), r.needExecution(e.Correlation),
		unless(d.From == i.Status, "the item is %s, and not %.40q", i.Status, d.From),
		events.ItemMachine().Check(e.Subject, d.From, d.To),
	)
}

func (r rules) MessageEdited(e *events.Event, d events.MessageEdited) error {
	i, ok := r.state.item(e.Subject)
	faults := []error{
		exists(ok, "item", e.Subject), r.needExecution(e.Correlation),
		unless(d.Index == 0 || d.Index == i.Index, "the item stands at %d, and not at %d", i.Index, d.Index),
		unless((d.Silent == nil) == (d.WasSilent == nil), "it says what silent was, and not what it is, or the other way round"),
		unless(d.WasSilent == nil || *d.WasSilent == i.Silent, "silent was %v", i.Silent),
	}
	if x, ok := r.state.execution(e.Correlation); ok { // a run writes its reaction, deleted or not
		return firstFault(append(faults, unless(x.Reaction == e.Subject, "execution %.80q writes item %.80q", e.Correlation, x.Reaction))...)
	}
	return firstFault(append(faults, r.needItem(e.Subject), unless(len(d.Parts) == 0, "only a run puts parts into an item"))...)
}

func (r rules) MessageDeleted(e *events.Event, d events.MessageDeleted) error {
	i, _ := r.state.item(e.Subject)
	return firstFault(
		about(e, e.Subject, ""), r.needItem(e.Subject),
		unless(d.ContextID == i.Context && d.Type == i.Type && d.Index == i.Index, "the item is a %s at %d of %.80q", i.Type, i.Index, i.Context),
	)
}

// No command of this version writes HistoryTruncated. It hides existing items.
func (r rules) HistoryTruncated(e *events.Event, d events.HistoryTruncated) error {
	return firstFault(ofAggregate(e), unless(d.FromIndex < r.state.NextItem, "the thread has no item at %d", d.FromIndex))
}
