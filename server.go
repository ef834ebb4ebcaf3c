package skein

import (
	"context"
	"net/http"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/internal/serve"
	"github.com/skein-threads/skein/runtime"
)

// Server is a running Skein. It is safe for concurrent use.
type Server struct {
	registry *runtime.Registry
	server   *serve.Server
}

// Addresses are the URLs at which a server is reached, without credentials; empty
// where it listens nowhere.
type Addresses = serve.Addresses

// Start starts a Skein and returns when it takes commands and queries. ctx bounds the
// start; end the server with Stop. With an error nothing is left running.
func Start(ctx context.Context, o Options) (*Server, error) {
	s := &Server{}
	cfg := o.config()
	cfg.Register = func(r *runtime.Registry) error {
		s.registry = r
		if o.Setup == nil {
			return nil
		}
		return o.Setup(s)
	}
	server, err := serve.Start(ctx, cfg, o.Logger)
	if err != nil {
		return nil, err
	}
	s.server, s.registry = server, server.Registry()
	return s, nil
}

// Reactor registers a reactor: agents whose definition names it, and agents of that
// very name which nobody has defined, generate with it. The error is an
// *events.Error: invalid_request for a bad name, already_exists if the name is taken.
func (s *Server) Reactor(name string, react ReactorFunc) error {
	return s.registry.AddReactor(name, react)
}

// Tool registers a tool under the name in its spec. Errors as of Reactor, and what is
// wrong with the definition of the tool.
func (s *Server) Tool(t Tool) error {
	if broken, ok := t.(invalidTool); ok {
		return broken.err
	}
	return s.registry.AddTool(t)
}

// Effect registers an effect. Errors as of Reactor.
func (s *Server) Effect(name string, run EffectFunc) error { return s.registry.AddEffect(name, run) }

// Hook registers hooks for the agents whose definition names them. Errors as of
// Reactor. Options.Hooks are those of every run.
func (s *Server) Hook(name string, hooks Hooks) error { return s.registry.AddHooks(name, hooks) }

// Continue sets the loop policy of an agent, of every tenant: it reports whether
// another step follows one that has come to this, and goes before what the agent's
// definition says. Limits hold, and a run that was stopped ends. Errors as of Reactor.
func (s *Server) Continue(agent string, policy Loop) error { return s.registry.AddLoop(agent, policy) }

// Client returns a client of a tenant, on a connection that is the server's: it works
// until Stop, and need not be closed. The error is an invalid_request for a name that
// is no tenant's.
func (s *Server) Client(tenant string) (*client.Client, error) { return s.server.Client(tenant) }

// Handler serves GET /healthz, /readyz and /metrics, for a program that has an HTTP
// server of its own.
func (s *Server) Handler() http.Handler { return s.server.Handler() }

// Addresses returns where the server is reached. They do not change.
func (s *Server) Addresses() Addresses { return s.server.Addresses() }

// Reload reads the folder of Options.Access again: new tenants, revoked users, new
// certificates. After an error everything is as it was.
func (s *Server) Reload() error { return s.server.Reload() }

// WaitIdle blocks until nothing is left to do: submitted commands are decided, no run
// is queued or worked at, no effect is due, and the read models and the timeline show
// the whole log. What waits for a person or for a later time counts as idle. The error
// is ctx's, with what was still busy. It is for tests and for the end of scripts.
func (s *Server) WaitIdle(ctx context.Context) error { return s.server.WaitIdle(ctx) }

// FireDue begins the effects that are due by Options.Now, and returns how many there
// are. Only a clock that was moved needs it.
func (s *Server) FireDue(ctx context.Context) (int, error) { return s.server.FireDue(ctx) }

// Stop takes no new requests, finishes and answers those in flight, lets runs reach a
// boundary, and closes everything, gracefully until ctx ends and then at once. It may
// be called any number of times; every call returns after the end, with the same
// error.
func (s *Server) Stop(ctx context.Context) error { return s.server.Stop(ctx) }
