package query

import (
	"cmp"
	"slices"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

// listRelationships returns a thread's relationships, oldest first. None is no error.
func (a *asking) listRelationships(d events.ListRelationships) (*events.RelationshipList, error) {
	if err := a.about(d.ThreadID, d.At, d.Fresh); err != nil {
		return nil, err
	}
	list, err := all[events.Relationship](a, documents.Relationships, a.name()+".*.*.*")
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		if _, err := a.ofThread(d.ThreadID); err != nil {
			return nil, err
		}
	}
	list = slices.DeleteFunc(list, func(r events.Relationship) bool {
		return d.Type != "" && r.Type != d.Type || d.Role != "" && r.Role != d.Role
	})
	slices.SortFunc(list, func(a, b events.Relationship) int {
		return cmp.Or(cmp.Compare(a.Version, b.Version), cmp.Compare(a.ThreadID, b.ThreadID), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Role, b.Role))
	})
	return &events.RelationshipList{Relationships: list}, nil
}
