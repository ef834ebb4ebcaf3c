package query

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
	"github.com/skein-threads/skein/quota"
	"github.com/skein-threads/skein/service"
)

// pasts keeps threads at past versions or times for the next query, because readers ask for
// several pages. It also keeps a fold that a query had no time to finish, for the query's repeat.
type pasts = service.Resumable[pastOf, *documents.Fold]

// Bounds of pasts.
const (
	pastsKept  = 16
	pastsBytes = 32 << 20 // of commits; in memory they take several times as much
	pastsFor   = time.Minute
)

func newPasts() *pasts {
	return service.NewResumable[pastOf, *documents.Fold](service.ResumableBounds{Values: pastsKept, Weight: pastsBytes, For: pastsFor})
}

// pastOf identifies a thread at a version or time.
type pastOf struct {
	tenant, thread string
	until          documents.Until
}

// past is a thread at a past version or time, as the source of one query.
type past struct {
	models *documents.Models
	memory *documents.Memory
}

func (p *past) get(_ context.Context, places ...documents.Place) ([]found, error) {
	out := make([]found, len(places))
	for i, at := range places {
		out[i] = found{place: at}
		if doc := p.memory.Get(at); doc != nil {
			if err := p.read(&out[i], doc); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func (p *past) find(_ context.Context, k documents.Kind, pattern string) ([]found, error) {
	var out []found
	for _, slot := range p.memory.All(documents.Mask(0).With(k)) {
		if !matches(slot.Place.Key(), pattern) {
			continue
		}
		f := found{place: slot.Place}
		if err := p.read(&f, slot.Doc); err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

// read copies a document, because the answer may change it, and the next query shares the memory.
func (p *past) read(f *found, doc any) error {
	raw, err := documents.Encode(doc)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", f.place.Key(), err)
	}
	f.doc, f.seq, err = p.models.Of(f.place.Kind).Decode(raw)
	f.bytes = len(raw)
	return err
}

// lookBack folds the thread up to a version or a time, from the log. It needs no read model, and
// also shows a thread that was deleted later, unless its events were erased.
func (a *asking) lookBack(ref string, at events.At) (*past, error) {
	version, time, err := at.Bound()
	if err != nil {
		return nil, err
	}
	f, err := a.takePast(pastOf{a.tenant, a.thread, documents.Until{Version: version, Time: time}})
	if err != nil {
		return nil, err
	}
	ctx := quota.Placed(a.ctx) // one of Past
	if err := f.Continue(a.log.Thread(ctx, a.tenant, a.thread, f.Memory.Seq+1), a.pages.In(ctx)); err != nil {
		return nil, err
	}
	switch memory := f.Memory; {
	case memory.Version < version:
		return nil, events.Missing("thread version", fmt.Sprintf("%s at version %d", ref, version))
	case memory.Version == 0:
		return nil, events.Missing("thread", ref)
	}
	return &past{a.models, f.Memory}, nil
}

// takePast returns a fold for the exclusive use of this query. When the query ends, the fold is
// kept for the next one. It waits for a place in Config.Past, because each fold holds a whole
// thread in memory.
func (a *asking) takePast(of pastOf) (*documents.Fold, error) {
	f, err := a.pasts.Take(a.ctx, of)
	if err != nil {
		return nil, errPastTaken()
	}
	put := func() {
		if f == nil {
			a.pasts.Drop(of)
		} else {
			a.pasts.Put(of, f, f.Bytes)
		}
	}
	a.leave = put
	leave, err := a.cfg.Past.Wait(a.ctx, a.tenant)
	var full *quota.FullError
	switch {
	case errors.As(err, &full):
		return nil, events.Errorf(events.Unavailable, "%s", full)
	case err != nil:
		return nil, errPastTaken()
	}
	a.leave = func() { put(); leave() }
	if f != nil {
		erased, err := a.erased()
		if err != nil {
			return nil, err
		}
		if !erased {
			return f, nil
		}
	}
	f = a.models.NewFold(of.until)
	return f, nil
}

func errPastTaken() error {
	return events.Errorf(events.Unavailable, "the places for threads as they were are taken for too long; try again")
}

// erased reports whether the thread may have been erased since it was folded: then its last commit
// is missing or a tombstone, and the fold must not be shown.
func (a *asking) erased() (bool, error) {
	last, err := a.log.Last(a.ctx, a.tenant, a.thread)
	var broken *events.BrokenError
	if err != nil && !errors.As(err, &broken) {
		return false, err
	}
	return last == nil || buckets.Deletes(last), nil
}
