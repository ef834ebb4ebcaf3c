package audit

import (
	"context"
	"errors"
	"fmt"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
)

// copies records that an item says to be a copy, with the finding if the parent never had that one.
func (j *judge) copies(place Finding, source string) {
	if len(j.sources) >= mostTies {
		return
	}
	if j.sources == nil {
		j.sources = map[string]Finding{}
	}
	place.Kind, place.Detail = KindLink, fmt.Sprintf("it copies item %.80s of thread %.80s, which had no such item when it was forked", source, j.origin)
	j.sources[source] = place
}

// suspectCopies checks that the parent of a fork had the items that the fork has copied.
func (v *verifier) suspectCopies(ctx context.Context) error {
	j := v.judge
	if j.origin == "" || !events.ValidThreadID(j.origin) {
		return nil
	}
	parent, fork := aggregate{j.at.tenant, j.origin}, j.at.id
	for source, place := range j.sources {
		if err := v.ask(ctx, suspect{place: place, confirm: func(ctx context.Context) (bool, error) {
			had, err := v.parents.of(parent, func() (*parentItems, error) { return v.readItems(ctx, parent) })
			return err == nil && had.hadFor(fork, source), err
		}}); err != nil {
			return err
		}
	}
	return nil
}

// parentItems is what a thread had, and when it was forked, in versions.
type parentItems struct {
	items, forks map[string]int64 // by item, and by fork
	unknown      bool             // what it had is not in its log alone: it was erased, is not here, or has inherited items
}

// hadFor reports whether the thread had an item when a fork was made of it, or cannot say.
func (p *parentItems) hadFor(fork, item string) bool {
	if p.unknown {
		return true
	}
	at, had := p.items[item]
	forked, known := p.forks[fork]
	return had && (!known || at < forked)
}

// readItems reads what a thread had from its log.
func (v *verifier) readItems(ctx context.Context, a aggregate) (*parentItems, error) {
	p := &parentItems{items: map[string]int64{}, forks: map[string]int64{}}
	unknown := &parentItems{unknown: true}
	last := int64(0)
	for m, err := range v.log.Raw(ctx, v.log.Config().Names.Log(a.tenant, a.id), 1) {
		var archive *eventlog.ArchiveError
		if errors.As(err, &archive) {
			return unknown, nil // reported at its own place
		}
		if err != nil {
			return nil, err
		}
		commit, err := v.log.Decode(m)
		if err != nil || commit.First() != last {
			return unknown, nil
		}
		last = commit.Version
		for i := range commit.Events {
			switch e := &commit.Events[i]; d := e.Data.(type) {
			case events.HistoryInherited:
				return unknown, nil
			case events.ItemCreated:
				p.items[d.ID] = e.Version
			case events.LifecycleDeleted:
				if d.Purge { // it is being erased
					return unknown, nil
				}
			case events.RelationshipAdded:
				if d.Type == events.ForkRelation && d.Role == events.ParentRole {
					p.forks[d.ThreadID] = e.Version
				}
			}
		}
	}
	p.unknown = last == 0
	return p, nil
}

// mostParentItems bounds how many items of parents are kept in memory.
const mostParentItems = 200_000
