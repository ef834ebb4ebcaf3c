package agents

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/query"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/mcp"
)

// tools returns the tools of a tenant's definition: one, or those of a whole MCP
// server. It also returns the definition's version.
func (d *Directory) tools(ctx context.Context, tenant, name string) ([]runtime.Tool, int64, error) {
	def, version, err := query.LoadDefinition[events.ToolDefinition](ctx, d.cfg.Definitions, tenant, events.ToolKind, name)
	if err != nil {
		return nil, 0, err
	}
	list, err := d.toolsOf(ctx, tenant, def.WithDefaults())
	return list, version, err
}

// toolsOf returns the tools of a definition.
func (d *Directory) toolsOf(ctx context.Context, tenant string, def events.ToolDefinition) ([]runtime.Tool, error) {
	if def.Server != nil && def.Server.Whole() {
		return d.wholeServer(ctx, tenant, def)
	}
	t, err := d.toolOf(ctx, tenant, def)
	return []runtime.Tool{t}, err
}

// wholeServer returns the tools of a server that its definition includes. The
// definition's settings of calls apply to each of them.
func (d *Directory) wholeServer(ctx context.Context, tenant string, def events.ToolDefinition) ([]runtime.Tool, error) {
	listed, err := d.listed(ctx, tenant, def)
	if err != nil {
		return nil, err
	}
	var out []runtime.Tool
	for _, t := range listed {
		if !def.Server.Takes(mcp.OwnName(t)) {
			continue
		}
		spec := specOf(def)
		spec.Name, spec.Description = t.Spec().Name, t.Spec().Description
		out = append(out, specified{t, over(spec, t)})
	}
	for _, name := range def.Server.Include {
		if !strings.Contains(name, "*") && !slices.ContainsFunc(listed, func(t runtime.Tool) bool { return mcp.OwnName(t) == name }) {
			return nil, events.Errorf(events.NotFound, "the MCP server %s has no tool %.100q that can be used, which its definition includes", def.Name, name)
		}
	}
	return out, nil
}

// listing is a server's list of tools.
type listing struct {
	tools []runtime.Tool
	until time.Time
}

// listed returns the tools of a server, from a list that may be cached.
func (d *Directory) listed(ctx context.Context, tenant string, def events.ToolDefinition) ([]runtime.Tool, error) {
	m, _, name, err := d.link(tenant, def)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	known, ok := d.whole[m]
	d.mu.Unlock()
	if ok && time.Now().Before(known.until) {
		return known.tools, nil
	}
	got, err := m.Tools(ctx, name)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.whole[m] = listing{got.Tools, time.Now().Add(offerAge)}
	return got.Tools, nil
}

// toolOfServer returns a tool of a whole server by its name here.
func (d *Directory) toolOfServer(ctx context.Context, tenant, name string) (runtime.Tool, error) {
	prefix, _, found := strings.Cut(name, "__")
	if !found {
		return nil, events.Missing("tool", name)
	}
	list, _, err := d.tools(ctx, tenant, prefix)
	if err != nil {
		return nil, err
	}
	for _, t := range list {
		if t.Spec().Name == name {
			return t, nil
		}
	}
	return nil, events.Missing("tool", name)
}

// oneName returns an error if two tools of a side have the same name: a model could not
// tell them apart.
func oneName(list []runtime.Tool) error {
	seen := make(map[string]bool, len(list))
	for _, t := range list {
		name := t.Spec().Name
		if seen[name] {
			return events.Invalid("/tools", "two of the agent's tools are called %s: one of a whole MCP server, and one with a definition of its own", name)
		}
		seen[name] = true
	}
	return nil
}
