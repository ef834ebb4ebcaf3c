package client

import (
	"context"
	"errors"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/events"
)

// ThreadState is a thread as Standard Agents has it: the same operations
// for whoever works with the thread. This one is for callers outside of any
// execution. Storage, streams and the like do not show through it.
//
// What one handle wrote, it reads. A method fails on what is wrong in itself and
// when the service cannot be reached; what is not there is nil, false or an empty
// list. It is safe for concurrent use, and need not be closed.
type ThreadState struct {
	*files
	client  *Client
	id      string
	created int64
	scratch sync.Map
	charge  func() string // the agent in charge, where somebody knows; see Known
	floor   func() int64  // the commit that reads show at least, where somebody knows

	mu      sync.Mutex // guards what follows
	agent   string
	user    *string
	seq     int64  // of the newest commit that this handle made
	emitter string // names this handle to those who listen; made when it is needed
	sent    int64  // how many live events
}

// files is embedded for its methods; the field itself does not show.
type files = Files

// Thread gives a thread's state by the thread's id, or by key: and its key. A
// thread that is not there is a not_found.
func (c *Client) Thread(ctx context.Context, idOrKey string) (*ThreadState, error) {
	t := &ThreadState{client: c}
	doc, err := c.GetThread(ctx, events.GetThread{ThreadID: idOrKey})
	if err != nil {
		return nil, err
	}
	t.id, t.created, t.files = doc.ID, doc.CreatedAtMicros, c.Files(doc.ID)
	t.know(doc)
	return t, nil
}

// know notes what a thread's document says that may change.
func (t *ThreadState) know(doc *events.Thread) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.agent, t.user = doc.AgentID, nil
	if doc.UserID != "" {
		t.user = &doc.UserID
	}
}

// Refresh reads again who owns the thread: an agent may have handed it over to
// another one since.
func (t *ThreadState) Refresh(ctx context.Context) error {
	doc, err := t.reader().GetThread(ctx, events.GetThread{ThreadID: t.id})
	if err == nil {
		t.know(doc)
	}
	return err
}

// ThreadID gives the thread's id.
func (t *ThreadState) ThreadID() string { return t.id }

// AgentID gives the agent in charge: now, if the handle was made by Attach, else
// when it was made or last refreshed; empty if none is.
func (t *ThreadState) AgentID() string {
	if t.charge != nil {
		return t.charge()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.agent
}

// UserID gives the user that the thread belonged to then, nil if to none.
func (t *ThreadState) UserID() *string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.user == nil {
		return nil
	}
	user := *t.user
	return &user
}

// CreatedAt gives when the thread was made, in microseconds since the epoch.
func (t *ThreadState) CreatedAt() int64 { return t.created }

// Scratch gives a map for whatever the caller likes, which lives as long as the
// handle and is nowhere else.
func (t *ThreadState) Scratch() *sync.Map { return &t.scratch }

// Execution gives nil: outside of an execution there is none, whatever the
// thread is doing.
func (t *ThreadState) Execution() events.ExecutionState { return nil }

// reader gives a client that reads what this handle wrote.
func (t *ThreadState) reader() *Client {
	t.mu.Lock()
	seq := t.seq
	t.mu.Unlock()
	if t.floor != nil {
		seq = max(seq, t.floor())
	}
	return t.client.WithMinSeq(seq)
}

// wrote notes a commit of this handle's.
func (t *ThreadState) wrote(seq int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seq = max(t.seq, seq)
}

// GetMessages gives messages, newest first unless the options say otherwise; all
// that match if they set no limit. Total counts all that match the
// filters, and HasMore says that more lie beyond those given.
func (t *ThreadState) GetMessages(ctx context.Context, o events.GetMessagesOptions) (*events.MessageList, error) {
	q := events.ListMessages{ThreadID: t.id, GetMessagesOptions: o}
	all, c := (*events.MessageList)(nil), t.reader()
	for {
		page, err := c.ListMessages(ctx, q)
		if err != nil {
			return nil, err
		}
		if all == nil {
			all = page
		} else {
			all.Messages = append(all.Messages, page.Messages...)
			all.HasMore, all.NextCursor = page.HasMore, page.NextCursor
		}
		if all.NextCursor == "" || o.Limit != nil && int64(len(all.Messages)) >= *o.Limit {
			return all, nil
		}
		q.Cursor, q.Offset = all.NextCursor, nil // new messages do not shift it
		if o.Limit != nil {
			left := *o.Limit - int64(len(all.Messages))
			q.Limit = &left
		}
	}
}

// errNoID says that a message must be named.
func errNoID() error { return events.Invalid("/messageId", "a message's id is needed") }

// GetMessage gives a message, nil if there is none of that id.
func (t *ThreadState) GetMessage(ctx context.Context, id string) (*events.ThreadMessage, error) {
	switch {
	case id == "":
		return nil, errNoID()
	case !events.ValidID(id):
		return nil, nil
	}
	return t.reader().GetMessage(ctx, events.GetMessage{ThreadID: t.id, MessageID: id})
}

// InjectMessage adds a message and gives it as it now is.
func (t *ThreadState) InjectMessage(ctx context.Context, m events.AddMessage) (*events.ThreadMessage, error) {
	reply, err := t.client.AddMessage(ctx, t.id, m)
	if err != nil {
		return nil, err
	}
	t.wrote(reply.Seq)
	return t.there(ctx, reply.Result.ItemID)
}

// UpdateMessage changes a message and gives it as it now is. One that is not
// there is a not_found.
func (t *ThreadState) UpdateMessage(ctx context.Context, id string, u events.MessageUpdates) (*events.ThreadMessage, error) {
	switch {
	case id == "":
		return nil, errNoID()
	case !events.ValidID(id):
		return nil, events.Missing("message", id)
	}
	reply, err := t.client.UpdateMessage(ctx, t.id, events.UpdateMessage{MessageID: id, MessageUpdates: u})
	if err != nil {
		return nil, err
	}
	t.wrote(reply.Seq)
	return t.there(ctx, id)
}

// there gives a message that was there a moment ago.
func (t *ThreadState) there(ctx context.Context, id string) (*events.ThreadMessage, error) {
	m, err := t.GetMessage(ctx, id)
	if err == nil && m == nil {
		err = events.Missing("message", id)
	}
	return m, err
}

// DeleteMessage hides a message, and the calls that are part of it, from every
// view. It reports whether there was one.
func (t *ThreadState) DeleteMessage(ctx context.Context, id string) (bool, error) {
	switch {
	case id == "":
		return false, errNoID()
	case !events.ValidID(id):
		return false, nil
	}
	reply, err := t.client.DeleteMessage(ctx, t.id, events.DeleteMessage{ItemID: id})
	var refusal *events.Error
	switch {
	case err == nil:
		t.wrote(reply.Seq)
		return true, nil
	case errors.As(err, &refusal) && refusal.Code == events.NotFound && refusal.Details != nil && refusal.Details.Entity == "item":
		return false, nil
	}
	return false, err
}

// GetLogs gives log lines, newest first unless the options say otherwise; all
// that match if they set no limit.
func (t *ThreadState) GetLogs(ctx context.Context, o events.GetLogsOptions) ([]events.Log, error) {
	lines, c := []events.Log{}, t.reader()
	offset := int64(0)
	if o.Offset != nil {
		offset = *o.Offset
	}
	for {
		q := events.ListLogs{ThreadID: t.id, GetLogsOptions: o}
		from := offset + int64(len(lines))
		q.Offset = &from
		if o.Limit != nil {
			left := *o.Limit - int64(len(lines))
			q.Limit = &left
		}
		page, err := c.ListLogs(ctx, q)
		if err != nil {
			return nil, err
		}
		lines = append(lines, page.Logs...)
		if !page.HasMore || len(page.Logs) == 0 || o.Limit != nil && int64(len(lines)) >= *o.Limit {
			return lines, nil
		}
	}
}

// NotPortable is implemented by a thread's state that lets platform-specific
// values be reached. It is no part of the portable interface, and a tool that
// uses it can be neither packed nor shared. Ask for it with a type
// assertion, and do without what is not there.
type NotPortable interface {
	// RuntimeContext gives the values by name.
	RuntimeContext() map[string]any
}

// RuntimeContext gives what a thread at rest has: threadInstance, the *Client;
// nats, its *nats.Conn; js, its jetstream.JetStream, of which the credentials may
// allow nothing. There is no env outside of an execution.
func (t *ThreadState) RuntimeContext() map[string]any {
	values := map[string]any{"threadInstance": t.client, "nats": t.client.nc}
	if js, err := jetstream.New(t.client.nc); err == nil {
		values["js"] = js
	}
	return values
}
