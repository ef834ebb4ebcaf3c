package runtime

import (
	"github.com/go-json-experiment/json/jsontext"

	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
	"github.com/skein-threads/skein/runview"
)

// reactorCall calls the reactor for a step, and records its reaction.
type reactorCall struct{ *turn }

func (t *turn) reactorCall() reactorCall { return reactorCall{t} }

// runReactor calls the reactor of the open step and records its reaction.
func (t reactorCall) runReactor(ctx context.Context) error {
	side := t.agent.side(t.run.Side)
	reactor, err := t.w.reactor(side)
	if err != nil {
		return t.fail(ctx, events.AsError(err).Message, nil)
	}
	in, err := t.input(side)
	if err != nil {
		return t.fail(ctx, events.AsError(err).Message, nil)
	}
	if t.run.Handoff != nil && t.agent.Type == DualAgent {
		return t.fail(ctx, "agent "+t.agent.Name+" is of the type dual_ai, and a summary has one author; hand off with another agent", nil)
	}
	t.substate("reacting")
	start := time.Now()
	got, err := t.answer(ctx, side, reactor, in)
	if got == nil {
		return err
	}
	return t.recordReaction(ctx, side, in, got, start)
}

// recordReaction records the reactor's answer.
func (t reactorCall) recordReaction(ctx context.Context, side *Side, in *StepInput, got *Reaction, start time.Time) error {
	parts, calls, err := reaction(got)
	if err != nil {
		return t.fail(ctx, fmt.Sprintf("reactor %s: %s", side.Reactor, err), nil)
	}
	left, err := t.leaveToCaller(parts)
	if err != nil {
		return t.fail(ctx, fmt.Sprintf("reactor %s: %s", side.Reactor, err), nil)
	}
	d := thread.ReactStep{
		ExecutionID: t.job.Execution, Token: t.run.Token, StepID: t.run.StepID, Calls: calls,
		Records: []events.TraceRecorded{{
			Kind: "span", SpanID: spanID(t.run.StepID, "reactor"), ParentID: t.run.StepID, Name: runview.ReactorSpanName,
			StartedAt: events.TimeOf(start).String(), Usage: got.Usage, Shown: new(t.shown(in, got).Brief()),
			Data: t.reacted(in.Model.Model, got),
		}},
		After: t.nextAfter(side, names(calls), got.Usage),
	}
	d.Continue = d.Continue && !left
	for _, p := range parts {
		d.Parts, d.Types = append(d.Parts, p.raw), append(d.Types, p.kind)
	}
	d.Approve = t.stepCalls().toApprove(side, calls)
	if t.run.Handoff != nil {
		if d.Summary, err = summaryOf(got, calls); err != nil {
			return t.fail(ctx, fmt.Sprintf("agent %s wrote no summary that can be used: %s", t.agent.Name, clip(err.Error())), nil)
		}
		d.HandoffTo, d.Records = t.run.Handoff.ThreadID, t.live.takeSpans(d.Records...)
		return t.delegation().handOff(ctx, d)
	}
	t.fresh = true // none of these calls was made
	d.Records = t.live.takeSpans(d.Records...)
	step := t.run.StepID
	for _, c := range calls { // a call that waits for an approval is shown, too
		t.announce(step, c.CallID, c.Name, c.Arguments)
	}
	_, err = t.commit(ctx, "react", d)
	if events.HasCode(err, events.PayloadTooLarge) { // a retry would be too large, too
		return t.fail(ctx, fmt.Sprintf("the answer of reactor %s cannot be recorded: %s", side.Reactor, events.AsError(err).Message), nil)
	}
	return err
}

// shown returns which items the model was shown.
func (t reactorCall) shown(in *StepInput, got *Reaction) *Shown {
	if got.MessagesForModel != nil {
		return got.MessagesForModel
	}
	shown := &Shown{Items: []string{}}
	for _, i := range in.Items {
		if t.talk.Item(i.ID) != nil { // otherwise it is the request for a summary, which is not on the thread
			shown.Items = append(shown.Items, i.ID)
		}
	}
	return shown
}

// attempts returns how often a call of a tool is attempted in all, if it may be
// repeated.
func (t stepCalls) attempts(spec ToolSpec) int {
	if spec.Retries == 0 {
		return t.agent.Retries.Attempts
	}
	return 1 + max(spec.Retries, 0)
}

// longestBackoff bounds the pause between two attempts.
const longestBackoff = time.Hour

// backoff returns the pause after an attempt, from 1. The first pause is own if it is set, else
// usual; it doubles with every attempt. A negative value means no pause.
func backoff(own, usual time.Duration, attempt int) time.Duration {
	first := usual
	if own != 0 {
		first = own
	}
	return retry.Policy{First: first, Max: longestBackoff}.Delay(attempt)
}

// input returns the input of the open step's reactor. The error says which variables of the prompt
// are missing.
func (t reactorCall) input(side *Side) (*StepInput, error) {
	instructions, err := side.Prompt.Fill(t.talk.Contexts[t.run.ContextID], t.talk.Metadata, t.talk.Env)
	if err != nil {
		return nil, err
	}
	if note := t.skillsNote(side); note != "" && t.run.Handoff == nil {
		if instructions != "" {
			note = instructions + "\n\n" + note
		}
		instructions = note
	}
	in := &StepInput{
		Tenant: t.job.Tenant, ThreadID: t.job.Thread, ContextID: t.run.ContextID, ExecutionID: t.job.Execution, StepID: t.run.StepID,
		ItemID: t.run.ItemID, Iteration: t.run.Iteration, Side: string(t.run.Side), Agent: t.agent.Name,
		Files: t.files(), SideLabel: side.Label, AgentMode: t.talk.Mode, Instructions: instructions, Context: t.talk.Contexts[t.run.ContextID], Items: t.talk.Shown(t.run.ContextID, t.run.Side, t.run.From, t.agent.MaxItems),
	}
	if err := t.applySettings(side, in); err != nil {
		return nil, err
	}
	if in.Model, err = t.withSettings(side.Model); err != nil {
		return nil, err
	}
	if t.run.Handoff != nil {
		t.delegation().summaryInput(in)
	}
	if t.agent.MaxBytes > 0 {
		in.Items, in.Omitted = events.FitItems(in.Items, t.agent.MaxBytes)
	}
	if t.run.Handoff != nil { // a handoff only asks for a text, and its run has no settings
		return in, nil
	}
	var own []ToolSpec
	for _, tool := range side.Tools {
		own = append(own, tool.Spec())
	}
	if tool := side.tool(events.SkillTool); len(side.Skills) > 0 {
		own = append(own, tool.Spec())
	}
	in.Tools = append(own, in.Tools...) // the caller's own tools are last
	return in, nil
}

// grace is how long a cancelled call may take to return.
const grace = 2 * time.Second

// failureText returns the text of a failure: the reason why the turn was ended, if it was ended.
func (t reactorCall) failureText(err error) string {
	if cause := context.Cause(t.ctx); cause != nil {
		return cause.Error()
	}
	return clip(err.Error())
}

// nextAfter returns how the run continues when its step is closed.
func (t reactorCall) nextAfter(side *Side, calls []string, used *Usage) thread.After {
	usage := t.talk.Usage
	if used != nil {
		usage = usage.Add(*used)
	}
	a := thread.After{Continue: len(calls) > 0}
	if t.agent.Continue != nil {
		var ok bool
		if a.Continue, ok = t.askPolicy(Outcome{Iteration: t.run.Iteration, Side: t.run.Side, Calls: calls, Usage: usage}); !ok {
			return thread.After{Continue: true, Limit: "the loop policy of agent " + t.agent.Name + " panicked"} // the run fails
		}
	}
	if t.agent.Type == DualAgent {
		a.Side = t.run.Side.Other()
		switch {
		case len(calls) > 0: // it sees the results of its calls
			a.Side = t.run.Side
		case side.StopOnResponse:
			a.StopBy = t.run.Side
		case side.MaxSteps > 0 && t.steps() >= side.MaxSteps: // its side has ended
		default:
			a.Continue = true
		}
	}
	limits := t.agent.Limits
	total := usage.Tokens()
	switch {
	case t.run.Iteration+1 >= limits.Iterations:
		a.Limit = fmt.Sprintf("the limit of %d steps was reached", limits.Iterations)
	case limits.Tokens > 0 && total >= limits.Tokens:
		a.Limit = fmt.Sprintf("the limit of %d tokens was reached: %d were used", limits.Tokens, total)
	case t.outputCap() > 0 && usage.OutputTokens >= t.outputCap():
		a.Limit = fmt.Sprintf("the limit of %d output tokens was reached: %d were used", t.outputCap(), usage.OutputTokens)
	case context.Cause(t.ctx) != nil:
		a.Limit = context.Cause(t.ctx).Error()
	}
	return a
}

// outputLeft returns how many tokens the run may still write, at least 1; 0 if nothing sets a
// limit.
func (t reactorCall) outputLeft() int64 {
	most := t.outputCap()
	if most == 0 {
		return 0
	}
	return max(most-t.talk.Usage.OutputTokens, 1)
}

func names(calls []events.ToolCall) []string {
	out := make([]string, len(calls))
	for i, c := range calls {
		out[i] = c.Name
	}
	return out
}

// steps returns how many steps the side of the open step has had.
func (t *turn) steps() int64 {
	if t.run.Side == events.SideB {
		return t.run.SideBSteps
	}
	return t.run.SideASteps
}

// logLine records a log line of the run.
func (t *turn) logLine(ctx context.Context, level, text string, data events.JSON) error {
	_, err := t.commit(ctx, "record", thread.RecordRun{
		ExecutionID: t.job.Execution, Token: t.run.Token,
		Records: []events.TraceRecorded{{Kind: "log", SpanID: t.run.StepID, Level: level, Text: text, Data: data}},
	})
	return err
}

// Limits of a reaction.
const (
	maxParts         = 1000
	maxReactionBytes = events.MaxEventBytes - 16<<10
)

// reaction validates a reaction, and extracts the calls from its parts.
func reaction(r *Reaction) ([]part, []events.ToolCall, error) {
	content := r.AssistantEvent.Content
	if len(content)+len(r.ToolCalls) > maxParts {
		return nil, nil, fmt.Errorf("its answer has %d parts; the limit is %d", len(content)+len(r.ToolCalls), maxParts)
	}
	var parts []part
	var calls []events.ToolCall
	listed := map[string]bool{}
	for _, c := range r.ToolCalls {
		if err := checkCall(c); err != nil {
			return nil, nil, err
		}
		if listed[c.CallID] {
			return nil, nil, fmt.Errorf("its answer has the call %s twice", clip(c.CallID))
		}
		listed[c.CallID] = true
		c.Arguments, c.ItemID = usableArguments(c.Arguments), ""
		calls = append(calls, c)
	}
	size := 0
	there := map[string]bool{}
	for i, raw := range content {
		if !jsontext.Value(raw).IsValid() || jsontext.Value(raw).Kind() != '{' || !utf8.Valid(raw) {
			return nil, nil, fmt.Errorf("part %d of its answer is not a JSON object", i)
		}
		var p partOf
		if err := json.Unmarshal(raw, &p); err != nil || p.Type == "" || len(p.Type) > 128 {
			return nil, nil, fmt.Errorf("part %d of its answer has no type", i)
		}
		if name, ok := strings.CutPrefix(p.Type, events.ToolPart); ok && p.State == "" {
			c := events.ToolCall{CallID: p.CallID, Name: name, Arguments: p.Input}
			if !listed[c.CallID] { // a call that only its part shows
				if err := checkCall(c); err != nil {
					return nil, nil, err
				}
				if c.Arguments == nil {
					c.Arguments = events.JSON("{}")
				}
				listed[c.CallID] = true
				calls = append(calls, c)
			}
			if there[c.CallID] {
				return nil, nil, fmt.Errorf("its answer has the call %s twice", clip(c.CallID))
			}
			there[c.CallID] = true
		}
		size += len(raw)
		parts = append(parts, part{raw, p.Type})
	}
	for _, c := range calls {
		if there[c.CallID] {
			continue
		}
		raw := object("type", events.ToolPart+c.Name, "toolCallId", c.CallID, "input", c.Arguments)
		size += len(raw)
		parts = append(parts, part{raw, events.ToolPart + c.Name})
	}
	if size > maxReactionBytes {
		return nil, nil, fmt.Errorf("its answer has %d bytes; the limit is %d: store larger content in files", size, maxReactionBytes)
	}
	return parts, calls, nil
}

func checkCall(c events.ToolCall) error {
	switch {
	case c.CallID == "" || len(c.CallID) > 256 || !utf8.ValidString(c.CallID):
		return fmt.Errorf("its answer has a call whose id is %q", clip(c.CallID))
	case !events.Pattern(events.PatternName).MatchString(c.Name) || len(c.Name) > 100:
		return fmt.Errorf("its answer calls %q, which cannot be a tool", clip(c.Name))
	}
	return nil
}

// stepStream is the Stream of a step's reactor.
type stepStream struct {
	t    *turn
	step string
}

// Chunk implements Stream.
func (s stepStream) Chunk(c Chunk) {
	s.t.draft.add(c)
	s.t.announced.streamed(c)
	s.t.emit(s.step, c)
}
