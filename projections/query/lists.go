package query

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

func listContexts(a *asking, d events.ListContexts) (*events.ContextList, error) {
	if err := a.about(d.ThreadID, d.At, d.Fresh); err != nil {
		return nil, err
	}
	p := paging{d.Limit, d.Cursor, mark("context.list by version", a.name())}
	w := listWalk{list: documents.ContextList, kind: documents.Contexts}
	list, next, err := listedPage(a, d.ThreadID, p, w, func(*events.Context) bool { return true })
	return &events.ContextList{Contexts: list, NextCursor: next}, err
}

func listSteps(a *asking, d events.ListSteps) (*events.StepList, error) {
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

func listParts(a *asking, d events.ListParts) (*events.PartList, error) {
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

// orAny returns the key of the named thread or, if none is named, a pattern for all threads of the
// tenant.
func (a *asking) orAny(ref string) string {
	if ref == "" {
		return a.tenant + ".*"
	}
	return a.name()
}

// under returns the documents under the entity with an id, in the named thread or, if none is
// named, in any thread of the tenant. Of several threads it takes the one that changed last. With
// a place, it returns only the document at that place.
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

// ofThreadAll returns all documents of a kind that the thread has. An empty list is no error if
// the thread exists.
func (a *asking) ofThreadAll(ref string, k documents.Kind, pattern string) ([]found, error) {
	got, err := a.source.find(a.ctx, k, a.name()+pattern)
	if err == nil && len(got) == 0 {
		_, err = a.ofThread(ref)
	}
	return got, err
}

// values returns the documents' contents, and an error if they do not fit into one answer.
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

// tooMuch returns the error that documents do not fit into one answer.
func (a *asking) tooMuch(bytes, most int) error {
	e := events.TooLarge("the answer", int64(bytes), int64(most))
	e.Message += "; ask for one at a time (parts: idx)"
	return e
}

// answerBytes returns the maximum total size of the documents in one answer.
func (q *Queries) answerBytes() int { return int(q.log.Conn().MaxPayload()) - 64<<10 }

// limit returns the maximum number of elements on a page.
func limit(asked *int64, usual int) int {
	if asked == nil {
		return usual
	}
	return int(*asked)
}

// paging holds the fields of a query that select a page.
type paging struct {
	limit  *int64
	cursor string
	list   uint64 // the mark of the list, with all fields that select it
}

// pageOf returns a page of documents in the order of their keys, bounded by the limit and by the
// size of one answer. The cursor is the key of the last document. So a document that exists all
// the time is shown exactly once, even if others are added or removed between pages.
func pageOf[T any](a *asking, p paging, got []found, key func(*T) string) (list []T, next string, err error) {
	after := ""
	if p.cursor != "" {
		if after, err = decodeKeyCursor(p.cursor, p.list); err != nil {
			return nil, "", err
		}
	}
	type keyed struct {
		key string
		found
	}
	rest := make([]keyed, 0, len(got))
	for _, f := range got {
		if k := key(f.doc.(*T)); k > after {
			rest = append(rest, keyed{k, f})
		}
	}
	slices.SortFunc(rest, func(a, b keyed) int { return strings.Compare(a.key, b.key) })
	list = []T{}
	most, room := limit(p.limit, len(rest)), a.answerBytes()
	for i, f := range rest {
		room -= f.bytes + 1
		if i > 0 && (room < 0 || i == most) {
			return list, encodeKeyCursor(p.list, rest[i-1].key), nil
		}
		list = append(list, *f.doc.(*T))
	}
	return list, "", nil
}

// ordinal encodes a non-negative number so that keys that begin with it sort by number.
func ordinal(n int64, rest ...string) string {
	return fmt.Sprintf("%020d ", n) + strings.Join(rest, " ")
}

// A cursor of pageOf is the key of the last document, bound to the query.
const keyCursorForm = 2

func encodeKeyCursor(query uint64, last string) string {
	b := binary.BigEndian.AppendUint64([]byte{keyCursorForm}, query)
	return base64.RawURLEncoding.EncodeToString(append(b, last...))
}

func decodeKeyCursor(cursor string, query uint64) (string, error) {
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(b) < 10 || b[0] != keyCursorForm {
		return "", events.Invalid("/cursor", "this is not a cursor; use nextCursor as it came")
	}
	if binary.BigEndian.Uint64(b[1:]) != query {
		return "", events.Invalid("/cursor", "the cursor is of a query with other fields")
	}
	return string(b[9:]), nil
}

// A cursor is opaque to callers. It holds a place in a list, and a digest of the query that
// returned it, so that it cannot be used with another query.
const (
	cursorForm  = 1
	cursorBytes = 1 + 8 + 8
)

// mark returns a digest of a query with all fields that select its list.
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

// listRelationships returns a thread's relationships, oldest first. An empty list is no error.
func listRelationships(a *asking, d events.ListRelationships) (*events.RelationshipList, error) {
	if err := a.about(d.ThreadID, d.At, d.Fresh); err != nil {
		return nil, err
	}
	p := paging{d.Limit, d.Cursor, mark("relationship.list by version", a.name(), string(d.Type), string(d.Role))}
	w := listWalk{list: documents.RelationshipList, kind: documents.Relationships}
	w.match = func(e *documents.ListEntry) bool {
		return (d.Type == "" || e.Of == string(d.Type)) && (d.Role == "" || e.As == string(d.Role))
	}
	list, next, err := listedPage(a, d.ThreadID, p, w, func(*events.Relationship) bool { return true })
	return &events.RelationshipList{Relationships: list, NextCursor: next}, err
}
