package documents

import (
	"cmp"
	"fmt"

	"github.com/skein-threads/skein/events"
)

// Outcome is the effect of a commit on the documents.
type Outcome struct {
	Changed []*Slot   // the slots whose document it created, changed or removed, each once
	Missed  []*Slot   // the empty slots of documents that it should have changed but that do not exist
	Deleted *Deletion // set if it ended its thread
	Err     error     // a *PlaceError: an event could not be folded, and was skipped
}

// Deletion is the end of a thread: all of its documents must be removed.
type Deletion struct {
	Tenant, Thread string
	Seq            uint64 // of the tombstone's commit
	Version        int64
	Purge          bool // its events are erased too, up to the tombstone
}

// PlaceError is the error of an event that names its document in a way that no document can
// have. Only a commit that Skein did not write contains one.
type PlaceError struct {
	Type events.Type
	ID   string
}

func (e *PlaceError) Error() string {
	return fmt.Sprintf("fold event %.64q: its subject %.80q cannot be a key", e.Type, e.ID)
}

// Apply folds a commit into the documents of the store, for the read models in active.
// Documents that already show the commit are not changed. The commit is one of a thread or of
// a tenant; see [Folds].
//
// It appends to changed and returns it in the outcome, so that its memory can be reused.
func (m *Models) Apply(c *events.Commit, store Store, active Mask, changed []*Slot) Outcome {
	ch := change{commit: c, store: store, active: active, thread: ThreadName(c.Tenant, c.Thread), changed: changed[:0]}
	out := Outcome{}
	for i := range c.Events {
		ch.event = &c.Events[i]
		for _, b := range m.by[ch.event.Type] {
			ch.react(b)
		}
		switch d := ch.event.Data.(type) {
		case events.MessageDeleted:
			ch.hideItem(d)
		case events.MessageEdited:
			ch.silence(d)
		case events.HistoryTruncated:
			ch.truncate(d)
		case events.LifecycleDeleted:
			out.Deleted = &Deletion{Tenant: c.Tenant, Thread: c.Thread, Seq: c.Seq, Version: c.Version, Purge: d.Purge}
		}
		ch.touchThread()
	}
	if out.Deleted != nil {
		ch.endThread()
	}
	for _, s := range ch.changed {
		s.Seq, s.during, s.made = c.Seq, false, false
		if s.Doc != nil {
			m.list[s.Place.Kind].mark(s.Doc, events.Stamp{Version: c.Version, Seq: int64(c.Seq)})
		}
	}
	out.Changed, out.Missed, out.Err = ch.changed, ch.missed, ch.err
	return out
}

// Folds reports whether documents are folded from an aggregate: a thread, or the tenant's own.
func Folds(aggregate string) bool {
	return events.IsThread(aggregate) || aggregate == events.TenantAggregate
}

// react applies the event to one read model.
func (c *change) react(b bound) {
	if !c.active.Has(b.kind) {
		return
	}
	id, ok := b.id(c)
	if !ok {
		return
	}
	if id != "" && !validID(id) || id == "" && b.kind != Threads {
		c.err = &PlaceError{Type: c.event.Type, ID: id}
		return
	}
	s := c.open(Place{Kind: b.kind, Thread: c.thread, ID: id})
	if s == nil {
		return
	}
	was := s.Doc
	c.slot, c.same = s, false
	if s.Doc = b.fold(c, s.Doc); c.same {
		return
	}
	if s.Doc == nil && was == nil && b.kind != Definitions {
		c.missed = append(c.missed, s)
		return
	}
	if s.Doc != nil && was == nil {
		s.made, s.at = true, int64(c.event.Time)
	}
	c.mark(s)
}

// open returns the slot of a place, nil if its document already shows the commit.
func (c *change) open(p Place) *Slot {
	s := c.store.Slot(p)
	if !s.during && s.Seq >= c.commit.Seq {
		return nil
	}
	return s
}

// mark records that the commit has changed a slot.
func (c *change) mark(s *Slot) {
	s.derived = false
	if !s.during {
		s.during = true
		c.changed = append(c.changed, s)
	}
}

// touchThread stamps the thread's document with every event of the thread.
func (c *change) touchThread() {
	if !c.active.Has(Threads) || !events.IsThread(c.commit.Thread) {
		return
	}
	s := c.open(Place{Kind: Threads, Thread: c.thread})
	if s == nil {
		return
	}
	doc, ok := s.Doc.(*events.Thread)
	if !ok { // the commit that created it cannot be decoded
		c.missed = append(c.missed, s)
		return
	}
	c.slot = s
	if c.isChange() {
		doc.Changes++
	}
	if c.event.Type == events.LifecycleArchivedType { // the thread keeps its place in lists
		doc.ListedSeq = cmp.Or(doc.ListedSeq, doc.Seq)
	} else {
		doc.ListedSeq = 0
		if c.later() {
			doc.UpdatedAt = c.time()
		}
	}
	c.mark(s)
}

// endThread removes the thread's own document. The owner of the store removes all others
// together.
func (c *change) endThread() {
	if !c.active.Has(Threads) {
		return
	}
	if s := c.open(Place{Kind: Threads, Thread: c.thread}); s != nil {
		s.Doc = nil
		c.mark(s)
	}
}
