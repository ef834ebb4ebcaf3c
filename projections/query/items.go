package query

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
	cut, err := a.readItems(list, picked)
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

// readItems adds the items to the list. If they are too large for one answer it returns
// the index of the first that does not fit, else -1. An item that is not there was hidden
// since.
func (a *asking) readItems(list *events.ItemList, picked []pick) (cut int64, err error) {
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
