package client

import (
	"context"

	"github.com/skein-threads/skein/events"
)

// RemoveScheduledEffect cancels an effect, and reports whether it did: it returns false
// and no error if the effect has run, is running, was cancelled before or never
// existed. Once it returned true, the effect is never started.
func (c *Client) RemoveScheduledEffect(ctx context.Context, thread, effectID string) (bool, error) {
	reply, err := c.Send(ctx, thread, events.CancelEffect{EffectID: effectID})
	return err == nil && reply.Result != nil && reply.Result.Cancelled, err
}

// ScheduledEffects returns a thread's pending effects, the earliest due first, all or
// only those with a name. An empty list is not an error.
func (c *Client) ScheduledEffects(ctx context.Context, thread, name string) ([]events.ScheduledEffect, error) {
	if thread == "" {
		return nil, events.Invalid("/threadId", "the thread of the effects is missing; name one, or use ListEffects for those of the tenant")
	}
	all := []events.ScheduledEffect{}
	for q := (events.ListEffects{ThreadID: thread, Name: name}); ; {
		list, err := Read(ctx, c, q)
		if err != nil {
			return nil, err
		}
		if all = append(all, list.Effects...); list.NextCursor == "" {
			return all, nil
		}
		q.Cursor = list.NextCursor
	}
}
