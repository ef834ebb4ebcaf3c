package client

import (
	"context"

	"github.com/google/uuid"

	"github.com/skein-threads/skein/events"
)

// Request is a command as a caller gives it. Data is what the command takes,
// such as events.CreateItem, or any JSON object.
type Request struct {
	ThreadID        string // an id, or key: and a thread's key; a command that makes a thread may leave it out
	Data            any
	CommandID       string // default a new UUIDv7; the same id within 24 hours gives the first answer again
	ExpectedVersion *int64 // the version that the thread must have; 0: it must not be there
	Actor           string // default Options.Actor
}

// Option changes one call of a command.
type Option func(*Request)

// CommandID gives the command an id, so that calling again is safe also after
// this process has ended.
func CommandID(id string) Option { return func(r *Request) { r.CommandID = id } }

// ExpectVersion has the command refused with version_conflict unless the thread
// has that version.
func ExpectVersion(version int64) Option { return func(r *Request) { r.ExpectedVersion = &version } }

// As says who asks.
func As(actor string) Option { return func(r *Request) { r.Actor = actor } }

// ThreadID gives a new thread its id.
func ThreadID(id string) Option { return func(r *Request) { r.ThreadID = id } }

// Do does a command, noun.verb, and returns when it is durable, or is refused
// with an *events.Error.
func (c *Client) Do(ctx context.Context, name string, r Request) (*events.Reply, error) {
	body, id, err := c.command(r)
	if err != nil {
		return nil, err
	}
	answer, refusal := c.request(ctx, c.opts.Names.Command(c.opts.Tenant, name), body)
	if refusal != nil {
		if refusal.Details != nil && refusal.Details.Outcome == unknown {
			refusal.Details.ID = id // to be used again
		}
		return nil, refusal
	}
	return decode[events.Reply](answer)
}

// command writes the body of a command, and gives the command's id.
func (c *Client) command(r Request) (body []byte, id string, err error) {
	req := events.Request{CommandID: r.CommandID, ThreadID: r.ThreadID, ExpectedVersion: r.ExpectedVersion, Actor: r.Actor}
	if req.CommandID == "" {
		req.CommandID = uuid.Must(uuid.NewV7()).String()
	}
	if req.Actor == "" {
		req.Actor = c.opts.Actor
	}
	if r.Data != nil {
		if req.Data, err = encode(r.Data); err != nil {
			return nil, "", err
		}
	}
	body, err = encode(req)
	return body, req.CommandID, err
}

// on does a command on a thread.
func (c *Client) on(ctx context.Context, name, thread string, data any, opts []Option) (*events.Reply, error) {
	r := Request{ThreadID: thread, Data: data}
	for _, apply := range opts {
		apply(&r)
	}
	if name == "thread.create" && r.ThreadID == "" && r.CommandID == "" {
		// A time-ordered id. With a command id of the caller's own the server derives
		// it from that, so that a repeat from another process finds the same thread.
		r.ThreadID = "T-" + uuid.Must(uuid.NewV7()).String()
	}
	return c.Do(ctx, name, r)
}

// Sub gives a command as a part of Commit. The error says that data cannot be
// written as JSON.
func Sub(name string, data any) (events.SubCommand, error) {
	raw, err := encode(data)
	return events.SubCommand{Command: name, Data: raw}, err
}

// CreateThread makes a thread with its default context; see [ThreadID].
func (c *Client) CreateThread(ctx context.Context, d events.CreateThread, opts ...Option) (*events.Reply, error) {
	return c.on(ctx, "thread.create", "", d, opts)
}

// ResolveThread finds the thread of a key, or makes it.
func (c *Client) ResolveThread(ctx context.Context, d events.ResolveThread, opts ...Option) (*events.Reply, error) {
	return c.on(ctx, "thread.resolve", "", d, opts)
}

// SetThreadStatus moves the thread's machine.
func (c *Client) SetThreadStatus(ctx context.Context, thread string, d events.SetThreadStatus, opts ...Option) (*events.Reply, error) {
	return c.on(ctx, "thread.status", thread, d, opts)
}

// UpdateThread changes what describes a thread.
func (c *Client) UpdateThread(ctx context.Context, thread string, d events.UpdateThread, opts ...Option) (*events.Reply, error) {
	return c.on(ctx, "thread.update", thread, d, opts)
}

// FinishThread records that a react is over.
func (c *Client) FinishThread(ctx context.Context, thread string, d events.FinishThread, opts ...Option) (*events.Reply, error) {
	return c.on(ctx, "thread.finish", thread, d, opts)
}

// DeleteThread deletes a thread for good.
func (c *Client) DeleteThread(ctx context.Context, thread string, d events.DeleteThread, opts ...Option) (*events.Reply, error) {
	return c.on(ctx, "thread.delete", thread, d, opts)
}

// Commit does several commands in one atomic commit, or none of them; see [Sub].
func (c *Client) Commit(ctx context.Context, thread string, commands []events.SubCommand, opts ...Option) (*events.Reply, error) {
	return c.on(ctx, "thread.commit", thread, events.CommitThread{Commands: commands}, opts)
}

// CreateContext makes another context on a thread.
func (c *Client) CreateContext(ctx context.Context, thread string, d events.CreateContext, opts ...Option) (*events.Reply, error) {
	return c.on(ctx, "context.create", thread, d, opts)
}

// ResolveContext finds the context of a key, or makes it.
func (c *Client) ResolveContext(ctx context.Context, thread string, d events.ResolveContext, opts ...Option) (*events.Reply, error) {
	return c.on(ctx, "context.resolve", thread, d, opts)
}

// SetContextStatus moves a context's machine.
func (c *Client) SetContextStatus(ctx context.Context, thread string, d events.SetContextStatus, opts ...Option) (*events.Reply, error) {
	return c.on(ctx, "context.status", thread, d, opts)
}

// SetContext replaces or patches a context's content.
func (c *Client) SetContext(ctx context.Context, thread string, d events.SetContext, opts ...Option) (*events.Reply, error) {
	return c.on(ctx, "context.set", thread, d, opts)
}

// CreateItem adds an item to a context of a thread.
func (c *Client) CreateItem(ctx context.Context, thread string, d events.CreateItem, opts ...Option) (*events.Reply, error) {
	return c.on(ctx, "item.create", thread, d, opts)
}

// SetItemStatus moves an item's machine.
func (c *Client) SetItemStatus(ctx context.Context, thread string, d events.SetItemStatus, opts ...Option) (*events.Reply, error) {
	return c.on(ctx, "item.status", thread, d, opts)
}

// EditMessage changes what an item shows.
func (c *Client) EditMessage(ctx context.Context, thread string, d events.EditMessage, opts ...Option) (*events.Reply, error) {
	return c.on(ctx, "message.edit", thread, d, opts)
}

// DeleteMessage hides an item from every view.
func (c *Client) DeleteMessage(ctx context.Context, thread string, d events.DeleteMessage, opts ...Option) (*events.Reply, error) {
	return c.on(ctx, "message.delete", thread, d, opts)
}

// CreateExecution begins an execution.
func (c *Client) CreateExecution(ctx context.Context, thread string, d events.CreateExecution, opts ...Option) (*events.Reply, error) {
	return c.on(ctx, "execution.create", thread, d, opts)
}

// SetExecutionStatus moves an execution's machine.
func (c *Client) SetExecutionStatus(ctx context.Context, thread string, d events.SetExecutionStatus, opts ...Option) (*events.Reply, error) {
	return c.on(ctx, "execution.status", thread, d, opts)
}

// CreateStep begins a step of an execution.
func (c *Client) CreateStep(ctx context.Context, thread string, d events.CreateStep, opts ...Option) (*events.Reply, error) {
	return c.on(ctx, "step.create", thread, d, opts)
}

// SetStepStatus moves a step's machine and records what came of it.
func (c *Client) SetStepStatus(ctx context.Context, thread string, d events.SetStepStatus, opts ...Option) (*events.Reply, error) {
	return c.on(ctx, "step.status", thread, d, opts)
}

// PutPart creates or replaces a part of a step.
func (c *Client) PutPart(ctx context.Context, thread string, d events.PutPart, opts ...Option) (*events.Reply, error) {
	return c.on(ctx, "part.put", thread, d, opts)
}
