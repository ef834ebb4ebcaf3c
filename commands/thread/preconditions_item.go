package thread

import (
	"fmt"
	"slices"

	"github.com/skein-threads/skein/events"
)

func (r preconditions) ContextCreated(e *events.Event, d events.ContextCreated) error {
	_, taken := r.state.context(d.ID)
	faults := []error{
		about(e, d.ID, ""), isNew(taken, "context", d.ID),
		unless(d.Status == events.ContextMachine().Initial(), "a context begins as %q, and not as %.40q", events.ContextMachine().Initial(), d.Status),
		unless(d.Default == (e.Version == 2), "the default context is the thread's first, and no other"),
		unless(len(d.Content) <= events.MaxStateBytes, "its content has %d bytes", len(d.Content)),
	}
	if life, ok := lifeOf(d.Key); ok {
		faults = append(faults, unless(!r.state.Life.open() && life == r.state.Life.N+1 && content(d.Content) == nil,
			"it is life %d of the state, and the last was %d", life, r.state.Life.N))
	}
	if d.Key != nil {
		_, used := r.state.contextByKey(*d.Key)
		faults = append(faults, unless(!used, "the key %.80q is that of another context", *d.Key))
	}
	return firstFault(faults...)
}

func (r preconditions) ContextResolved(e *events.Event, d events.ContextResolved) error {
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

func (r preconditions) ContextStatusChanged(e *events.Event, d events.ContextStatusChanged) error {
	c, ok := r.state.context(e.Subject)
	if life, is := events.ParseLifeKey(c.Key); is {
		ended, _ := r.state.ended(life)
		if ended.Context != e.Subject || d.To != events.ContextClosed {
			return fmt.Errorf("it is life %d of the state, which closes when it ends, and does not change otherwise", life)
		}
	}
	return firstFault(
		exists(ok, "context", e.Subject),
		unless(d.From == c.Status, "the context is %s, and not %.40q", c.Status, d.From),
		events.ContextMachine().Check(e.Subject, d.From, d.To),
	)
}

func (r preconditions) StateChanged(e *events.Event, d events.StateChanged) error {
	c, ok := r.state.context(e.Subject)
	kinds := 0
	for _, is := range []bool{d.Content != nil, d.Patch != nil, d.Operations != nil} {
		if is {
			kinds++
		}
	}
	after, err := d.After(c.Content)
	if err != nil {
		return fmt.Errorf("invalid patch or operation: %w", err)
	}
	return firstFault(
		about(e, e.Subject, ""), exists(ok, "context", e.Subject),
		unless(kinds == 1, "it has either content or a patch or operations"),
		unless(len(after) <= events.MaxStateBytes, "the content after it has %d bytes", len(after)),
		r.ofLife(e.Subject, c, d, after),
	)
}

// numbered checks the message number of an item.
func numbered(want *int64, have int64) error {
	if want == nil {
		return unless(false, "it has the number %d, and only messages have one", have)
	}
	return unless(have == *want, "its number is %d, and should be %d", have, *want)
}

func (r preconditions) ItemCreated(e *events.Event, d events.ItemCreated) error {
	_, taken := r.state.item(d.ID)
	var parent itemState
	place := r.state.NextItem
	if x, _ := r.state.execution(e.Correlation); x.Run != nil && x.Run.Room > 0 && x.writes() == d.ID {
		place = x.Run.Room - 1
	}
	faults := []error{
		about(e, d.ID, e.Correlation), isNew(taken, "item", d.ID), r.needContext(d.ContextID), r.needExecution(e.Correlation),
		unless(d.Index == place, "its place is %d, and the next one is %d", d.Index, place),
	}
	if d.ParentItemID != "" {
		parent, _ = r.state.item(d.ParentItemID)
		faults = append(faults, r.needItem(d.ParentItemID))
	}
	if d.ReactionItemID != "" { // it steers a run
		x, _ := r.state.execution(e.Correlation)
		faults = append(faults, unless(x.Run != nil && (x.Reaction == d.ReactionItemID || x.answersIn(e.Tenant, e.ThreadID, e.Correlation) == d.ReactionItemID), "execution %.80q answers with item %.80q, and not with %.80q", e.Correlation, x.writes(), d.ReactionItemID))
	}
	x, _ := r.state.execution(e.Correlation)
	faults = append(faults, unless(d.OutputOf == "" || d.Type == events.ActionResult && x.Run != nil, "only the result of a run's call has its output in a part"))
	faults = append(faults, r.leftQueue(d), r.callItem(e, d))
	if d.MessageID != nil {
		faults = append(faults, numbered(r.state.numberOf(d.Type), *d.MessageID))
	}
	if r.state.Pending.has(d.ParentItemID) {
		return firstFault(faults...)
	}
	part := d.Type == events.ActionExecute && parent.Assistant && parent.Context == d.ContextID && int64(parent.Depth) == d.Depth
	return firstFault(append(faults,
		unless(part == (d.CallOf != nil), "it is part of a message, or not, against what its parent says"),
		unless(d.CallOf == nil || *d.CallOf == parent.Index, "its message stands at %d", parent.Index),
	)...)
}

func (r preconditions) ItemStatusChanged(e *events.Event, d events.ItemStatusChanged) error {
	i, _ := r.state.item(e.Subject)
	return firstFault(
		r.needItem(e.Subject), r.needExecution(e.Correlation),
		unless(d.From == i.Status, "the item is %s, and not %.40q", i.Status, d.From),
		events.ItemMachine().Check(e.Subject, d.From, d.To),
	)
}

func (r preconditions) MessageEdited(e *events.Event, d events.MessageEdited) error {
	if r.state.Pending.has(e.Subject) {
		_, ofRun := r.state.execution(e.Correlation)
		return unless(!ofRun, "a run does not write an item that the thread has inherited")
	}
	i, ok := r.state.item(e.Subject)
	faults := []error{
		exists(ok, "item", e.Subject), r.needExecution(e.Correlation),
		unless(d.Index == 0 || d.Index == i.Index, "the item stands at %d, and not at %d", i.Index, d.Index),
		unless((d.Silent == nil) == (d.WasSilent == nil), "it says what silent was, and not what it is, or the other way round"),
		unless(d.WasSilent == nil || *d.WasSilent == i.Silent, "silent was %v", i.Silent),
	}
	if x, ok := r.state.execution(e.Correlation); ok { // a run writes its reaction item even if that was deleted
		return firstFault(append(faults, unless(x.writes() == e.Subject, "execution %.80q writes item %.80q", e.Correlation, x.writes()))...)
	}
	return firstFault(append(faults, r.needItem(e.Subject), unless(len(d.Parts) == 0 || i.Type == events.Message, "the item is a %s, which has no parts", i.Type))...)
}

func (r preconditions) MessageDeleted(e *events.Event, d events.MessageDeleted) error {
	if r.state.Pending.has(e.Subject) {
		return firstFault(about(e, e.Subject, ""), unless(d.ContextID == r.state.Pending.History.ContextID, "the item is of another context"))
	}
	i, _ := r.state.item(e.Subject)
	return firstFault(
		about(e, e.Subject, ""), r.needItem(e.Subject),
		unless(d.ContextID == i.Context && d.Type == i.Type && d.Index == i.Index, "the item is a %s at %d of %.80q", i.Type, i.Index, i.Context),
	)
}

// HistoryTruncated hides existing items.
func (r preconditions) HistoryTruncated(e *events.Event, d events.HistoryTruncated) error {
	return firstFault(ofAggregate(e), unless(d.FromIndex < r.state.NextItem, "the thread has no item at %d", d.FromIndex))
}

// HistoryInherited follows the creation of its thread, before any item.
func (r preconditions) HistoryInherited(e *events.Event, d events.HistoryInherited) error {
	last := int64(-1)
	ordered := len(d.Pages) > 0
	for _, page := range d.Pages {
		ordered = ordered && page.From > last
		last = page.From
	}
	return firstFault(
		ofAggregate(e),
		unless(r.state.NextItem == 0 && r.state.Pending == nil && r.state.Time == e.Time, "the thread had items, or was created, before it"),
		unless(d.ContextID == r.state.Default, "the items belong to context %.80q, and not to the default one", d.ContextID),
		unless(d.ThreadID != e.ThreadID && events.ValidThreadID(d.ThreadID), "the history of %.80q cannot be inherited", d.ThreadID),
		unless(ordered && d.Pages[0].From == 0 && last < d.NextIndex, "its pages are not in order"),
		unless(d.NextIndex%events.HistoryAlign == 0, "its own items begin at %d, which is not a multiple of %d", d.NextIndex, events.HistoryAlign),
	)
}

// lifeOf parses the key of a context that holds a life of the state. It reports false for any
// other key.
func lifeOf(key *string) (int64, bool) {
	if key == nil {
		return 0, false
	}
	return events.ParseLifeKey(*key)
}

// ofLife checks a change of a context's content. If the context holds a life of the state, the
// change must keep to the rules of lives.
func (r preconditions) ofLife(id string, c contextState, d events.StateChanged, after events.JSON) error {
	l := r.state.Life
	if _, is := events.ParseLifeKey(c.Key); !is {
		return unless(d.Operations == nil && d.Life == 0 && d.Size == 0 && d.Bytes == 0, "the context is not a life of the state, and takes no operations")
	}
	_, size, err := events.ApplyOperations(c.Content, d.Operations)
	return firstFault(err,
		unless(d.Operations != nil, "the context is a life of the state, and takes operations only"),
		unless(l.Context == id && l.N == d.Life, "the current life is %d", l.N),
		unless(d.Size == size, "the state has %d keys after it", size),
		unless(d.Bytes == int64(len(after)), "the state has %d bytes after it", len(after)),
	)
}

func (r preconditions) StateRenewed(e *events.Event, d events.StateRenewed) error {
	l := r.state.Life
	until, err := events.ParseTime(d.Until)
	if err != nil {
		return fmt.Errorf("until when it lasts: %w", err)
	}
	return firstFault(
		about(e, l.Context, ""),
		unless(l.open() && l.N == d.Life, "the current life is %d", l.N),
		unless(until == e.Time+events.Time(d.IdleSeconds)*1e6 && d.IdleSeconds > 0, "it lasts until %s, which is not its idle time later", d.Until),
		unless(len(d.Listeners) >= len(l.Listeners) && slices.Equal(d.Listeners[:len(l.Listeners)], l.Listeners), "it drops applications that listen"),
	)
}

func (r preconditions) StateReleased(e *events.Event, d events.StateReleased) error {
	l, ok := r.state.ended(d.Life)
	return firstFault(
		unless(ok, "life %d of the state has not ended, or is cleared", d.Life),
		about(e, l.Context, ""),
		unless(slices.Contains(l.Listeners, d.Listener), "%.80q does not listen to its end, or has released it", d.Listener),
	)
}

func (r preconditions) StateClosed(e *events.Event, d events.StateClosed) error {
	l, ok := r.state.ended(d.Life)
	return firstFault(
		unless(ok, "life %d of the state has not ended, or is cleared", d.Life),
		about(e, l.Context, ""),
		unless(len(l.Listeners) == 0, "%d applications have not released it", len(l.Listeners)),
		unless(d.Reason == l.Reason, "it ended because it was %.40q", l.Reason),
	)
}

func (r preconditions) LifecycleDestroyed(e *events.Event, d events.LifecycleDestroyed) error {
	l := r.state.Life
	return firstFault(
		ofAggregate(e),
		unless(l.open() && l.N == d.Life && l.Context == d.ContextID, "the current life is %d in context %.80q", l.N, l.Context),
		unless(slices.Equal(d.Listeners, l.Listeners), "those that listen are %v", l.Listeners),
	)
}
