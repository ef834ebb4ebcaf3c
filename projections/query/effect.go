package query

import (
	"cmp"
	"context"
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

// Values returns the key-value state of a thread, as the log has it now or had it. The error
// is a not_found if there is no such thread.
type Values func(ctx context.Context, tenant, thread string, ask events.GetState) (*events.StateValues, error)

// getState answers from the log rather than a read model: a visitor's next request must see
// what the last one wrote, whichever process it reaches.
func (a *asking) getState(d events.GetState) (*events.StateValues, error) {
	if err := a.awaitSeq(d.MinSeq, true); err != nil {
		return nil, err
	}
	a.source = a.inheriting(&live{q: a.Queries})
	if err := a.resolve(d.ThreadID); err != nil {
		return nil, err
	}
	v, err := a.cfg.Values(a.ctx, a.tenant, a.thread, d)
	if err != nil {
		return nil, err
	}
	if d.At == nil && d.MinVersion != nil && v.Version < *d.MinVersion {
		return nil, a.behind("the log has the thread at version %d, not yet %d", v.Version, *d.MinVersion)
	}
	return v, nil
}

// noValues is the default of Config.Values.
func noValues(_ context.Context, _, thread string, _ events.GetState) (*events.StateValues, error) {
	return nil, events.Missing("thread", thread)
}
