package query

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"
	"slices"
	"strconv"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

func (a *asking) listContexts(d events.ListContexts) (*events.ContextList, error) {
	if err := a.about(d.ThreadID, d.At, d.Fresh); err != nil {
		return nil, err
	}
	list, err := all[events.Context](a, documents.Contexts, a.name()+".*")
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		if _, err := a.ofThread(d.ThreadID); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(list, func(a, b events.Context) int {
		return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return &events.ContextList{Contexts: list}, nil
}

func (a *asking) listSteps(d events.ListSteps) (*events.StepList, error) {
	if err := a.about(d.ThreadID, d.At, d.Fresh); err != nil {
		return nil, err
	}
	list, err := under[events.Step](a, documents.Steps, d.ThreadID, d.ExecutionID, nil)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		if _, err := one[events.Execution](a, "execution", documents.Executions, d.ThreadID, d.ExecutionID); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(list, func(a, b events.Step) int {
		return cmp.Or(cmp.Compare(a.Iteration, b.Iteration), cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return &events.StepList{Steps: list}, nil
}

func (a *asking) listParts(d events.ListParts) (*events.PartList, error) {
	if err := a.about(d.ThreadID, d.At, d.Fresh); err != nil {
		return nil, err
	}
	list, err := under[events.Part](a, documents.Parts, d.ThreadID, d.StepID, d.Idx)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		steps, err := a.source.find(a.ctx, documents.Steps, a.orAny(d.ThreadID)+".*."+d.StepID)
		if err != nil {
			return nil, err
		}
		if len(steps) == 0 {
			return nil, a.missing("step", d.ThreadID, d.StepID)
		}
	}
	slices.SortFunc(list, func(a, b events.Part) int { return cmp.Compare(a.Idx, b.Idx) })
	return &events.PartList{Parts: list}, nil
}

// orAny returns the key of the thread that was named, or a pattern of any of the tenant.
func (a *asking) orAny(ref string) string {
	if ref == "" {
		return a.tenant + ".*"
	}
	return a.name()
}

// under returns the documents under one that has an id, in the thread that was
// named, or in the one that has it: of several the one that changed last.
// With a place, only the document at that place.
func under[T any](a *asking, k documents.Kind, ref, id string, place *int64) ([]T, error) {
	which := "*"
	if place != nil {
		which = strconv.FormatInt(*place, 10)
	}
	got, err := a.source.find(a.ctx, k, a.orAny(ref)+"."+id+"."+which)
	if err != nil {
		return nil, err
	}
	if len(got) > 0 && ref == "" {
		thread := newest(got).place.Thread
		got = slices.DeleteFunc(got, func(f found) bool { return f.place.Thread != thread })
	}
	return values[T](a, got)
}

// all returns the documents that match a pattern.
func all[T any](a *asking, k documents.Kind, pattern string) ([]T, error) {
	got, err := a.source.find(a.ctx, k, pattern)
	if err != nil {
		return nil, err
	}
	return values[T](a, got)
}

// values returns the documents themselves, if one answer can hold them.
func values[T any](a *asking, got []found) ([]T, error) {
	list := make([]T, len(got))
	bytes := 0
	for i, f := range got {
		list[i] = *f.doc.(*T)
		bytes += f.bytes
	}
	if most := a.answerBytes(); bytes > most {
		return nil, a.tooMuch(bytes, most)
	}
	return list, nil
}

// tooMuch returns the error that documents are more than one answer holds.
func (a *asking) tooMuch(bytes, most int) error {
	e := events.TooLarge("the answer", int64(bytes), int64(most))
	e.Message += "; ask for one at a time (parts: idx)"
	return e
}

// answerBytes returns how large the documents of one answer may be together.
func (q *Queries) answerBytes() int { return int(q.log.Conn().MaxPayload()) - 64<<10 }

// limit returns how many a page may have.
func limit(asked *int64, usual int) int {
	if asked == nil {
		return usual
	}
	return int(*asked)
}

// A cursor is opaque to callers: a place in a list, bound to the query that returned
// it, so that it cannot be used with another.
const (
	cursorForm  = 1
	cursorBytes = 1 + 8 + 8
)

// mark identifies a list by its query, with all fields that select it.
func mark(parts ...string) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		_, _ = h.Write([]byte(p))
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}

func encodeCursor(query, place uint64) string {
	b := make([]byte, 0, cursorBytes)
	b = append(b, cursorForm)
	b = binary.BigEndian.AppendUint64(b, query)
	b = binary.BigEndian.AppendUint64(b, place)
	return base64.RawURLEncoding.EncodeToString(b)
}

// decodeCursor returns the place, or an error for a cursor of another query.
func decodeCursor(cursor string, query uint64) (uint64, error) {
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(b) != cursorBytes || b[0] != cursorForm {
		return 0, events.Invalid("/cursor", "this is not a cursor; use nextCursor as it came")
	}
	if binary.BigEndian.Uint64(b[1:]) != query {
		return 0, events.Invalid("/cursor", "the cursor is of a query with other fields")
	}
	return binary.BigEndian.Uint64(b[9:]), nil
}
