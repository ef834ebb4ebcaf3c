package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

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
// durable; a refusal is an *events.Error. [Client.Send] takes the name from the type of the
// data. A name that no command can have is an invalid_request, and nothing is sent.
func (c *Client) Do(ctx context.Context, name string, r Request) (*events.Reply, error) {
	if err := checkName("command", name); err != nil {
		return nil, err
	}
	command, err := c.command(r)
	if err != nil {
		return nil, err
	}
	if c.call != nil && r.CommandID == "" {
		command.CommandID = c.call.commandID(name, r.ThreadID, command.Data)
	}
	reply, refusal := c.execute(ctx, name, command)
	if refusal != nil {
		if refusal.Details != nil && refusal.Details.Outcome == unknown {
			refusal.Details.ID = command.CommandID // so that the caller can repeat the command
		}
		return nil, refusal
	}
	return reply, nil
}

// command returns a command as it is requested, with its data encoded.
func (c *Client) command(r Request) (*events.Request, error) {
	req := &events.Request{CommandID: r.CommandID, ThreadID: r.ThreadID, ExpectedVersion: r.ExpectedVersion, Actor: r.Actor, WriterToken: r.WriterToken, Rights: c.rights}
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
		var err error
		if req.Data, err = encode(r.Data); err != nil {
			return nil, err
		}
	}
	return req, nil
}

// Send executes the command whose data is d, such as an events.CreateItem, on a thread, and
// returns like Do. The thread is "" for a command of the tenant, and for a thread that d
// creates; see [ThreadID].
func (c *Client) Send(ctx context.Context, thread string, d any, opts ...Option) (*events.Reply, error) {
	row, ok := events.CommandOf(d)
	if !ok {
		return nil, events.Invalid("", "no command has data of type %T; see events.Commands", d)
	}
	r := Request{ThreadID: thread, Data: d}
	for _, apply := range opts {
		apply(&r)
	}
	if _, creates := d.(events.CreateThread); creates && r.ThreadID == "" && r.CommandID == "" {
		// A time-ordered id. If the caller set a command id, the server derives the
		// thread's id from it, so that a repeat from another process finds the same
		// thread.
		r.ThreadID = "T-" + uuid.Must(uuid.NewV7()).String()
	}
	return c.Do(ctx, row.Name, r)
}

// Sub returns a command as a part of Commit. The error is an invalid_request if data
// cannot be encoded as JSON.
func Sub(name string, data any) (events.SubCommand, error) {
	raw, err := encode(data)
	return events.SubCommand{Command: name, Data: raw}, err
}

// Commit executes several commands in one atomic commit, or none of them; see [Sub].
func (c *Client) Commit(ctx context.Context, thread string, commands []events.SubCommand, opts ...Option) (*events.Reply, error) {
	return c.Send(ctx, thread, events.CommitThread{Commands: commands}, opts...)
}

// stored is the stream's acknowledgement of a submitted command.
type stored struct {
	Seq   int64 `json:"seq"`
	Error *struct {
		Code        int    `json:"code"`
		Description string `json:"description"`
	} `json:"error"`
}

// Submit stores a command for asynchronous execution, and returns its sequence among
// the submitted commands once it is durable. It is executed once, in the order of its
// thread, even if it was stored twice: its id identifies it. A refusal is not returned
// here; it appears on the timeline as command.rejected.
func (c *Client) Submit(ctx context.Context, name string, r Request) (int64, error) {
	if err := checkName("command", name); err != nil {
		return 0, err
	}
	command, err := c.command(r)
	if err != nil {
		return 0, err
	}
	ctx, cancel := c.limited(ctx)
	defer cancel()
	subject := c.opts.Names.Submit(c.opts.Tenant, name)
	for attempts := requests().Start(); ; {
		seq, err := c.submitOnce(ctx, subject, *command)
		var refused *events.Error
		switch {
		case err == nil:
			return seq, nil
		case errors.As(err, &refused) && !refused.Retry():
			return 0, refused
		case c.nc.IsClosed() || attempts.Wait(ctx) != nil:
			return 0, unknownOutcome(events.Errorf(events.Unavailable, "the command may not be stored; submit it again with the id %s: %w", command.CommandID, err))
		}
	}
}

func (c *Client) submitOnce(ctx context.Context, subject string, command events.Request) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	ctx, watched := c.denied.watch(ctx, subject)
	defer watched()
	var body, data []byte
	_, err := c.guardedCommand(ctx, subject, &command, func() (_ *events.Reply, err error) {
		if body, err = encode(command); err != nil {
			return nil, err
		}
		reply, err := c.nc.RequestMsgWithContext(ctx, c.message(subject, body))
		if err != nil {
			return nil, err
		}
		data = reply.Data
		return nil, nil
	})
	if errors.Is(context.Cause(ctx), errDenied) {
		err = nats.ErrPermissionViolation
	}
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		return 0, events.TooLarge("the request", int64(len(body)), c.nc.MaxPayload())
	case errors.Is(err, nats.ErrPermissionViolation):
		return 0, events.Errorf(events.Forbidden, "these credentials may not submit on %s: %w", subject, err)
	case err != nil:
		return 0, err
	}
	var ack stored
	if err := json.Unmarshal(data, &ack); err != nil {
		return 0, fmt.Errorf("read the acknowledgement: %w", err)
	}
	switch e := ack.Error; {
	case e == nil:
		return ack.Seq, nil
	case e.Code < 500 && e.Code != 429:
		return 0, events.Errorf(events.InvalidRequest, "the command was not stored: %s", e.Description)
	default:
		return 0, errors.New(e.Description)
	}
}
