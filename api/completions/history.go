package completions

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/openaifiles"
	"github.com/skein-threads/skein/api/openresponses"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	transform "github.com/skein-threads/skein/events/openresponses"
	"github.com/skein-threads/skein/internal/attachment"
	"github.com/skein-threads/skein/runview"
)

// keyPrefix begins the keys of the threads of chats.
const keyPrefix = "chat:"

// mostThreads bounds the forks of a chat that are compared with a history.
const mostThreads = 256

// headersOfChats returns the headers that may name a chat, the preferred one first.
func headersOfChats() []string {
	return []string{"Skein-Thread", "X-OpenWebUI-Chat-Id", "X-Conversation-Id", "X-Session-ID"}
}

// chatOf returns the chat that a request names; "" if it names none.
func chatOf(r *http.Request) (string, error) {
	for _, name := range headersOfChats() {
		id := r.Header.Get(name)
		if id == "" {
			continue
		}
		if !events.ValidKey(keyPrefix+id) || len(keyPrefix+id)+33 > 256 { // with the digest of a message
			return "", events.Invalid("/headers/"+name, "the id of a chat has 1 to 200 characters, none of them a control character")
		}
		return id, nil
	}
	return "", nil
}

// said is one thing of a history: in the form in which two histories are compared.
type said struct {
	role events.Role // empty: a call, or its result
	what string
	next int    // of a request: the first item of the input after it
	item string // of a thread: the item that it is of
	more bool   // of a thread: the client may have seen only its beginning, since the run called tools
	open bool   // of a thread: a run that is active writes it
}

// add appends something to a history. What the assistant says in several pieces is one text.
func add(list []said, o *transform.Item, one said) []said {
	switch o.Type {
	case messageItem:
		one.role, one.what = o.Role, textOf(o.Content)
		if o.Role == events.Assistant {
			if last := len(list) - 1; last >= 0 && list[last].role == events.Assistant {
				one.what, one.more = list[last].what+one.what, one.more || list[last].more
				list[last] = one
				return list
			}
		}
	case callItem:
		one.what = "call " + o.CallID
	case resultItem:
		output := textOf(o.Output)
		one.what = "result " + o.CallID + " " + events.TextOf(events.FromText(output))
	default:
		return list
	}
	return append(list, one)
}

// textOf returns a content as a text: the texts in it, and what names its images and files.
func textOf(content events.JSON) string {
	if jsontext.Value(content).Kind() == '"' {
		var s string
		_ = json.Unmarshal(content, &s) // it is a string
		return s
	}
	content, _ = attachment.Extract(content, 0, func(attachment.Content) error { return nil }) // too large: it is refused when it is stored
	var parts []map[string]events.JSON
	_ = json.Unmarshal(content, &parts) // a list of parts
	var b strings.Builder
	for _, p := range parts {
		names := []string{"text", "refusal", "image_url", "file_data", "file_url", "file_id"}
		var id string
		if v := p["file_id"]; jsontext.Value(v).Kind() == '"' && json.Unmarshal(v, &id) == nil && openaifiles.IsID(id) {
			names = []string{"file_id"} // the thread has the content as well, and the file may be deleted
		}
		for _, name := range names {
			if v := p[name]; jsontext.Value(v).Kind() == '"' {
				var s string
				_ = json.Unmarshal(v, &s) // it is a string
				b.WriteString(s)
			}
		}
	}
	return b.String()
}

// history returns the input of the request.
func (d *request) history() []said {
	var list []said
	for i := range d.input {
		list = add(list, &d.input[i], said{next: i + 1})
	}
	return list
}

// placeIn returns how far a thread has the history of a request. It reads the thread as its client
// has seen it, and only up to where it differs.
func placeIn(ctx context.Context, c *client.Client, thread *events.Thread, asked []said) (place, error) {
	var list []said
	for q := (events.ListItems{ThreadID: thread.ID, Order: "asc", Limit: new(int64(200))}); ; {
		page, err := client.Read(ctx, c, q)
		if err != nil {
			return place{}, err
		}
		for i := range page.Items {
			item := &page.Items[i]
			if item.Silent || item.ParentItemID != "" { // a run's own record of a call
				continue
			}
			if item.Status == events.ItemPending {
				list = append(list, said{role: item.Role, item: item.ID, more: true, open: true})
				continue
			}
			more := item.Role == events.Assistant && strings.Contains(string(item.Content), `"`+events.ToolPart)
			for _, o := range openresponses.Pieces(item) {
				list = add(list, &o, said{item: item.ID, more: more})
			}
		}
		p, same := compare(thread, asked, list)
		if q.Cursor = page.NextCursor; q.Cursor == "" || !p.whole && same < len(list)-1 { // the next page may go on with the last one
			return p, nil
		}
	}
}

// place is where in a chat a request goes on.
type place struct {
	thread *events.Thread // at least as old as what follows of it; nil: the chat has none with this history
	key    string         // of the thread to be created then
	known  int            // how many things of the request's history the thread has
	at     string         // the item of the last of them
	whole  bool           // the thread has nothing after it
	next   int            // the first item of the input that is new
}

// compare returns how far a thread has the history of a request, and how much of what it has that
// is.
func compare(thread *events.Thread, asked, has []said) (p place, same int) {
	p.thread = thread
	i, j := 0, 0
	for i < len(asked) && j < len(has) {
		a, h := asked[i], has[j]
		equal := a.role == h.role && strings.TrimSpace(a.what) == strings.TrimSpace(h.what)
		begins := h.more && a.role == h.role && (h.open || strings.HasPrefix(h.what, strings.TrimSpace(a.what)))
		switch {
		case equal || begins:
			i, p.next = i+1, a.next
		case !h.more || a.role == events.Assistant: // otherwise the client has seen nothing of it
			p.known = i
			return p, j
		}
		p.at = h.item
		j++
	}
	p.known = i
	p.whole = !slices.ContainsFunc(has[j:], func(h said) bool { return !h.open })
	return p, j
}

// rootsOf returns the names of the threads with which a chat begins that begins as a request does, and
// the key of the one to create if there is none.
func rootsOf(chat string, asked []said) (refs [2]string, free string) {
	root := keyPrefix + chat
	other := root + ":" + edge.DigestOf([]byte(asked[0].what))
	if events.ValidThreadID(chat) {
		return [...]string{chat, "key:" + other}, other
	}
	return [...]string{"key:" + root, "key:" + other}, root
}

// threadsOf returns the threads of a chat that a request may have gone on in.
func threadsOf(ctx context.Context, c *client.Client, chat string, asked []said) (threads []string, err error) {
	refs, _ := rootsOf(chat, asked)
	for _, ref := range refs {
		t, err := client.Read(ctx, c, events.GetThread{ThreadID: ref})
		if err == nil {
			threads = append(threads, t.ID)
		} else if !events.IsNotFound(err) {
			return nil, err
		}
	}
	for n := 0; n < len(threads) && n < mostThreads; n++ {
		more, err := withForks(ctx, c, threads, threads[n])
		if events.IsNotFound(err) { // deleted, or not for this caller
			continue
		}
		if err != nil {
			return nil, err
		}
		threads = more
	}
	return threads, nil
}

// withForks returns threads with the forks of one of them.
func withForks(ctx context.Context, c *client.Client, threads []string, of string) ([]string, error) {
	forks, err := client.Read(ctx, c, events.ListRelationships{ThreadID: of, Type: events.ForkRelation, Role: events.ParentRole, Limit: new(int64(mostThreads))})
	if err != nil {
		return nil, err
	}
	for _, f := range forks.Relationships {
		if !slices.Contains(threads, f.ThreadID) {
			threads = append(threads, f.ThreadID)
		}
	}
	return threads, nil
}

// locate returns where in a chat a request goes on. A thread that differs is not forked yet.
func locate(ctx context.Context, c *client.Client, chat string, asked []said) (place, error) {
	refs, free := rootsOf(chat, asked)
	best := place{}
	for n, ref := range refs {
		t, err := client.Read(ctx, c, events.GetThread{ThreadID: ref})
		switch {
		case events.IsNotFound(err) && ref == chat:
			return place{}, err
		case events.IsNotFound(err):
			continue
		case err != nil:
			return place{}, err
		}
		if n == 0 {
			free = strings.TrimPrefix(refs[1], "key:")
			if t.Items == 0 { // it begins with this request
				return place{thread: t, whole: true}, nil
			}
		}
		found, err := among(ctx, c, t, asked)
		if err != nil {
			return place{}, err
		}
		if found.known > best.known || found.known == best.known && found.whole && found.known > 0 {
			best = found
		}
	}
	if best.known == 0 {
		return place{key: free}, nil
	}
	return best, nil
}

// among returns the thread that has most of a history: a thread, or one of its forks.
func among(ctx context.Context, c *client.Client, root *events.Thread, asked []said) (best place, err error) {
	threads := []string{root.ID}
	for n := 0; n < len(threads) && n < mostThreads; n++ {
		t := root
		if n > 0 {
			t, err = client.Read(ctx, c, events.GetThread{ThreadID: threads[n]})
		}
		var p place
		if err == nil {
			p, err = placeIn(ctx, c, t, asked)
		}
		if events.IsNotFound(err) { // deleted, or not for this caller
			continue
		}
		if err != nil {
			return place{}, err
		}
		if p.known == 0 {
			continue
		}
		if p.known > best.known || p.known == best.known && p.whole {
			best = p
		}
		if p.whole && p.known == len(asked) {
			return p, nil
		}
		if threads, err = withForks(ctx, c, threads, threads[n]); err != nil {
			return place{}, err
		}
	}
	return best, nil
}

// settle returns the thread in which the request can be answered. It refuses one that waits for people,
// and forks one that goes on otherwise: once for all requests with the same name, if they have one.
func (p *place) settle(ctx context.Context, c *edge.Caller, now *client.Client, once string) (thread string, err error) {
	if p.thread == nil {
		return "", nil
	}
	if !p.whole {
		var o []client.Option
		if once != "" {
			o = append(o, client.CommandID("completions-fork-"+once+"-"+p.at))
		}
		reply, err := now.Send(ctx, p.thread.ID, events.ForkThread{ItemID: p.at}, o...)
		if err != nil {
			return "", err
		}
		if reply.Result == nil || reply.Result.ChildID == "" {
			return "", events.Errorf(events.Unavailable, "the fork of thread %s has no id; send the request again", p.thread.ID)
		}
		c.Client = c.Client.WithMinSeq(reply.Seq)
		return reply.Result.ChildID, nil
	}
	if p.thread.Run == nil {
		return p.thread.ID, nil
	}
	x, err := client.Read(ctx, now, events.GetExecution{ThreadID: p.thread.ID, ExecutionID: p.thread.Run.ExecutionID})
	if err != nil || !runview.AwaitsPeople(x) {
		return p.thread.ID, err
	}
	return "", events.Invalid("/messages", "the chat waits for people, who answer first: POST /api/threads/%s/approvals/{callId} with callId %s", p.thread.ID, strings.Join(x.Waiting, ", "))
}
