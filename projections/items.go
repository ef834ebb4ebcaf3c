package projections

import (
	"cmp"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

// itemsUsual is how many items a page has if the query does not say.
const itemsUsual = 100

// listItems reads the pages of the index from the end that was asked for, and
// the items that match: as much work for a long thread as for a short one.
func (a *asking) listItems(d events.ListItems) (*events.ItemList, error) {
	if err := a.about(d.ThreadID, d.At, d.Fresh); err != nil {
		return nil, err
	}
	thread, err := a.ofThread(d.ThreadID)
	if err != nil {
		return nil, err
	}
	if _, ok := a.source.(*live); ok {
		// What the thread's document counts must be in the other buckets too.
		if seq := events.Int(thread.Seq); a.cfg.Progress.Seq() < thread.Seq {
			if err := a.awaitSeq(&seq, false); err != nil {
				return nil, err
			}
		}
	}
	w := walk{asking: a, d: d, version: thread.Version, desc: d.Order == "desc", next: 0, end: thread.NextItem}
	counts := thread.ItemTypes
	if d.ContextID != "" {
		got, err := a.source.get(a.ctx, a.place(documents.Contexts, d.ContextID))
		if err != nil {
			return nil, err
		}
		if got[0].doc == nil {
			return nil, events.Missing("context", d.ContextID)
		}
		counts = got[0].doc.(*events.Context).ItemTypes
	}
	list := &events.ItemList{Items: []events.Item{}, Total: total(counts, d.Type)}
	query := mark("item.list", a.name(), d.ContextID, string(d.Type), cmp.Or(string(d.Order), "asc"))
	if w.desc {
		w.next = w.end - 1
	}
	if d.Cursor != "" {
		at, err := decodeCursor(d.Cursor, query)
		if err != nil {
			return nil, err
		}
		w.next = int64(at)
	}
	most := limit(d.Limit, itemsUsual)
	picked, err := w.pick(most+1, most)
	if err != nil {
		return nil, err
	}
	more := int64(-1)
	if len(picked) > most {
		more, picked = picked[most].index, picked[:most]
	}
	cut, err := w.read(list, picked)
	if err != nil {
		return nil, err
	}
	if cut >= 0 {
		more = cut
	}
	if more >= 0 {
		list.NextCursor = encodeCursor(query, uint64(more))
	}
	return list, nil
}

func total(c events.ItemCounts, t events.ItemType) int64 {
	if t != "" {
		return *c.Of(t)
	}
	return c.Message + c.ActionExecute + c.ActionResult + c.ItemReference
}

// walk goes through the index of a thread.
type walk struct {
	*asking
	d       events.ListItems
	version int64 // of the thread, as the answer shows it
	desc    bool
	next    int64 // the first index that may match
	end     int64 // the index after the last
}

// pick is an item that matches.
type pick struct {
	index int64
	id    string
}

// pick gives the first items that match, up to most. usual tells how many pages
// to read at first; a filter that little matches makes it read more at once.
func (w *walk) pick(most, usual int) ([]pick, error) {
	var picked []pick
	for at, pages := w.next, usual/documents.PageSize+1; len(picked) < most && at >= 0 && at < w.end; pages = min(2*pages, 128) {
		first := at / documents.PageSize
		last := first + int64(pages) - 1
		if w.desc {
			first, last = max(first-int64(pages)+1, 0), first
		}
		last = min(last, (w.end-1)/documents.PageSize)
		places := make([]documents.Place, 0, pages)
		for n := first; n <= last; n++ {
			places = append(places, w.place(documents.Index, documents.PageID(n)))
		}
		got, err := w.source.get(w.ctx, places...)
		if err != nil {
			return nil, err
		}
		for i := range got {
			if w.desc {
				i = len(got) - 1 - i
			}
			if page, ok := got[i].doc.(*documents.Page); ok {
				picked = w.pickFrom(picked, page, at, most)
			}
		}
		at = (last + 1) * documents.PageSize
		if w.desc {
			at = first*documents.PageSize - 1
		}
	}
	return picked, nil
}

func (w *walk) pickFrom(picked []pick, page *documents.Page, from int64, most int) []pick {
	for i := range page.Entries {
		if w.desc {
			i = len(page.Entries) - 1 - i
		}
		e := &page.Entries[i]
		switch {
		case len(picked) == most:
			return picked
		case w.desc && e.Index > from, !w.desc && e.Index < from:
		case !e.ShownAt(w.version + 1), w.d.Type != "" && e.Type != w.d.Type:
		case w.d.ContextID != "" && page.ContextOf(e) != w.d.ContextID:
		default:
			picked = append(picked, pick{e.Index, e.ID})
		}
	}
	return picked
}

// read adds the items to the list. If they are too many bytes for one answer it
// gives the index of the first that has no place, else -1. An item that is not
// there was hidden since.
func (w *walk) read(list *events.ItemList, picked []pick) (cut int64, err error) {
	const atOnce = 128
	room := w.answerBytes()
	for len(picked) > 0 {
		part := picked[:min(len(picked), atOnce)]
		picked = picked[len(part):]
		places := make([]documents.Place, len(part))
		for i, p := range part {
			places[i] = w.place(documents.Items, p.id)
		}
		got, err := w.source.get(w.ctx, places...)
		if err != nil {
			return -1, err
		}
		for i, f := range got {
			if f.doc == nil {
				continue
			}
			if room -= f.bytes + 1; room < 0 && len(list.Items) > 0 {
				return part[i].index, nil
			}
			list.Items = append(list.Items, *f.doc.(*events.Item))
		}
	}
	return -1, nil
}
