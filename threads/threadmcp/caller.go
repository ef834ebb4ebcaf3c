package threadmcp

import (
	"context"

	"github.com/google/uuid"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/threads/threadtools"
)

// CallerOptions configures a Caller.
type CallerOptions struct {
	Thread string // the thread for which the caller works: what it reads is recorded there; default none

	// Page returns the URL of a thread's page, for people; default its URI.
	Page func(id string) string
	// During ends the caller's requests when it ends; default never.
	During context.Context
	// ID names what the caller's one request writes, so that a repeat of it writes nothing; default none.
	ID uuid.UUID
	// Awaits refuses, before anything is written, to wait for a run; default nothing.
	Awaits func() error
}

// Caller makes requests with the credentials of a client. It is safe for concurrent use.
type Caller struct {
	client  *client.Client
	threads *threadtools.Reader
	page    func(id string) string
	during  context.Context
	id      uuid.UUID
	awaits  func() error
}

// NewCaller returns a caller. The client remains open.
func NewCaller(c *client.Client, o CallerOptions) *Caller {
	caller := &Caller{client: c, threads: threadtools.New(c), page: o.Page, during: o.During, id: o.ID, awaits: o.Awaits}
	if caller.page == nil {
		caller.page = uriOf
	}
	if caller.awaits == nil {
		caller.awaits = func() error { return nil }
	}
	if o.Thread != "" {
		caller.threads = caller.threads.For(o.Thread)
	}
	return caller
}

// once returns the options of the one command of a request.
func (c *Caller) once() []client.Option {
	if c.id == uuid.Nil {
		return nil
	}
	return []client.Option{client.CommandID("mcp-" + c.id.String())}
}

// callerKey is the key of a context's Caller.
type callerKey struct{}

// WithCaller returns a context in which requests are made by a caller. The sdk hands the values of a
// request of HTTP on to the handlers of its messages.
func WithCaller(ctx context.Context, c *Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// callerOf returns the caller that makes a request.
func (s *Server) callerOf(ctx context.Context) *Caller {
	if c, ok := ctx.Value(callerKey{}).(*Caller); ok {
		return c
	}
	return s.caller
}
