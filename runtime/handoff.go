package runtime

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
)

// delegation handles a run's relations to other threads: agents that it calls, and handoffs.
type delegation struct{ *turn }

func (t *turn) delegation() delegation { return delegation{t} }

// callAgent makes a call of a tool that is an agent. An ai_human agent takes the thread over with
// the call's result, unless it is to run apart; such an agent, and a dual_ai agent, runs in a
// thread of its own, for which the call waits. An earlier claim may have begun that run, and
// crashed before it recorded that the call waits.
func (t delegation) callAgent(ctx context.Context, c thread.Call, tool AgentTool, done chan<- callOutcome) (waits bool, err error) {
	e := callOutcome{call: c, tool: tool.Spec().Name, started: time.Now()}
	agent, err := t.w.agent(ctx, t.job.Tenant, tool.AgentName())
	switch {
	case agent == nil: // not defined; an agent with missing MCP servers is returned, and its own run waits for them
		e.result = Failed(events.AsError(err).Message)
	case agent.Type == HumanAgent && !tool.Apart():
		e.agent, e.result = agent.Name, Done(object("agent", agent.Name))
	default:
		child := t.child(c)
		switch is, err := t.w.lookChild(ctx, child); {
		case err != nil:
			return false, err
		case is == childRuns:
			return true, nil
		case is == childOver:
			if e, err = t.endedCall(ctx, c); err != nil {
				return false, err
			}
			done <- e
			return false, nil
		}
		deep, err := t.tooDeep(ctx)
		switch {
		case err != nil:
			return false, err
		case deep:
			e.result = Failed("agents call each other more than " + strconv.Itoa(maxNested) + " deep, each in a thread of its own")
		case t.ctx.Err() != nil:
			e.result = Failed(context.Cause(t.ctx).Error())
		default:
			return true, t.beginChild(ctx, c, agent, child)
		}
	}
	done <- t.stepCalls().streamOutcome(t.run.StepID, e)
	return false, nil
}

// endedCall returns the outcome of a call whose run on another thread has ended.
func (t delegation) endedCall(ctx context.Context, c thread.Call) (callOutcome, error) {
	e := callOutcome{call: c, tool: c.Name, started: time.Now()}
	var err error
	if e.result, err = t.w.outcomeOf(ctx, t.child(c)); err != nil {
		return e, err
	}
	return t.stepCalls().streamOutcome(t.run.StepID, e), nil
}

// childRun holds the ids of the run that a call waits for. They are derived from the call, so that
// the run is started once.
type childRun struct{ tenant, thread, execution string }

func (t delegation) child(c thread.Call) childRun {
	return childOf(t.job.Tenant, t.job.Thread, t.job.Execution, c.CallID, t.run.Begun)
}

func childOf(tenant, thread, execution, call string, begun events.Time) childRun {
	return childRun{
		tenant: tenant, thread: events.DeriveThreadID(tenant, thread+"\x00"+execution+"\x00"+call),
		execution: events.DeriveID(events.ExecutionPrefix, begun, tenant, thread, execution+"\x00"+call, 0),
	}
}

// childIs is the state of the run that a call waits for.
type childIs int

const (
	childAbsent childIs = iota // it was never requested
	childRuns
	childOver // it has ended, or its thread is deleted
)

// lookChild returns the state of the run of a call.
func (w *Worker) lookChild(ctx context.Context, child childRun) (is childIs, err error) {
	err = w.commands.Look(ctx, child.tenant, child.thread, func(s *thread.State) {
		switch r, ok := s.Run(child.execution); {
		case ok && r.Status == events.Executing:
			is = childRuns
		case ok || s.Deleted:
			is = childOver
		}
	})
	return is, err
}

// beginChild creates the thread of a call and asks its agent, in one commit.
func (t delegation) beginChild(ctx context.Context, c thread.Call, agent *Agent, child childRun) error {
	in := t.stepCalls().toolInput(c, t.stepCalls().arguments(c))
	_, err := t.w.commands.Run(ctx, &thread.Command{
		ID: "run:" + child.execution, Tenant: child.tenant, ThreadID: child.thread, Actor: "skein:" + t.w.name, Rights: t.run.Rights,
		Parts: []thread.Part{
			{Name: "thread.create", Data: events.CreateThread{AgentID: agent.Name, UserID: t.live.threadNow().user, MainThreadID: t.job.Thread}},
			{Name: "thread.react", Data: thread.ReactFor{
				ReactThread: events.ReactThread{Text: new(prompt(in.Arguments)), AgentID: agent.Name, ExecutionID: child.execution, SessionID: t.run.SessionID},
				Parent:      events.Parent{ThreadID: t.job.Thread, ExecutionID: t.job.Execution, CallID: c.CallID},
			}},
		},
	}, nil)
	return err
}

// tooDeep reports whether the run was requested by a chain of maxNested runs in other
// threads.
func (t delegation) tooDeep(ctx context.Context) (bool, error) {
	above := t.run.Parent
	for range maxNested - 1 {
		if above == nil {
			return false, nil
		}
		at := *above
		above = nil
		if err := t.w.commands.Look(ctx, t.job.Tenant, at.ThreadID, func(s *thread.State) {
			if r, ok := s.Run(at.ExecutionID); ok {
				above = r.Parent
			}
		}); err != nil {
			return false, err
		}
	}
	return above != nil, nil
}

// prompt returns the question for an agent: the argument with that name, or all.
func prompt(arguments events.JSON) string {
	var a struct {
		Prompt  string `json:"prompt"`
		Message string `json:"message"`
		Text    string `json:"text"`
	}
	if json.Unmarshal(arguments, &a) == nil {
		for _, s := range []string{a.Prompt, a.Message, a.Text} {
			if s != "" {
				return s
			}
		}
	}
	return string(arguments)
}

// outcomeOf returns the outcome of a call's run: the last text of its answer.
func (w *Worker) outcomeOf(ctx context.Context, child childRun) (ToolResult, error) {
	var run thread.Run
	var found bool
	if err := w.commands.Look(ctx, child.tenant, child.thread, func(s *thread.State) { run, found = s.Run(child.execution) }); err != nil {
		return ToolResult{}, err
	}
	if !found {
		return Failed("the thread of the call was deleted"), nil
	}
	talk := w.history.Take(child.tenant, child.thread)
	if err := w.history.Follow(ctx, talk, child.tenant, child.thread); err != nil {
		return ToolResult{}, err
	}
	defer w.history.Return(child.tenant, child.thread, talk)
	last, failure := "", "its run failed"
	if s := talk.Item(run.ItemID); s != nil {
		var parts []struct {
			Type      string `json:"type"`
			Text      string `json:"text"`
			ErrorText string `json:"errorText"`
		}
		if err := json.Unmarshal(s.Content, &parts); err != nil {
			return Failed("the answer of the call's thread cannot be read"), nil
		}
		for _, p := range parts {
			switch {
			case p.Type == events.OutputText:
				last = p.Text
			case p.ErrorText != "":
				failure = p.ErrorText
			}
		}
	}
	if run.Status == events.ExecutionFailed {
		return Failed(failure), nil
	}
	return Done(object("threadId", child.thread, "text", last)), nil
}

// resumeSettled resumes calls with a run that ended before the wait was recorded.
func (t delegation) resumeSettled(ctx context.Context, calls []string) error {
	for _, id := range calls {
		child := childOf(t.job.Tenant, t.job.Thread, t.job.Execution, id, t.run.Begun)
		is, err := t.w.lookChild(ctx, child)
		if err != nil {
			return err
		}
		if is != childRuns {
			if err := t.w.resumeCall(ctx, t.job.Tenant, t.job.Thread, t.job.Execution, id, t.noteOwnRun); err != nil {
				return err
			}
		}
	}
	return nil
}

// resumeCall continues a waiting call. It skips a call that no longer waits.
func (w *Worker) resumeCall(ctx context.Context, tenant, id, execution, call string, look func(*thread.State)) error {
	_, err := w.commands.Run(ctx, &thread.Command{
		ID: execution + ":resume:" + call, Tenant: tenant, ThreadID: id, Actor: "skein:" + w.name,
		Parts: []thread.Part{{Name: "run.resume", Data: thread.ResumeCalls{ExecutionID: execution, CallIDs: []string{call}}}},
	}, look)
	switch events.AsError(err).Code {
	case events.NotFound, events.IllegalTransition:
		return nil
	}
	return err
}

// tellParent resumes the call that waits for this run, which has ended.
func (w *Worker) tellParent(ctx context.Context, tenant string, r thread.Run) error {
	if r.Parent == nil {
		return nil
	}
	return w.resumeCall(ctx, tenant, r.Parent.ThreadID, r.Parent.ExecutionID, r.Parent.CallID, nil)
}

// The run of a handoff asks the agent once, without tools, for a summary of the conversation. Its
// commit creates the new thread. A run that has ended either created the thread, or failed with
// the reason.

// summarize is the request to the agent of a handoff, after the conversation.
const summarize = "Write a summary of this conversation for the one who continues it in a new one, and will see nothing else of it: " +
	"what was asked for, what was decided and done, the facts, names and files that matter, and what is left to do. Answer with the summary alone."

// summaryInput makes the input of a step the input of a handoff: it ends with the request.
func (t delegation) summaryInput(in *StepInput) {
	text := summarize
	if t.run.Handoff.Comment != "" {
		text += "\n\nIt is continued for this: " + t.run.Handoff.Comment
	}
	in.Items = append(in.Items, t.request(text))
}

// request returns a user's message for a reactor. It is not stored on a thread.
func (t delegation) request(text string) events.Item {
	item := events.Item{
		ID: t.job.Execution + ":request", ThreadID: t.job.Thread, ContextID: t.run.ContextID, Type: events.Message, Role: events.User,
		Status: events.ItemCompleted, Content: textContent(text), Index: t.run.NextItem,
	}
	item.CreatedAt, item.CreatedAtMicros = t.run.Begun.ISO(), int64(t.run.Begun)
	return item
}

// summaryOf returns the summary in a reaction.
func summaryOf(got *Reaction, calls []events.ToolCall) (string, error) {
	if len(calls) > 0 {
		return "", fmt.Errorf("it called the tool %s, and a summary has no tools", clip(calls[0].Name))
	}
	text := answerText(got)
	return text, events.CheckSummary(text)
}

// answerText returns the texts of a reaction, one a line.
func answerText(got *Reaction) string {
	var texts []string
	for _, raw := range got.AssistantEvent.Content {
		var p struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		if json.Unmarshal(raw, &p) == nil && p.Type == events.OutputText {
			texts = append(texts, p.Text)
		}
	}
	return strings.TrimSpace(strings.Join(texts, "\n"))
}

// textContent returns the content of a message that says a text.
func textContent(text string) events.JSON {
	return slices.Concat(events.JSON{'['}, object("type", events.InputText, "text", text), events.JSON{']'})
}

// handOff commits the summary and the new thread. If that is refused, the run fails with the
// reason.
func (t delegation) handOff(ctx context.Context, d thread.ReactStep) error {
	_, err := t.commit(ctx, "react", d)
	if events.HasCode(err, events.AlreadyExists, events.InvalidRequest, events.PayloadTooLarge) {
		return t.fail(ctx, "the new thread cannot be created: "+events.AsError(err).Message, nil)
	}
	return err
}

const (
	// titleTime is how long an agent may take to write a title.
	titleTime = 30 * time.Second

	// entitle is the request to the agent that writes titles, after the conversation.
	entitle = "Write a title for this conversation: one line of at most 60 characters, without quotation marks. Answer with the title alone."
)

// writeTitle asks an agent for a title, after the first run that has answered. It asks once,
// without tools, and nothing waits for it. If the agent fails, its answer is no valid title, or
// the process crashes, the thread keeps its title.
func (w *Worker) writeTitle(ctx context.Context, ended *turn) error {
	ctx, cancel := context.WithTimeout(ctx, titleTime)
	defer cancel()
	titles, err := w.commands.Titles(ctx, ended.job.Tenant)
	if err != nil || titles == nil || titles.Agent == "" {
		return err
	}
	agent, err := w.agent(ctx, ended.job.Tenant, titles.Agent)
	if err != nil {
		return err
	}
	if agent.Type == DualAgent {
		return fmt.Errorf("agent %s is of the type dual_ai, and a title has one author", agent.Name)
	}
	t := &turn{w: w, job: ended.job, agent: agent, run: ended.run, logger: ended.logger, scratch: ended.scratch, ctx: ctx, talk: NewView()}
	if err := w.history.Follow(ctx, t.talk, t.job.Tenant, t.job.Thread); err != nil {
		return err
	}
	got, err := t.delegation().askForTitle()
	if err != nil {
		return err
	}
	title := events.ModelTitle(answerText(got))
	if title == "" || len(got.ToolCalls) > 0 {
		return fmt.Errorf("agent %s wrote no title of 1 to %d characters in one line", agent.Name, events.MaxTitle)
	}
	_, err = w.commands.Run(ctx, t.command(t.job.Execution+":title", "title", thread.TitleThread{Title: title}), nil)
	return err
}

// askForTitle calls the reactor of the agent of titles.
func (t delegation) askForTitle() (*Reaction, error) {
	side := &t.agent.A
	reactor, err := t.w.reactor(side)
	if err != nil {
		return nil, err
	}
	instructions, err := side.Prompt.Fill(t.talk.Contexts[t.run.ContextID], t.talk.Metadata, t.talk.Env)
	if err != nil {
		return nil, err
	}
	in := &StepInput{
		Tenant: t.job.Tenant, ThreadID: t.job.Thread, ContextID: t.run.ContextID, ExecutionID: t.job.Execution, StepID: t.job.Execution + ":title",
		ItemID: t.run.ItemID, Agent: t.agent.Name, Model: side.Model, AgentMode: t.talk.Mode, Instructions: instructions,
		Context: t.talk.Contexts[t.run.ContextID], Attempt: 1,
		Items: append(t.talk.Shown(t.run.ContextID, "", math.MaxInt64, t.agent.MaxItems), t.request(entitle)),
	}
	if t.agent.MaxBytes > 0 {
		in.Items, in.Omitted = events.FitItems(in.Items, t.agent.MaxBytes)
	}
	if err := t.reactorCall().checkBudget(); err != nil {
		return nil, err
	}
	got, err := t.reactorCall().callReactor(reactor, in)
	for fallsBack(in.Model, err, false) {
		in.Model = in.Model.next()
		got, err = t.reactorCall().callReactor(reactor, in)
	}
	t.reactorCall().recordUsage(in, got)
	return got, err
}
