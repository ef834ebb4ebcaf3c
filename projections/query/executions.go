package query

import (
	"cmp"
	"math"
	"slices"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

// listExecutions returns a page of a thread's executions: as many as were asked for, and as one
// answer can hold. A cursor is the place of an execution in the thread, so that a page does not
// move when one of them changes its state.
func (a *asking) listExecutions(d events.ListExecutions) (*events.ExecutionList, error) {
	if err := a.about(d.ThreadID, d.At, d.Fresh); err != nil {
		return nil, err
	}
	thread, err := a.threadOfIndex(d.ThreadID)
	if err != nil {
		return nil, err
	}
	query := mark("execution.list by version", a.name(), d.ContextID, string(d.Status), cmp.Or(string(d.Order), "asc"))
	w := runPages{asking: a, end: thread.Version, desc: d.Order == "desc", context: d.ContextID}
	if w.desc {
		w.next = w.end
	}
	if d.Cursor != "" {
		at, err := decodeCursor(d.Cursor, query)
		if err != nil {
			return nil, err
		}
		w.next = int64(at)
	}
	list := &events.ExecutionList{Executions: []events.Execution{}}
	most, room := limit(d.Limit, math.MaxInt32), a.answerBytes()
	w.usual = most + 1
	err = w.each(func(f found, version int64) (bool, error) {
		x := f.doc.(*events.Execution)
		if d.Status != "" && x.Status != d.Status {
			return true, nil
		}
		room -= f.bytes + 1
		if n := len(list.Executions); n > 0 && (room < 0 || n == most) {
			list.NextCursor = encodeCursor(query, uint64(version))
			return false, nil
		}
		list.Executions = append(list.Executions, *x)
		return true, nil
	})
	return list, err
}

// runPages reads the executions of a thread by the index, in the order of their creation.
type runPages struct {
	*asking
	end     int64 // the thread's version
	desc    bool
	next    int64  // the first version that is wanted
	context string // only those of this context; empty: of all
	usual   int    // how many are likely to be looked at
}

// runsAtOnce bounds how many documents one request reads.
const runsAtOnce = 128

// each calls see with the executions, each with the thread's version of its creation, until see
// returns false.
func (w *runPages) each(see func(f found, version int64) (more bool, err error)) error {
	usual := min(max(w.usual, 1), runsAtOnce)
	pages := int64(usual)/16 + 1 // a run has at least that many events, with its items
	for at := w.next / documents.RunsSpan; at >= 0 && at <= w.end/documents.RunsSpan; pages = min(2*pages, runsAtOnce) {
		first, last := at, min(at+pages-1, w.end/documents.RunsSpan)
		at = last + 1
		if w.desc {
			first, last = max(first-pages+1, 0), first
			at = first - 1
		}
		runs, err := w.entries(first, last)
		if err != nil {
			return err
		}
		for len(runs) > 0 {
			part := runs[:min(len(runs), usual)]
			runs = runs[len(part):]
			places := make([]documents.Place, len(part))
			for i, r := range part {
				places[i] = w.place(documents.Executions, r.ID)
			}
			got, err := w.source.get(w.ctx, places...)
			if err != nil {
				return err
			}
			for i, f := range got {
				if f.doc == nil { // the index is ahead
					continue
				}
				if more, err := see(f, part[i].Version); err != nil || !more {
					return err
				}
			}
		}
	}
	return nil
}

// entries returns what documents of the index list, in the order of the walk.
func (w *runPages) entries(first, last int64) (runs []documents.RunEntry, err error) {
	var places []documents.Place
	for n := first; n <= last; n++ {
		places = append(places, w.place(documents.Index, documents.RunsID(n)))
	}
	got, err := w.source.get(w.ctx, places...)
	if err != nil {
		return nil, err
	}
	for _, f := range got {
		page, _ := f.doc.(*documents.Page)
		if page == nil {
			continue
		}
		for _, r := range page.Runs {
			if r.Version <= w.end && (w.context == "" || r.Context == w.context) && (w.desc && r.Version <= w.next || !w.desc && r.Version >= w.next) {
				runs = append(runs, r)
			}
		}
	}
	if w.desc {
		slices.Reverse(runs)
	}
	return runs, nil
}
