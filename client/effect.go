package client

import (
	"context"

	"github.com/skein-threads/skein/events"
)

// ScheduleEffect has work done later, outside the conversation; the id
// is the reply's Result.EffectID. It runs in a worker that knows its name.
func (c *Client) ScheduleEffect(ctx context.Context, thread string, d events.ScheduleEffect, opts ...Option) (*events.Reply, error) {
	return c.on(ctx, "effect.schedule", thread, d, opts)
}

// CancelEffect cancels an effect that is pending. The reply's Result is there,
// and Cancelled, only if there was one to cancel.
func (c *Client) CancelEffect(ctx context.Context, thread string, d events.CancelEffect, opts ...Option) (*events.Reply, error) {
	return c.on(ctx, "effect.cancel", thread, d, opts)
}

// RemoveScheduledEffect cancels an effect, and reports whether it did:
// false, and no error, if the effect has run, runs now, was cancelled before or
// never was. After true it is not begun any more.
func (c *Client) RemoveScheduledEffect(ctx context.Context, thread, effectID string) (bool, error) {
	reply, err := c.CancelEffect(ctx, thread, events.CancelEffect{EffectID: effectID})
	return err == nil && reply.Result != nil && reply.Result.Cancelled, err
}

// ListEffects asks for a thread's pending effects.
func (c *Client) ListEffects(ctx context.Context, q events.ListEffects) (*events.EffectList, error) {
	c.fresh(&q.Fresh)
	return ask[events.EffectList](ctx, c, "effect.list", q)
}

// ScheduledEffects gives a thread's pending effects, those that are due first in
// front, or only those of a name, if one is given. None is no error.
func (c *Client) ScheduledEffects(ctx context.Context, thread, name string) ([]events.ScheduledEffect, error) {
	list, err := c.ListEffects(ctx, events.ListEffects{ThreadID: thread, Name: name})
	if err != nil {
		return nil, err
	}
	return list.Effects, nil
}
