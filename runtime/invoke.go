package runtime

import (
	"context"
	"strconv"
	"time"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runview"
)

// maxNested is how many tools deep tools may invoke each other.
const maxNested = 8

// Invoke makes a call of a tool immediately, within the run and concurrently with its
// other work. The tool's schema, limits and hooks apply, and the call is recorded as a
// span of the step, under the call that makes it; it is not part of the conversation.
// Its key is derived from that call's and its order there, so that a repeated call uses
// the same key.
//
// A failure is a result with status error: an unknown tool, one that requires an
// approval, an agent (both need the run, so queue them), and calls nested too deep. The
// error is ctx's if it ended, or an invalid_request if there is no run, as in an
// effect.
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
	t.live.addSpan(events.TraceRecorded{
		Kind: events.TraceSpanKind, SpanID: spanID(x.spot.step, call), ParentID: parent, Name: runview.ToolSpanPrefix + clip(name),
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
	_, skill := tool.(skillTool)
	_, absent := tool.(AbsentTool)
	switch {
	case absent:
		return Failed("no process here has the Go tool " + clip(name) + ", and a call within a run cannot wait for one; queue it")
	case skill:
		return Failed("a skill is loaded by the model, or activated with skill.activate")
	case person:
		return Failed("the tool " + clip(name) + " asks a person, and a call within a run cannot wait; queue it")
	case agent:
		return Failed("an agent cannot be invoked within a run; queue it, and it takes the thread over")
	case spec.Manual:
		return Failed("the tool " + clip(name) + " requires an approval, and a call within a run cannot wait; queue it")
	case x.spot.nested >= maxNested:
		return Failed("tools invoke each other more than " + strconv.Itoa(maxNested) + " deep")
	}
	inner := &Execution{flow: x.flow, ctx: x.ctx, scratch: x.scratch, turn: t}
	inner.spot.agent, inner.spot.side, inner.spot.step = x.spot.agent, x.spot.side, x.spot.step
	inner.spot.call, inner.spot.portable, inner.spot.nested = call, !spec.NotPortable, x.spot.nested+1
	in := &ToolInput{
		Tenant: t.job.Tenant, ThreadID: t.job.Thread, ExecutionID: x.flow, StepID: x.spot.step, CallID: call, Name: name,
		Key: inner.Key(), Arguments: args, Rights: inner.Rights(),
	}
	// A turn of its own, which streams nothing and ends with ctx.
	own := &turn{w: t.w, job: t.job, logger: t.logger, agent: x.spot.agent, ctx: ctx, holding: ctx}
	return own.stepCalls().makeCall(thread.Call{CallID: call, Name: name}, tool, in, inner).result
}
