package query

import (
	"cmp"
	"slices"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

// listExecutions returns a page of a thread's executions: as many as were asked for, and as one
// answer can hold. A cursor is a place among all executions of the thread, so that a page does
// not move when one of them changes its state.
func (a *asking) listExecutions(d events.ListExecutions) (*events.ExecutionList, error) {
	if err := a.about(d.ThreadID, d.At, d.Fresh); err != nil {
		return nil, err
	}
	query := mark("execution.list", a.name(), d.ContextID, string(d.Status), cmp.Or(string(d.Order), "asc"))
	got, err := a.source.find(a.ctx, documents.Executions, a.name()+".*")
	if err != nil {
		return nil, err
	}
	if len(got) == 0 {
		if _, err := a.ofThread(d.ThreadID); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(got, func(a, b found) int {
		x, y := a.doc.(*events.Execution), b.doc.(*events.Execution)
		return cmp.Or(cmp.Compare(x.CreatedAt, y.CreatedAt), cmp.Compare(x.ID, y.ID))
	})
	at, step := 0, 1
	if d.Order == "desc" {
		at, step = len(got)-1, -1
	}
	if d.Cursor != "" {
		begin, err := decodeCursor(d.Cursor, query)
		if err != nil {
			return nil, err
		}
		at = int(begin)
	}
	list := &events.ExecutionList{Executions: []events.Execution{}}
	most, room := limit(d.Limit, len(got)), a.answerBytes()
	for ; at >= 0 && at < len(got); at += step {
		x := got[at].doc.(*events.Execution)
		if d.ContextID != "" && x.ContextID != d.ContextID || d.Status != "" && x.Status != d.Status {
			continue
		}
		room -= got[at].bytes + 1
		if n := len(list.Executions); n > 0 && (room < 0 || n == most) {
			list.NextCursor = encodeCursor(query, uint64(at))
			return list, nil
		}
		list.Executions = append(list.Executions, *x)
	}
	return list, nil
}
