package query

import (
	"slices"
	"strings"

	"github.com/skein-threads/skein/events"
)

// listWorkers returns the workers of definitions and agents, by kind and name. It only reads the
// definitions of the page.
func listWorkers(a *asking, d events.ListWorkers) (*events.WorkerList, error) {
	if err := awaitDefinitions(a, d.Fresh, false); err != nil {
		return nil, err
	}
	if len(d.Names) > 0 && d.Kind == "" {
		return nil, events.Invalid("/kind", "names need their kind: one of %v", d.Kind.Enum())
	}
	query := mark("worker.list", a.tenant, string(d.Kind), strings.Join(d.Names, ","))
	after := ""
	if d.Cursor != "" {
		var err error
		if after, err = decodeKeyCursor(d.Cursor, query); err != nil {
			return nil, err
		}
	}
	refs, err := servedRefs(a, d, after)
	if err != nil {
		return nil, err
	}
	list := &events.WorkerList{Serving: []events.Serving{}}
	for _, part := range slices.Collect(slices.Chunk(refs, definitionsAtOnce)) {
		defined, err := definedOf(a, part)
		if err != nil {
			return nil, err
		}
		for _, ref := range part {
			if len(list.Serving) == limit(d.Limit, definitionsUsual) {
				return list, nil // NextCursor was set to what is before it
			}
			one, err := serving(a, ref, defined[ref])
			if err != nil {
				return nil, err
			}
			if one != nil {
				list.Serving = append(list.Serving, *one)
				list.NextCursor = encodeKeyCursor(query, ref.ID())
			}
		}
	}
	list.NextCursor = ""
	return list, nil
}

// servedRefs returns the candidates after a place, in order: definitions, including removed ones,
// and agents that threads name.
func servedRefs(a *asking, d events.ListWorkers, after string) ([]events.DefinitionRef, error) {
	var refs []events.DefinitionRef
	add := func(kind events.DefinitionKind, names []string) {
		for _, name := range names {
			if ref := (events.DefinitionRef{Kind: kind, Name: name}); ref.ID() > after {
				refs = append(refs, ref)
			}
		}
	}
	add(events.DefinitionKind(d.Kind), d.Names)
	for _, kind := range d.Kind.Enum() {
		if len(d.Names) > 0 || d.Kind != "" && string(d.Kind) != kind {
			continue
		}
		some, err := definitionRefs(a, events.DefinitionKind(kind), after)
		if err != nil {
			return nil, err
		}
		refs = append(refs, some...)
		if kind != string(events.ServedAgent) {
			continue
		}
		if err := a.awaitDirectory(nil); err != nil {
			return nil, err
		}
		add(events.AgentKind, a.directory.Agents(a.tenant))
	}
	slices.SortFunc(refs, func(a, b events.DefinitionRef) int { return strings.Compare(a.ID(), b.ID()) })
	return slices.Compact(refs), nil
}

// definedOf returns which of some definitions exist.
func definedOf(a *asking, refs []events.DefinitionRef) (map[events.DefinitionRef]bool, error) {
	docs, err := a.definitions().Some(a.ctx, a.tenant, refs)
	if err != nil {
		return nil, err
	}
	there := map[events.DefinitionRef]bool{}
	for _, doc := range docs {
		there[events.DefinitionRef{Kind: doc.Kind, Name: doc.Name}] = true
	}
	return there, nil
}

// serving returns the workers that serve a definition, nil if it does not exist. Only agents, and
// Go tools of this process, need no definition.
func serving(a *asking, ref events.DefinitionRef, defined bool) (*events.Serving, error) {
	if !defined && ref.Kind != events.AgentKind && ref.Kind != events.ToolKind {
		return nil, nil
	}
	one := &events.Serving{Kind: events.ServedKind(ref.Kind), Name: ref.Name, Defined: defined, Workers: []events.Worker{}}
	workers, err := a.cfg.Roster.Workers(a.ctx, a.tenant, ref)
	if events.IsNotFound(err) { // removed since
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	one.Workers = append(one.Workers, workers...)
	return one, nil
}
