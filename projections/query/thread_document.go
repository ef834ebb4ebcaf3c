package query

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

// documentTries bounds how often a document is read again until it is as new as the queue.
const documentTries = 8

// getThreadDocument returns a thread as one document, with the messages of the version that it
// shows. If an item was hidden while it was read, it is read again.
func getThreadDocument(a *asking, d events.GetThreadDocument) (*events.ThreadDocument, error) {
	if err := a.about(d.ThreadID, nil, d.Fresh); err != nil {
		return nil, err
	}
	return a.document(d.ThreadID, d.FromMessage)
}

// document returns the thread's document or, with from, the part from a message on that fits into
// an answer.
func (a *asking) document(ref string, from *int64) (*events.ThreadDocument, error) {
	for tries := 0; ; tries++ {
		thread, queue, err := threadAndQueue(a, ref)
		if err != nil {
			return nil, err
		}
		r := a.documentReader(thread, from, a.answerBytes()-queue.bytes)
		if err := r.read(); err != nil {
			return nil, err
		}
		if r.changed && tries < documentTries {
			continue
		}
		if r.doc.Relationships, err = relationsOf(a); err != nil {
			return nil, err
		}
		for _, q := range queue.list {
			if !r.seen[q.item] { // otherwise it has left the queue meanwhile
				r.doc.QueuedMessages = append(r.doc.QueuedMessages, q.shown)
			}
		}
		return r.doc, nil
	}
}

// relationsOf returns the relationships of the thread, oldest first.
func relationsOf(a *asking) ([]events.DocumentRelation, error) {
	list, err := all[events.Relationship](a, documents.Relationships, a.name()+".*.*.*")
	if err != nil || len(list) == 0 {
		return nil, err
	}
	slices.SortFunc(list, func(a, b events.Relationship) int {
		return cmp.Or(cmp.Compare(a.Version, b.Version), cmp.Compare(a.ThreadID, b.ThreadID), cmp.Compare(a.Type, b.Type))
	})
	relations := make([]events.DocumentRelation, len(list))
	for i, one := range list {
		at, err := events.ParseTime(one.CreatedAt)
		if err != nil {
			return nil, fmt.Errorf("relationship to %s: %w", one.ThreadID, err)
		}
		relations[i] = events.DocumentRelation{
			ThreadID: one.ThreadID, Type: one.Type, Role: one.Role, MessageIndex: one.MessageIndex, CreatedAt: int64(at) / 1000, Comment: one.Comment,
		}
	}
	return relations, nil
}

// documentReader returns a reader of the messages of a thread, from a message on.
func (a *asking) documentReader(thread *events.Thread, from *int64, room int) *documentReader {
	r := &documentReader{
		walk: walk{asking: a, version: thread.Version, end: thread.NextItem, pages: map[int64]*documents.Page{}},
		doc:  thread.Document(), room: room, paged: from != nil, seen: map[string]bool{},
	}
	if from != nil {
		r.from = *from
	}
	r.items = messageReader{asking: a, version: thread.Version, pages: r.pages}
	return r
}

// waitingMessages is the queue of a thread's agent, as a document shows it.
type waitingMessages struct {
	list  []waitingMessage
	bytes int
}

type waitingMessage struct {
	shown events.DocumentQueued
	item  string // the id of the item that it becomes
}

// threadAndQueue returns a thread's document and its queue as of the same commit. The queue is
// in no read model, so both are read again if the thread has changed in between; after a few
// times the document may be newer than the queue.
func threadAndQueue(a *asking, ref string) (*events.Thread, waitingMessages, error) {
	for tries := 0; ; tries++ {
		var queue waitingMessages
		thread, err := a.threadOfIndex(ref)
		if err != nil {
			return nil, queue, err
		}
		if thread.CreatedAtMicros == 0 {
			return nil, queue, a.behind("the read models are being rebuilt")
		}
		if thread.Queued == 0 {
			return thread, queue, nil
		}
		list, err := a.cfg.States.Queued(a.ctx, a.tenant, a.thread)
		if err != nil {
			return nil, queue, err
		}
		if list.Seq != thread.Seq {
			if err := a.awaitSeq(&list.Seq, false); err != nil {
				return nil, queue, err
			}
			if tries < documentTries {
				continue
			}
			if thread, err = a.threadOfIndex(ref); err != nil {
				return nil, queue, err
			}
		}
		for _, q := range list.Queued {
			if shown, item := events.DocumentQueuedOf(q); shown != nil {
				queue.list = append(queue.list, waitingMessage{*shown, item})
				queue.bytes += len(q.Item) + 256
			}
		}
		return thread, queue, nil
	}
}

// documentReader reads the messages of a document.
type documentReader struct {
	walk
	items messageReader
	doc   *events.ThreadDocument
	from  int64 // the index of the first message that is wanted
	room  int   // of the answer, in bytes
	paged bool  // the caller continues where this answer ends

	index   int64           // of the next message
	number  int64           // messageId of the next message
	seen    map[string]bool // the items that are messages
	changed bool            // an item was hidden while it was read
}

// numbered is a message in the index, with its number in the thread.
type numbered struct {
	pick
	message int64  // its index in the document
	number  *int64 // only in logs of older versions
}

// read reads the messages from the first that is wanted to the last that fits.
func (r *documentReader) read() error {
	const pagesAtOnce = 8
	last := (r.end - 1) / documents.PageSize
	for first := int64(0); r.end > 0 && first <= last; first += pagesAtOnce {
		pages, err := r.walk.read(first, min(first+pagesAtOnce-1, last))
		if err != nil {
			return err
		}
		full, err := r.add(r.numbered(pages))
		if full || err != nil {
			return err
		}
	}
	return nil
}

// numbered returns the wanted messages of some pages. In logs of older versions the number of a
// message is the count of the messages before it, including hidden ones.
func (r *documentReader) numbered(pages []*documents.Page) []numbered {
	var list []numbered
	for _, p := range pages {
		for i := 0; p != nil && i < len(p.Entries); i++ {
			e := &p.Entries[i]
			one := numbered{pick: pick{e.Index, e.ID, e.Calls}}
			if e.Type == events.Message {
				n := r.number
				one.number = &n
				r.number++
			}
			if !e.ShownAt(r.version+1) || !shownInDocument(p, e) {
				continue
			}
			r.seen[e.ID] = true
			one.message = r.index
			r.index++
			if one.message >= r.from {
				r.pages[p.Page] = p
				list = append(list, one)
			}
		}
	}
	return list
}

// shownInDocument reports whether a shown entry is a message of the document: neither silent
// nor nested.
func shownInDocument(p *documents.Page, e *documents.Entry) bool {
	return documents.MessageFilter{}.Match(p, e)
}

// add reads messages, and adds them to the document. It reports whether the answer is full.
func (r *documentReader) add(list []numbered) (full bool, err error) {
	for len(list) > 0 {
		n, calls := 0, 0
		for n < len(list) && n < documentsAtOnce && (n == 0 || calls+len(list[n].calls) <= documentsAtOnce) {
			calls += len(list[n].calls)
			n++
		}
		full, err := r.addSome(list[:n])
		if full || err != nil {
			return full, err
		}
		list = list[n:]
	}
	return false, nil
}

func (r *documentReader) addSome(list []numbered) (full bool, err error) {
	picked := make([]pick, len(list))
	places := make([]documents.Place, len(list))
	for i, one := range list {
		picked[i], places[i] = one.pick, r.place(documents.Items, one.id)
	}
	calls, err := r.items.calls(picked)
	if err != nil {
		return false, err
	}
	got, err := r.source.get(r.ctx, places...)
	if err != nil {
		return false, err
	}
	for i, f := range got {
		item, ok := f.doc.(*events.Item)
		if !ok {
			r.changed = true
			continue
		}
		if item, err = r.answerable(item); err != nil {
			return false, err
		}
		m := events.DocumentMessageOf(item, calls[i].items, calls[i].elided)
		if m.MessageID = item.MessageID; m.MessageID == nil {
			m.MessageID = list[i].number
		}
		raw, err := json.Marshal(m)
		if err != nil {
			return false, fmt.Errorf("writing message %s: %w", item.ID, err)
		}
		if r.room -= len(raw) + 1; r.room < 0 {
			if r.paged && len(r.doc.Messages) > 0 {
				r.doc.NextMessageIndex = list[i].message
				return true, nil
			}
			e := events.TooLarge("the document of the thread", int64(r.answerBytes()-r.room), int64(r.answerBytes()))
			e.Message += "; ask for a part of its messages with fromMessage"
			return true, e
		}
		r.doc.Messages = append(r.doc.Messages, *m)
	}
	return false, nil
}
