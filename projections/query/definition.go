package query

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

// definitionsUsual is the default number of definitions on a page.
const definitionsUsual = 100

// definitionsAtOnce is how many definitions are read at once. Each may have 256 KiB.
const definitionsAtOnce = 32

// getDefinition returns the current version of a definition from its bucket, or an earlier one
// from the log.
func getDefinition(a *asking, d events.GetDefinition) (*events.Definition, error) {
	if err := awaitDefinitions(a, d.Fresh, d.Version != nil); err != nil {
		return nil, err
	}
	ref := events.DefinitionRef{Kind: d.Kind, Name: d.Name}
	doc, err := a.definitions().One(a.ctx, a.tenant, ref)
	if err != nil || d.Version == nil || doc != nil && doc.Version == *d.Version {
		return orMissing(doc, ref, err)
	}
	if doc, err = a.definitions().At(a.ctx, a.tenant, ref, *d.Version); doc == nil && err == nil {
		return nil, events.Missing(string(d.Kind)+" version", fmt.Sprintf("%s at version %d", d.Name, *d.Version))
	}
	return doc, err
}

// getAgent returns an agent: a definition, or a reactor of this process.
func getAgent(a *asking, d events.GetAgent) (*events.Agent, error) {
	if err := awaitDefinitions(a, d.Fresh, false); err != nil {
		return nil, err
	}
	ref := events.DefinitionRef{Kind: events.AgentKind, Name: d.Name}
	doc, err := a.definitions().One(a.ctx, a.tenant, ref)
	switch {
	case err != nil:
		return nil, err
	case doc != nil:
		def, err := events.DecodeDefinition(doc.Kind, doc.Definition)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", ref, err)
		}
		return &events.Agent{Name: d.Name, Type: def.(events.AgentDefinition).Type, Version: doc.Version}, nil
	case a.cfg.Roster.HasReactor(d.Name):
		return &events.Agent{Name: d.Name, Type: events.AIHuman}, nil
	}
	if err := a.cfg.Roster.Knows(a.ctx, a.tenant, d.Name); err != nil {
		return nil, err
	}
	return &events.Agent{Name: d.Name, Type: events.AIHuman}, nil
}

func orMissing(doc *events.Definition, ref events.DefinitionRef, err error) (*events.Definition, error) {
	if doc == nil && err == nil {
		err = events.Missing(string(ref.Kind), ref.Name)
	}
	return doc, err
}

func (q *Queries) definitions() DefinitionSource { return NewDefinitionSource(q.log, q.models) }

// awaitDefinitions waits for the sequence that a query of definitions names.
func awaitDefinitions(a *asking, fresh events.Fresh, fromLog bool) error {
	if fresh.MinVersion != nil {
		return events.Invalid("/minVersion", "definitions belong to no thread, whose version this would be; use minSeq")
	}
	if err := a.awaitSeq(fresh.MinSeq, true); err != nil || fromLog {
		return err
	}
	if err := a.awaitLast(events.TenantAggregate, fresh.MinSeq); err != nil {
		return err
	}
	return a.awaitStart(math.MaxUint64)
}

// listDefinitions selects from the keys of the bucket, and reads the definitions of one page. A
// definition that is added between two pages is shown if it belongs on a later page.
func listDefinitions(a *asking, d events.ListDefinitions) (*events.DefinitionList, error) {
	if err := awaitDefinitions(a, d.Fresh, false); err != nil {
		return nil, err
	}
	query := mark("definition.list", a.tenant, string(d.Kind))
	after := ""
	if d.Cursor != "" {
		var err error
		if after, err = decodeKeyCursor(d.Cursor, query); err != nil {
			return nil, err
		}
	}
	refs, err := definitionRefs(a, d.Kind, after)
	if err != nil {
		return nil, err
	}
	list := &events.DefinitionList{Definitions: []events.Definition{}}
	most, room := limit(d.Limit, definitionsUsual), a.answerBytes()
	for len(refs) > 0 && len(list.Definitions) < most {
		part := refs[:min(len(refs), definitionsAtOnce, most-len(list.Definitions))]
		refs = refs[len(part):]
		got, err := a.definitions().Some(a.ctx, a.tenant, part)
		if err != nil {
			return nil, err
		}
		for _, doc := range got {
			if d.Bare {
				doc.Definition = nil
			}
			if room -= len(doc.Definition) + len(doc.Name) + 512; room < 0 && len(list.Definitions) > 0 {
				return list, nil // NextCursor names the element before it
			}
			list.Definitions = append(list.Definitions, *doc)
			list.NextCursor = encodeKeyCursor(query, events.DefinitionRef{Kind: doc.Kind, Name: doc.Name}.ID())
		}
	}
	if len(refs) == 0 {
		list.NextCursor = ""
	}
	return list, nil
}

// definitionRefs returns the keys of the bucket after a given one, by kind and name, including
// those of removed definitions.
func definitionRefs(a *asking, kind events.DefinitionKind, after string) ([]events.DefinitionRef, error) {
	bucket := a.log.Bucket(a.models.Of(documents.Definitions).Bucket)
	prefix := bucket.Subject(a.tenant + ".")
	filter := prefix + "*.*"
	if kind != "" {
		filter = prefix + string(kind) + ".*"
	}
	stream, err := a.log.JetStream().Stream(a.ctx, bucket.Stream())
	if err != nil {
		return nil, fmt.Errorf("the bucket of definitions: %w", err)
	}
	info, err := stream.Info(a.ctx, jetstream.WithSubjectFilter(filter))
	if err != nil {
		return nil, fmt.Errorf("listing the bucket of definitions: %w", err)
	}
	var refs []events.DefinitionRef
	for subject := range info.State.Subjects {
		ref, ok := events.ParseDefinitionKey(strings.TrimPrefix(subject, prefix))
		if ok && ref.ID() > after {
			refs = append(refs, ref)
		}
	}
	slices.SortFunc(refs, func(a, b events.DefinitionRef) int { return strings.Compare(a.ID(), b.ID()) })
	return refs, nil
}
