package client

import (
	"context"

	"github.com/skein-threads/skein/events"
)

// React asks an agent to answer an item or a text, and returns when the request is
// durable: the run does not depend on the caller. If a run is in progress, the thread's
// policy decides what happens. The result names the execution that will answer, for
// WaitRun, and the QueuedID if the message waits in the queue. The error is queue_full
// if too many wait.
func (c *Client) React(ctx context.Context, thread string, d events.ReactThread, opts ...Option) (*events.Reply, error) {
	return c.executeOn(ctx, "thread.react", thread, d, opts)
}

// StopRun ends a run after its current operation.
func (c *Client) StopRun(ctx context.Context, thread string, d events.StopRun, opts ...Option) (*events.Reply, error) {
	return c.executeOn(ctx, "run.stop", thread, d, opts)
}

// CancelRun ends a run during its current operation.
func (c *Client) CancelRun(ctx context.Context, thread string, d events.CancelRun, opts ...Option) (*events.Reply, error) {
	return c.executeOn(ctx, "run.cancel", thread, d, opts)
}

// RetryRun retries a failed run: a new execution, named by the result, answers the same
// item and sees the partial results of the failed one.
func (c *Client) RetryRun(ctx context.Context, thread string, d events.RetryRun, opts ...Option) (*events.Reply, error) {
	return c.executeOn(ctx, "run.retry", thread, d, opts)
}

// TurnRun assigns the next turn of a dual_ai agent to a side.
func (c *Client) TurnRun(ctx context.Context, thread string, d events.TurnRun, opts ...Option) (*events.Reply, error) {
	return c.executeOn(ctx, "run.turn", thread, d, opts)
}

// GrantApproval permits a call of a tool that waits for an approval.
func (c *Client) GrantApproval(ctx context.Context, thread string, d events.GrantApproval, opts ...Option) (*events.Reply, error) {
	return c.executeOn(ctx, "approval.grant", thread, d, opts)
}

// DenyApproval refuses a call of a tool that waits for an approval.
func (c *Client) DenyApproval(ctx context.Context, thread string, d events.DenyApproval, opts ...Option) (*events.Reply, error) {
	return c.executeOn(ctx, "approval.deny", thread, d, opts)
}

// ListRuns returns a page of the tenant's runs, with what each waits for.
func (c *Client) ListRuns(ctx context.Context, q events.ListRuns) (*events.RunList, error) {
	c.fresh(&q.Fresh)
	return query[events.RunList](ctx, c, "run.list", q)
}

// ListApprovals returns a page of the tenant's requests for approvals.
func (c *Client) ListApprovals(ctx context.Context, q events.ListApprovals) (*events.ApprovalList, error) {
	c.fresh(&q.Fresh)
	return query[events.ApprovalList](ctx, c, "approval.list", q)
}

// ResolveApproval answers a request for an approval: with a grant, a refusal, or the
// result of the call.
func (c *Client) ResolveApproval(ctx context.Context, thread string, d events.ResolveApproval, opts ...Option) (*events.Reply, error) {
	return c.executeOn(ctx, "approval.resolve", thread, d, opts)
}

// QueueTool queues a call of a tool, for the active run or for one of its own.
func (c *Client) QueueTool(ctx context.Context, thread string, d events.QueueTool, opts ...Option) (*events.Reply, error) {
	return c.executeOn(ctx, "tool.queue", thread, d, opts)
}

// AssignAgent hands a thread over to another agent.
func (c *Client) AssignAgent(ctx context.Context, thread string, d events.AssignAgent, opts ...Option) (*events.Reply, error) {
	return c.executeOn(ctx, "agent.assign", thread, d, opts)
}
