package console

import (
	"slices"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/console/page"
	"github.com/skein-threads/skein/events"
)

// Limits of the queries about workers for one page.
const (
	workersAsked = 200 // at once
	undefinedMax = 50  // agents without a definition that are listed
)

// served holds the workers of one definition, for display.
type served struct {
	events.Worker
}

// Class returns the CSS class for its state.
func (s served) Class() string {
	switch s.State {
	case events.WorkerServed:
		return "ok"
	case events.WorkerAbsent:
		return "wait"
	}
	return "plain"
}

// Says describes who serves it, in a few words.
func (s served) Says() string {
	switch {
	case s.State == events.WorkerAbsent && s.Place == events.ServerPlace:
		return "not in this server"
	case s.State == events.WorkerAbsent:
		return "nobody serves it"
	case s.Place == events.HTTPPlace:
		return "a URL"
	case s.Place == events.MCPPlace:
		return "an MCP server"
	case s.Place == events.A2APlace:
		return "an agent elsewhere"
	case s.State == events.WorkerUnchecked:
		return "not known here"
	case s.Place == events.ServerPlace:
		return "this server"
	}
	return "a process"
}

// Subject returns the subject that a process has to subscribe to in order to serve it.
func (s served) Subject() string {
	if s.State != events.WorkerAbsent || s.Place != events.NATSPlace {
		return ""
	}
	return "skein." + string(s.Kind) + "." + s.Name
}

// Advice says what happens to a run that needs it while no process serves it, and what to do.
func (s served) Advice() string {
	switch {
	case s.State != events.WorkerAbsent:
		return ""
	case s.Place == events.ServerPlace:
		return "It is a Go tool, and this server has none of that name: calls of it fail. Register it in the program that runs Skein."
	}
	return "Runs that need it wait, for ten minutes unless their agent's limits say otherwise. Start a process that answers on"
}

// servedAll prepares workers for display.
func servedAll(list []events.Worker) []served {
	var all []served
	for _, w := range list {
		all = append(all, served{w})
	}
	return all
}

// serving returns the workers of some definitions, by kind and name. It returns none if the key is
// limited to some threads, since it may not query workers.
func serving(a *page.Ask, list []events.Definition) (map[string][]served, error) {
	names := map[events.ServedKind][]string{}
	for _, d := range list {
		kind := events.ServedKind(d.Kind)
		if slices.Contains(kind.Enum(), string(kind)) {
			names[kind] = append(names[kind], d.Name)
		}
	}
	out := map[string][]served{}
	for kind, some := range names {
		got, err := client.Read(a.Context(), a.Client, events.ListWorkers{Kind: kind, Names: some, Limit: new(int64(workersAsked))})
		if events.HasCode(err, events.Forbidden) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		for _, s := range got.Serving {
			out[string(s.Kind)+"/"+s.Name] = servedAll(s.Workers)
		}
	}
	return out, nil
}

// undefined is an agent that threads name and the tenant does not define.
type undefined struct {
	Name   string
	Served []served
}

// undefinedAgents returns the agents that threads name without a definition, and whether there
// are more.
func undefinedAgents(a *page.Ask) (list []undefined, more bool, err error) {
	q := events.ListWorkers{Kind: events.ServedAgent, Limit: new(int64(workersAsked))}
	for range 10 {
		got, err := client.Read(a.Context(), a.Client, q)
		if events.HasCode(err, events.Forbidden) {
			return nil, false, nil
		}
		if err != nil {
			return nil, false, err
		}
		for _, s := range got.Serving {
			if !s.Defined {
				list = append(list, undefined{s.Name, servedAll(s.Workers)})
			}
		}
		if len(list) > undefinedMax {
			return list[:undefinedMax], true, nil
		}
		if q.Cursor = got.NextCursor; q.Cursor == "" {
			return list, false, nil
		}
	}
	return list, true, nil
}
