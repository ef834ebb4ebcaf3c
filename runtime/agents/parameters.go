package agents

import (
	"context"
	"slices"
	"strings"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/query"
)

// Parameters returns the JSON Schema of the arguments of a tool that an agent calls, or, if the
// agent is empty, that a caller has queued a call of. It reports false if that is not known here:
// an MCP server or another process says it, the tool is an agent, or there is no such tool.
func (r *Roster) Parameters(ctx context.Context, tenant, agent, tool string) (parameters events.JSON, known bool, err error) {
	if calls, err := r.calls(ctx, tenant, agent, tool); err != nil || !calls {
		return nil, false, err
	}
	def, _, err := query.LoadDefinition[events.ToolDefinition](ctx, r.Definitions, tenant, events.ToolKind, tool)
	switch {
	case events.IsNotFound(err):
		return r.own(tool)
	case err != nil || def.Type == events.AgentTool:
		return nil, false, err
	}
	def = def.WithDefaults()
	switch {
	case len(def.Parameters) > 0:
		return def.Parameters, def.Server == nil || !def.Server.Whole(), nil
	case def.Type == events.GoTool:
		return r.own(tool)
	}
	return nil, false, nil
}

// own returns the parameters of a Go tool of this process.
func (r *Roster) own(name string) (parameters events.JSON, known bool, err error) {
	if r.Registry == nil {
		return nil, false, nil
	}
	t, err := goTool(r.Registry, r.BuiltIn, name)
	if err != nil {
		return nil, false, nil //nolint:nilerr // another process may have it
	}
	parameters = t.Spec().Parameters
	return parameters, len(parameters) > 0, nil
}

// calls reports whether a tool that an agent calls is the one that the tenant knows by that name,
// and none of a whole MCP server.
func (r *Roster) calls(ctx context.Context, tenant, agent, tool string) (bool, error) {
	if agent == "" {
		return true, nil
	}
	def, _, err := query.LoadDefinition[events.AgentDefinition](ctx, r.Definitions, tenant, events.AgentKind, agent)
	if events.IsNotFound(err) { // a reactor may call every tool
		return true, nil
	}
	sides := []events.AgentSide{{Model: def.Model, Tools: def.Tools}}
	if def.Type == events.DualAI {
		sides = []events.AgentSide{*def.SideA, *def.SideB}
	}
	return slices.ContainsFunc(sides, func(s events.AgentSide) bool {
		return slices.Contains(s.Tools, tool) || s.Model == "" && len(s.Tools) == 0
	}), err
}

// Lists reports whether an agent's definition lists a tool, or the MCP server that has it. The
// agent of no definition lists none.
func Lists(ctx context.Context, d *query.Definitions, tenant, agent, tool string) (bool, error) {
	def, _, err := query.LoadDefinition[events.AgentDefinition](ctx, d, tenant, events.AgentKind, agent)
	if events.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	listed := def.Tools
	if def.Type == events.DualAI {
		listed = slices.Concat(def.SideA.Tools, def.SideB.Tools)
	}
	if slices.Contains(listed, tool) {
		return true, nil
	}
	server, _, found := strings.Cut(tool, "__")
	if !found || !slices.Contains(listed, server) {
		return false, nil
	}
	if _, err := d.Get(ctx, tenant, events.ToolKind, tool); !events.IsNotFound(err) { // it is a tool of its own
		return false, err
	}
	of, _, err := query.LoadDefinition[events.ToolDefinition](ctx, d, tenant, events.ToolKind, server)
	if events.IsNotFound(err) {
		return false, nil
	}
	return err == nil && of.Server != nil && of.Server.Whole(), err
}
