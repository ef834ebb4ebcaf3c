package client

import (
	"context"

	"github.com/skein-threads/skein/events"
)

// React asks an agent to answer an item or a text, and returns when that is
// durable: the run goes on whether or not anybody waits for it. While a run is
// on, the thread's policy says what becomes of it. The result names the execution
// that answers it in any case, for WaitRun; while the message waits, also the
// QueuedID under which it does. The error is queue_full if too many wait already.
func (c *Client) React(ctx context.Context, thread string, d events.ReactThread, opts ...Option) (*events.Reply, error) {
	return c.on(ctx, "thread.react", thread, d, opts)
}

// StopRun ends a run after what it does.
func (c *Client) StopRun(ctx context.Context, thread string, d events.StopRun, opts ...Option) (*events.Reply, error) {
	return c.on(ctx, "run.stop", thread, d, opts)
}

// CancelRun ends a run amid what it does.
func (c *Client) CancelRun(ctx context.Context, thread string, d events.CancelRun, opts ...Option) (*events.Reply, error) {
	return c.on(ctx, "run.cancel", thread, d, opts)
}

// RetryRun takes a failed run up again: another execution, which the result names,
// answers the same item and sees what the failed one had come to.
func (c *Client) RetryRun(ctx context.Context, thread string, d events.RetryRun, opts ...Option) (*events.Reply, error) {
	return c.on(ctx, "run.retry", thread, d, opts)
}

// TurnRun gives the next turn of a dual_ai agent to a side.
func (c *Client) TurnRun(ctx context.Context, thread string, d events.TurnRun, opts ...Option) (*events.Reply, error) {
	return c.on(ctx, "run.turn", thread, d, opts)
}

// GrantApproval lets a call of a tool be made that waits for it.
func (c *Client) GrantApproval(ctx context.Context, thread string, d events.GrantApproval, opts ...Option) (*events.Reply, error) {
	return c.on(ctx, "approval.grant", thread, d, opts)
}

// DenyApproval refuses a call of a tool that waits.
func (c *Client) DenyApproval(ctx context.Context, thread string, d events.DenyApproval, opts ...Option) (*events.Reply, error) {
	return c.on(ctx, "approval.deny", thread, d, opts)
}

// ListRuns asks for the tenant's runs, and what each waits for.
func (c *Client) ListRuns(ctx context.Context, q events.ListRuns) (*events.RunList, error) {
	c.fresh(&q.Fresh)
	return ask[events.RunList](ctx, c, "run.list", q)
}

// ListApprovals asks for the tenant's requests for approvals.
func (c *Client) ListApprovals(ctx context.Context, q events.ListApprovals) (*events.ApprovalList, error) {
	c.fresh(&q.Fresh)
	return ask[events.ApprovalList](ctx, c, "approval.list", q)
}

// ResolveApproval answers a request for an approval: with a grant, a refusal, or the
// result of the call.
func (c *Client) ResolveApproval(ctx context.Context, thread string, d events.ResolveApproval, opts ...Option) (*events.Reply, error) {
	return c.on(ctx, "approval.resolve", thread, d, opts)
}

// QueueTool queues a call of a tool, for the run under way or for one of its own.
func (c *Client) QueueTool(ctx context.Context, thread string, d events.QueueTool, opts ...Option) (*events.Reply, error) {
	return c.on(ctx, "tool.queue", thread, d, opts)
}

// AssignAgent hands a thread over to another agent.
func (c *Client) AssignAgent(ctx context.Context, thread string, d events.AssignAgent, opts ...Option) (*events.Reply, error) {
	return c.on(ctx, "agent.assign", thread, d, opts)
}
