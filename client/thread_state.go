package client

import (
	"context"
	"errors"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/events"
)

// ThreadState is a thread as Standard Agents defines it: the same operations for every
// caller. This one is for callers outside an execution. It exposes nothing of storage
// or streams.
//
// Each handle reads its own writes. A method returns an error for an invalid request
// and if the service cannot be reached; what does not exist is nil, false or an empty
// list. It is safe for concurrent use, and need not be closed.
type ThreadState struct {
	files   *Files
	client  *Client
	id      string
	created int64
	scratch sync.Map
	charge  func() string // the agent in charge, or nil; see Known
	floor   func() int64  // the commit that reads show at least, or nil

	mu      sync.Mutex // guards the fields below
	agent   string
	user    *string
	seq     int64  // of this handle's latest commit
	emitter string // names this handle to subscribers; set when first needed
	sent    int64  // number of live events
}

// Thread returns a thread's state, by the thread's id or "key:" and its key. The error
// is a not_found if there is no such thread.
func (c *Client) Thread(ctx context.Context, idOrKey string) (*ThreadState, error) {
	t := &ThreadState{client: c}
	doc, err := Read(ctx, c, events.GetThread{ThreadID: idOrKey})
	if err != nil {
		return nil, err
	}
	t.id, t.created, t.files = doc.ID, doc.CreatedAtMicros, c.Files(doc.ID)
	t.noteDocument(doc)
	return t, nil
}

// noteDocument notes the properties of a thread's document that may change.
func (t *ThreadState) noteDocument(doc *events.Thread) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.agent, t.user = doc.AgentID, nil
	if doc.UserID != "" {
		t.user = &doc.UserID
	}
}

// Refresh reads the agent and the user of the thread again: an agent may have handed it
// over since.
func (t *ThreadState) Refresh(ctx context.Context) error {
	doc, err := Read(ctx, t.reader(), events.GetThread{ThreadID: t.id})
	if err == nil {
		t.noteDocument(doc)
	}
	return err
}

// ThreadID returns the thread's id.
func (t *ThreadState) ThreadID() string { return t.id }

// AgentID returns the agent in charge: the current one if the handle was made by Attach, else as of
// its creation or last Refresh; empty if there is none.
func (t *ThreadState) AgentID() string {
	if t.charge != nil {
		return t.charge()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.agent
}

// UserID returns the user of the thread, as of the handle's creation or last Refresh;
// nil if there is none.
func (t *ThreadState) UserID() *string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.user == nil {
		return nil
	}
	user := *t.user
	return &user
}

// CreatedAt returns when the thread was created, in microseconds since the epoch.
func (t *ThreadState) CreatedAt() int64 { return t.created }

// Scratch returns a map for the caller's own values, which lives as long as the handle
// and is not stored.
func (t *ThreadState) Scratch() *sync.Map { return &t.scratch }

// Execution returns nil: a handle outside an execution has none, even while a run is
// active.
func (t *ThreadState) Execution() events.ExecutionState { return nil }

// reader returns a client that reads this handle's writes.
func (t *ThreadState) reader() *Client {
	t.mu.Lock()
	seq := t.seq
	t.mu.Unlock()
	if t.floor != nil {
		seq = max(seq, t.floor())
	}
	return t.client.WithMinSeq(seq)
}

// noteWrite notes a commit of this handle.
func (t *ThreadState) noteWrite(seq int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seq = max(t.seq, seq)
}

// GetMessages returns messages, newest first unless the options say otherwise; all
// matches if there is no limit. Total is the number of matches, and HasMore reports
// whether there are more than were returned.
func (t *ThreadState) GetMessages(ctx context.Context, o events.GetMessagesOptions) (*events.MessageList, error) {
	q := events.ListMessages{ThreadID: t.id, GetMessagesOptions: o}
	all, c := (*events.MessageList)(nil), t.reader()
	for {
		page, err := Read(ctx, c, q)
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

// errNoID is the refusal of an empty message id.
func errNoID() error { return events.Invalid("/messageId", "a message's id is required") }

// GetMessage returns a message, nil if there is none with that id.
func (t *ThreadState) GetMessage(ctx context.Context, id string) (*events.ThreadMessage, error) {
	switch {
	case id == "":
		return nil, errNoID()
	case !events.ValidID(id):
		return nil, nil
	}
	return Read(ctx, t.reader(), events.GetMessage{ThreadID: t.id, MessageID: id})
}

// InjectMessage adds a message, and returns it as stored.
func (t *ThreadState) InjectMessage(ctx context.Context, m events.AddMessage) (*events.ThreadMessage, error) {
	reply, err := t.client.Send(ctx, t.id, m)
	if err != nil {
		return nil, err
	}
	t.noteWrite(reply.Seq)
	return t.mustGetMessage(ctx, reply.Result.ItemID)
}

// UpdateMessage changes a message, and returns it as stored. The error is a not_found
// if there is none with that id.
func (t *ThreadState) UpdateMessage(ctx context.Context, id string, u events.MessageUpdates) (*events.ThreadMessage, error) {
	switch {
	case id == "":
		return nil, errNoID()
	case !events.ValidID(id):
		return nil, events.Missing("message", id)
	}
	reply, err := t.client.Send(ctx, t.id, events.UpdateMessage{MessageID: id, MessageUpdates: u})
	if err != nil {
		return nil, err
	}
	t.noteWrite(reply.Seq)
	return t.mustGetMessage(ctx, id)
}

// mustGetMessage returns a message that must exist.
func (t *ThreadState) mustGetMessage(ctx context.Context, id string) (*events.ThreadMessage, error) {
	m, err := t.GetMessage(ctx, id)
	if err == nil && m == nil {
		err = events.Missing("message", id)
	}
	return m, err
}

// DeleteMessage hides a message, and the calls that are part of it, from every view. It
// reports whether there was one.
func (t *ThreadState) DeleteMessage(ctx context.Context, id string) (bool, error) {
	switch {
	case id == "":
		return false, errNoID()
	case !events.ValidID(id):
		return false, nil
	}
	reply, err := t.client.Send(ctx, t.id, events.DeleteMessage{ItemID: id})
	var refusal *events.Error
	switch {
	case err == nil:
		t.noteWrite(reply.Seq)
		return true, nil
	case errors.As(err, &refusal) && refusal.Code == events.NotFound && refusal.Details != nil && refusal.Details.Entity == "item":
		return false, nil
	}
	return false, err
}

// GetLogs returns log lines, newest first unless the options say otherwise; all matches
// if there is no limit.
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
		page, err := Read(ctx, c, q)
		if err != nil {
			return nil, err
		}
		lines = append(lines, page.Logs...)
		if !page.HasMore || len(page.Logs) == 0 || o.Limit != nil && int64(len(lines)) >= *o.Limit {
			return lines, nil
		}
	}
}

// NotPortable is implemented by thread states that expose platform-specific values. It
// is not part of the portable interface, and a tool that uses it can be neither packed
// nor shared. Use a type assertion, and do without missing values.
type NotPortable interface {
	// RuntimeContext returns the values by name.
	RuntimeContext() map[string]any
}

// RuntimeContext returns what an idle thread has: threadInstance, the *Client; without a guard also nats,
// its *nats.Conn; js, its jetstream.JetStream, for which the credentials may permit
// nothing. env exists only during an execution.
func (t *ThreadState) RuntimeContext() map[string]any {
	if t.client.opts.Guard != nil { // the connection may do more than the client
		return map[string]any{"threadInstance": t.client}
	}
	values := map[string]any{"threadInstance": t.client, "nats": t.client.nc}
	if js, err := jetstream.New(t.client.nc); err == nil {
		values["js"] = js
	}
	return values
}

// Known is what a program knows about a thread without a query, such as a worker about
// the thread of its run.
type Known struct {
	ThreadID  string
	CreatedAt int64         // in microseconds since the epoch
	UserID    *string       // nil: no user
	AgentID   func() string // the agent currently in charge
	Seq       func() int64  // reads show at least this commit; it may grow
}

// Attach returns the state of a thread that the caller knows already. It sends no
// request; a method reports if the thread does not exist.
func (c *Client) Attach(k Known) *ThreadState {
	own := c.Files(k.ThreadID)
	own.floor = k.Seq
	return &ThreadState{files: own, client: c, id: k.ThreadID, created: k.CreatedAt, user: k.UserID, charge: k.AgentID, floor: k.Seq}
}
