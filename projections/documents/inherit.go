package documents

import (
	"context"
	"strconv"

	"github.com/skein-threads/skein/events"
)

// An inherited item has no document, and no entry in the index, until an event changes it: its
// document is derived from the page of the history when it is needed. The document inheritedID
// of the index says which pages those are.

// inheritedID is the id of the document of the index that records what a thread has inherited.
const inheritedID = "inherited"

// Pages reads pages of histories. Package files implements it.
type Pages interface {
	// Page returns a page, which the caller must not change.
	Page(ctx context.Context, tenant, digest string) (*events.HistoryPage, error)
}

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

// Derive returns the document of a place as the thread has inherited it, and the sequence of
// the commit with which it did; nil if it has not. The place has no document of its own in the
// store that get reads: get returns nil for one that is not there.
func Derive(ctx context.Context, p Place, get func(context.Context, Place) (any, error), pages Pages) (doc any, seq uint64, err error) {
	from, end, ok := p.covers()
	if !ok {
		return nil, 0, nil
	}
	doc, err = get(ctx, Place{Kind: Index, Thread: p.Thread, ID: inheritedID})
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
			if page, err = pages.Page(ctx, tenant, part.Digest); err != nil {
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
