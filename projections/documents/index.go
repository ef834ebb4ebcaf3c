package documents

import (
	"slices"
	"strconv"

	"github.com/skein-threads/skein/events"
)

// PageSize is how many items a page of the index holds.
const PageSize = 16

// Page is a document of the index. One of items is what a list must know of the items from
// Page*PageSize on to select those that it shows, without reading the items. It is internal;
// clients use the queries of lists.
type Page struct {
	ThreadID string   `json:"threadId"`
	Page     int64    `json:"page"`
	Contexts []string `json:"contexts"` // entries refer to them by index
	Entries  []Entry  `json:"entries"`  // by index

	// History is of the document that records what the thread has inherited; it has no entries.
	History *events.HistoryInherited `json:"history,omitzero"`

	// The documents of lists have no entries of items, and one of these.
	List    []ListEntry   `json:"list,omitempty"`
	Pages   []int64       `json:"pages,omitempty"` // of a list: those that there are
	Names   []string      `json:"names,omitempty"` // in a directory, in their order
	Effects []EffectEntry `json:"effects,omitempty"`
	events.Stamp
}

// ShownAt reports whether the item is shown just before the thread's event of that version.
func (e *Entry) ShownAt(version int64) bool {
	return e.Made < version && (e.Hidden == 0 || e.Hidden >= version)
}

// Find returns the entry of an item, nil if it is not in the page.
func (p *Page) Find(index int64) *Entry {
	i, ok := slices.BinarySearchFunc(p.Entries, index, func(e Entry, at int64) int { return int(e.Index - at) })
	if !ok {
		return nil
	}
	return &p.Entries[i]
}

// add inserts an entry at its place.
func (p *Page) add(e Entry) {
	i, taken := slices.BinarySearchFunc(p.Entries, e.Index, func(e Entry, at int64) int { return int(e.Index - at) })
	if !taken {
		p.Entries = slices.Insert(p.Entries, i, e)
	}
}

// context returns the index of a context in the page's list.
func (p *Page) context(id string) int {
	if i := slices.Index(p.Contexts, id); i >= 0 {
		return i
	}
	p.Contexts = append(p.Contexts, id)
	return len(p.Contexts) - 1
}

// ContextOf returns the context of an entry.
func (p *Page) ContextOf(e *Entry) string {
	if e.Context < 0 || e.Context >= len(p.Contexts) {
		return ""
	}
	return p.Contexts[e.Context]
}

// PageID returns the id of a page in its thread.
func PageID(page int64) string {
	const digits = "00000000"
	n := strconv.FormatInt(page, 10)
	return digits[min(len(n), len(digits)):] + n
}

// index returns the index of a thread's items, with which a list of the last 50 of 100,000 reads one
// page and 50 documents, and that of its other lists.
func index() Projection {
	type T = Page
	return Projection{
		Kind: Index, Name: "index", Version: 5, Bucket: "thread_index",
		new:   func() any { return new(T) },
		stamp: func(doc any) *events.Stamp { return &doc.(*T).Stamp },
		reactions: slices.Concat(listReactions(), nameReactions(), dueReactions(), []reaction{
			makes(events.HistoryInheritedType, func(c *change, _ events.HistoryInherited) (string, bool) {
				return events.InheritedPrefix(c.commit.Tenant, c.commit.Thread), true
			},
				func(c *change, d events.HistoryInherited) *T {
					return &T{ThreadID: c.commit.Thread, Page: -1, Contexts: []string{d.ContextID}, Entries: []Entry{}, History: &d}
				}),
			puts(events.ItemCreatedType, func(_ *change, d events.ItemCreated) (string, bool) {
				return PageID(d.Index / PageSize), d.Index >= 0
			}, func(c *change, doc *T, d events.ItemCreated) *T {
				if doc == nil {
					doc = &T{ThreadID: c.commit.Thread, Page: d.Index / PageSize}
				}
				doc.add(Entry{
					Index: d.Index, ID: d.ID, Context: doc.context(d.ContextID), Type: d.Type, Made: c.event.Version,
					Silent: d.Silent, Part: d.CallOf != nil, Depth: d.Depth,
				})
				return doc
			}),
			on(events.ItemCreatedType, func(_ *change, d events.ItemCreated) (string, bool) {
				if d.CallOf == nil || *d.CallOf < 0 {
					return "", false
				}
				return PageID(*d.CallOf / PageSize), true
			}, func(_ *change, doc *T, d events.ItemCreated) {
				if e := doc.Find(*d.CallOf); e != nil && e.ID == d.ParentItemID {
					e.Calls = append(e.Calls, d.Index)
				}
			}),
			on(events.MessageEditedType, func(_ *change, d events.MessageEdited) (string, bool) {
				return PageID(d.Index / PageSize), d.Silent != nil && d.Index >= 0
			}, func(c *change, doc *T, d events.MessageEdited) {
				if e := doc.Find(d.Index); e != nil && e.ID == c.event.Subject {
					e.Silent = *d.Silent
				}
			}),
			together(events.MessageDeletedType),
			together(events.HistoryTruncatedType),
			together(events.LifecycleDeletedType),
		}),
	}
}

// An inherited item has no document, and no entry in the index, until an event changes it: its
// document is derived from the page of the history when it is needed. A document of the index says
// which pages those are. Its id is events.InheritedPrefix, so that an item's id leads to it.

// Pages returns a page of a history, which the caller must not change. Package eventlog
// reads them.
type Pages func(tenant, digest string) (*events.HistoryPage, error)

// derivable reports whether the document of a place may be one that can be derived.
func (p Place) derivable() bool {
	_, _, ok := p.covers()
	return ok
}

// covers returns the places of the items that the document is about.
func (p Place) covers() (from, end int64, ok bool) {
	switch p.Kind {
	case Items:
		tenant, thread := CutThreadName(p.Thread)
		at, ok := events.InheritedPlace(tenant, thread, p.ID)
		return at, at + 1, ok
	case Index:
		page, err := strconv.ParseInt(p.ID, 10, 32)
		return page * PageSize, (page + 1) * PageSize, err == nil && page >= 0
	}
	return 0, 0, false
}

// Derived returns the places of the index from which the document is derived, if it may be one
// that is: what the thread has inherited, and, for an item, its page.
func (p Place) Derived() []Place {
	from, _, ok := p.covers()
	if !ok {
		return nil
	}
	places := []Place{p.inherited()}
	if p.Kind == Items {
		places = append(places, Place{Kind: Index, Thread: p.Thread, ID: PageID(from / PageSize)})
	}
	return places
}

// inherited returns the place of the document that records what the thread has inherited.
func (p Place) inherited() Place {
	return Place{Kind: Index, Thread: p.Thread, ID: events.InheritedPrefix(CutThreadName(p.Thread))}
}

// Derive returns the document of a place as the thread has inherited it, and the sequence of
// the commit with which it did; nil if it has not. The place has no document of its own in the
// store that get reads: get returns nil for one that is not there.
func Derive(p Place, get func(Place) (any, error), pages Pages) (doc any, seq uint64, err error) {
	from, end, ok := p.covers()
	if !ok {
		return nil, 0, nil
	}
	doc, err = get(p.inherited())
	record, _ := doc.(*Page)
	if err != nil || record == nil || record.History == nil || from >= record.History.NextIndex {
		return nil, 0, err
	}
	if pages == nil {
		return nil, 0, events.Errorf(events.Unavailable, "this process reads no pages of histories")
	}
	tenant, _ := CutThreadName(p.Thread)
	var items []*events.InheritedItem
	var page *events.HistoryPage
	digest := ""
	for at := from; at < end; at++ {
		part := record.History.Part(at)
		if part == nil {
			break
		}
		if part.Digest != digest {
			if page, err = pages(tenant, part.Digest); err != nil {
				return nil, 0, err
			}
			digest = part.Digest
		}
		if item := page.Find(at); item != nil {
			items = append(items, item)
		}
	}
	if p.Kind == Index {
		return record.derivePage(tenant, from/PageSize, items), uint64(record.Seq), nil
	}
	if len(items) == 0 {
		return nil, 0, nil
	}
	item := items[0].Created(tenant, record.ThreadID, record.History.ContextID).Item(record.ThreadID, 0)
	item.Stamp = record.Stamp
	return &item, uint64(record.Seq), nil
}

// derivePage returns the page of the index of inherited items.
func (p *Page) derivePage(tenant string, page int64, items []*events.InheritedItem) *Page {
	out := &Page{ThreadID: p.ThreadID, Page: page, Contexts: p.Contexts[:1:1], Entries: make([]Entry, len(items)), Stamp: p.Stamp}
	for n, i := range items {
		e := Entry{
			Index: i.Index, ID: events.InheritedItemID(tenant, p.ThreadID, i.Index), Type: i.Type, Made: p.Version,
			Silent: i.Silent, Part: i.CallOf != nil, Depth: i.Depth,
		}
		for _, call := range i.Calls {
			if call < p.History.NextIndex {
				e.Calls = append(e.Calls, call)
			}
		}
		out.Entries[n] = e
	}
	return out
}
