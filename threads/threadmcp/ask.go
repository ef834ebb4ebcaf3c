package threadmcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// askTime is how long ask_agent waits for a run. Clients give up after a minute.
const askTime = 50 * time.Second

// askTool is the name of the tool that waits for runs, and tells its progress.
const askTool = "ask_agent"

// running is the status of a run that has not ended within askTime, and waiting that of one which
// waits for a person; other statuses are those of executions.
const (
	running = "running"
	waiting = "waiting"
)

func (s *Server) addAskTools() error {
	return errors.Join(
		addAsking(s, askTool, "Ask an agent", "Asks an agent, and returns its answer. Without thread it begins a new one. "+
			"If status is running, call it again with thread and execution, without text; if it is waiting, a person decides on the calls in waiting, which approve tells it.",
			&mcp.ToolAnnotations{DestructiveHint: new(true), OpenWorldHint: new(true)}, (*Caller).askAgent),
		add(s, "approve", "Decide on a call", "Decides on a call that waits for a person, or answers a question. Call it only with what the person has said.",
			&mcp.ToolAnnotations{DestructiveHint: new(true), OpenWorldHint: new(true)}, (*Caller).approve),
	)
}

type askArgs struct {
	Agent     string `json:"agent,omitempty" doc:"The agent; the thread's own if absent."`
	Text      string `json:"text,omitempty" doc:"What is asked."`
	Thread    string `json:"thread,omitempty" doc:"The thread to ask in: its id (T-...), or key: and its key. A new one if absent."`
	Execution string `json:"execution,omitempty" doc:"The execution of an answer before, to wait for it again; without text."`
}

// asked is what ask_agent returns besides the text.
type asked struct {
	ThreadID    string        `json:"threadId"`
	ExecutionID string        `json:"executionId"`
	Status      string        `json:"status"` // running, waiting, or that of the execution
	Waiting     []waitingCall `json:"waiting,omitempty"`
}

// waitingCall is a call that a person decides on.
type waitingCall struct {
	CallID   string `json:"callId"`
	Tool     string `json:"tool"`
	Kind     string `json:"kind"` // approval or question
	Question string `json:"question,omitempty"`
	Argument any    `json:"arguments,omitempty" jsonschema:"The arguments of the call, an object."`
}

func waitingOf(list []events.ApprovalRequested) []waitingCall {
	out := make([]waitingCall, len(list))
	for i, one := range list {
		out[i] = waitingCall{CallID: one.CallID, Tool: one.Name, Kind: "approval", Question: one.Question}
		if one.Question != "" {
			out[i].Kind = "question"
		}
		if one.Arguments != nil {
			out[i].Argument = json.RawMessage(one.Arguments)
		}
	}
	return out
}

// run is the run that a call of ask_agent waits for. A client sends it back with the answers to
// questions, so nothing of it is trusted: its user may do no more with it than without.
type run struct {
	Thread    string `json:"thread"`
	Execution string `json:"execution"`
	Seq       int64  `json:"seq,omitempty"` // what is read of it is at least as new
}

func (r run) query() events.GetExecution {
	q := events.GetExecution{ThreadID: r.Thread, ExecutionID: r.Execution}
	if r.Seq > 0 {
		q.MinSeq = &r.Seq
	}
	return q
}

// askAgent asks, or waits again.
func (c *Caller) askAgent(ctx context.Context, req *mcp.CallToolRequest, a askArgs) (*mcp.CallToolResult, *asked, error) {
	if err := c.awaits(); err != nil {
		return nil, nil, err
	}
	r, err := c.begin(ctx, req, a)
	if err != nil {
		return nil, nil, err
	}
	out := &asked{ThreadID: r.Thread, ExecutionID: r.Execution, Status: running}
	told := tellProgress(ctx, req)
	x, calls, behind, err := c.await(ctx, r, told)
	told.stop()
	switch {
	case err != nil:
		return nil, nil, err
	case behind:
		out.Status, out.Waiting = waiting, waitingOf(calls)
		return says("The thread has a run before this one, which waits for a person to decide on a call, or to answer. Ask the user, and tell what they say with approve; then call ask_agent with this thread and execution."), out, nil
	case len(calls) > 0:
		if asks := elicitation(req, calls); asks != nil {
			state, err := json.Marshal(r)
			return &mcp.CallToolResult{InputRequests: asks, RequestState: string(state)}, nil, err
		}
		out.Status, out.Waiting = waiting, waitingOf(calls)
		return says("The run waits for a person to decide on a call, or to answer. Ask the user, and tell what they say with approve; then call ask_agent with this thread and execution."), out, nil
	case x == nil && ctx.Err() != nil: // its credential has ended, or the server does
		return nil, nil, context.Cause(ctx)
	case x == nil:
		return says("The agent is still at work. Call ask_agent again with this thread and execution, without text."), out, nil
	}
	out.Status = string(x.Status)
	if x.Status == events.ExecutionFailed {
		res := says(fmt.Sprintf("The run failed: %s", x.ErrorText))
		if x.Stopped {
			res = says("The run was cancelled.")
		}
		res.IsError = true
		return res, out, nil
	}
	answer, err := c.client.AnswerOf(ctx, x)
	if err != nil {
		return nil, nil, err
	}
	return says(answer.Text), out, nil
}

func says(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// begin returns the run that a call waits for: of answers to questions, which it tells it, one that it
// names, or a new one.
func (c *Caller) begin(ctx context.Context, req *mcp.CallToolRequest, a askArgs) (run, error) {
	var r run
	switch {
	case req.Params.RequestState != "":
		if json.Unmarshal([]byte(req.Params.RequestState), &r) != nil || r.Thread == "" || r.Execution == "" {
			return r, notAState()
		}
		err := c.answer(ctx, &r, req.Params.InputResponses)
		return r, err
	case a.Execution != "" && (a.Thread == "" || a.Text != ""):
		return r, events.Invalid("/execution", "execution belongs to a thread, and has no text: it waits for a run that was asked before")
	case a.Execution != "":
		return run{Thread: a.Thread, Execution: a.Execution}, nil
	case a.Text == "":
		return r, events.Invalid("/text", "a text is needed")
	case a.Thread == "" && a.Agent == "":
		return r, events.Invalid("/agent", "name an agent, or a thread that has one")
	}
	ask := events.ReactThread{Text: &a.Text, AgentID: a.Agent}
	var reply *events.Reply
	var err error
	if a.Thread != "" {
		reply, err = c.client.Send(ctx, a.Thread, ask, c.once()...)
	} else {
		reply, err = c.beginThread(ctx, ask)
	}
	if err != nil {
		return r, err
	}
	result := reply.Result
	if n := len(result.Results); n > 0 {
		result = &result.Results[n-1]
	}
	return run{Thread: reply.ThreadID, Execution: result.ExecutionID, Seq: reply.Seq}, nil
}

// notAState refuses a state that no result had.
func notAState() error {
	return events.Invalid("/requestState", "it is not one of ask_agent's; send back what the result had")
}

// beginThread asks in a new thread, which is not made if the agent cannot be asked.
func (c *Caller) beginThread(ctx context.Context, ask events.ReactThread) (*events.Reply, error) {
	id := c.id
	if id == uuid.Nil {
		id = uuid.Must(uuid.NewV7())
	}
	create, err := client.Sub("thread.create", events.CreateThread{AgentID: ask.AgentID})
	if err != nil {
		return nil, err
	}
	react, err := client.Sub("thread.react", ask)
	if err != nil {
		return nil, err
	}
	return c.client.Commit(ctx, "T-"+id.String(), []events.SubCommand{create, react}, c.once()...)
}

// await waits until a run has ended, it or one before it waits for people, or askTime is over, and
// returns the run or the calls. All are nil if it goes on, also when the client has gone.
func (c *Caller) await(ctx context.Context, r run, told *progress) (_ *events.Execution, calls []events.ApprovalRequested, behind bool, _ error) {
	within, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	queued, said := false, atWork
	x, err := c.client.WatchRun(within, r.query(), func(now client.Waiting) {
		calls = now.Approvals
		if queued = now.Queued; queued {
			calls = c.before(within, r.Thread)
		}
		if len(calls) > 0 && (queued || now.Parked) { // not before all of a step are known
			cancel()
			return
		}
		doing := atWork
		if queued {
			doing = inLine
		}
		if doing != said {
			said = doing
			told.change(doing)
		}
	})
	switch {
	case err == nil:
		return x, nil, false, nil
	case within.Err() == nil:
		return nil, nil, false, err
	case queued && len(calls) == 0 && ctx.Err() == nil: // it may have come to wait meanwhile
		calls = c.before(ctx, r.Thread)
	}
	return nil, calls, queued && len(calls) > 0, nil
}

// before returns the calls on which people are to decide before the queue of a thread goes on; none if
// that cannot be told.
func (c *Caller) before(ctx context.Context, thread string) (calls []events.ApprovalRequested) {
	t, err := client.Read(ctx, c.client, events.GetThread{ThreadID: thread})
	if err != nil || t.Run == nil {
		return nil
	}
	x, err := client.Read(ctx, c.client, events.GetExecution{ThreadID: t.ID, ExecutionID: t.Run.ExecutionID})
	if err != nil {
		return nil
	}
	return waitingIn(x)
}

// waitingIn returns the calls of a run on which people are to decide.
func waitingIn(x *events.Execution) (calls []events.ApprovalRequested) {
	for _, a := range x.WaitingApprovals() {
		calls = append(calls, a.Request())
	}
	return calls
}

type approveArgs struct {
	Thread   string `json:"thread" doc:"The thread: its id (T-...), or key: and its key."`
	Call     string `json:"call" doc:"The call, as callId in waiting."`
	Decision string `json:"decision" enum:"grant,deny,result" doc:"grant: the call is made; deny: it is not, and the agent is told; result: value is its result, or the answer to the question."`
	Value    any    `json:"value,omitempty" doc:"With result: any JSON. With grant: arguments that replace those of the call."`
	Reason   string `json:"reason,omitempty" doc:"With grant and deny: why."`
}

type decided struct {
	ThreadID string `json:"threadId"`
	Version  int64  `json:"version"` // of the thread
}

func (c *Caller) approve(ctx context.Context, a approveArgs) (*decided, error) {
	d := events.ResolveApproval{CallID: a.Call, Reason: a.Reason}
	var value events.JSON
	if a.Value != nil {
		raw, err := json.Marshal(a.Value)
		if err != nil {
			return nil, events.Invalid("/value", "%w", err)
		}
		value = raw
	}
	switch a.Decision {
	case "grant":
		d.Grant, d.Arguments = true, value
	case "deny":
		if d.Deny = true; value != nil {
			return nil, events.Invalid("/value", "a refusal takes no value; write why into reason")
		}
	default:
		if d.Result = value; value == nil {
			return nil, events.Invalid("/value", "with result, value is needed")
		}
	}
	reply, err := c.client.Send(ctx, a.Thread, d, c.once()...)
	if err != nil {
		return nil, err
	}
	return &decided{reply.ThreadID, reply.Version}, nil
}
