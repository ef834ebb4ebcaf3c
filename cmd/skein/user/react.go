package user

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/eventtext"
)

func (a *app) threadReact() *cobra.Command {
	var d events.ReactThread
	var policy string
	var follow, wait bool
	cmd := remoteCommand("react THREAD TEXT", "Ask an agent to answer; the run does not depend on this command", cobra.ExactArgs(2),
		func(ctx context.Context, r *cli.Remote, c *client.Client, args []string) error {
			d.Text = &args[1]
			d.Policy = events.Policy(policy)
			if policy != "" {
				if err := cli.Choice("--policy", policy, d.Policy.Enum()); err != nil {
					return err
				}
			}
			reply, err := c.Send(ctx, args[0], d)
			if err != nil || !follow && !wait {
				return a.printReply(r, reply, err)
			}
			return a.await(ctx, r, c, reply, follow)
		})
	f := cmd.Flags()
	f.StringVar(&d.AgentID, "agent", "", "the agent; default the thread's agent")
	f.StringVar(&policy, "policy", "", "if a run is in progress: reject, enqueue, interrupt or steer; default the thread's policy")
	f.StringVar(&d.SessionID, "session", "", "the session of the request that asks")
	f.BoolVar(&follow, "follow", false, "stream the agent's output, and show the answer at the end")
	f.BoolVar(&wait, "wait", false, "wait for the end, and show the answer")
	return cmd
}

// await shows what a run waits for, streams its chunks if follow is set, and always
// prints its answer at the end.
func (a *app) await(ctx context.Context, r *cli.Remote, c *client.Client, reply *events.Reply, follow bool) error {
	q := events.GetExecution{ThreadID: reply.ThreadID, ExecutionID: reply.Result.ExecutionID, Fresh: events.Fresh{MinSeq: &reply.Seq}}
	begun, begin := make(chan struct{}), sync.Once{}
	var x *events.Execution
	var err error
	var watch sync.WaitGroup
	watch.Go(func() {
		defer begin.Do(func() { close(begun) })
		var lines []string
		x, err = c.WatchRun(ctx, q, func(w client.Waiting) {
			if !w.Queued {
				begin.Do(func() { close(begun) })
			}
			was := lines
			for _, line := range waitLines(reply.ThreadID, w) {
				if lines = append(lines, line); !contains(was, line) {
					_, _ = fmt.Fprintln(a.Err, line)
				}
			}
			lines = lines[len(was):]
		})
	})
	shown := ""
	if follow {
		<-begun
		shown = a.follow(ctx, r, c, reply)
	}
	if watch.Wait(); err != nil {
		return unfinished(ctx, r, q, err)
	}
	return a.outcome(ctx, r, c, x, shown)
}

// unfinished returns the error of a wait for a run: that its time is over, or what ended it.
func unfinished(ctx context.Context, r *cli.Remote, q events.GetExecution, err error) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return err
	}
	return cli.Failed("timeout", fmt.Sprintf("execution %s has not ended within %v, and goes on; follow it with skein tail %s", q.ExecutionID, r.Timeout, q.ThreadID))
}

func contains(list []string, line string) bool {
	for _, one := range list {
		if one == line {
			return true
		}
	}
	return false
}

// waitLines describes what a run waits for.
func waitLines(thread string, w client.Waiting) []string {
	var lines []string
	if w.Queued {
		lines = append(lines, fmt.Sprintf("queued, %d ahead", w.Ahead))
	}
	for _, one := range w.Workers {
		lines = append(lines, "waiting for a worker of "+eventtext.Brief(one.Name, eventtext.Width))
	}
	for _, one := range w.Approvals {
		if one.Reason == events.ApprovalQuestion {
			lines = append(lines, "waiting for a person: "+eventtext.Brief(one.Question, eventtext.Width)+": skein approval resolve "+thread+" "+eventtext.Brief(one.CallID, eventtext.Width)+" --result JSON")
			continue
		}
		line := "waiting for approval of " + eventtext.Brief(one.Name+" "+string(one.Arguments), eventtext.Width)
		lines = append(lines, line+": skein approval grant "+thread+" "+eventtext.Brief(one.CallID, eventtext.Width))
	}
	return lines
}

// follow streams the chunks of a run to its end, and returns their text. An error is
// printed as a hint only: the answer follows anyway.
func (a *app) follow(ctx context.Context, r *cli.Remote, c *client.Client, reply *events.Reply) string {
	var text strings.Builder
	open := false // a line of text was begun
	line := func(format string, args ...any) {
		if open {
			_, _ = fmt.Fprintln(a.Out)
			open = false
		}
		_, _ = fmt.Fprintf(a.Out, format+"\n", args...)
	}
	for chunk, err := range c.Chunks(ctx, reply.ThreadID, reply.Result.ExecutionID) {
		var gap *client.ChunkGapError
		switch {
		case errors.As(err, &gap):
			a.Hint("%v", err)
			continue
		case err != nil:
			if ctx.Err() == nil {
				a.Hint("cannot stream the agent's output: %v", err)
			}
			return text.String()
		}
		if r.JSON {
			if err := a.PrintJSON(chunk); err != nil {
				return text.String()
			}
			continue
		}
		var data struct {
			Delta    string `json:"delta"`
			CallID   string `json:"toolCallId"`
			ToolName string `json:"toolName"`
			Error    string `json:"errorText"`
		}
		_ = json.Unmarshal(chunk.Data, &data) // other kinds of chunks print nothing
		switch chunk.Type {
		case events.ChunkTextDelta:
			text.WriteString(data.Delta)
			_, _ = fmt.Fprint(a.Out, eventtext.Printable(data.Delta, true))
			open = open || data.Delta != ""
		case events.ChunkToolInput:
			line("  → %s", eventtext.Brief(data.ToolName, eventtext.Width))
		case events.ChunkToolOutput:
			line("  ← %s done", eventtext.Brief(data.CallID, eventtext.Width))
		case events.ChunkToolError:
			line("  ← %s: %s", eventtext.Brief(data.CallID, eventtext.Width), eventtext.Brief(data.Error, eventtext.Width))
		}
	}
	if open {
		_, _ = fmt.Fprintln(a.Out)
	}
	return text.String()
}

// outcome prints how a run ended, and its answer unless exactly that was streamed.
func (a *app) outcome(ctx context.Context, r *cli.Remote, c *client.Client, x *events.Execution, shown string) error {
	var answer *events.Item // the last item of the run
	var texts []string
	for _, id := range x.Items() {
		item, err := client.Read(ctx, c, events.GetItem{ThreadID: x.ThreadID, ItemID: id, Fresh: events.Fresh{MinSeq: &x.Seq}})
		if events.IsNotFound(err) { // it may have been deleted
			continue
		}
		if err != nil {
			return err
		}
		answer = item
		if text := written(item.Content); text != "" {
			texts = append(texts, text)
		}
	}
	if r.JSON {
		if err := a.PrintJSON(struct {
			*events.Execution
			Answer *events.Item `json:"answer,omitzero"`
		}{x, answer}); err != nil {
			return err
		}
	} else if answer != nil && x.Status != events.ExecutionFailed {
		text := strings.Join(texts, "\n")
		if text == "" {
			text = eventtext.Said(answer.Type, answer.Content)
		}
		if withoutSpace(text) != withoutSpace(shown) {
			if _, err := fmt.Fprintln(a.Out, eventtext.Printable(text, true)); err != nil {
				return err
			}
		}
	}
	if x.Status == events.ExecutionFailed {
		return events.Errorf(events.Unavailable, "the run failed: %s; retry with skein run retry %s", x.ErrorText, x.ThreadID)
	}
	return nil
}

// written returns only the text of an answer.
func written(content events.JSON) string {
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	_ = json.Unmarshal(content, &parts) // the content was validated when it was stored
	var out []string
	for _, p := range parts {
		if p.Type == events.OutputText && p.Text != "" {
			out = append(out, p.Text)
		}
	}
	return strings.Join(out, "\n")
}

// withoutSpace returns a text without its white space, which may differ between streamed
// and stored text.
func withoutSpace(text string) string { return strings.Join(strings.Fields(text), "") }
