package client

import (
	"context"

	"github.com/skein-threads/skein/events"
)

// ListQueue asks what waits for a thread's agent. It shows what was committed
// before it was asked.
func (c *Client) ListQueue(ctx context.Context, q events.ListQueue) (*events.QueueList, error) {
	c.fresh(&q.Fresh)
	return ask[events.QueueList](ctx, c, "queue.list", q)
}

// RemoveQueued takes a message, or a call of a tool, out of what waits for a
// thread's agent. The error is a not_found if it does not wait any more.
func (c *Client) RemoveQueued(ctx context.Context, thread string, d events.RemoveQueued, opts ...Option) (*events.Reply, error) {
	return c.on(ctx, "queue.remove", thread, d, opts)
}

// EditQueued replaces a message that waits for a thread's agent.
func (c *Client) EditQueued(ctx context.Context, thread string, d events.EditQueued, opts ...Option) (*events.Reply, error) {
	return c.on(ctx, "queue.edit", thread, d, opts)
}

// MoveQueued gives what waits for a thread's agent another place in the queue.
func (c *Client) MoveQueued(ctx context.Context, thread string, d events.MoveQueued, opts ...Option) (*events.Reply, error) {
	return c.on(ctx, "queue.move", thread, d, opts)
}
