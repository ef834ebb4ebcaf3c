package documents

import "github.com/skein-threads/skein/events"

// hideItem folds message.deleted for all read models concerned.
func (c *change) hideItem(d events.MessageDeleted) {
	page := c.page(d.Index / PageSize)
	if page == nil {
		return
	}
	if e := page.Find(d.Index); e != nil && e.ID == c.event.Subject {
		c.hide(page, e)
	}
}

// truncate folds history.truncated: it hides every item from an index on.
func (c *change) truncate(d events.HistoryTruncated) {
	from := max(d.FromIndex, 0)
	for n := from / PageSize; ; n++ {
		page := c.page(n)
		if page == nil {
			return
		}
		for i := range page.Entries {
			if e := &page.Entries[i]; e.Index >= from {
				c.hide(page, e)
			}
		}
	}
}

// page returns a page of the index in its current state, whatever it shows.
func (c *change) page(n int64) *Page {
	page, _ := c.store.Slot(Place{Kind: Index, Thread: c.thread, ID: PageID(n)}).Doc.(*Page)
	return page
}

// hide hides one item that was shown just before the event: it removes the document, decreases
// the counters, and records the version in the index.
func (c *change) hide(page *Page, e *Entry) {
	version := c.event.Version
	if !e.ShownAt(version) {
		return
	}
	context := page.ContextOf(e)
	if s := c.openFor(Items, e.ID); s != nil {
		s.Doc = nil
		c.mark(s)
	}
	if s := c.openFor(Threads, ""); s != nil {
		if doc, ok := s.Doc.(*events.Thread); ok {
			doc.Items--
			*doc.ItemTypes.Of(e.Type)--
			if events.ShowsAlone(e.Type, e.Part) {
				countMessage(doc, e.Index, events.MessageClass(e.Depth, context != doc.ContextID, e.Silent), -1)
			}
			c.mark(s)
		} else {
			c.missed = append(c.missed, s)
		}
	}
	if s := c.openFor(Contexts, context); s != nil {
		if doc, ok := s.Doc.(*events.Context); ok {
			*doc.ItemTypes.Of(e.Type)--
			c.slot = s
			if c.later() {
				doc.UpdatedAt = c.time()
			}
			c.mark(s)
		} else {
			c.missed = append(c.missed, s)
		}
	}
	if s := c.openFor(Index, PageID(e.Index/PageSize)); s != nil {
		e.Hidden = version
		c.mark(s)
	}
}

// silence folds message.edited into the counts of messages: an item that became silent, or is no
// longer, moves from one count to another. The event says what it was before, because the page
// may be ahead of the thread's document.
func (c *change) silence(d events.MessageEdited) {
	if d.Silent == nil || d.WasSilent == nil || *d.Silent == *d.WasSilent || d.Index < 0 {
		return
	}
	page := c.page(d.Index / PageSize)
	if page == nil {
		return
	}
	e := page.Find(d.Index)
	if e == nil || e.ID != c.event.Subject || !events.ShowsAlone(e.Type, e.Part) || !e.ShownAt(c.event.Version) {
		return
	}
	s := c.openFor(Threads, "")
	if s == nil {
		return
	}
	doc, ok := s.Doc.(*events.Thread)
	if !ok {
		c.missed = append(c.missed, s)
		return
	}
	foreign := page.ContextOf(e) != doc.ContextID
	countMessage(doc, e.Index, events.MessageClass(e.Depth, foreign, *d.WasSilent), -1)
	countMessage(doc, e.Index, events.MessageClass(e.Depth, foreign, *d.Silent), 1)
	c.mark(s)
}

// openFor opens a document as open does. It returns nil if its read model is not being folded,
// or the id is not valid.
func (c *change) openFor(k Kind, id string) *Slot {
	if !c.active.Has(k) || id != "" && !validID(id) || id == "" && k != Threads {
		return nil
	}
	return c.open(Place{Kind: k, Thread: c.thread, ID: id})
}
