package client

import (
	"context"

	"github.com/google/uuid"

	"github.com/skein-threads/skein/events"
)

// Request is a command. Data is its body: a struct such as events.CreateItem, or any
// value that encodes as a JSON object.
type Request struct {
	ThreadID        string // an id, or "key:" and a thread's key; optional for a command that creates a thread
	Data            any
	CommandID       string // default a new UUIDv7; within 24 hours a repeated id returns the first reply
	ExpectedVersion *int64 // the version that the thread must have; 0: it must not exist
	Actor           string // default Options.Actor
	WriterToken     string // of writer.claim, if the caller holds the thread; default that of AsWriter
}

// Option configures one call of a command.
type Option func(*Request)

// CommandID sets the id of the command, so that repeating it is safe even after this
// process has ended.
func CommandID(id string) Option { return func(r *Request) { r.CommandID = id } }

// ExpectVersion makes the command fail with version_conflict unless the thread has that
// version.
func ExpectVersion(version int64) Option { return func(r *Request) { r.ExpectedVersion = &version } }

// As sets who acts, for the audit.
func As(actor string) Option { return func(r *Request) { r.Actor = actor } }

// ThreadID sets the id of a new thread.
func ThreadID(id string) Option { return func(r *Request) { r.ThreadID = id } }

// Do executes a command, named noun.verb. It returns when the command's events are
// durable; a refusal is an *events.Error.
func (c *Client) Do(ctx context.Context, name string, r Request) (*events.Reply, error) {
	if c.call != nil && r.CommandID == "" {
		data, err := encode(r.Data)
		if err != nil {
			return nil, err
		}
		r.CommandID = c.call.commandID(name, r.ThreadID, data)
	}
	body, id, err := c.command(r)
	if err != nil {
		return nil, err
	}
	answer, refusal := c.request(ctx, c.opts.Names.Command(c.opts.Tenant, name), body)
	if refusal != nil {
		if refusal.Details != nil && refusal.Details.Outcome == unknown {
			refusal.Details.ID = id // so that the caller can repeat the command
		}
		return nil, refusal
	}
	return decode[events.Reply](answer)
}

// command encodes a command, and returns the body and the command's id.
func (c *Client) command(r Request) (body []byte, id string, err error) {
	req := events.Request{CommandID: r.CommandID, ThreadID: r.ThreadID, ExpectedVersion: r.ExpectedVersion, Actor: r.Actor, WriterToken: r.WriterToken}
	if req.CommandID == "" {
		req.CommandID = uuid.Must(uuid.NewV7()).String()
	}
	if req.Actor == "" {
		req.Actor = c.opts.Actor
	}
	if req.WriterToken == "" {
		req.WriterToken = c.writer
	}
	if r.Data != nil {
		if req.Data, err = encode(r.Data); err != nil {
			return nil, "", err
		}
	}
	body, err = encode(req)
	return body, req.CommandID, err
}

// executeOn executes a command on a thread.
func (c *Client) executeOn(ctx context.Context, name, thread string, data any, opts []Option) (*events.Reply, error) {
	r := Request{ThreadID: thread, Data: data}
	for _, apply := range opts {
		apply(&r)
	}
	if name == "thread.create" && r.ThreadID == "" && r.CommandID == "" {
		// A time-ordered id. If the caller set a command id, the server derives the
		// thread's id from it, so that a repeat from another process finds the same
		// thread.
		r.ThreadID = "T-" + uuid.Must(uuid.NewV7()).String()
	}
	return c.Do(ctx, name, r)
}

// Sub returns a command as a part of Commit. The error is an invalid_request if data
// cannot be encoded as JSON.
func Sub(name string, data any) (events.SubCommand, error) {
	raw, err := encode(data)
	return events.SubCommand{Command: name, Data: raw}, err
}

// Send executes the command whose data is d, such as an events.SetContext, on a thread.
// It serves every command, also one that has no method of its own here.
func Send(ctx context.Context, c *Client, thread string, d any, opts ...Option) (*events.Reply, error) {
	row, ok := events.CommandOf(d)
	if !ok {
		return nil, events.Invalid("", "no command has data of type %T; see events.Commands", d)
	}
	return c.executeOn(ctx, row.Name, thread, d, opts)
}

// CreateThread creates a thread with its default context; see [ThreadID].
func (c *Client) CreateThread(ctx context.Context, d events.CreateThread, opts ...Option) (*events.Reply, error) {
	return c.executeOn(ctx, "thread.create", "", d, opts)
}

// ResolveThread returns the thread with a key, and creates it if there is none.
func (c *Client) ResolveThread(ctx context.Context, d events.ResolveThread, opts ...Option) (*events.Reply, error) {
	return c.executeOn(ctx, "thread.resolve", "", d, opts)
}

// SetThreadStatus changes a thread's status, as its state machine permits.
func (c *Client) SetThreadStatus(ctx context.Context, thread string, d events.SetThreadStatus, opts ...Option) (*events.Reply, error) {
	return c.executeOn(ctx, "thread.status", thread, d, opts)
}

// UpdateThread changes a thread's description, metadata and policies.
func (c *Client) UpdateThread(ctx context.Context, thread string, d events.UpdateThread, opts ...Option) (*events.Reply, error) {
	return c.executeOn(ctx, "thread.update", thread, d, opts)
}

// FinishThread records that a react has finished.
func (c *Client) FinishThread(ctx context.Context, thread string, d events.FinishThread, opts ...Option) (*events.Reply, error) {
	return c.executeOn(ctx, "thread.finish", thread, d, opts)
}

// DeleteThread deletes a thread permanently.
func (c *Client) DeleteThread(ctx context.Context, thread string, d events.DeleteThread, opts ...Option) (*events.Reply, error) {
	return c.executeOn(ctx, "thread.delete", thread, d, opts)
}

// Commit executes several commands in one atomic commit, or none of them; see [Sub].
func (c *Client) Commit(ctx context.Context, thread string, commands []events.SubCommand, opts ...Option) (*events.Reply, error) {
	return c.executeOn(ctx, "thread.commit", thread, events.CommitThread{Commands: commands}, opts)
}

// CreateContext creates another context on a thread.
func (c *Client) CreateContext(ctx context.Context, thread string, d events.CreateContext, opts ...Option) (*events.Reply, error) {
	return c.executeOn(ctx, "context.create", thread, d, opts)
}

// ResolveContext returns the context with a key, and creates it if there is none.
func (c *Client) ResolveContext(ctx context.Context, thread string, d events.ResolveContext, opts ...Option) (*events.Reply, error) {
	return c.executeOn(ctx, "context.resolve", thread, d, opts)
}

// SetContextStatus changes a context's status, as its state machine permits.
func (c *Client) SetContextStatus(ctx context.Context, thread string, d events.SetContextStatus, opts ...Option) (*events.Reply, error) {
	return c.executeOn(ctx, "context.status", thread, d, opts)
}

// SetContext replaces or patches a context's content.
func (c *Client) SetContext(ctx context.Context, thread string, d events.SetContext, opts ...Option) (*events.Reply, error) {
	return c.executeOn(ctx, "context.set", thread, d, opts)
}

// CreateItem adds an item to a context of a thread.
func (c *Client) CreateItem(ctx context.Context, thread string, d events.CreateItem, opts ...Option) (*events.Reply, error) {
	return c.executeOn(ctx, "item.create", thread, d, opts)
}

// SetItemStatus changes an item's status, as its state machine permits.
func (c *Client) SetItemStatus(ctx context.Context, thread string, d events.SetItemStatus, opts ...Option) (*events.Reply, error) {
	return c.executeOn(ctx, "item.status", thread, d, opts)
}

// EditMessage changes an item's content.
func (c *Client) EditMessage(ctx context.Context, thread string, d events.EditMessage, opts ...Option) (*events.Reply, error) {
	return c.executeOn(ctx, "message.edit", thread, d, opts)
}

// DeleteMessage hides an item from every view.
func (c *Client) DeleteMessage(ctx context.Context, thread string, d events.DeleteMessage, opts ...Option) (*events.Reply, error) {
	return c.executeOn(ctx, "message.delete", thread, d, opts)
}

// CreateExecution starts an execution.
func (c *Client) CreateExecution(ctx context.Context, thread string, d events.CreateExecution, opts ...Option) (*events.Reply, error) {
	return c.executeOn(ctx, "execution.create", thread, d, opts)
}

// SetExecutionStatus changes an execution's status, as its state machine permits.
func (c *Client) SetExecutionStatus(ctx context.Context, thread string, d events.SetExecutionStatus, opts ...Option) (*events.Reply, error) {
	return c.executeOn(ctx, "execution.status", thread, d, opts)
}

// CreateStep starts a step of an execution.
func (c *Client) CreateStep(ctx context.Context, thread string, d events.CreateStep, opts ...Option) (*events.Reply, error) {
	return c.executeOn(ctx, "step.create", thread, d, opts)
}

// SetStepStatus changes a step's status and records its outcome.
func (c *Client) SetStepStatus(ctx context.Context, thread string, d events.SetStepStatus, opts ...Option) (*events.Reply, error) {
	return c.executeOn(ctx, "step.status", thread, d, opts)
}

// PutPart creates or replaces a part of a step.
func (c *Client) PutPart(ctx context.Context, thread string, d events.PutPart, opts ...Option) (*events.Reply, error) {
	return c.executeOn(ctx, "part.put", thread, d, opts)
}
