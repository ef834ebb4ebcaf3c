package commands

import (
	"context"
	"fmt"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
)

// Values returns the key-value state of a thread, as the log has it now or had it at a time.
// The error is a not_found if there is no such thread.
func (d *Dispatcher) Values(ctx context.Context, tenant, id string, ask events.GetState) (*events.StateValues, error) {
	var v *events.StateValues
	var err error
	show := func(s *thread.State, now events.Time) {
		if err = events.Missing("thread", ask.ThreadID); s.Exists() {
			v, err = s.Values(ask.Life, now)
		}
	}
	if ask.At != nil {
		s, at, failed := d.past(ctx, tenant, id, ask)
		if failed != nil {
			return nil, failed
		}
		show(s, at)
	} else if failed := d.Look(ctx, tenant, id, func(s *thread.State) { show(s, events.TimeOf(d.cfg.Now())) }); failed != nil {
		return nil, failed
	}
	if err == nil && len(ask.Keys) > 0 {
		v.Values, err = events.PickKeys(v.Values, ask.Keys)
	}
	return v, err
}

// past returns a thread as it was at the version or time of ask, and that time.
func (d *Dispatcher) past(ctx context.Context, tenant, id string, ask events.GetState) (*thread.State, events.Time, error) {
	version, until, err := ask.At.Bound()
	if err != nil {
		return nil, 0, err
	}
	s := &thread.State{}
	for commit, err := range d.log.Thread(ctx, tenant, id, 1) {
		if err != nil {
			return nil, 0, err
		}
		for i := range commit.Events {
			e := &commit.Events[i]
			if version > 0 && e.Version > version || until > 0 && e.Time > until {
				return s, max(until, s.Time), nil
			}
			thread.Evolve(s, e)
			s.Seq = commit.Seq
		}
	}
	if s.Version < version {
		return nil, 0, events.Missing("thread version", fmt.Sprintf("%s at version %d", ask.ThreadID, version))
	}
	return s, max(until, s.Time), nil
}
