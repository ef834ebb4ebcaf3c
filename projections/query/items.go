package query

import (
	"cmp"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

// itemsUsual is the default number of items on a page.
const itemsUsual = 100

// listItems reads pages of the index, from the requested end, and the items that match. The work
// does not grow with the thread.
func listItems(a *asking, d events.ListItems) (*events.ItemList, error) {
	if err := a.about(d.ThreadID, d.At, d.Fresh); err != nil {
		return nil, err
	}
	thread, err := a.threadOfIndex(d.ThreadID)
	if err != nil {
		return nil, err
	}
	w := walk{asking: a, version: thread.Version, desc: d.Order == "desc", next: 0, end: thread.NextItem}
	w.match = func(p *documents.Page, e *documents.Entry) bool {
		return (d.Type == "" || e.Type == d.Type) && (d.ContextID == "" || p.ContextOf(e) == d.ContextID)
	}
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
	cut, err := readItems(a, list, picked)
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
	return c.Total()
}

// readItems adds the items to the list. It returns the index of the first item that does not fit
// into the answer, else -1. It leaves out items that were hidden meanwhile.
func readItems(a *asking, list *events.ItemList, picked []pick) (cut int64, err error) {
	const atOnce = 128
	room := a.answerBytes()
	for len(picked) > 0 {
		part := picked[:min(len(picked), atOnce)]
		picked = picked[len(part):]
		places := make([]documents.Place, len(part))
		for i, p := range part {
			places[i] = a.place(documents.Items, p.id)
		}
		got, err := a.source.get(a.ctx, places...)
		if err != nil {
			return -1, err
		}
		for i, f := range got {
			if f.doc == nil {
				if err := hiddenSince(a, part[i]); err != nil {
					return -1, err
				}
				continue
			}
			if room -= f.bytes + 1; room < 0 && len(list.Items) > 0 {
				return part[i].index, nil
			}
			item, err := a.answerable(f.doc.(*events.Item))
			if err != nil {
				return -1, err
			}
			list.Items = append(list.Items, *item)
		}
	}
	return -1, nil
}

// hiddenSince checks that an item which the index lists, and which has no document, was hidden
// meanwhile. Otherwise its document is missing, and the list must not be returned without it.
func hiddenSince(a *asking, p pick) error {
	if a.past {
		return nil
	}
	for awaited := false; ; awaited = true {
		got, err := a.source.get(a.ctx, a.place(documents.Index, documents.PageID(p.index/documents.PageSize)))
		if err != nil {
			return err
		}
		page, there := got[0].doc.(*documents.Page)
		if !there { // the thread was deleted
			return nil
		}
		if e := page.Find(p.index); e == nil || e.ID != p.id || !e.ShownAt(maxVersion) {
			return nil
		}
		if awaited {
			return a.behind("item %s of thread %s is in the index, and cannot be shown yet; try again, and if it stays so, run skein replay", p.id, a.thread)
		}
		last, err := a.log.Newest(a.ctx, a.tenant, a.thread)
		if err != nil || last == nil {
			return err
		}
		seq := int64(last.Seq)
		if err := a.awaitSeq(&seq, false); err != nil {
			return err
		}
	}
}

// walk reads the index of a thread.
type walk struct {
	*asking
	version int64 // of the thread, as the answer shows it
	desc    bool
	next    int64 // the first index that may match
	end     int64 // the index after the last
	match   func(*documents.Page, *documents.Entry) bool

	skip  int64            // how many matches to skip first
	empty func(int64) bool // whether a block has no matches; nil: unknown
	pages map[int64]*documents.Page
}

// pick is a matching item.
type pick struct {
	index int64
	id    string
	calls []int64 // the places of its calls
}

// pick returns the first matching items, up to most. usual is how many are likely to be examined;
// it reads more at once if the filter matches few.
func (w *walk) pick(most, usual int) ([]pick, error) {
	var picked []pick
	const pagesMost = 128
	pages := int(min((w.skip+int64(usual))/documents.PageSize+1, pagesMost))
	for at := w.next; len(picked) < most && at >= 0 && at < w.end; pages = min(2*pages, pagesMost) {
		if w.empty != nil && w.empty(at/documents.BlockSize) {
			at = w.edge(at / documents.BlockSize)
			continue
		}
		first := at / documents.PageSize
		last := first + int64(pages) - 1
		if w.desc {
			first, last = max(first-int64(pages)+1, 0), first
		}
		last = min(last, (w.end-1)/documents.PageSize)
		got, err := w.read(first, last)
		if err != nil {
			return nil, err
		}
		for i := range got {
			if w.desc {
				i = len(got) - 1 - i
			}
			if got[i] != nil {
				picked = w.pickFrom(picked, got[i], at, most)
			}
		}
		at = (last + 1) * documents.PageSize
		if w.desc {
			at = first*documents.PageSize - 1
		}
	}
	return picked, nil
}

// edge returns the first index beyond a block.
func (w *walk) edge(block int64) int64 {
	if w.desc {
		return block*documents.BlockSize - 1
	}
	return (block + 1) * documents.BlockSize
}

// read reads pages of the index; a missing page is nil.
func (w *walk) read(first, last int64) ([]*documents.Page, error) {
	places := make([]documents.Place, 0, last-first+1)
	for n := first; n <= last; n++ {
		places = append(places, w.place(documents.Index, documents.PageID(n)))
	}
	got, err := w.source.get(w.ctx, places...)
	if err != nil {
		return nil, err
	}
	pages := make([]*documents.Page, len(got))
	for i := range got {
		pages[i], _ = got[i].doc.(*documents.Page)
	}
	return pages, nil
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
		case !e.ShownAt(w.version+1) || !w.match(page, e):
		case w.skip > 0:
			w.skip--
		default:
			picked = append(picked, pick{e.Index, e.ID, e.Calls})
			if w.pages != nil {
				w.pages[page.Page] = page
			}
		}
	}
	return picked
}
