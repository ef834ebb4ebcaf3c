package runtime

import (
	"context"
	"strconv"
	"time"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
)

// maxNested is how many tools deep tools may invoke each other.
const maxNested = 8

// Invoke makes a call of a tool at once, within the run: in place, beside what
// else it does. It is held to the tool's schema, limits and hooks as any
// call is, and recorded as a span of the step, under the call from which it is
// made; it is none of the conversation. Its key is derived from that call's and its
// order there, so that a call that is made again makes it with the same one.
//
// What goes wrong is a result of status error: an unknown tool, one that asks
// for an approval, an agent (both need the run, so queue them), and calls nested too
// deep. The error is that of ctx if it ended, or an invalid_request if there is no
// run: an effect has none.
func (x *Execution) Invoke(ctx context.Context, name string, args events.JSON) (ToolResult, error) {
	t := x.turn
	if t == nil {
		return ToolResult{}, events.Invalid("", "there is no run in which the tool %.100s could be called", name)
	}
	if args == nil {
		args = events.JSON("{}")
	}
	started := time.Now()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(x.ctx, func() { cancel(context.Cause(x.ctx)) })()
	from := x.spot.call
	if from == "" { // a hook's
		from = "hook"
	}
	call := from + "." + strconv.FormatInt(x.spot.invoked.Add(1), 10)
	result := x.invoke(ctx, call, name, args)
	parent := x.spot.step
	if x.spot.call != "" {
		parent = spanID(x.spot.step, x.spot.call)
	}
	t.live.span(events.TraceRecorded{
		Kind: events.TraceSpanKind, SpanID: spanID(x.spot.step, call), ParentID: parent, Name: ToolSpan + clip(name),
		StartedAt: events.TimeOf(started).String(), Data: object("callId", call, "status", result.Status, "invoked", true),
	})
	if err := context.Cause(ctx); err != nil {
		return ToolResult{}, err
	}
	return result, nil
}

func (x *Execution) invoke(ctx context.Context, call, name string, args events.JSON) ToolResult {
	t := x.turn
	tool := x.spot.side.tool(name)
	if tool == nil {
		var err error
		if tool, err = t.w.agents.Tool(ctx, t.job.Tenant, name); err != nil {
			return Failed(events.AsError(err).Message)
		}
	}
	spec := tool.Spec()
	_, agent := tool.(AgentTool)
	_, person := tool.(PersonTool)
	switch {
	case person:
		return Failed("the tool " + clip(name) + " asks a person, for whom nobody can wait here; queue it")
	case agent:
		return Failed("an agent cannot be invoked within a run; queue it, and it takes the thread over")
	case spec.Manual:
		return Failed("the tool " + clip(name) + " asks for an approval, for which nobody can wait here; queue it")
	case x.spot.nested >= maxNested:
		return Failed("tools invoke each other more than " + strconv.Itoa(maxNested) + " deep")
	}
	inner := &Execution{flow: x.flow, ctx: x.ctx, scratch: x.scratch, turn: t}
	inner.spot.agent, inner.spot.side, inner.spot.step = x.spot.agent, x.spot.side, x.spot.step
	inner.spot.call, inner.spot.portable, inner.spot.nested = call, !spec.NotPortable, x.spot.nested+1
	in := &ToolInput{
		Tenant: t.job.Tenant, ThreadID: t.job.Thread, ExecutionID: x.flow, StepID: x.spot.step, CallID: call, Name: name,
		Key: x.flow + ":" + x.spot.step + ":" + call, Arguments: args, State: t.w.cfg.State(t.job.Tenant, t.job.Thread, inner),
	}
	// A turn of its own, which streams nothing and ends with ctx.
	own := &turn{w: t.w, job: t.job, logger: t.logger, agent: x.spot.agent, ctx: ctx}
	return own.make(thread.Call{CallID: call, Name: name}, tool, in).result
}
