package client

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/skein-threads/skein/events"
)

// QueueTool queues a call of a tool, and returns when that is durable. The active run
// makes the call in its next step; if no run is active, one begins with it. A tool that
// is an agent takes the thread over. args is a map, a struct or JSON that encodes as an
// object; nil is an empty object.
func (t *ThreadState) QueueTool(ctx context.Context, name string, args any) error {
	_, err := t.queue(ctx, events.QueueTool{Name: name}, args)
	return err
}

func (t *ThreadState) queue(ctx context.Context, d events.QueueTool, args any) (*events.Reply, error) {
	var err error
	if d.Arguments, err = Arguments(args); err != nil {
		return nil, err
	}
	reply, err := t.client.Send(ctx, t.id, d)
	if err == nil {
		t.noteWrite(reply.Seq)
	}
	return reply, err
}

// InvokeTool makes a call of a tool and waits for its result. The call is a run of its
// own, after the active one, in which no agent is asked. A failure of the call, such as
// an unknown tool, is a result with status error. An error means that the call could
// not be queued, that the thread was deleted, or that ctx ended; in the last case the
// call is still made.
func (t *ThreadState) InvokeTool(ctx context.Context, name string, args any) (events.ToolResult, error) {
	call := newID("call_")
	reply, err := t.queue(ctx, events.QueueTool{Name: name, CallID: call, Once: true}, args)
	if err != nil {
		return events.ToolResult{}, err
	}
	var out *events.ToolResult
	end, err := t.client.watchRun(ctx, t.id, reply.Seq, func(e *Event) (execution string) {
		switch d := e.Data.(type) {
		case events.RunRequested:
			for _, c := range d.Calls {
				if c.CallID == call {
					return e.Subject
				}
			}
		case events.ItemCreated:
			var r events.CallResult
			if d.Type == events.ActionResult && json.Unmarshal(d.Content, &r) == nil && r.CallID == call {
				out = resultOf(r)
			}
		}
		return ""
	})
	if err != nil {
		return events.ToolResult{}, err
	}
	t.noteWrite(end.seq)
	if out == nil {
		text := "the run of the call ended without its result"
		if end.text != "" {
			text += ": " + end.text
		}
		out = &events.ToolResult{Status: events.ToolError, Error: text}
	}
	return *out, nil
}

// resultOf returns the result that an item holds.
func resultOf(r events.CallResult) *events.ToolResult {
	if !r.IsError {
		return &events.ToolResult{Status: events.ToolSuccess, Result: r.Output}
	}
	text := string(r.Output)
	_ = json.Unmarshal(r.Output, &text) // an error that is not a JSON string is shown as it is
	return &events.ToolResult{Status: events.ToolError, Error: text}
}

// RunFailedError reports that a run failed.
type RunFailedError struct {
	ThreadID    string
	ExecutionID string
	Text        string // the reason, as in the execution
}

func (e *RunFailedError) Error() string {
	return fmt.Sprintf("the run %s of thread %s failed: %s", e.ExecutionID, e.ThreadID, e.Text)
}

// RunAgent starts a run of an agent on the thread as it is, without a new message, and
// waits until it has ended. It starts after the active run. The agent is not put in
// charge of the thread. A dual_ai agent works in a thread of its own, which belongs to
// this one.
//
// The error is not_found if there is no such agent: neither a definition nor a reactor
// of the server with that name. It is a *RunFailedError if the run failed. It is ctx's
// if ctx ended, and then the run continues.
func (t *ThreadState) RunAgent(ctx context.Context, name string) error {
	if !events.Pattern(events.PatternName).MatchString(name) { // no agent can have that name
		return events.Missing("agent", name)
	}
	agent, err := Read(ctx, t.reader(), events.GetAgent{Name: name})
	if err != nil {
		return err
	}
	thread := t.id
	if agent.Type == events.DualAI {
		reply, err := t.client.Send(ctx, "", events.CreateThread{AgentID: name, MainThreadID: t.id})
		if err != nil {
			return err
		}
		thread = reply.ThreadID
	}
	// The answer of a run is attached to an item: here an empty, silent one.
	item := events.NewItem{
		ID: newID(events.ItemPrefix), Type: events.Message, Role: events.System, Silent: true, Content: events.JSON(`[]`),
	}
	reply, err := t.client.Send(ctx, thread, events.ReactThread{Item: &item, AgentID: name, Policy: events.Enqueue})
	if err != nil {
		return err
	}
	end, err := t.client.watchRun(ctx, thread, reply.Seq, func(e *Event) (execution string) {
		if d, ok := e.Data.(events.ExecutionCreated); ok && d.TriggerItemID == item.ID {
			return d.ID
		}
		return ""
	})
	if err != nil {
		return err
	}
	t.noteWrite(end.seq)
	if end.status == events.ExecutionFailed {
		return &RunFailedError{ThreadID: thread, ExecutionID: end.execution, Text: end.text}
	}
	return nil
}

func newID(prefix string) string {
	return prefix + strings.ReplaceAll(uuid.Must(uuid.NewV7()).String(), "-", "")
}

// runEnd is how a run ended.
type runEnd struct {
	execution string
	status    events.ExecutionStatus
	text      string
	seq       int64
}

// watchRun reads the thread's events from a commit on, until the run that is selects
// has ended.
func (c *Client) watchRun(ctx context.Context, thread string, from int64, is func(*Event) (execution string)) (end runEnd, err error) {
	timeline, err := c.Timeline(ctx, SubscribeOptions{Thread: thread, From: Seq(from), Types: []string{
		string(events.ItemCreatedType), string(events.ExecutionCreatedType), string(events.RunRequestedType),
		string(events.ExecutionStatusChangedType), string(events.ThreadFinishedType), string(events.LifecycleDeletedType),
	}})
	if err != nil {
		return end, err
	}
	defer timeline.Close()
	for {
		e, err := timeline.Next(ctx)
		if err != nil {
			return end, err
		}
		if execution := is(&e); execution != "" {
			end.execution = execution
		}
		switch d := e.Data.(type) {
		case events.ExecutionStatusChanged:
			if e.Subject == end.execution {
				end.status, end.text = d.To, d.ErrorText
			}
		case events.ThreadFinished:
			if d.ExecutionID == end.execution {
				end.seq = e.Seq
				return end, nil
			}
		case events.LifecycleDeleted:
			return end, events.Missing("thread", thread)
		}
	}
}
