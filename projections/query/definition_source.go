package query

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

// DefinitionSource reads definitions: current ones from their bucket, past versions from the log.
type DefinitionSource struct {
	log    *eventlog.Log
	models *documents.Models
}

// NewDefinitionSource returns the source of the definitions in a log and its buckets.
func NewDefinitionSource(log *eventlog.Log, models *documents.Models) DefinitionSource {
	return DefinitionSource{log, models}
}

// One reads the current version of a definition, nil if there is none.
func (s DefinitionSource) One(ctx context.Context, tenant string, ref events.DefinitionRef) (*events.Definition, error) {
	list, err := s.Some(ctx, tenant, []events.DefinitionRef{ref})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return list[0], nil
}

// Some reads the current versions of the definitions that exist, in the order of refs.
func (s DefinitionSource) Some(ctx context.Context, tenant string, refs []events.DefinitionRef) ([]*events.Definition, error) {
	model := s.models.Of(documents.Definitions)
	keys := make([]string, len(refs))
	for i, ref := range refs {
		keys[i] = tenant + "." + ref.Key()
	}
	got, err := s.log.Bucket(model.Bucket).Get(ctx, keys...)
	if err != nil {
		return nil, fmt.Errorf("reading definitions: %w", err)
	}
	byKey := map[string]*events.Definition{}
	for _, m := range got {
		doc, _, err := model.Decode(m.Data)
		if err != nil {
			return nil, err
		}
		byKey[m.Subject] = doc.(*events.Definition)
	}
	var list []*events.Definition
	for _, key := range keys {
		if doc := byKey[key]; doc != nil {
			list = append(list, doc)
		}
	}
	return list, nil
}

// At returns a version of a definition, from the tenant's part of the log. It returns nil if the
// definition never had that version, or was removed with it.
func (s DefinitionSource) At(ctx context.Context, tenant string, ref events.DefinitionRef, version int64) (*events.Definition, error) {
	for c, err := range s.log.Thread(ctx, tenant, events.TenantAggregate, 1) {
		var broken *events.BrokenError
		switch {
		case errors.As(err, &broken):
			continue
		case err != nil:
			return nil, err
		}
		for i := range c.Events {
			d, ok := c.Events[i].Data.(events.DefinitionChanged)
			if ok && d.Kind == ref.Kind && d.Name == ref.Name && d.Version == version {
				return d.Document(c.Events[i].Time, int64(c.Seq)), nil
			}
		}
	}
	return nil, nil
}

// OwnedDefinition is a definition with its tenant.
type OwnedDefinition struct {
	Tenant string
	*events.Definition
}

// Every reads the current versions of all definitions of a kind, of all tenants, in no order.
func (s DefinitionSource) Every(ctx context.Context, kind events.DefinitionKind) ([]OwnedDefinition, error) {
	model := s.models.Of(documents.Definitions)
	got, err := s.log.Bucket(model.Bucket).All(ctx, "*."+string(kind)+".*")
	if err != nil {
		return nil, fmt.Errorf("reading all definitions: %w", err)
	}
	list := make([]OwnedDefinition, 0, len(got))
	for _, m := range got {
		doc, _, err := model.Decode(m.Data)
		if err != nil {
			return nil, err
		}
		tenant, _, _ := strings.Cut(m.Subject, ".")
		list = append(list, OwnedDefinition{tenant, doc.(*events.Definition)})
	}
	return list, nil
}
