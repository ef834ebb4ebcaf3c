package chat

import (
	"context"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runview"
)

// list calls yield with the messages of a chat, the oldest first, without the one that is being
// written. Messages that wait for their turn follow those that the thread has, and the answer of a
// run that waits for people is the last one, as clients take answers to calls of that one only.
func (h *chat) list(ctx context.Context, yield func(*Message) error) error {
	queue, err := h.queued(ctx)
	if err != nil {
		return err
	}
	h.now = h.now.WithMinSeq(queue.seq) // which show messages that have left the queue by then
	u, err := h.runs(ctx)
	if err != nil {
		return err
	}
	var last *Message // written by a run that waits for people
	var open struct { // the message that was read last
		*Message
		item string // its last one
	}
	next := func(m *Message, item string) error {
		was := open
		open.Message, open.item = m, item
		goesOn := m != nil && was.Message != nil && u.goesOn[item] == was.item
		if m != nil && !goesOn {
			m.Parts = slices.Concat(u.about[item], m.Parts)
		}
		switch {
		case was.Message == nil:
		case goesOn:
			was.Parts = append(was.Parts, m.Parts...)
			open.Message = was.Message
		case was.item == u.waits:
			last = was.Message
		default:
			return yield(was.Message)
		}
		return nil
	}
	limit := int64(200)
	q := events.ListItems{ThreadID: h.thread.ID, Limit: &limit}
	for more := true; more; more = q.Cursor != "" {
		page, err := client.Read(ctx, h.now, q)
		if err != nil {
			return err
		}
		for i := range page.Items {
			item := &page.Items[i]
			delete(queue.byItem, item.ID)
			if err := u.readTo(ctx, item); err != nil {
				return err
			}
			m := messageOf(item, u.asked[item.ID])
			if m == nil || u.written[item.ID] {
				continue
			}
			if err := next(m, item.ID); err != nil {
				return err
			}
		}
		q.Cursor = page.NextCursor
	}
	if err := next(nil, ""); err != nil {
		return err
	}
	for _, id := range queue.order {
		if m := queue.byItem[id]; m != nil {
			if err := yield(m); err != nil {
				return err
			}
		}
	}
	if last == nil {
		return nil
	}
	return yield(last)
}

// queue is the messages that wait for their turn, by the items that they become.
type queue struct {
	order  []string
	byItem map[string]*Message
	seq    int64 // in the log, of what it shows
}

// queued returns the messages that wait for their turn.
func (h *chat) queued(ctx context.Context) (queue, error) {
	list, err := h.now.ListQueue(ctx, events.ListQueue{ThreadID: h.thread.ID})
	if err != nil {
		return queue{}, err
	}
	out := queue{byItem: map[string]*Message{}, seq: list.Seq}
	for i := range list.Queued {
		var item events.NewItem
		if err := json.Unmarshal(list.Queued[i].Item, &item); err != nil {
			return queue{}, err
		}
		if m := messageOf(waitingItem(&item), nil); m != nil {
			out.order = append(out.order, item.ID)
			out.byItem[item.ID] = m
		}
	}
	return out, nil
}

// waitingItem returns the item that an entry of the queue becomes, as far as it is shown.
func waitingItem(d *events.NewItem) *events.Item {
	item := &events.Item{ID: d.ID, Type: d.Type, Role: d.Role, Content: d.Content, Silent: d.Silent, Metadata: d.Metadata}
	if d.Depth != nil {
		item.Depth = *d.Depth
	}
	return item
}

// runs holds the data of a chat's executions that its messages need. They are read in the order of
// the messages that they write, as far as the messages go that are shown.
type runs struct {
	chat *chat
	next events.ListExecutions // the page that is read next
	done bool                  // all were read
	seen map[string]bool       // executions that were read

	written map[string]bool                           // items of messages that are being written
	waits   string                                    // the last item of a run that waits for people only; empty: none does
	about   map[string][]Part                         // data parts of a run, by the items with which its messages begin
	goesOn  map[string]string                         // items that go on with the message of another one, if nothing is shown between
	asked   map[string]map[string]events.CallApproval // what people were asked, by item and call; nil: nothing
}

// runs returns the executions of the chat, of which those that have not ended are read: before the
// messages, or a message that ends in between would be shown before it is whole.
func (h *chat) runs(ctx context.Context) (*runs, error) {
	u := &runs{
		chat: h, seen: map[string]bool{}, written: map[string]bool{}, about: map[string][]Part{}, goesOn: map[string]string{},
		asked: map[string]map[string]events.CallApproval{},
	}
	u.next = events.ListExecutions{ThreadID: h.thread.ID, Limit: new(int64(pageOfRuns))}
	all := u.next
	for u.next.Status = events.Executing; !u.done; {
		if err := u.read(ctx); err != nil {
			return nil, err
		}
	}
	u.next, u.done = all, false
	return u, nil
}

// readTo reads executions until the one that writes an item is known. All are read if a program has
// written it.
func (u *runs) readTo(ctx context.Context, item *events.Item) error {
	for item.Role == events.Assistant && !u.done {
		if _, known := u.asked[item.ID]; known {
			return nil
		}
		if err := u.read(ctx); err != nil {
			return err
		}
	}
	return nil
}

// read reads a page of executions.
func (u *runs) read(ctx context.Context) error {
	page, err := client.Read(ctx, u.chat.now, u.next)
	if err != nil {
		return err
	}
	for i := range page.Executions {
		if x := &page.Executions[i]; !u.seen[x.ID] {
			u.seen[x.ID] = true
			u.add(x)
		}
	}
	u.next.Cursor, u.done = page.NextCursor, page.NextCursor == ""
	return nil
}

// add adds what an execution says.
func (u *runs) add(x *events.Execution) {
	switch {
	case x.Status != events.Executing:
	case runview.AwaitsPeople(x):
		u.waits = x.LastItem()
	default:
		for _, item := range lastMessage(x) {
			u.written[item] = true
		}
	}
	run := u.chat.runOf(x, x.ReactionItemID)
	for _, c := range run.about(x.Status) {
		u.about[x.ReactionItemID] = append(u.about[x.ReactionItemID], Part{Type: c.Type, ID: c.ID, Data: c.Data})
	}
	before := x.ReactionItemID
	for _, i := range x.LaterItems {
		if u.about[i.ItemID] = u.about[x.ReactionItemID]; i.SteeredBy == "" {
			u.goesOn[i.ItemID] = before
		}
		before = i.ItemID
	}
	var calls map[string]events.CallApproval
	if len(x.Approvals) > 0 {
		calls = map[string]events.CallApproval{}
	}
	for _, a := range x.Approvals {
		calls[a.CallID] = a
	}
	for _, item := range x.Items() {
		u.asked[item] = calls
	}
}
