package documents

import "github.com/skein-threads/skein/events"

// Need is a document that a fold must read.
type Need struct {
	Place Place
	Made  bool // the commit creates it: it exists only if the commit was folded before
}

// Needs reports to tell the places that folding a commit into the read models in active must
// read, in no order and with repeats. What the fold of history.truncated needs depends on
// documents: look returns those that are loaded, and Needs must be called again once what it
// reported is loaded, until it reports nothing new. For a commit without that event, see
// [Deep], one call is enough.
func (m *Models) Needs(c *events.Commit, active Mask, look func(Place) any, tell func(Need)) {
	ch := change{commit: c, active: active, thread: ThreadName(c.Tenant, c.Thread)}
	if active.Has(Threads) && events.IsThread(c.Thread) {
		tell(Need{Place: Place{Kind: Threads, Thread: ch.thread}, Made: c.First() == 0})
	}
	for i := range c.Events {
		ch.event = &c.Events[i]
		for _, b := range m.by[ch.event.Type] {
			if b.kind == Threads || !active.Has(b.kind) {
				continue
			}
			id, ok := b.id(&ch)
			if ok && validID(id) && id != "" {
				tell(Need{Place: Place{Kind: b.kind, Thread: ch.thread, ID: id}, Made: b.makes || b.kind == Index && opensPage(ch.event, id)})
			}
		}
		switch d := ch.event.Data.(type) {
		case events.MessageDeleted:
			tell(Need{Place: Place{Kind: Index, Thread: ch.thread, ID: PageID(d.Index / PageSize)}})
			ch.needContext(d.ContextID, tell)
		case events.MessageEdited:
			if d.Silent != nil {
				tell(Need{Place: Place{Kind: Index, Thread: ch.thread, ID: PageID(d.Index / PageSize)}})
			}
		case events.HistoryTruncated:
			ch.needsOfTruncate(d, look, tell)
		}
	}
}

// Touches reports whether folding a commit reads or changes documents of some read models, but
// for the end of the thread, which removes all.
func (m *Models) Touches(c *events.Commit, kinds Mask) bool {
	touches := false
	m.Needs(c, kinds, func(Place) any { return nil }, func(Need) { touches = true })
	return touches
}

// Touched returns those of some read models whose documents folding a commit may read or change,
// but for the end of the thread, which removes all.
func (m *Models) Touched(c *events.Commit, kinds Mask) (touched Mask) {
	if Deep(c) {
		return kinds
	}
	m.Needs(c, kinds, func(Place) any { return nil }, func(n Need) { touched = touched.With(n.Place.Kind) })
	return touched
}

// opensPage reports whether the event creates the first item of that page. The place of a message
// that a run writes may have been kept while others were added to the page.
func opensPage(e *events.Event, page string) bool {
	d, ok := e.Data.(events.ItemCreated)
	kept := ok && e.Correlation != "" && d.Type == events.Message
	return ok && !kept && d.Index%PageSize == 0 && page == PageID(d.Index/PageSize)
}

// Deep reports whether what the commit needs depends on documents.
func Deep(c *events.Commit) bool {
	for i := range c.Events {
		if c.Events[i].Type == events.HistoryTruncatedType {
			return true
		}
	}
	return false
}

// Inherits reports whether the thread inherits a history with the commit. The documents of
// inherited items can be derived once it is folded, and not before.
func Inherits(c *events.Commit) bool {
	for i := range c.Events {
		if c.Events[i].Type == events.HistoryInheritedType {
			return true
		}
	}
	return false
}

func (c *change) needContext(id string, tell func(Need)) {
	if c.active.Has(Contexts) && id != "" && validID(id) {
		tell(Need{Place: Place{Kind: Contexts, Thread: c.thread, ID: id}})
	}
}

// needsOfTruncate reports the pages from the truncated index on, a few ahead of those that are
// loaded, and the contexts of their entries.
func (c *change) needsOfTruncate(d events.HistoryTruncated, look func(Place) any, tell func(Need)) {
	const ahead = 16
	n := max(d.FromIndex, 0) / PageSize
	for ; ; n++ {
		page, ok := look(Place{Kind: Index, Thread: c.thread, ID: PageID(n)}).(*Page)
		if !ok {
			break
		}
		for _, id := range page.Contexts {
			c.needContext(id, tell)
		}
	}
	for i := range int64(ahead) {
		tell(Need{Place: Place{Kind: Index, Thread: c.thread, ID: PageID(n + i)}})
	}
}
