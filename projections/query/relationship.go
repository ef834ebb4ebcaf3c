package query

import (
	"slices"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

// listRelationships returns a thread's relationships, oldest first. None is no error.
func (a *asking) listRelationships(d events.ListRelationships) (*events.RelationshipList, error) {
	if err := a.about(d.ThreadID, d.At, d.Fresh); err != nil {
		return nil, err
	}
	got, err := a.ofThreadAll(d.ThreadID, documents.Relationships, ".*.*.*")
	if err != nil {
		return nil, err
	}
	got = slices.DeleteFunc(got, func(f found) bool {
		r := f.doc.(*events.Relationship)
		return d.Type != "" && r.Type != d.Type || d.Role != "" && r.Role != d.Role
	})
	p := paging{d.Limit, d.Cursor, mark("relationship.list", a.name(), string(d.Type), string(d.Role))}
	list, next, err := pageOf(a, p, got, func(r *events.Relationship) string {
		return ordinal(r.Version, r.ThreadID, string(r.Type), string(r.Role))
	})
	return &events.RelationshipList{Relationships: list, NextCursor: next}, err
}
