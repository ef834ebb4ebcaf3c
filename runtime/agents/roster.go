package agents

import (
	"context"
	"slices"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/query"
	"github.com/skein-threads/skein/runtime"
)

// Roster knows who serves what a tenant's definitions need. It finds reactors and tools as a
// Directory does, and calls nothing. It is safe for concurrent use.
type Roster struct {
	Definitions *query.Definitions
	Presence    *Presence
	Registry    *runtime.Registry // of this process; nil: it runs no agents
	BuiltIn     []runtime.Tool
}

// Workers returns the workers that an agent, a model, a reactor or a tool needs, and whether a
// process serves them now. An agent without a definition is its model, or the reactor of its
// name. The error is a not_found for another definition that does not exist.
func (r *Roster) Workers(ctx context.Context, tenant string, of events.DefinitionRef) ([]events.Worker, error) {
	if of.Kind == events.ToolKind {
		return r.ofTool(ctx, tenant, of.Name)
	}
	names, err := r.reactors(ctx, tenant, of)
	if err != nil {
		return nil, err
	}
	var list []events.Worker
	for _, name := range names {
		w, err := r.reactor(ctx, tenant, name)
		if err != nil {
			return nil, err
		}
		list = append(list, w)
	}
	return list, nil
}

// reactors returns the names of the reactors that answer for a definition.
func (r *Roster) reactors(ctx context.Context, tenant string, of events.DefinitionRef) ([]string, error) {
	switch of.Kind {
	case events.AgentKind:
		def, _, err := query.LoadDefinition[events.AgentDefinition](ctx, r.Definitions, tenant, of.Kind, of.Name)
		if events.IsNotFound(err) {
			return r.side(ctx, tenant, events.AgentSide{Model: of.Name}, of.Name)
		}
		if err != nil {
			return nil, err
		}
		if def = def.WithDefaults(); def.Type != events.DualAI {
			return r.side(ctx, tenant, events.AgentSide{Reactor: def.Reactor, Model: def.Model}, "")
		}
		var both []string
		for _, side := range []*events.AgentSide{def.SideA, def.SideB} {
			names, err := r.side(ctx, tenant, *side, "")
			if err != nil {
				return nil, err
			}
			both = append(both, names...)
		}
		slices.Sort(both)
		return slices.Compact(both), nil
	case events.ModelKind:
		def, _, err := query.LoadDefinition[events.ModelDefinition](ctx, r.Definitions, tenant, of.Kind, of.Name)
		return []string{def.WithDefaults().Reactor}, err
	case events.ReactorKind:
		return []string{of.Name}, nil
	}
	return nil, nil
}

// side returns the reactor of one side of an agent: its own, its model's, or else another; none
// if that is empty.
func (r *Roster) side(ctx context.Context, tenant string, def events.AgentSide, other string) ([]string, error) {
	name := def.Reactor
	if name == "" && def.Model != "" {
		m, _, err := query.LoadDefinition[events.ModelDefinition](ctx, r.Definitions, tenant, events.ModelKind, def.Model)
		switch {
		case err == nil:
			name = m.WithDefaults().Reactor
		case !events.IsNotFound(err):
			return nil, err
		}
	}
	if name == "" {
		name = other
	}
	if name == "" {
		return nil, nil
	}
	return []string{name}, nil
}

// reactor returns who serves the reactor of that name.
func (r *Roster) reactor(ctx context.Context, tenant, name string) (events.Worker, error) {
	w := events.Worker{Kind: events.ReactorWorker, Name: name}
	if !r.Definitions.Absent(tenant, events.ReactorKind, name) {
		if _, err := r.Definitions.Get(ctx, tenant, events.ReactorKind, name); err == nil {
			w.Place, w.State = events.HTTPPlace, events.WorkerUnchecked
			return w, nil
		} else if !events.IsNotFound(err) {
			return w, err
		}
	}
	if r.Registry != nil {
		if _, err := r.Registry.Reactor(name); err == nil {
			w.Place, w.State = events.ServerPlace, events.WorkerServed
			return w, nil
		}
	}
	return r.onNATS(ctx, w)
}

// onNATS returns whether a process on NATS serves a reactor or a tool.
func (r *Roster) onNATS(ctx context.Context, w events.Worker) (events.Worker, error) {
	served, err := r.Presence.Served(ctx, events.WaitFor{Kind: w.Kind, Name: w.Name})
	if err != nil {
		return w, events.Errorf(events.Unavailable, "who serves %s %.100s: %w", w.Kind, w.Name, err)
	}
	switch w.Place = events.NATSPlace; {
	case served:
		w.State = events.WorkerServed
	case r.Registry == nil && w.Kind == events.ReactorWorker: // a process that runs agents may have it
		w.State = events.WorkerUnchecked
	default:
		w.State = events.WorkerAbsent
	}
	return w, nil
}

// ofTool returns who serves a tool; nobody has to if it is an agent, or a person.
func (r *Roster) ofTool(ctx context.Context, tenant, name string) ([]events.Worker, error) {
	def, _, err := query.LoadDefinition[events.ToolDefinition](ctx, r.Definitions, tenant, events.ToolKind, name)
	if events.IsNotFound(err) && r.HasTool(name) { // which needs no definition
		def, err = events.ToolDefinition{Name: name, Type: events.GoTool}, nil
	}
	if err != nil {
		return nil, err
	}
	w := events.Worker{Kind: events.ToolWorker, Name: name, State: events.WorkerUnchecked}
	switch def.Type {
	case events.AgentTool, events.PersonTool:
		return nil, nil
	case events.HTTPTool:
		w.Place = events.HTTPPlace
	case events.MCPTool:
		w.Place = events.MCPPlace
	case events.A2ATool:
		w.Place = events.A2APlace
	case events.NATSTool:
		w, err = r.onNATS(ctx, w)
	default:
		w.Place = events.ServerPlace
		if r.Registry != nil {
			w.State = events.WorkerAbsent
			if t, err := goTool(r.Registry, r.BuiltIn, name); err == nil {
				w.State, w.NotPortable = events.WorkerServed, t.Spec().NotPortable
			}
		}
	}
	if err != nil {
		return nil, err
	}
	return []events.Worker{w}, nil
}

// HasTool reports whether this process has a Go tool of that name.
func (r *Roster) HasTool(name string) bool {
	if r.Registry == nil {
		return false
	}
	_, err := goTool(r.Registry, r.BuiltIn, name)
	return err == nil
}
