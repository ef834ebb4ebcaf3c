package skein

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync/atomic"

	"github.com/skein-threads/skein/api"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/server"
)

// Server is a running Skein. It is safe for concurrent use.
type Server struct {
	registry  *runtime.Registry
	endpoints *api.Endpoints
	server    atomic.Pointer[server.Server] // nil until it has started
}

// Addresses are the URLs at which a server can be reached, without credentials; empty
// for a disabled listener.
type Addresses = server.Addresses

// Start starts a Skein, and returns when it accepts commands and queries. ctx bounds
// the start only; end the server with Stop. If Start returns an error, or Setup panics,
// nothing is left running.
func Start(ctx context.Context, o Options) (*Server, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	s := &Server{endpoints: api.NewEndpoints()}
	cfg := o.config()
	cfg.Endpoints = s.endpoints
	var panicked any // what Setup panicked with
	cfg.Register = func(r *runtime.Registry) (err error) {
		s.registry = r
		if o.Setup == nil {
			return nil
		}
		defer func() {
			if panicked = recover(); panicked != nil { // again once everything has ended
				err = fmt.Errorf("skein: Options.Setup panicked: %v\n%s", panicked, debug.Stack())
			}
		}()
		return o.Setup(s)
	}
	server, err := server.Start(ctx, cfg, o.Logger)
	if panicked != nil {
		panic(err)
	}
	if err != nil {
		return nil, err
	}
	s.server.Store(server)
	return s, nil
}

// started returns the running server. The error says that Start has not returned.
func (s *Server) started() (*server.Server, error) {
	if server := s.server.Load(); server != nil {
		return server, nil
	}
	return nil, events.Errorf(events.Unavailable, "the server has not started: Options.Setup can only register; call this when Start has returned")
}

// Reactor registers a reactor. It generates the answers of agents whose definition
// names it, and of undefined agents with its name. The error is an *events.Error:
// invalid_request for a bad name, already_exists if the name is in use.
func (s *Server) Reactor(name string, react ReactorFunc) error {
	return s.registry.AddReactor(name, react)
}

// Tool registers a tool under the name in its spec. Errors are those of Reactor, and
// invalid_request for an invalid definition of the tool.
func (s *Server) Tool(t Tool) error {
	if broken, ok := t.(invalidTool); ok {
		return broken.err
	}
	return s.registry.AddTool(t)
}

// Effect registers an effect. Errors are those of Reactor.
func (s *Server) Effect(name string, run EffectFunc) error { return s.registry.AddEffect(name, run) }

// Hook registers hooks for the agents whose definition names them. Errors are those of
// Reactor. Options.Hooks apply to every run.
func (s *Server) Hook(name string, hooks Hooks) error { return s.registry.AddHooks(name, hooks) }

// Continue sets the loop policy of an agent, for every tenant: policy reports whether another step
// follows one with that outcome, and takes precedence over the agent's definition. Limits still
// apply, and a stopped run ends. It returns the same errors as Reactor.
func (s *Server) Continue(agent string, policy Loop) error { return s.registry.AddLoop(agent, policy) }

// Endpoint registers a handler of requests about one thread, made by
// api.DefineThreadEndpoint. It answers at /threads/{threadId}/{name} of Handler, with any
// method. Errors are those of Reactor; summary, messages, export and files are in use.
func (s *Server) Endpoint(name string, h http.Handler) error { return s.endpoints.Add(name, h) }

// Client returns a client of a tenant, on a connection that the server owns: it works
// until Stop, and need not be closed. The error is an invalid_request for an invalid
// tenant name, and unavailable within Options.Setup, as that of the other methods below.
func (s *Server) Client(tenant string) (*client.Client, error) {
	server, err := s.started()
	if err != nil {
		return nil, err
	}
	return server.Client(tenant)
}

// Handler serves everything that Skein has over HTTP, for a program with its own HTTP
// server: GET /healthz, /readyz and /metrics, and the API. One that Options.Setup takes answers
// 503 until the server has started.
func (s *Server) Handler() http.Handler {
	if server := s.server.Load(); server != nil {
		return server.Handler()
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server, err := s.started()
		if err != nil {
			http.Error(w, "the server has not started", http.StatusServiceUnavailable)
			return
		}
		server.Handler().ServeHTTP(w, r)
	})
}

// Addresses returns the addresses of the server. They do not change; within Options.Setup they
// are not known, and empty.
func (s *Server) Addresses() Addresses {
	if server := s.server.Load(); server != nil {
		return server.Addresses()
	}
	return Addresses{}
}

// Reload reads the folder of Options.Access again: new tenants, revoked users, new
// certificates. If it returns an error, nothing has changed.
func (s *Server) Reload() error {
	server, err := s.started()
	if err != nil {
		return err
	}
	return server.Reload()
}

// WaitIdle blocks until no work is left: submitted commands are decided, no run is
// queued or active, no effect is due, and the read models and the timeline show the
// whole log. Work that waits for a person or for a later time counts as idle. The error
// is ctx's, and names what was still busy. It is for tests and for the end of scripts.
func (s *Server) WaitIdle(ctx context.Context) error {
	server, err := s.started()
	if err != nil {
		return err
	}
	return server.WaitIdle(ctx)
}

// FireDue starts the effects that are due by Options.Now, and returns their number.
// Only a clock that was advanced by hand needs it.
func (s *Server) FireDue(ctx context.Context) (int, error) {
	server, err := s.started()
	if err != nil {
		return 0, err
	}
	return server.FireDue(ctx)
}

// Stop refuses new requests, finishes and answers those in flight, lets runs reach a
// boundary, and closes everything: gracefully until ctx ends, then immediately. It may
// be called any number of times; every call returns after the end, with the same error: the
// store is free then. A reactor or tool that ignores the end of its context may still run.
func (s *Server) Stop(ctx context.Context) error {
	server, err := s.started()
	if err != nil {
		return err
	}
	return server.Stop(ctx)
}
