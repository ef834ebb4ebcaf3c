package query

import (
	"cmp"
	"slices"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

// listExecutions returns a page of a thread's executions, bounded by the limit and by the size of
// one answer. The cursor is the place of an execution in the thread, so pages do not move when an
// execution changes.
func listExecutions(a *asking, d events.ListExecutions) (*events.ExecutionList, error) {
	if err := a.about(d.ThreadID, d.At, d.Fresh); err != nil {
		return nil, err
	}
	query := mark("execution.list by version", a.name(), d.ContextID, string(d.Status), cmp.Or(string(d.Order), "asc"))
	w := listWalk{list: documents.ExecutionList, kind: documents.Executions, desc: d.Order == "desc", running: d.Status == events.Executing}
	w.match = func(e *documents.ListEntry) bool { return d.ContextID == "" || e.Of == d.ContextID }
	list, next, err := listedPage(a, d.ThreadID, paging{d.Limit, d.Cursor, query}, w, func(x *events.Execution) bool {
		return d.Status == "" || x.Status == d.Status
	})
	return &events.ExecutionList{Executions: list, NextCursor: next}, err
}

// listedPage returns a page of a list of the thread: the documents that show accepts, bounded by
// the limit and by the size of one answer. The cursor is the place of the next document.
func listedPage[T any](a *asking, ref string, p paging, w listWalk, show func(*T) bool) (list []T, next string, err error) {
	thread, err := a.threadOfIndex(ref)
	if err != nil {
		return nil, "", err
	}
	if w.asking, w.end = a, thread.Version; w.desc {
		w.next = w.end
	}
	if p.cursor != "" {
		at, err := decodeCursor(p.cursor, p.list)
		if err != nil {
			return nil, "", err
		}
		w.next = int64(at)
	}
	most, room := limit(p.limit, int(w.end)), a.answerBytes()
	w.usual, list = most+1, []T{}
	err = w.each(func(f found, e *documents.ListEntry) (bool, error) {
		doc := f.doc.(*T)
		if !show(doc) {
			return true, nil
		}
		room -= f.bytes + 1
		if n := len(list); n > 0 && (room < 0 || n == most) {
			next = encodeCursor(p.list, uint64(e.Version))
			return false, nil
		}
		list = append(list, *doc)
		return true, nil
	})
	return list, next, err
}

// listWalk reads documents of a thread through the index, in the order of their creation.
type listWalk struct {
	*asking
	list    documents.List
	kind    documents.Kind
	running bool  // only executions that have not ended
	end     int64 // the thread's version
	desc    bool
	next    int64                           // the first version that is wanted
	match   func(*documents.ListEntry) bool // nil: all
	skip    int                             // how many matches to skip first
	usual   int                             // how many documents are likely to be read
}

// listedAtOnce bounds how many documents one request reads.
const listedAtOnce = 128

// each calls see with the documents, until it returns false.
func (w *listWalk) each(see func(f found, e *documents.ListEntry) (more bool, err error)) error {
	usual := min(max(w.usual, 1), listedAtOnce)
	atOnce := min((w.skip+usual)/16+1, listedAtOnce)
	pages := listPages{listWalk: w, block: w.next / documents.ListBlock}
	for {
		ids, err := pages.take(atOnce)
		if err != nil || len(ids) == 0 {
			return err
		}
		atOnce = min(2*atOnce, listedAtOnce)
		entries, err := w.entries(ids)
		if err != nil {
			return err
		}
		for len(entries) > 0 {
			part := entries[:min(len(entries), usual)]
			entries = entries[len(part):]
			places := make([]documents.Place, len(part))
			for i := range part {
				places[i] = w.place(w.kind, part[i].ID)
			}
			got, err := w.source.get(w.ctx, places...)
			if err != nil {
				return err
			}
			for i, f := range got {
				// The index may be newer than the documents. A relationship that was created again
				// is at its last place only.
				if f.doc == nil || w.kind == documents.Relationships && f.seq != uint64(part[i].Seq) {
					continue
				}
				if more, err := see(f, &part[i]); err != nil || !more {
					return err
				}
			}
		}
	}
}

// entries returns the entries of documents of the index, in the order of the walk.
func (w *listWalk) entries(ids []string) (entries []documents.ListEntry, err error) {
	pages, err := w.indexed(ids)
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		from := len(entries)
		for _, e := range page.List {
			if e.Version <= w.end && (w.desc && e.Version <= w.next || !w.desc && e.Version >= w.next) && (w.match == nil || w.match(&e)) {
				entries = append(entries, e)
			}
		}
		if w.desc {
			slices.Reverse(entries[from:])
		}
	}
	if w.skip > 0 {
		n := min(w.skip, len(entries))
		w.skip, entries = w.skip-n, entries[n:]
	}
	return entries, nil
}

// indexed returns the documents of the thread's index that exist.
func (a *asking) indexed(ids []string) (pages []*documents.Page, err error) {
	places := make([]documents.Place, len(ids))
	for i, id := range ids {
		places[i] = a.place(documents.Index, id)
	}
	got, err := a.source.get(a.ctx, places...)
	if err != nil {
		return nil, err
	}
	for _, f := range got {
		if page, there := f.doc.(*documents.Page); there {
			pages = append(pages, page)
		}
	}
	return pages, nil
}

// listPages iterates over the documents of the index that hold a list, in the order of a walk.
type listPages struct {
	*listWalk
	block int64 // the next one
	ids   []string
	ended bool
}

// take returns the next documents, at most n. It returns none at the end.
func (p *listPages) take(n int) (ids []string, err error) {
	if p.running {
		if p.ended {
			return nil, nil
		}
		p.ended = true
		return []string{documents.RunningID}, nil
	}
	for len(p.ids) < n && p.block >= 0 && p.block <= p.end/documents.ListBlock {
		blocks, err := p.indexed([]string{p.list.Block(p.block)})
		if err != nil {
			return nil, err
		}
		if p.block++; p.desc {
			p.block -= 2
		}
		for _, b := range blocks {
			from := len(p.ids)
			for _, page := range b.Pages {
				if edge := p.next / documents.ListSpan; p.desc && page <= edge || !p.desc && page >= edge {
					p.ids = append(p.ids, p.list.Page(page))
				}
			}
			if p.desc {
				slices.Reverse(p.ids[from:])
			}
		}
	}
	n = min(n, len(p.ids))
	ids, p.ids = p.ids[:n], p.ids[n:]
	return ids, nil
}
