package query

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

// messageReader assembles messages from items and the calls that belong to them.
type messageReader struct {
	*asking
	version int64 // of the thread, as the answer shows it
	pages   map[int64]*documents.Page
}

// documentsAtOnce is how many documents are in memory at once, besides the documents of the
// answer.
const documentsAtOnce = 128

// read adds the messages to the list. It returns the index of the first message that does not fit
// into the answer, else -1. A message without a document was hidden meanwhile.
func (r *messageReader) read(list *events.MessageList, picked []pick) (cut int64, err error) {
	room := r.answerBytes()
	for len(picked) > 0 {
		n, calls := 0, 0
		for n < len(picked) && n < documentsAtOnce && (n == 0 || calls+len(picked[n].calls) <= documentsAtOnce) {
			calls += len(picked[n].calls)
			n++
		}
		part := picked[:n]
		picked = picked[n:]
		messages, err := r.messages(part)
		if err != nil {
			return -1, err
		}
		for i, m := range messages {
			if m == nil {
				if err := hiddenSince(r.asking, part[i]); err != nil {
					return -1, err
				}
				continue
			}
			size, err := sizeOf(m)
			if err != nil {
				return -1, err
			}
			if room -= size + 1; room < 0 {
				if len(list.Messages) > 0 {
					return part[i].index, nil
				}
				return -1, events.TooLarge("the message "+m.ID, int64(size), int64(r.answerBytes()))
			}
			list.Messages = append(list.Messages, *m)
		}
	}
	return -1, nil
}

func sizeOf(m *events.ThreadMessage) (int, error) {
	raw, err := json.Marshal(m)
	if err != nil {
		return 0, fmt.Errorf("writing message %s: %w", m.ID, err)
	}
	return len(raw), nil
}

// messages reads some messages; a message that no longer exists is nil.
func (r *messageReader) messages(part []pick) ([]*events.ThreadMessage, error) {
	places := make([]documents.Place, len(part))
	for i, p := range part {
		places[i] = r.place(documents.Items, p.id)
	}
	calls, err := r.calls(part)
	if err != nil {
		return nil, err
	}
	got, err := r.source.get(r.ctx, places...)
	if err != nil {
		return nil, err
	}
	out := make([]*events.ThreadMessage, len(part))
	for i, f := range got {
		if item, ok := f.doc.(*events.Item); ok {
			out[i] = events.MessageOf(item, calls[i].items, calls[i].elided)
		}
	}
	return out, nil
}

// callList is the calls of one message. The arguments of the first of them may be
// left out.
type callList struct {
	items  []*events.Item
	elided int
}

// calls reads the calls that belong to some messages.
func (r *messageReader) calls(part []pick) ([]callList, error) {
	if err := r.readPages(part); err != nil {
		return nil, err
	}
	out := make([]callList, len(part))
	for i, p := range part {
		var places []documents.Place
		for _, at := range p.calls {
			if page := r.pages[at/documents.PageSize]; page != nil {
				if e := page.Find(at); e != nil && e.ShownAt(r.version+1) {
					places = append(places, r.place(documents.Items, e.ID))
				}
			}
		}
		var err error
		if out[i], err = r.readCalls(places); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// readPages reads the pages of the index that list the calls of messages.
func (r *messageReader) readPages(part []pick) error {
	var places []documents.Place
	for _, p := range part {
		for _, at := range p.calls {
			n := at / documents.PageSize
			if _, known := r.pages[n]; !known {
				r.pages[n] = nil
				places = append(places, r.place(documents.Index, documents.PageID(n)))
			}
		}
	}
	if len(places) == 0 {
		return nil
	}
	got, err := r.source.get(r.ctx, places...)
	if err != nil {
		return err
	}
	for _, f := range got {
		if page, ok := f.doc.(*documents.Page); ok {
			r.pages[page.Page] = page
		}
	}
	return nil
}

// readCalls reads the calls of one message, the newest first. Beyond what a
// message may hold their arguments are left out: the items have them.
func (r *messageReader) readCalls(places []documents.Place) (callList, error) {
	list := callList{items: make([]*events.Item, 0, len(places))}
	byNewest := make([]*events.Item, 0, len(places))
	room := r.answerBytes() / 8 // quotes are escaped twice, so arguments may grow fourfold
	for end := len(places); end > 0; {
		from := max(end-documentsAtOnce, 0)
		got, err := r.source.get(r.ctx, places[from:end]...)
		if err != nil {
			return list, err
		}
		end = from
		for i := len(got) - 1; i >= 0; i-- {
			item, ok := got[i].doc.(*events.Item)
			if !ok {
				continue
			}
			if room -= got[i].bytes; room < 0 {
				item = withoutArguments(item)
				list.elided++
			}
			byNewest = append(byNewest, item)
		}
	}
	for i := len(byNewest) - 1; i >= 0; i-- {
		list.items = append(list.items, byNewest[i])
	}
	return list, nil
}

// withoutArguments returns the item of a call without its arguments, which could be large.
func withoutArguments(i *events.Item) *events.Item {
	var c events.Call
	_ = json.Unmarshal(i.Content, &c) // it was validated before it was stored
	c.Arguments = events.JSON(`""`)
	short := *i
	if raw, err := json.Marshal(c, json.Deterministic(true)); err == nil {
		short.Content = raw
	}
	return &short
}

// callsOf returns the places of the calls that belong to one message.
func (r *messageReader) callsOf(i *events.Item) ([]int64, error) {
	n := i.Index / documents.PageSize
	got, err := r.source.get(r.ctx, r.place(documents.Index, documents.PageID(n)))
	if err != nil {
		return nil, err
	}
	page, ok := got[0].doc.(*documents.Page)
	if !ok {
		return nil, nil
	}
	r.pages[n] = page
	if e := page.Find(i.Index); e != nil && e.ID == i.ID {
		return e.Calls, nil
	}
	return nil, nil
}
