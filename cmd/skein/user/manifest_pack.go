package user

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// PackDefinitions returns agents with everything that they refer to, as values of a file that readManifest
// accepts: definitions come before those that refer to them. The error is an invalid_request
// if a tool among them is not portable, and not_found if a definition does not exist.
func PackDefinitions(ctx context.Context, c *client.Client, agents []string) ([]events.JSON, error) {
	p := &packing{ctx: ctx, client: c, packed: map[string]bool{}}
	for _, name := range agents {
		if err := p.add(events.DefinitionRef{Kind: events.AgentKind, Name: name}); err != nil {
			return nil, err
		}
	}
	return p.out, nil
}

type packing struct {
	ctx    context.Context //nolint:containedctx // it lives as long as the call
	client *client.Client
	packed map[string]bool
	out    []events.JSON
}

// add packs a definition, after what it names.
func (p *packing) add(ref events.DefinitionRef) error {
	if p.packed[ref.ID()] {
		return nil
	}
	p.packed[ref.ID()] = true // agents may name each other
	if err := p.checkPortable(ref); err != nil {
		return err
	}
	d, err := p.client.Definition(p.ctx, ref.Kind, ref.Name)
	if ref.Kind == events.ToolKind && events.IsNotFound(err) { // a Go tool without a definition
		return nil
	}
	if err != nil {
		return err
	}
	def, err := events.DecodeDefinition(d.Kind, d.Definition)
	if err != nil {
		return err
	}
	if tool, ok := def.(events.ToolDefinition); ok && !*tool.WithDefaults().Portable {
		return notPortable(ref)
	}
	for _, named := range events.DefinitionRefs(def) {
		if err := p.add(named); err != nil {
			return err
		}
	}
	value := append(events.JSON(`{"kind":"`+string(d.Kind)+`",`), d.Definition[1:]...)
	if err := (*jsontext.Value)(&value).Indent(jsontext.WithIndent("  ")); err != nil {
		return err
	}
	p.out = append(p.out, value)
	return nil
}

// checkPortable refuses a Go tool that says of itself that it is not portable. Its spec is the place
// that says so; a definition may only add it.
func (p *packing) checkPortable(ref events.DefinitionRef) error {
	if ref.Kind != events.ToolKind {
		return nil
	}
	list, err := client.Read(p.ctx, p.client, events.ListWorkers{Kind: events.ServedTool, Names: []string{ref.Name}})
	if err != nil {
		return err
	}
	for _, serving := range list.Serving {
		for _, w := range serving.Workers {
			if w.NotPortable {
				return notPortable(ref)
			}
		}
	}
	if len(list.Serving) == 0 {
		return events.Missing(string(ref.Kind), ref.Name)
	}
	return nil
}

func notPortable(ref events.DefinitionRef) error {
	return events.Invalid("/portable", "the %s is not portable: it depends on the process that it runs in, and cannot be packed", ref)
}
