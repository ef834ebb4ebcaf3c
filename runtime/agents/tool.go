package agents

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"time"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/query"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/mcp"
	"github.com/skein-threads/skein/runtime/remote"
)

// tool returns a tool that the tenant defines, and the definition's version.
func (d *Directory) tool(ctx context.Context, tenant, name string) (runtime.Tool, int64, error) {
	def, version, err := query.LoadDefinition[events.ToolDefinition](ctx, d.cfg.Definitions, tenant, events.ToolKind, name)
	if err != nil {
		return nil, 0, err
	}
	t, err := d.toolOf(ctx, tenant, def.WithDefaults())
	return t, version, err
}

// toolOf returns the tool of a definition.
func (d *Directory) toolOf(ctx context.Context, tenant string, def events.ToolDefinition) (runtime.Tool, error) {
	spec := specOf(def)
	switch def.Type {
	case events.AgentTool:
		return agentTool{spec: spec, agent: def.Agent, apart: def.OwnThread != nil && *def.OwnThread}, nil
	case events.PersonTool:
		return personTool{spec: spec, def: def}, nil
	case events.NATSTool:
		return remote.Tool(d.cfg.Conn, d.cfg.Names, spec)
	case events.HTTPTool:
		return d.httpTool(tenant, def)
	case events.A2ATool:
		return d.a2aTool(tenant, def)
	case events.MCPTool:
		if def.Server.Whole() {
			return nil, events.Errorf(events.NotFound, "%s is a whole MCP server and not a tool; its tools are named %[1]s__ and their own name", def.Name)
		}
		t, err := d.mcpTool(ctx, tenant, def)
		return specified{t, over(spec, t)}, err
	default:
		t, err := d.goTool(def.Name)
		if events.IsNotFound(err) {
			return absentTool{spec}, nil
		}
		return specified{t, over(spec, t)}, err
	}
}

// absentTool is a Go tool that is defined, and that this process does not have.
type absentTool struct{ spec runtime.ToolSpec }

// Spec implements runtime.Tool. It has nothing of what the tool itself says.
func (a absentTool) Spec() runtime.ToolSpec { return a.spec }

// Elsewhere implements runtime.AbsentTool.
func (absentTool) Elsewhere() {}

// Call implements runtime.Tool.
func (a absentTool) Call(context.Context, *runtime.ToolInput) (runtime.ToolResult, error) {
	return runtime.ToolResult{}, &runtime.RetryError{NotMade: true, Absent: true, Err: errors.New("this process does not have the Go tool " + a.spec.Name)}
}

func specOf(def events.ToolDefinition) runtime.ToolSpec {
	s := runtime.ToolSpec{
		Name: def.Name, Description: def.Description, Parameters: def.Parameters, Manual: !*def.Auto, Idempotent: *def.Idempotent,
		ReadOnly: *def.ReadOnly, NotPortable: !*def.Portable,
	}
	s.WorkerWait = workerWait(def.WorkerWaitMs)
	if def.TimeoutMs != nil {
		s.Timeout = time.Duration(*def.TimeoutMs) * time.Millisecond
	}
	if def.Retries != nil {
		if s.Retries = int(def.Retries.Attempts) - 1; s.Retries == 0 {
			s.Retries = -1
		}
		s.Backoff = backoff(def.Retries)
	}
	return s
}

// over returns the spec of a tool with the fields of its definition, which take
// precedence, except that safety hints of either apply.
func over(spec runtime.ToolSpec, t runtime.Tool) runtime.ToolSpec {
	if t == nil {
		return spec
	}
	own := t.Spec()
	if len(spec.Parameters) == 0 {
		spec.Parameters = own.Parameters
	}
	if spec.Timeout == 0 {
		spec.Timeout = own.Timeout
	}
	if spec.Retries == 0 {
		spec.Retries = own.Retries
	}
	if spec.Backoff == 0 {
		spec.Backoff = own.Backoff
	}
	spec.Manual = spec.Manual || own.Manual
	spec.Idempotent, spec.ReadOnly = spec.Idempotent || own.Idempotent, spec.ReadOnly || own.ReadOnly
	spec.NotPortable = spec.NotPortable || own.NotPortable
	return spec
}

// specified is a tool with the spec of its definition.
type specified struct {
	runtime.Tool
	spec runtime.ToolSpec
}

// Spec implements runtime.Tool.
func (s specified) Spec() runtime.ToolSpec { return s.spec }

// personTool is a tool that asks a person.
type personTool struct {
	spec runtime.ToolSpec
	def  events.ToolDefinition
}

// Spec implements runtime.Tool.
func (p personTool) Spec() runtime.ToolSpec { return p.spec }

// Ask implements runtime.PersonTool.
func (p personTool) Ask(arguments events.JSON) (question string, answer events.JSON) {
	return p.def.Ask(arguments), p.def.Answer
}

// Call must not be called: the runtime asks the person.
func (p personTool) Call(context.Context, *runtime.ToolInput) (runtime.ToolResult, error) {
	return runtime.ToolResult{}, errors.New("a person tool cannot be called")
}

// agentTool is a tool that is another agent.
type agentTool struct {
	spec  runtime.ToolSpec
	agent string
	apart bool // in a thread of its own
}

// Apart implements runtime.AgentTool.
func (a agentTool) Apart() bool { return a.apart }

// Spec implements runtime.Tool.
func (a agentTool) Spec() runtime.ToolSpec { return a.spec }

// AgentName implements runtime.AgentTool.
func (a agentTool) AgentName() string { return a.agent }

// Call must not be called: the runtime runs the agent.
func (a agentTool) Call(context.Context, *runtime.ToolInput) (runtime.ToolResult, error) {
	return runtime.ToolResult{}, errors.New("an agent tool cannot be called")
}

// offered is a tool of an MCP server, as listed.
type offered struct {
	tool  runtime.Tool
	until time.Time
}

// offerAge is how long the list of an MCP server's tools is cached.
const offerAge = time.Minute

// server is the name of each server in its own manager.
const server = "mcp"

// mcpTool returns a tool of the MCP server that its definition names.
func (d *Directory) mcpTool(ctx context.Context, tenant string, def events.ToolDefinition) (runtime.Tool, error) {
	m, key, own, err := d.link(tenant, def)
	if err != nil {
		return nil, err
	}
	name := def.Server.Tool
	if name == "" {
		name = def.Name
	}
	at := key + "\x00" + name
	d.mu.Lock()
	known, ok := d.offered[at]
	d.mu.Unlock()
	if ok && time.Now().Before(known.until) {
		return known.tool, nil
	}
	t, err := m.Tool(ctx, own, name)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.offered) > 10_000 { // of definitions that were removed
		clear(d.offered)
	}
	d.offered[at] = offered{t, time.Now().Add(offerAge)}
	return t, nil
}

// manager returns the sessions with an MCP server, which is started on first use.
func (d *Directory) manager(tenant, key, name string, def events.ToolDefinition) (*mcp.Manager, error) {
	s := mcp.Server{Name: name, Command: def.Server.Command, Args: def.Server.Args, Env: def.Server.Env, URL: def.Server.URL}
	if def.TimeoutMs != nil {
		s.TimeoutMs = *def.TimeoutMs
	}
	if s.Command != "" && !d.cfg.Programs {
		return nil, events.Errorf(events.Forbidden, "the tool %s starts a program, which this server does not permit (--mcp-programs)", def.Name)
	}
	if def.Server.TokenEnv != "" {
		s.Headers = map[string]string{"Authorization": def.Server.TokenEnv}
	}
	for _, name := range append([]string{def.Server.TokenEnv}, s.Env...) {
		if name != "" && !d.allowed(tenant, name, def.Server) {
			return nil, events.Errorf(events.Forbidden, "the tool %s names the variable %s, which this server does not pass to that server for this tenant (--mcp-variable)", def.Name, name)
		}
	}
	if u, err := url.Parse(def.Server.URL); err != nil || d.cfg.Egress.CheckURL(u) != nil {
		return nil, events.Errorf(events.Forbidden, "the tool %s names an address that this server does not connect to (--egress-allow)", def.Name)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if m, ok := d.servers[key]; ok {
		return m, nil
	}
	admit := func() (func(), error) { return d.starts.Try(tenant) }
	m, err := mcp.New(mcp.Options{Admit: admit, Egress: d.cfg.Egress, Logger: d.cfg.Logger.With().Str("tenant", tenant).Logger(), Variable: func(name string) (string, bool) {
		value, ok := d.cfg.Lookup(name)
		if ok && name == def.Server.TokenEnv {
			value = "Bearer " + value
		}
		return value, ok
	}}, s)
	if err != nil {
		return nil, err
	}
	d.servers[key] = m
	return m, nil
}

// allowed reports whether a tenant's definition may pass a variable to a server.
func (d *Directory) allowed(tenant, name string, to *events.ToolServer) bool {
	return slices.ContainsFunc(d.cfg.Variables, func(v Variable) bool {
		return v.Name == name && (v.Tenant == tenant || v.Tenant == "*") && v.goesTo(to)
	})
}
