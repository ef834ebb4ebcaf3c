package client

import (
	"context"
	"errors"

	"github.com/skein-threads/skein/events"
)

// React asks an agent to answer an item or a text, and returns when that is
// durable: the run goes on whether or not anybody waits for it. While a run is
// on, the thread's policy says what becomes of it; a message that waits is named
// by the result's Queued. The error is queue_full if too many wait already.
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

// QueueTool queues a call of a tool, for the run under way or for one of its own.
func (c *Client) QueueTool(ctx context.Context, thread string, d events.QueueTool, opts ...Option) (*events.Reply, error) {
	return c.on(ctx, "tool.queue", thread, d, opts)
}

// AssignAgent hands a thread over to another agent.
func (c *Client) AssignAgent(ctx context.Context, thread string, d events.AssignAgent, opts ...Option) (*events.Reply, error) {
	return c.on(ctx, "agent.assign", thread, d, opts)
}

// WaitRun waits until an execution has ended, and gives it: also one that has
// ended long ago. After React, ask with the reply's ThreadID, the ExecutionID of
// its result and its Seq as MinSeq. It goes on over a server that is away for a
// while, until ctx ends. The error is ctx's, or that of the query.
func (c *Client) WaitRun(ctx context.Context, q events.GetExecution) (*events.Execution, error) {
	for attempt := 0; ; attempt++ {
		x, err := c.waitRun(ctx, q)
		if err == nil || !errors.Is(err, &events.Error{Code: events.Unavailable}) || c.nc.IsClosed() || !pause(ctx, attempt) {
			return x, err
		}
	}
}

func (c *Client) waitRun(ctx context.Context, q events.GetExecution) (*events.Execution, error) {
	x, err := c.GetExecution(ctx, q)
	if err != nil || x.Finished {
		return x, err
	}
	// What ends it was committed after what the document shows.
	timeline, err := c.Timeline(ctx, SubscribeOptions{
		Thread: x.ThreadID, Types: []string{string(events.ThreadFinishedType)}, From: Seq(x.Seq + 1),
	})
	if err != nil {
		return nil, err
	}
	defer timeline.Close()
	for {
		e, err := timeline.Next(ctx)
		if err != nil {
			return nil, err
		}
		if d, ok := e.Data.(events.ThreadFinished); !ok || d.ExecutionID != x.ID {
			continue
		}
		seq := events.Int(e.Seq)
		return c.GetExecution(ctx, events.GetExecution{ThreadID: x.ThreadID, ExecutionID: x.ID, Fresh: events.Fresh{MinSeq: &seq}})
	}
}
