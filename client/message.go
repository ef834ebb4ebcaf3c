package client

import (
	"context"

	"github.com/skein-threads/skein/events"
)

// AddMessage adds a message, as Standard Agents defines it.
func (c *Client) AddMessage(ctx context.Context, thread string, d events.AddMessage, opts ...Option) (*events.Reply, error) {
	return c.executeOn(ctx, "message.add", thread, d, opts)
}

// UpdateMessage changes a message, as Standard Agents defines it.
func (c *Client) UpdateMessage(ctx context.Context, thread string, d events.UpdateMessage, opts ...Option) (*events.Reply, error) {
	return c.executeOn(ctx, "message.update", thread, d, opts)
}

// RecordTrace records a log line, a model's usage or a span.
func (c *Client) RecordTrace(ctx context.Context, thread string, d events.RecordTrace, opts ...Option) (*events.Reply, error) {
	return c.executeOn(ctx, "trace.record", thread, d, opts)
}

// GetMessage returns a message; nil if there is none with that id.
func (c *Client) GetMessage(ctx context.Context, q events.GetMessage) (*events.ThreadMessage, error) {
	c.fresh(&q.Fresh)
	m, err := query[*events.ThreadMessage](ctx, c, "message.get", q)
	if err != nil {
		return nil, err
	}
	return *m, nil
}

// ListMessages returns a page of a thread's messages, newest first: at most 1,000, and
// as many as fit in one answer.
func (c *Client) ListMessages(ctx context.Context, q events.ListMessages) (*events.MessageList, error) {
	c.fresh(&q.Fresh)
	return query[events.MessageList](ctx, c, "message.list", q)
}

// ListLogs returns a thread's log lines, newest first, as many as fit in one answer.
func (c *Client) ListLogs(ctx context.Context, q events.ListLogs) (*events.LogList, error) {
	c.fresh(&q.Fresh)
	return query[events.LogList](ctx, c, "log.list", q)
}
