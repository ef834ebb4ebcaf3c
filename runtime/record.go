package runtime

import (
	"context"
	"errors"
	"fmt"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/runview"
)

// recordBytes is the intended size limit of a commit of results. One that still exceeds
// the limit of the log is split.
const recordBytes = events.MaxCommitBytes / 2

// bytes estimates the size of a call in a commit. Its result is stored in the part, in the
// reaction item and in an item of its own, its arguments in the first two.
func (e callOutcome) bytes() int {
	return 3*(len(e.result.Result)+len(e.result.Error)) + 2*len(e.asked) + 2048
}

// record records the outcomes of calls in as few commits as possible. An outcome that is too large
// for a commit is recorded as a failure that says so, because the call was made.
func (t stepCalls) record(ctx context.Context, side *Side, batch []callOutcome) error {
	for i := range batch {
		if batch[i].asked == nil {
			batch[i].asked = t.arguments(batch[i].call)
		}
	}
	spans := t.live.takeSpans()
	for most := recordBytes; len(batch) > 0; {
		n, bytes := 1, batch[0].bytes()
		for n < len(batch) && bytes+batch[n].bytes() <= most {
			bytes += batch[n].bytes()
			n++
		}
		err := t.recordSome(ctx, side, batch[:n], spans)
		switch {
		case err == nil:
			batch, spans = batch[n:], nil
		case !events.HasCode(err, events.PayloadTooLarge):
			return err
		case n > 1:
			most = bytes / 2
		case len(spans) > 0: // spans are recorded separately, and dropped if they are too large, too
			_, _ = t.commit(ctx, "record", thread.RecordRun{ExecutionID: t.job.Execution, Token: t.run.Token, Records: spans})
			spans = nil
		case batch[0].unfit:
			return t.fail(ctx, fmt.Sprintf("the result of call %s cannot be recorded: %s", clip(batch[0].call.CallID), events.AsError(err).Message), nil)
		default:
			e := &batch[0]
			e.result, e.unfit = Failed(fmt.Sprintf("the call was made, and its result of %d bytes cannot be recorded: %s; store larger content in files",
				len(e.result.Result)+len(e.result.Error), events.AsError(err).Message)), true
		}
	}
	return nil
}

// recordSome merges the outcomes of calls into their parts, in one commit.
func (t stepCalls) recordSome(ctx context.Context, side *Side, batch []callOutcome, spans []events.TraceRecorded) error {
	called := make([]string, len(t.run.Calls))
	for i, c := range t.run.Calls {
		called[i] = c.Name
	}
	d := thread.EndCalls{
		ExecutionID: t.job.Execution, Token: t.run.Token, StepID: t.run.StepID,
		After: t.reactorCall().nextAfter(side, called, nil),
	}
	d.Continue = d.Continue && !t.reactorCall().callerCalls()
	for _, e := range batch {
		r := thread.CallResult{CallID: e.call.CallID, Output: e.result.Result, IsError: e.result.Status != Success, Skill: e.skill}
		state := "output-available"
		if r.IsError {
			state, r.Output = "output-error", text(e.result.Error)
		}
		fields := []any{"type", events.ToolPart + e.call.Name, "toolCallId", e.call.CallID, "state", state, "input", e.asked, "output", r.Output}
		if r.IsError {
			fields = append(fields, "errorText", e.result.Error)
		}
		r.Part = object(fields...)
		d.Results = append(d.Results, r)
		about := []any{"callId", e.call.CallID, "status", e.result.Status}
		if e.again > 0 {
			about = append(about, "attempts", e.again+1)
		}
		d.Records = append(d.Records, events.TraceRecorded{
			Kind: "span", SpanID: spanID(t.run.StepID, e.call.CallID), ParentID: t.run.StepID, Name: runview.ToolSpanPrefix + clip(e.call.Name),
			StartedAt: events.TimeOf(e.started).String(), Data: object(about...),
		})
		if e.agent != "" {
			d.Agent = e.agent
		}
	}
	d.Records = append(d.Records, spans...)
	if _, err := t.commit(ctx, "call", d); err != nil {
		return err
	}
	if d.Agent == "" {
		return nil
	}
	t.absent = nil
	agent, err := t.w.agent(ctx, t.job.Tenant, d.Agent)
	if err != nil && !errors.As(err, &t.absent) { // an agent with missing MCP servers takes over, and waits for them after the step
		return t.fail(ctx, events.AsError(err).Message, nil)
	}
	t.agent = agent
	return nil
}
