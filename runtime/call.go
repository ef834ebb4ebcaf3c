package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
	"github.com/skein-threads/skein/service"
)

// callOutcome is a call with its outcome.
type callOutcome struct {
	call    thread.Call
	asked   events.JSON // its arguments; nil: unknown
	result  ToolResult
	tool    string // the tool that was called
	started time.Time
	again   int                   // attempts after the first
	agent   string                // the agent that takes the thread over
	unfit   bool                  // its result was too large to record
	unmade  bool                  // it was not made, because no process serves its tool and the run gives up its place
	skill   *events.ActivateSkill // the skill that the call has loaded
}

// stepCalls makes the calls of the open step, and records their results.
type stepCalls struct{ *turn }

func (t *turn) stepCalls() stepCalls { return stepCalls{t} }

// makeCalls makes the permitted calls of the open step concurrently, and records each
// outcome as soon as the log is free.
func (t stepCalls) makeCalls(ctx context.Context) error {
	side := t.agent.side(t.run.Side)
	calling, err := t.callingSide(ctx)
	if absent := (*AbsentServersError)(nil); errors.As(err, &absent) && !t.run.Stop { // a run that is to stop makes no call
		return t.absence().awaitServers(ctx, t.agent, absent)
	}
	if calling == nil {
		return err
	}
	t.announceCalls()
	b := &callBatch{
		stepCalls: t, side: calling, done: make(chan callOutcome, len(t.run.Calls)),
		hold: thread.HoldCalls{ExecutionID: t.job.Execution, Token: t.run.Token, StepID: t.run.StepID},
	}
	t.missing = make(chan missingWorker, len(t.run.Calls)) // buffered for one report of each call
	holding, letGo := context.WithCancelCause(t.ctx)
	defer letGo(nil)
	t.holding = holding
	for _, c := range t.run.Calls {
		if err := b.begin(ctx, c); err != nil {
			return err
		}
	}
	if hold := b.hold; len(hold.Approve) > 0 || len(hold.Wait) > 0 {
		if _, err := t.commit(ctx, "hold", hold); err != nil {
			return err
		}
		if err := t.delegation().resumeSettled(ctx, hold.Wait); err != nil {
			return err
		}
	}
	unmade, err := t.collect(ctx, side, len(b.open), b.done, letGo)
	if err != nil {
		return err
	}
	if stopped := t.run.Stop && len(b.open)+len(b.hold.Approve)+len(b.hold.Wait) == 0; stopped || len(unmade) > 0 {
		if _, err := t.commit(ctx, "park", thread.ParkRun{ExecutionID: t.job.Execution, Token: t.run.Token, Unmade: unmade}); err != nil {
			return err
		}
	}
	t.fresh = true // open calls were not made by an earlier claim
	return nil
}

// collect records the outcomes of calls until none is left. If all remaining calls have waited
// long enough for tools that no process serves, it cancels their waits, and returns the calls that
// were not made.
func (t stepCalls) collect(ctx context.Context, side *Side, left int, done <-chan callOutcome, letGo context.CancelCauseFunc) (unmade []string, err error) {
	var lacks []missingWorker
	for left > 0 {
		var park <-chan time.Time
		if t.w.cfg.ParkAfter > 0 && len(lacks) == left && t.holding.Err() == nil {
			park = time.After(time.Until(t.absence().parkAt(lacks)))
		}
		var batch []callOutcome
		select {
		case l := <-t.missing:
			lacks = append(lacks, l)
			if err := t.absence().awaitTools(ctx, lacks); err != nil {
				return nil, err
			}
			continue
		case <-park:
			letGo(errParked)
			continue
		case e := <-done:
			batch = append(batch, e)
		}
		for more := true; more && len(batch) < left; {
			select {
			case e := <-done:
				batch = append(batch, e)
			default:
				more = false
			}
		}
		left -= len(batch)
		lacks = slices.DeleteFunc(lacks, func(l missingWorker) bool {
			return slices.ContainsFunc(batch, func(e callOutcome) bool { return e.call.CallID == l.CallID })
		})
		batch = slices.DeleteFunc(batch, func(e callOutcome) bool {
			if e.unmade {
				unmade = append(unmade, e.call.CallID)
			}
			return e.unmade
		})
		if err := t.record(ctx, side, batch); err != nil {
			return nil, err
		}
	}
	return unmade, nil
}

// question asks a person whether a call may be made, because its tool requires that, or because a
// crashed worker may have made it already.
func (t stepCalls) question(c thread.Call, reason events.ApprovalReason) events.ApprovalRequested {
	return events.ApprovalRequested{CallID: c.CallID, StepID: t.run.StepID, Name: c.Name, Arguments: t.arguments(c), Reason: reason}
}

// askPerson returns the question of a person tool. A call with invalid arguments asks
// no question: its result says why.
func (t stepCalls) askPerson(c thread.Call, tool PersonTool) (asks events.ApprovalRequested, failed *ToolResult) {
	in := t.toolInput(c, t.arguments(c))
	if wrong := t.invalidArguments(tool.Spec(), in); wrong != nil {
		return asks, wrong
	}
	asks = t.question(c, events.ApprovalQuestion)
	var ok bool
	if asks.Question, asks.Answer, ok = t.ask(tool, in.Arguments); !ok {
		panicked := Failed("the tool panicked")
		return asks, &panicked
	}
	return asks, nil
}

// callingSide returns the side of the agent that requested the calls of the open step. Another
// agent may have taken the thread over since. With an *AbsentServersError the side is returned,
// too.
func (t stepCalls) callingSide(ctx context.Context) (*Side, error) {
	by := t.run.Asks
	if by == "" || by == t.agent.Name {
		return t.agent.side(t.run.Side), nil
	}
	agent, err := t.w.agent(ctx, t.job.Tenant, by)
	switch {
	case events.IsNotFound(err): // the agent is no longer defined, and may call nothing
		return &Side{}, nil
	case agent == nil:
		return nil, err
	}
	return agent.side(t.run.Side), err
}

// tool returns the tool of a call. A reactor may only call the tools of its side, whatever its
// model invents; a caller may queue a call of any tool of the tenant.
func (t stepCalls) tool(ctx context.Context, side *Side, name string) (Tool, error) {
	if !t.permitted(name) {
		return nil, events.Errorf(events.Forbidden, "the tool_choice of the request permits no call of the tool %s", clip(name))
	}
	if tool := side.tool(name); tool != nil {
		return tool, nil
	}
	if t.run.Asks != "" && !side.AnyTool {
		return nil, events.Missing("tool", clip(name))
	}
	return t.w.agents.Tool(ctx, t.job.Tenant, name)
}

// arguments returns the arguments of a call: an approval may have replaced those of the
// reactor.
func (t stepCalls) arguments(c thread.Call) events.JSON {
	if g, ok := t.talk.Granted[c.CallID]; ok && g.Arguments != nil {
		return g.Arguments
	}
	return t.talk.Arguments(t.run.ItemID, c.CallID)
}

// toolInput returns the input of a tool for a call with these arguments.
func (t stepCalls) toolInput(c thread.Call, arguments events.JSON) *ToolInput {
	in := &ToolInput{
		Tenant: t.job.Tenant, ThreadID: t.job.Thread, ExecutionID: t.job.Execution, StepID: t.run.StepID, CallID: c.CallID, Name: c.Name,
		Key: callKey(t.job.Execution, t.run.StepID, c.CallID), Arguments: arguments, Rights: t.run.Rights,
	}
	if in.Arguments == nil {
		in.Arguments = events.JSON("{}")
	}
	return in
}

// makeCall makes a call, with retries if they are safe.
func (t stepCalls) makeCall(c thread.Call, tool Tool, in *ToolInput, at *Execution) (e callOutcome) {
	spec := tool.Spec()
	e = callOutcome{call: c, tool: spec.Name, started: time.Now()}
	defer func() {
		if !e.unmade {
			t.w.cfg.Metrics.Tool(e.result.Status == Failure, time.Since(e.started), e.again+1)
		}
	}()
	in.State = t.stateAt(at)
	if instead := t.hookCalls().beforeTool(in); instead != nil {
		e.result = bounded(*instead)
		return e
	}
	if wrong := t.invalidArguments(spec, in); wrong != nil {
		e.result = *wrong
		return e
	}
	limit := spec.Timeout
	if limit == 0 {
		limit = t.agent.Limits.ToolTime
	}
	limit = min(limit, t.w.cfg.MostToolTime)
	attempts, most := 1, t.attempts(spec)
	if spec.Idempotent || spec.ReadOnly {
		attempts = most
	}
	away := t.absence().missingToolOf(c, tool)
	for attempt := 1; ; attempt++ {
		in.Attempt, e.again = attempt, attempt-1
		if attempt > 1 { // commands of the tool are repeats of the first attempt's
			in.State = t.stateAt(at)
		}
		got, err := t.attemptCall(tool, in, limit)
		if err == nil {
			e.result = got
			break
		}
		var later *RetryError
		if errors.As(err, &later) && later.Absent {
			again, unmade := t.absence().awaitTool(&away)
			if again {
				attempt-- // nothing received the call
				continue
			}
			if unmade {
				e.unmade = true
				return e
			}
			e.result = Failed(t.reactorCall().failureText(away.gaveUp(err)))
			break
		}
		if t.ctx.Err() != nil || !errors.As(err, &later) || attempt >= later.attempts(attempts, most) {
			e.result = Failed(t.reactorCall().failureText(err))
			break
		}
		t.logger.Warn().Str("tool", spec.Name).Str("call", c.CallID).Int("attempt", attempt).Msg("a tool's call failed; it is retried")
		retry.Sleep(t.ctx, max(later.After, backoff(spec.Backoff, t.agent.Retries.Backoff, attempt)))
	}
	t.hookCalls().afterTool(in, &e.result)
	e.result = bounded(t.keepResult(e.result))
	e.skill = loaded(tool, in, e.result)
	return e
}

// attemptCall makes a call once. A panic of the tool is an error, and so is a call that
// does not return in time.
func (t stepCalls) attemptCall(tool Tool, in *ToolInput, limit time.Duration) (ToolResult, error) {
	ctx, cancel := context.WithTimeoutCause(t.ctx, limit, fmt.Errorf("the tool took longer than %v", limit))
	defer cancel()
	type answer struct {
		got ToolResult
		err error
	}
	done := make(chan answer, 1)
	own := *in
	go func() {
		service.GrowStack()
		var a answer
		defer func() {
			if p := recover(); p != nil {
				LogPanic(t.logger.Error().Str("tool", in.Name), p, "a tool")
				a = answer{err: errors.New("the tool panicked")}
			}
			done <- a
		}()
		a.got, a.err = tool.Call(ctx, &own)
		a.err = Returned(a.err)
	}()
	select {
	case a := <-done:
		if a.err != nil && context.Cause(ctx) != nil {
			return a.got, context.Cause(ctx)
		}
		return a.got, a.err
	case <-ctx.Done():
	}
	select {
	case a := <-done:
		if a.err == nil {
			return a.got, nil
		}
	case <-time.After(grace):
	}
	return ToolResult{}, context.Cause(ctx)
}

// maxResultBytes bounds the result of a call.
const maxResultBytes = 256 << 10

// bounded validates a result, and returns a failure for one that cannot be stored.
func bounded(r ToolResult) ToolResult {
	switch {
	case r.Status == Failure:
		if r.Error == "" {
			r.Error = "the tool failed"
		}
		return Failed(clip(r.Error))
	case r.Status != Success:
		return Failed(fmt.Sprintf("the tool returned the status %q", clip(string(r.Status))))
	case len(r.Result) > maxResultBytes:
		return Failed(fmt.Sprintf("the tool returned %d bytes; the limit is %d: store larger content in files", len(r.Result), maxResultBytes))
	case r.Result == nil:
		r.Result = events.JSON("null")
	case !jsontext.Value(r.Result).IsValid():
		return Failed("the tool returned invalid JSON")
	}
	return r
}
