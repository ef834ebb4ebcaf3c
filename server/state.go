package server

import (
	"context"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
)

// states returns threads as tools, hooks and effects of this process see them: with a
// client for each tenant, on one connection.
type states struct {
	nc    *nats.Conn
	names events.Names
	env   map[string]any
	warn  func(string)

	mu      sync.Mutex // guards the fields below
	clients map[string]*client.Client
}

// maxClients limits the cached clients, which are cheap to re-create.
const maxClients = 10_000

// of returns the client of a tenant.
func (s *states) of(tenant string) (*client.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := s.clients[tenant]; ok {
		return c, nil
	}
	c, err := client.New(s.nc, client.Options{Tenant: tenant, Names: s.names, Actor: "skein:run", Warn: s.warn})
	if err != nil {
		return nil, err
	}
	if len(s.clients) >= maxClients {
		clear(s.clients)
	}
	s.clients[tenant] = c
	return c, nil
}

// state is a runtime.State.
func (s *states) state(tenant, thread string, x *runtime.Execution) runtime.ThreadState {
	c, err := s.of(tenant)
	if err != nil { // the tenant of a stored event is valid
		return nil
	}
	c = client.WithRights(c, x.Rights())
	if key := x.Key(); key != "" {
		c = client.AsCall(c, key)
	}
	st := &threadState{client: c, x: x, ThreadState: c.Attach(client.Known{
		ThreadID: thread, CreatedAt: x.CreatedAt(), UserID: x.UserID(), AgentID: x.AgentID, Seq: x.Seq,
	})}
	if x.Portable() {
		return st
	}
	return &openState{st, s}
}

// threadState is a client's state of a thread, within an execution.
type threadState struct {
	runtime.ThreadState
	client *client.Client
	x      *runtime.Execution
}

// Scratch returns the execution's store, which everything in it shares.
func (t *threadState) Scratch() *sync.Map { return t.x.Scratch() }

// Execution returns the execution.
func (t *threadState) Execution() events.ExecutionState { return t.x }

// InvokeTool makes a call within the run. Outside a run, as in an effect, the call has
// a run of its own.
func (t *threadState) InvokeTool(ctx context.Context, name string, args any) (events.ToolResult, error) {
	if !t.x.InRun() {
		return t.ThreadState.InvokeTool(ctx, name, args)
	}
	raw, err := client.Arguments(args)
	if err != nil {
		return events.ToolResult{}, err
	}
	return t.x.Invoke(ctx, name, raw)
}

// RunAgent waits for a run, and so must not be called in one, except for a dual_ai
// agent, which runs elsewhere.
func (t *threadState) RunAgent(ctx context.Context, name string) error {
	if t.x.InRun() {
		switch a, err := client.Read(ctx, t.client.WithMinSeq(t.x.Seq()), events.GetAgent{Name: name}); {
		case err != nil:
			return err
		case a.Type != events.DualAI:
			return events.Errorf(events.IllegalTransition, "the agent %s would wait for the run in which it is asked; queue it as a tool, and it takes the thread over", name)
		}
	}
	return t.ThreadState.RunAgent(ctx, name)
}

// openState is the state for what may see its process: tools that are not portable,
// hooks and effects.
type openState struct {
	*threadState
	states *states
}

// RuntimeContext returns the values of the process: threadInstance, the tenant's
// *client.Client; nats and js; and env, as configured.
func (o *openState) RuntimeContext() map[string]any {
	values := o.ThreadState.(client.NotPortable).RuntimeContext()
	values["env"] = o.states.env
	return values
}

// Client returns a client of a tenant on a connection of the server, which is closed
// when the server stops.
func (s *Server) Client(tenant string) (*client.Client, error) {
	return client.New(s.clients, client.Options{Tenant: tenant, Names: s.cfg.Names})
}
