package client

import (
	"cmp"
	"context"

	"github.com/skein-threads/skein/events"
)

// ListQueue returns what waits for a thread's agent, as of everything committed before
// the call: all of it as one commit left it, or with a limit or a cursor a page.
func (c *Client) ListQueue(ctx context.Context, q events.ListQueue) (*events.QueueList, error) {
	c.fresh(&q.Fresh)
	one := q.Limit != nil || q.Cursor != ""
	for {
		moved, seq := false, int64(0)
		list, err := allPages(one, func(cursor string) (*events.QueueList, error) {
			q.Cursor = cmp.Or(cursor, q.Cursor)
			page, err := query[events.QueueList](ctx, c, "queue.list", q)
			if err == nil && cursor == "" {
				seq = page.Seq
			}
			moved = moved || err == nil && page.Seq != seq
			return page, err
		}, func(l *events.QueueList) *string { return &l.NextCursor }, func(all, page *events.QueueList) {
			all.Queued = append(all.Queued, page.Queued...)
		})
		if err != nil || !moved {
			return list, err
		}
		q.Cursor = ""
	}
}

// RemoveQueued removes a waiting message, or a waiting call of a tool, from the queue
// of a thread's agent. The error is a not_found if it no longer waits.
func (c *Client) RemoveQueued(ctx context.Context, thread string, d events.RemoveQueued, opts ...Option) (*events.Reply, error) {
	return c.executeOn(ctx, "queue.remove", thread, d, opts)
}

// EditQueued replaces a message that waits for a thread's agent.
func (c *Client) EditQueued(ctx context.Context, thread string, d events.EditQueued, opts ...Option) (*events.Reply, error) {
	return c.executeOn(ctx, "queue.edit", thread, d, opts)
}

// MoveQueued moves a message, or a call of a tool, within the queue of a thread's
// agent.
func (c *Client) MoveQueued(ctx context.Context, thread string, d events.MoveQueued, opts ...Option) (*events.Reply, error) {
	return c.executeOn(ctx, "queue.move", thread, d, opts)
}
