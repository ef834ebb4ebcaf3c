package query

import (
	"github.com/skein-threads/skein/projections/documents"
)

// walk reads the index of a thread.
type walk struct {
	*asking
	version int64 // of the thread, as the answer shows it
	desc    bool
	next    int64 // the first index that may match
	end     int64 // the index after the last
	match   func(*documents.Page, *documents.Entry) bool

	skip  int64            // how many that match are passed over first
	empty func(int64) bool // whether nothing matches in a block; nil: not known
	pages map[int64]*documents.Page
}

// pick is an item that matches.
type pick struct {
	index int64
	id    string
	calls []int64 // the places of the calls that are part of it
}

// pick returns the first items that match, up to most. usual is how many are likely to
// be looked at; it reads more at once under a filter that few match.
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

// read reads pages of the index; one that is not there is nil.
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
