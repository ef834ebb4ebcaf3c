package server

import (
	"context"
	"errors"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/effects"
)

// startEffects starts the timers of effects; their Committed is for the dispatcher.
// Workers that have the effects registered run them, see effects.Worker.
func (s *Server) startEffects(background context.Context) (*effects.Timers, error) {
	log, err := s.open("timers")
	if err != nil {
		return nil, err
	}
	timers := effects.NewTimers(log, s.cfg.Now, s.logger)
	s.running.Go(func() { timers.Run(background) })
	s.hold(background, log, effects.Lease, timers.Sweeping)
	return timers, nil
}

// purge is the effect events.PurgeEffect. It does not delete a run that begins while it looks:
// the thread then has another version. With the argument handoffs, the threads that the thread
// was handed over to are purged before it.
func (s *states) purge(ctx context.Context, in *runtime.EffectInput) error {
	c, err := s.of(in.Tenant)
	if err != nil {
		return err
	}
	if c, err = c.UpToDate(ctx); err != nil {
		return err
	}
	t, err := client.Read(ctx, c, events.GetThread{ThreadID: in.ThreadID})
	if err == nil {
		if t.Run != nil && cancels(in) {
			_, err := c.Send(ctx, t.ID, events.CancelRun{ExecutionID: t.Run.ExecutionID, Reason: "its thread is purged"})
			if err != nil && !events.HasCode(err, events.IllegalTransition) && !events.IsNotFound(err) {
				return err
			}
		}
		if t.Run != nil || t.Queued > 0 {
			return &runtime.RetryError{Err: errors.New("a run of the thread is active or waits"), NotMade: true}
		}
		if err = purgeHandoffs(ctx, c, in); err != nil {
			return err
		}
		_, err = c.Send(ctx, t.ID, events.DeleteThread{Purge: true}, client.ExpectVersion(t.Version))
	}
	if events.IsNotFound(err) { // it is deleted
		return nil
	}
	return err
}

// cancels reports whether a purge ends the run that its thread still has.
func cancels(in *runtime.EffectInput) bool {
	var args struct {
		Cancel bool `json:"cancel"`
	}
	return len(in.Args) > 0 && json.Unmarshal(in.Args, &args) == nil && args.Cancel
}

// purgeHandoffs purges the threads that a thread was handed over to, if its effect asks for it.
func purgeHandoffs(ctx context.Context, c *client.Client, in *runtime.EffectInput) error {
	var args struct {
		Handoffs bool `json:"handoffs"`
	}
	if len(in.Args) == 0 || json.Unmarshal(in.Args, &args) != nil || !args.Handoffs {
		return nil
	}
	for q := (events.ListRelationships{ThreadID: in.ThreadID, Type: events.HandoffRelation, Role: events.ParentRole}); ; {
		list, err := client.Read(ctx, c, q)
		if err != nil {
			return err
		}
		for _, r := range list.Relationships {
			if reached, err := reaches(ctx, c, in.Rights, r.ThreadID); err != nil {
				return err
			} else if !reached {
				continue
			}
			_, err := c.Send(ctx, r.ThreadID, events.DeleteThread{Purge: true})
			if err != nil && !events.IsNotFound(err) {
				return err
			}
		}
		if q.Cursor = list.NextCursor; q.Cursor == "" {
			return nil
		}
	}
}

// reaches reports whether rights include a thread, which may be gone.
func reaches(ctx context.Context, c *client.Client, rights *events.Rights, thread string) (bool, error) {
	if rights == nil {
		return true, nil
	}
	t, err := client.Read(ctx, c, events.GetThread{ThreadID: thread})
	if events.IsNotFound(err) {
		return false, nil
	}
	return err == nil && rights.Reach(t.ID, t.UserID), err
}
