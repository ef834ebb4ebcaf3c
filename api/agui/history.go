package agui

import (
	"context"
	"slices"
	"strings"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// keyPrefix begins the keys of threads.
const keyPrefix = "agui:"

// mostBranches bounds the forks that are compared with a history.
const mostBranches = 64

// conversation is a request's view of a thread and its forks.
type conversation struct {
	id       string
	caller   *edge.Caller
	now      *client.Client // its queries show everything that was committed before the request
	branches []*events.Thread
	expects  bool // a thread is to be as it was seen: this request does what another one with its name does, which has seen more
}

// open looks a conversation up. One that does not exist has no branches.
func open(ctx context.Context, c *edge.Caller, id string) (*conversation, error) {
	now, err := c.Client.UpToDate(ctx)
	if err != nil {
		return nil, err
	}
	t := &conversation{id: id, caller: c, now: now}
	ref := "key:" + keyPrefix + id
	if events.ValidThreadID(id) {
		ref = id
	}
	root, err := client.Read(ctx, now, events.GetThread{ThreadID: ref})
	if events.IsNotFound(err) && ref != id {
		return t, nil
	}
	if err != nil {
		return nil, err
	}
	t.branches = []*events.Thread{root}
	for n := 0; n < len(t.branches) && n < mostBranches; n++ {
		if err := t.readForks(ctx, t.branches[n].ID); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// readForks adds the forks of a thread that requests of this protocol have made.
func (t *conversation) readForks(ctx context.Context, thread string) error {
	list, err := client.Read(ctx, t.now, events.ListRelationships{ThreadID: thread, Type: events.ForkRelation, Role: events.ParentRole, Limit: new(int64(1000))})
	if err != nil {
		return err
	}
	for _, f := range list.Relationships {
		fork, err := client.Read(ctx, t.now, events.GetThread{ThreadID: f.ThreadID})
		switch {
		case events.IsNotFound(err): // deleted, or not for this caller
		case err != nil:
			return err
		case fork.Key != nil && strings.HasPrefix(*fork.Key, t.forkPrefix()):
			t.branches = append(t.branches, fork)
		}
	}
	return nil
}

// forkPrefix begins the keys of the forks.
func (t *conversation) forkPrefix() string { return keyPrefix + t.id + "/" }

// latest returns the branch that was used last, nil if there is none.
func (t *conversation) latest() *events.Thread {
	var last *events.Thread
	for _, b := range t.branches {
		if last == nil || changed(b) > changed(last) {
			last = b
		}
	}
	return last
}

func changed(t *events.Thread) string { return max(t.CreatedAt, t.UpdatedAt) }

// messages returns the messages of a thread.
func (t *conversation) messages(ctx context.Context, thread string) ([]message, error) {
	list := []message{}
	for q := (events.ListItems{ThreadID: thread, Order: "asc", Limit: new(int64(200))}); ; {
		page, err := client.Read(ctx, t.now, q)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			list = append(list, messagesOf(&page.Items[i])...)
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			return list, nil
		}
	}
}

// turn is one message of a user, or everything between two.
type turn struct {
	list  []message
	first int // the place of its first message
}

// user reports whether the turn is one message that nobody but a client writes.
func (t *turn) user() bool {
	role := t.list[0].Role
	return role == string(events.User) || role == string(events.System) || role == string(events.Developer)
}

// open reports whether a run that is active writes the turn.
func (t *turn) open() bool { return !t.user() && t.list[len(t.list)-1].open }

// item returns the last item of the turn.
func (t *turn) item() string { return t.list[len(t.list)-1].item }

// said returns what the assistant says in the turn.
func (t *turn) said() string {
	var b strings.Builder
	for i := range t.list {
		if t.list[i].Role == string(events.Assistant) {
			b.WriteString(t.list[i].text())
		}
	}
	return strings.TrimSpace(b.String())
}

// turnsOf divides messages into turns.
func turnsOf(list []message) (turns []turn) {
	for i := range list {
		one := turn{list[i : i+1], i}
		if last := len(turns) - 1; last >= 0 && !one.user() && !turns[last].user() {
			turns[last].list = list[turns[last].first : i+1]
			continue
		}
		turns = append(turns, one)
	}
	return turns
}

// same reports whether a turn of a request is one that the thread has. A client may have seen only the
// beginning of an answer, and it may have ids of its own.
func (t *turn) same(has *turn) bool {
	if t.user() != has.user() {
		return false
	}
	if t.user() {
		return t.list[0].Role == has.list[0].Role && strings.TrimSpace(t.list[0].text()) == strings.TrimSpace(has.list[0].text())
	}
	known, differs, more := false, false, false
	for i := range t.list {
		m := &t.list[i]
		if m.Role != string(events.Assistant) {
			continue
		}
		at := slices.IndexFunc(has.list, func(h message) bool { return h.ID == m.ID })
		if at < 0 {
			more = more || has.wrote(m.ID)
			continue
		}
		known = true
		differs = differs || !begins(has.list[at].text(), m.text()) && !has.open()
	}
	if differs { // unless it was shown what a step has taken back, before what it says instead
		return more && strings.HasSuffix(t.said(), has.said())
	}
	return known || has.open() || begins(has.said(), t.said())
}

// wrote reports whether an id was made for a message of one of the turn's items.
func (t *turn) wrote(id string) bool {
	return slices.ContainsFunc(t.list, func(m message) bool { return strings.HasPrefix(id, m.ID+"-") })
}

// begins reports whether a client may have seen a text as another: whole, or its beginning.
func begins(whole, seen string) bool {
	return strings.HasPrefix(strings.TrimSpace(whole), strings.TrimSpace(seen))
}

// place is where a request goes on.
type place struct {
	thread *events.Thread  // nil: there is none yet
	known  int             // how many turns of the request the thread has
	forks  bool            // the thread goes on otherwise after these turns
	at     string          // the item at which it forks; empty: before all of its messages
	fresh  []message       // what is new of the request
	first  int             // the place of the first of them in the request
	open   map[string]bool // calls of the client that have no result
}

// compare returns how a thread goes on with a history.
func compare(thread *events.Thread, asked []turn, list []message) place {
	p, has := place{thread: thread, open: openCalls(list)}, turnsOf(list)
	if len(asked) == 0 {
		return p
	}
	from, edited, begins := firstTurn(asked, has)
	i, j := 0, from
	for begins && i < len(asked) && j < len(has) && asked[i].same(&has[j]) {
		i, j = i+1, j+1
	}
	if i == 0 && !edited { // the client has nothing of the thread
		p.fresh, p.first = flat(asked), asked[0].first
		return p
	}
	answered := j < len(has) && !has[j].open() || j == len(has) && thread.Run == nil
	if p.known = i; i == len(asked) && asked[i-1].user() && answered { // it is to be answered again
		i, j = i-1, j-1
	}
	p.forks = j < len(has) && !has[j].open()
	if j > 0 {
		p.at = has[j-1].item()
	}
	if i > 0 { // results of calls that the client has made
		for n, m := range asked[i-1].list {
			if m.Role == roleTool && p.open[m.ToolCallID] {
				if len(p.fresh) == 0 {
					p.first = asked[i-1].first + n
				}
				p.fresh = append(p.fresh, m)
			}
		}
	}
	if len(p.fresh) == 0 && i < len(asked) {
		p.first = asked[i].first
	}
	p.fresh = append(p.fresh, flat(asked[i:])...)
	return p
}

// firstTurn returns the turn of a thread with which a history begins, whether the history has another
// text for the message with its id, and whether it is a history at all: a client that sends only what is
// new sends nothing of the assistant's, and no id that the thread has.
func firstTurn(asked, has []turn) (from int, edited, begins bool) {
	for j := range has {
		if asked[0].list[0].ID == has[j].list[0].ID && asked[0].user() {
			return j, !asked[0].same(&has[j]), true
		}
	}
	return 0, false, slices.ContainsFunc(asked, func(t turn) bool {
		return slices.ContainsFunc(t.list, func(m message) bool { return m.Role == string(events.Assistant) })
	})
}

// openCalls returns the calls that clients make and that have no result.
func openCalls(list []message) map[string]bool {
	open := map[string]bool{}
	for _, m := range list {
		for _, c := range m.ToolCalls {
			open[c.ID] = open[c.ID] || c.caller
		}
		if m.Role == roleTool {
			open[m.ToolCallID] = false
		}
	}
	return open
}

func flat(turns []turn) (list []message) {
	for _, t := range turns {
		list = append(list, t.list...)
	}
	return list
}

// locate returns where a request goes on: in the branch that has most of its history, or else in the
// one that was used last. What is read afterwards is no older.
func (t *conversation) locate(ctx context.Context, in *input) (place, error) {
	asked := turnsOf(slices.DeleteFunc(slices.Clone(in.Messages[in.front():]), func(m message) bool { return m.Role == roleActivity }))
	best := place{fresh: flat(asked)}
	last := t.latest()
	for _, b := range t.branches {
		list, err := t.messages(ctx, b.ID)
		if err != nil {
			return place{}, err
		}
		p := compare(b, asked, list)
		better := p.known > best.known || p.known == best.known && best.forks && !p.forks
		if best.thread == nil || better || p.known == best.known && p.forks == best.forks && b == last {
			best = p
		}
	}
	best.first += in.front()
	if best.forks || len(best.fresh) == 0 { // what it has more may be newer than what is read next of its runs
		var err error
		if t.now, err = t.caller.Client.UpToDate(ctx); err != nil {
			return place{}, err
		}
	}
	return best, nil
}
