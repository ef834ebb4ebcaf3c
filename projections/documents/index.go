package documents

import (
	"slices"
	"strconv"

	"github.com/skein-threads/skein/events"
)

// PageSize is how many items a page of the index holds.
const PageSize = 16

// Page is a document of the index of items: what a list must know of the items from
// Page*PageSize on to select those that it shows, without reading the items. It is internal;
// clients use item.list.
type Page struct {
	ThreadID string   `json:"threadId"`
	Page     int64    `json:"page"`
	Contexts []string `json:"contexts"` // entries refer to them by index
	Entries  []Entry  `json:"entries"`  // by index

	// History is of the document that records what the thread has inherited; it has no entries.
	History *events.HistoryInherited `json:"history,omitzero"`
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

// index returns the index of a thread's items, with which a list of the last 50 of 100,000
// reads one page and 50 items.
func index() Projection {
	type T = Page
	return Projection{
		Kind: Index, Name: "index", Version: 3, Bucket: "thread_index",
		new:   func() any { return new(T) },
		stamp: func(doc any) *events.Stamp { return &doc.(*T).Stamp },
		reactions: []reaction{
			makes(events.HistoryInheritedType, func(*change, events.HistoryInherited) (string, bool) { return inheritedID, true },
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
		},
	}
}
