package client

import (
	"context"

	"github.com/skein-threads/skein/events"
)

// ScheduleEffect schedules work outside the conversation, for a process that registered
// an effect with that name. The effect's id is the reply's Result.EffectID.
func (c *Client) ScheduleEffect(ctx context.Context, thread string, d events.ScheduleEffect, opts ...Option) (*events.Reply, error) {
	return c.executeOn(ctx, "effect.schedule", thread, d, opts)
}

// CancelEffect cancels a pending effect. The reply has a Result, with Cancelled, only
// if there was one to cancel.
func (c *Client) CancelEffect(ctx context.Context, thread string, d events.CancelEffect, opts ...Option) (*events.Reply, error) {
	return c.executeOn(ctx, "effect.cancel", thread, d, opts)
}

// RemoveScheduledEffect cancels an effect, and reports whether it did: it returns false
// and no error if the effect has run, is running, was cancelled before or never
// existed. Once it returned true, the effect is never started.
func (c *Client) RemoveScheduledEffect(ctx context.Context, thread, effectID string) (bool, error) {
	reply, err := c.CancelEffect(ctx, thread, events.CancelEffect{EffectID: effectID})
	return err == nil && reply.Result != nil && reply.Result.Cancelled, err
}

// ListEffects returns a page of the pending effects of a thread, or of the tenant, the earliest due
// first.
func (c *Client) ListEffects(ctx context.Context, q events.ListEffects) (*events.EffectList, error) {
	c.fresh(&q.Fresh)
	return query[events.EffectList](ctx, c, "effect.list", q)
}

// ScheduledEffects returns a thread's pending effects, the earliest due first, all or
// only those with a name. An empty list is not an error.
func (c *Client) ScheduledEffects(ctx context.Context, thread, name string) ([]events.ScheduledEffect, error) {
	if thread == "" {
		return nil, events.Invalid("/threadId", "the thread of the effects is missing; name one, or use ListEffects for those of the tenant")
	}
	all := []events.ScheduledEffect{}
	for q := (events.ListEffects{ThreadID: thread, Name: name}); ; {
		list, err := c.ListEffects(ctx, q)
		if err != nil {
			return nil, err
		}
		if all = append(all, list.Effects...); list.NextCursor == "" {
			return all, nil
		}
		q.Cursor = list.NextCursor
	}
}
