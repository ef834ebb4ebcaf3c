package agents

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/query"
	"github.com/skein-threads/skein/quota"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/egress"
	"github.com/skein-threads/skein/runtime/mcp"
	"github.com/skein-threads/skein/runtime/remote"
)

// Config configures a Directory. Definitions, Registry, Conn and Names are required.
type Config struct {
	Definitions *query.Definitions
	Registry    *runtime.Registry
	BuiltIn     []runtime.Tool // where neither the tenant nor Registry has a tool of that name
	Conn        *nats.Conn
	Names       events.Names
	// CatchUp waits until the definitions show what the tenant has defined through this
	// process or, with all, through any process. It is called before a name counts as
	// undefined.
	CatchUp   func(ctx context.Context, tenant string, all bool) error
	Presence  *Presence                        // of reactors on NATS; default: every name counts as served
	Programs  bool                             // permit definitions to start programs, as MCP servers
	Variables []Variable                       // environment variables that definitions may pass to MCP servers
	Lookup    func(name string) (string, bool) // of a variable; default none is set
	Secrets   []Variable                       // environment variables whose secrets may sign requests to endpoints
	Egress    egress.Policy                    // permitted addresses of MCP servers on HTTP and of endpoints; default: public ones
	Logger    zerolog.Logger                   // receives details about such servers that callers are not told
}

// Directory finds agents, tools and reactors. It is safe for concurrent use.
type Directory struct {
	cfg  Config
	http *http.Client // of endpoints

	watch  *watch      // for MCP servers that runs wait for
	starts *quota.Pool // of sessions with MCP servers

	mu      sync.Mutex
	servers map[string]*mcp.Manager  // of MCP servers, by tenant and definition
	offered map[string]offered       // their tools, by tenant, server and tool
	whole   map[*mcp.Manager]listing // the tools of whole servers
}

// New returns a directory. Close it when done.
func New(cfg Config) *Directory {
	if cfg.Lookup == nil {
		cfg.Lookup = func(string) (string, bool) { return "", false }
	}
	d := &Directory{cfg: cfg, http: remote.NewClient(cfg.Egress.Transport()), servers: map[string]*mcp.Manager{}, offered: map[string]offered{}, whole: map[*mcp.Manager]listing{}}
	d.watch = newWatch(d.down)
	d.starts = quota.NewPool("starts of MCP sessions", quota.Places{Total: starts, Tenant: startsTenant}, nil)
	return d
}

// Close ends the sessions with MCP servers, and connections to endpoints that are idle.
func (d *Directory) Close() {
	d.watch.stop()
	d.http.CloseIdleConnections()
	d.mu.Lock()
	servers := d.servers
	d.servers = map[string]*mcp.Manager{}
	d.mu.Unlock()
	for _, m := range servers {
		m.Close()
	}
}

// Reactor returns the reactor with that name: one of this process, or else one on NATS.
func (d *Directory) Reactor(name string) (runtime.Reactor, error) {
	r, err := d.cfg.Registry.Reactor(name)
	if !events.IsNotFound(err) {
		return r, err
	}
	return remote.Reactor(d.cfg.Conn, d.cfg.Names, name)
}

// Agent returns an agent of a tenant with everything that its definition names. A run
// that only makes calls has no agent: its name is empty.
func (d *Directory) Agent(ctx context.Context, tenant, name string) (*runtime.Agent, error) {
	if name == "" {
		return &runtime.Agent{}, nil
	}
	a, err := d.agent(ctx, tenant, name)
	if err != nil {
		return a, err
	}
	if loop, err := d.cfg.Registry.Loop(name); err == nil {
		a.Continue = loop
	}
	return a, nil
}

// answerers are the kinds of definitions that answer a thread by their name, in the order
// in which they are looked up.
func answerers() []events.DefinitionKind {
	return []events.DefinitionKind{events.AgentKind, events.ModelKind, events.ReactorKind}
}

// undefined reports whether it is known that the tenant defines nothing with that name
// that could answer.
func (d *Directory) undefined(tenant, name string) bool {
	return !slices.ContainsFunc(answerers(), func(kind events.DefinitionKind) bool { return !d.cfg.Definitions.Absent(tenant, kind, name) })
}

// agent returns an agent that is defined, a model or a reactor that is, or a reactor that is served.
func (d *Directory) agent(ctx context.Context, tenant, name string) (*runtime.Agent, error) {
	if d.cfg.CatchUp != nil {
		if err := d.cfg.CatchUp(ctx, tenant, false); err != nil {
			return nil, err
		}
	}
	_, own := d.cfg.Registry.Reactor(name)
	if own == nil && d.undefined(tenant, name) {
		return &runtime.Agent{Name: name, A: runtime.Side{Reactor: name, AnyTool: true}}, nil
	}
	a, err := d.defined(ctx, tenant, name)
	if a == nil && events.IsNotFound(err) && events.IsNotFound(own) && d.cfg.CatchUp != nil {
		if err := d.cfg.CatchUp(ctx, tenant, true); err != nil {
			return nil, err
		}
		a, err = d.defined(ctx, tenant, name)
	}
	if a != nil || !events.IsNotFound(err) {
		return a, err
	}
	if events.IsNotFound(own) {
		if err := d.served(ctx, name); err != nil {
			return nil, err
		}
	}
	return &runtime.Agent{Name: name, A: runtime.Side{Reactor: name, AnyTool: true}}, nil
}

// defined returns what the tenant defines with that name: an agent, or else a model, which
// answers without a prompt and tools, or a reactor, which may call every tool. It returns nil
// and a not_found if there is none.
func (d *Directory) defined(ctx context.Context, tenant, name string) (*runtime.Agent, error) {
	def, version, err := query.LoadDefinition[events.AgentDefinition](ctx, d.cfg.Definitions, tenant, events.AgentKind, name)
	if events.IsNotFound(err) {
		alone := &runtime.Agent{Name: name}
		alone.A, err = d.side(ctx, tenant, alone, events.AgentSide{Model: name}, nil)
		if events.IsNotFound(err) {
			alone.A, err = d.side(ctx, tenant, alone, events.AgentSide{Reactor: name}, nil)
			if err == nil && alone.A.Endpoint == nil {
				err = events.Missing("agent", name)
			}
		}
		if err != nil {
			return nil, err
		}
		return alone, nil
	}
	if err != nil {
		return nil, err
	}
	def = def.WithDefaults()
	a := &runtime.Agent{Name: name, Type: string(def.Type)}
	a.Refs = append(a.Refs, events.DefinitionVersion{Kind: events.AgentKind, Name: name, Version: version})
	bounds(a, def)
	if a.Hooks, err = d.hooks(def.Hooks); err != nil {
		return a, err
	}
	if def.Loop != nil {
		loop := *def.Loop
		a.Continue = func(o runtime.Outcome) bool { return loop.Goes(o.Calls) }
	}
	var absent runtime.AbsentServersError
	if def.Type == events.DualAI {
		if a.A, err = d.side(ctx, tenant, a, *def.SideA, &absent); err == nil {
			a.B, err = d.side(ctx, tenant, a, *def.SideB, &absent)
		}
	} else {
		a.A, err = d.side(ctx, tenant, a, events.AgentSide{Reactor: def.Reactor, Model: def.Model, Prompt: def.Prompt, Tools: def.Tools}, &absent)
		if err == nil {
			a.A.Skills, err = d.skills(ctx, tenant, a, def.Skills)
		}
	}
	if err == nil && absent.Servers != nil {
		err = &absent
	}
	return a, err
}

// skills returns the skills of an agent, and notes their definitions.
func (d *Directory) skills(ctx context.Context, tenant string, a *runtime.Agent, names []string) ([]runtime.Skill, error) {
	var list []runtime.Skill
	for _, name := range names {
		def, version, err := query.LoadDefinition[events.SkillDefinition](ctx, d.cfg.Definitions, tenant, events.SkillKind, name)
		if err != nil {
			return nil, err
		}
		a.Refs = append(a.Refs, events.DefinitionVersion{Kind: events.SkillKind, Name: name, Version: version})
		list = append(list, runtime.Skill{Name: name, Description: def.Description, Text: def.Text, Tools: def.Tools})
	}
	return list, nil
}

// hooks returns the hooks that an agent's definition names.
func (d *Directory) hooks(names []string) ([]runtime.Hooks, error) {
	var list []runtime.Hooks
	for _, name := range names {
		h, err := d.cfg.Registry.Hooks(name)
		if err != nil {
			return nil, events.Errorf(events.NotFound, "no process here has the hook %s; add it with Registry.AddHooks, or take it from the agent's hooks", name)
		}
		list = append(list, h)
	}
	return list, nil
}

// served returns a not_found if no process serves a reactor with that name, and none
// ever has.
func (d *Directory) served(ctx context.Context, name string) error {
	if d.cfg.Presence == nil {
		return nil
	}
	seen, err := d.cfg.Presence.Seen(ctx, name)
	switch {
	case err != nil:
		return events.Errorf(events.Unavailable, "agent %.100s: %w", name, err)
	case !seen:
		e := events.Missing("agent", name)
		e.Message += "; it is not defined, and no process serves a reactor with that name"
		return e
	}
	return nil
}

// Knows returns a not_found if there is no agent with that name: the tenant has not
// defined it, nor a model or a reactor of that name, this process has no such reactor, and no process has ever served one.
func (d *Directory) Knows(ctx context.Context, tenant, name string) error {
	if _, err := d.cfg.Registry.Reactor(name); err == nil {
		return nil
	}
	if d.cfg.Presence != nil && d.cfg.Presence.remembers(name) {
		return nil
	}
	for _, all := range []bool{false, true} {
		if d.cfg.CatchUp != nil {
			if err := d.cfg.CatchUp(ctx, tenant, all); err != nil {
				return err
			}
		}
		for _, kind := range answerers() {
			if _, err := d.cfg.Definitions.Get(ctx, tenant, kind, name); !events.IsNotFound(err) {
				return err
			}
		}
	}
	return d.served(ctx, name)
}

// bounds applies the limits of an agent's definition.
func bounds(a *runtime.Agent, def events.AgentDefinition) {
	ms := func(v *int64) time.Duration {
		if v == nil {
			return 0
		}
		return time.Duration(*v) * time.Millisecond
	}
	if l := def.Limits; l != nil {
		a.Limits.WallClock, a.Limits.ToolTime = ms(l.WallClockMs), ms(l.ToolTimeMs)
		a.Limits.WorkerWait = workerWait(l.WorkerWaitMs)
		if l.Iterations != nil {
			a.Limits.Iterations = *l.Iterations
		}
		if l.Tokens != nil {
			a.Limits.Tokens = *l.Tokens
		}
	}
	if r := def.Retries; r != nil {
		a.Retries.Attempts, a.Retries.Backoff = int(r.Attempts), backoff(r)
	}
	if h := def.History; h != nil {
		if h.MaxItems != nil {
			a.MaxItems = int(*h.MaxItems)
		}
		if h.MaxBytes != nil {
			a.MaxBytes = int(*h.MaxBytes)
		}
	}
}

// backoff returns the pause before the second attempt in a definition; -1 for none, and
// 0 if it is not set.
func backoff(r *events.Retries) time.Duration {
	switch {
	case r.BackoffMs == nil:
		return 0
	case *r.BackoffMs == 0:
		return -1
	}
	return time.Duration(*r.BackoffMs) * time.Millisecond
}

// modelOf returns a model as its reactor gets it, without its fallback.
func modelOf(m events.ModelDefinition) runtime.Model {
	out := runtime.Model{Name: m.Name, Model: m.Model, Endpoint: m.Endpoint, Temperature: m.Temperature, Params: m.Params}
	if m.ContextTokens != nil {
		out.ContextTokens = *m.ContextTokens
	}
	if m.MaxOutputTokens != nil {
		out.MaxOutputTokens = *m.MaxOutputTokens
	}
	return out
}

// side returns one side of an agent, and notes the definitions that it uses, and the MCP servers
// that are down.
func (d *Directory) side(ctx context.Context, tenant string, a *runtime.Agent, def events.AgentSide, absent *runtime.AbsentServersError) (runtime.Side, error) {
	s := runtime.Side{Label: def.Label, Reactor: def.Reactor, StopOnResponse: def.StopOnResponse != nil && *def.StopOnResponse}
	s.AnyTool = def.Model == "" && len(def.Tools) == 0 // a program, and nobody has said what it may call
	if def.MaxSteps != nil {
		s.MaxSteps = *def.MaxSteps
	}
	if def.Model != "" {
		m, version, err := query.LoadDefinition[events.ModelDefinition](ctx, d.cfg.Definitions, tenant, events.ModelKind, def.Model)
		if err != nil {
			return s, err
		}
		a.Refs = append(a.Refs, events.DefinitionVersion{Kind: events.ModelKind, Name: def.Model, Version: version})
		m = m.WithDefaults()
		s.Model = modelOf(m)
		for _, name := range m.Fallback {
			other, version, err := query.LoadDefinition[events.ModelDefinition](ctx, d.cfg.Definitions, tenant, events.ModelKind, name)
			if err != nil {
				return s, err
			}
			a.Refs = append(a.Refs, events.DefinitionVersion{Kind: events.ModelKind, Name: name, Version: version})
			s.Model.Fallback = append(s.Model.Fallback, modelOf(other))
		}
		if s.Reactor == "" {
			s.Reactor = m.Reactor
		}
	}
	var err error
	if s.Endpoint, err = d.reactorOf(ctx, tenant, a, s.Reactor); err != nil {
		return s, err
	}
	if def.Prompt != "" {
		p, version, err := query.LoadDefinition[events.PromptDefinition](ctx, d.cfg.Definitions, tenant, events.PromptKind, def.Prompt)
		if err != nil {
			return s, err
		}
		a.Refs = append(a.Refs, events.DefinitionVersion{Kind: events.PromptKind, Name: def.Prompt, Version: version})
		s.Prompt = p
	}
	for i, f := range d.find(ctx, tenant, def.Tools) {
		name := def.Tools[i]
		switch {
		case errors.Is(f.err, mcp.ErrDown):
			absent.Servers = append(absent.Servers, runtime.AbsentServer{Tool: name, Wait: f.wait, Err: f.err})
		case f.err != nil:
			return s, f.err
		}
		if f.version > 0 { // else a Go tool without a definition
			a.Refs = append(a.Refs, events.DefinitionVersion{Kind: events.ToolKind, Name: name, Version: f.version})
		}
		if f.err == nil {
			s.Tools = append(s.Tools, f.tools...)
		}
	}
	return s, oneName(s.Tools)
}

// Tool returns a tool that callers may queue: one that the tenant defines, one of this
// process, or an agent.
func (d *Directory) Tool(ctx context.Context, tenant, name string) (runtime.Tool, error) {
	t, own := d.goTool(name)
	if own == nil && d.cfg.Definitions.Absent(tenant, events.ToolKind, name) {
		return t, nil
	}
	if t, _, err := d.tool(ctx, tenant, name); !events.IsNotFound(err) {
		return t, err
	}
	if !events.IsNotFound(own) {
		return t, own
	}
	if t, err := d.toolOfServer(ctx, tenant, name); !events.IsNotFound(err) {
		return t, err
	}
	if _, err := d.cfg.Definitions.Get(ctx, tenant, events.AgentKind, name); err == nil {
		return agentTool{spec: runtime.ToolSpec{Name: name}, agent: name}, nil
	}
	return nil, events.Missing("tool", name)
}

// goTool returns the tool of that name of this process: one that was registered, or else one
// that is built in.
func (d *Directory) goTool(name string) (runtime.Tool, error) {
	return goTool(d.cfg.Registry, d.cfg.BuiltIn, name)
}

// goTool returns the tool of that name that is registered, or else the one that is built in.
func goTool(registry *runtime.Registry, builtIn []runtime.Tool, name string) (runtime.Tool, error) {
	t, err := registry.Tool(name)
	if events.IsNotFound(err) {
		for _, own := range builtIn {
			if own.Spec().Name == name {
				return own, nil
			}
		}
	}
	return t, err
}

// workerWait returns how long a run waits for a process: 0 if the definition does not
// say, negative if it does not wait.
func workerWait(ms *int64) time.Duration {
	switch {
	case ms == nil:
		return 0
	case *ms == 0:
		return -1
	}
	return time.Duration(*ms) * time.Millisecond
}
