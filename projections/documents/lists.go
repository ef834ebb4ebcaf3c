package documents

import (
	"slices"

	"github.com/skein-threads/skein/events"
)

// List names the documents of a kind that a thread has, in the order in which they were created.
// The index has them by the thread's version: a list of 20 of 100,000 reads a few documents of the
// index, and 20 of the kind.
type List string

// The lists.
const (
	ExecutionList    List = "runs"
	ContextList      List = "contexts"
	RelationshipList List = "relationships"
	LogList          List = "logs"
)

// How much of a thread the documents of a list cover.
const (
	ListSpan  = 64              // versions of the thread: one page
	ListBlock = ListSpan * 1024 // versions of the thread: one block, which says which pages there are
)

// ListEntry is a document in a list.
type ListEntry struct {
	Version int64  `json:"version"` // the thread's, with the document's creation
	Seq     int64  `json:"seq"`     // of that commit, in the log
	ID      string `json:"id"`
	Of      string `json:"of,omitzero"` // an execution's context, a log line's run, a relationship's type
	As      string `json:"as,omitzero"` // a log line's level, a relationship's role
}

// Page returns the id of the document that lists what was created from version n*ListSpan on.
func (l List) Page(n int64) string { return string(l) + PageID(n) }

// Block returns the id of the document that says which pages there are from version n*ListBlock on.
func (l List) Block(n int64) string { return string(l) + "-" + PageID(n) }

// RunningID is the id of the document of the index that lists the executions that have not ended.
const RunningID = "running"

// listed declares the event that creates documents of a list. entry returns false for one that does
// not belong to it.
func listed[E any](t events.Type, l List, entry func(c *change, d E) (ListEntry, bool)) []reaction {
	id := func(doc func(version int64) string) func(c *change, d E) (string, bool) {
		return func(c *change, d E) (string, bool) {
			_, ok := entry(c, d)
			return doc(c.event.Version), ok
		}
	}
	return []reaction{
		puts(t, id(func(v int64) string { return l.Page(v / ListSpan) }), func(c *change, doc *Page, d E) *Page {
			e, _ := entry(c, d)
			e.Version, e.Seq = c.event.Version, int64(c.commit.Seq)
			doc = c.orPage(doc)
			doc.List = append(slices.DeleteFunc(doc.List, func(was ListEntry) bool { return was.ID == e.ID }), e)
			return doc
		}),
		puts(t, id(func(v int64) string { return l.Block(v / ListBlock) }), func(c *change, doc *Page, _ E) *Page {
			doc = c.orPage(doc)
			n := c.event.Version / ListSpan
			if c.same = slices.Contains(doc.Pages, n); !c.same {
				doc.Pages = append(doc.Pages, n)
			}
			return doc
		}),
	}
}

// orPage returns a document of the index, which is not one of items; a new one for nil.
func (c *change) orPage(doc *Page) *Page {
	if doc != nil {
		return doc
	}
	return &Page{ThreadID: c.commit.Thread, Page: -1, Contexts: []string{}, Entries: []Entry{}}
}

// listReactions returns what keeps the lists.
func listReactions() []reaction {
	run := func(_ *change, d events.ExecutionCreated) (ListEntry, bool) {
		return ListEntry{ID: d.ID, Of: d.ContextID}, true
	}
	running := func(*change, events.ExecutionCreated) (string, bool) { return RunningID, true }
	return slices.Concat(
		listed(events.ExecutionCreatedType, ExecutionList, run),
		listed(events.ContextCreatedType, ContextList, func(c *change, _ events.ContextCreated) (ListEntry, bool) {
			return ListEntry{ID: c.event.Subject}, true
		}),
		listed(events.RelationshipAddedType, RelationshipList, func(_ *change, d events.RelationshipAdded) (ListEntry, bool) {
			return ListEntry{ID: relationshipID(d.ThreadID, d.Type, d.Role), Of: string(d.Type), As: string(d.Role)}, true
		}),
		listed(events.TraceRecordedType, LogList, func(c *change, d events.TraceRecorded) (ListEntry, bool) {
			line := events.LogOf(&events.TraceEvent{Kind: string(d.Kind), Level: d.Level})
			if line == nil || c.isSpan(d) {
				return ListEntry{}, false
			}
			return ListEntry{ID: c.event.ID, Of: c.run(d), As: string(line.Level)}, true
		}),
		[]reaction{
			puts(events.ExecutionCreatedType, running, func(c *change, doc *Page, d events.ExecutionCreated) *Page {
				doc = c.orPage(doc)
				doc.List = append(doc.List, ListEntry{Version: c.event.Version, Seq: int64(c.commit.Seq), ID: d.ID, Of: d.ContextID})
				return doc
			}),
			on(events.ExecutionStatusChangedType, func(_ *change, d events.ExecutionStatusChanged) (string, bool) {
				return RunningID, d.To != events.Executing
			}, func(c *change, doc *Page, _ events.ExecutionStatusChanged) {
				doc.List = slices.DeleteFunc(doc.List, func(e ListEntry) bool { return e.ID == c.event.Subject })
			}),
		},
	)
}
