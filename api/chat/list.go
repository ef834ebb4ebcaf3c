package chat

import (
	"context"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
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
	u, asked, err := h.unfinished(ctx)
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
		switch {
		case was.Message == nil:
		case m != nil && u.goesOn[item] == was.item:
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
			m := messageOf(item, asked[item.ID])
			if about := u.about[item.ID]; m != nil && about != nil {
				m.Parts = append(about, m.Parts...)
			}
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

// unfinished is the messages that a run has not finished.
type unfinished struct {
	written map[string]bool   // items of the message that is being written
	waits   string            // the last item of a run that waits for people only; empty: none does
	about   map[string][]Part // data parts of a run, by the items with which its messages begin
	goesOn  map[string]string // items that go on with the message of another one, if nothing is shown between
}

// unfinished returns the messages that a run has not finished, and what people were asked in each
// message, by call.
func (h *chat) unfinished(ctx context.Context) (u unfinished, asked map[string]map[string]events.CallApproval, err error) {
	asked = map[string]map[string]events.CallApproval{}
	u = unfinished{written: map[string]bool{}, about: map[string][]Part{}, goesOn: map[string]string{}}
	for q := (events.ListExecutions{ThreadID: h.thread.ID, Limit: new(int64(pageOfRuns))}); ; {
		runs, err := client.Read(ctx, h.now, q)
		if err != nil {
			return u, nil, err
		}
		for i := range runs.Executions {
			x := &runs.Executions[i]
			switch {
			case x.Status != events.Executing:
			case waits(x):
				u.waits = x.LastItem()
			default:
				for _, item := range lastMessage(x) {
					u.written[item] = true
				}
			}
			run := h.runOf(x, x.ReactionItemID)
			for _, c := range run.about(x.Status) {
				u.about[x.ReactionItemID] = append(u.about[x.ReactionItemID], Part{Type: c.Type, ID: c.ID, Data: c.Data})
			}
			before := x.ReactionItemID
			for _, i := range x.LaterItems {
				if i.SteeredBy == "" {
					u.goesOn[i.ItemID] = before
				} else {
					u.about[i.ItemID] = slices.Clone(u.about[x.ReactionItemID])
				}
				before = i.ItemID
			}
			if len(x.Approvals) == 0 {
				continue
			}
			calls := map[string]events.CallApproval{}
			for _, a := range x.Approvals {
				calls[a.CallID] = a
			}
			for _, item := range x.Items() {
				asked[item] = calls
			}
		}
		if q.Cursor = runs.NextCursor; q.Cursor == "" {
			return u, asked, nil
		}
	}
}
