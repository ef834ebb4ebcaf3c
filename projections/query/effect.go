package query

import (
	"cmp"
	"slices"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

// listEffects returns what is pending, those due first in front. None is no error.
func (a *asking) listEffects(d events.ListEffects) (*events.EffectList, error) {
	if err := a.about(d.ThreadID, d.At, d.Fresh); err != nil {
		return nil, err
	}
	got, err := a.source.find(a.ctx, documents.Effects, a.name()+".*")
	if err != nil {
		return nil, err
	}
	if len(got) == 0 {
		if _, err := a.ofThread(d.ThreadID); err != nil {
			return nil, err
		}
	}
	list, err := values[events.ScheduledEffect](a, slices.DeleteFunc(got, func(f found) bool {
		e := f.doc.(*events.ScheduledEffect)
		return !e.Pending() || d.Name != "" && e.Name != d.Name
	}))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b events.ScheduledEffect) int {
		return cmp.Or(cmp.Compare(a.ScheduledAt, b.ScheduledAt), cmp.Compare(a.ID, b.ID))
	})
	return &events.EffectList{Effects: list}, nil
}
