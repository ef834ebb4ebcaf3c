package main

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

func (a *app) threadReact() *cobra.Command {
	var d events.ReactThread
	var policy string
	var follow, wait bool
	cmd := remoteCommand("react THREAD TEXT", "Ask an agent to answer; the run goes on whether or not anybody waits", cobra.ExactArgs(2),
		func(ctx context.Context, r *remote, c *client.Client, args []string) error {
			d.Text = &args[1]
			d.Policy = events.Policy(policy)
			if policy != "" {
				if err := choice("--policy", policy, d.Policy.Enum()); err != nil {
					return err
				}
			}
			reply, err := c.React(ctx, args[0], d)
			if err != nil || !follow && !wait || reply.Result.ExecutionID == "" {
				return a.printReply(r, reply, err)
			}
			if follow {
				if err := a.follow(ctx, r, c, reply); err != nil {
					return err
				}
			}
			return a.outcome(ctx, r, c, reply, follow)
		})
	f := cmd.Flags()
	f.StringVar(&d.AgentID, "agent", "", "the agent; the thread's own if absent")
	f.StringVar(&policy, "policy", "", "while a run is on: reject, enqueue, interrupt or steer; the thread's own policy if absent")
	f.BoolVar(&follow, "follow", false, "show what the agent writes while it writes it, to the end")
	f.BoolVar(&wait, "wait", false, "wait for the end, and show the answer")
	return cmd
}

// follow shows the chunks of a run to its end.
func (a *app) follow(ctx context.Context, r *remote, c *client.Client, reply *events.Reply) error {
	open := false // a line of text has begun
	line := func(format string, args ...any) {
		if open {
			_, _ = fmt.Fprintln(a.out)
			open = false
		}
		_, _ = fmt.Fprintf(a.out, format+"\n", args...)
	}
	for chunk, err := range c.Chunks(ctx, reply.ThreadID, reply.Result.ExecutionID) {
		if err != nil {
			return err
		}
		if r.json {
			if err := a.printJSON(chunk); err != nil {
				return err
			}
			continue
		}
		var data struct {
			Delta    string `json:"delta"`
			CallID   string `json:"toolCallId"`
			ToolName string `json:"toolName"`
			Error    string `json:"errorText"`
		}
		_ = json.Unmarshal(chunk.Data, &data) // another kind of chunk shows nothing
		switch chunk.Type {
		case events.ChunkTextDelta:
			_, _ = fmt.Fprint(a.out, printable(data.Delta, true))
			open = true
		case events.ChunkToolInput:
			line("  → %s", brief(data.ToolName, textWidth))
		case events.ChunkToolOutput:
			line("  ← %s done", brief(data.CallID, textWidth))
		case events.ChunkToolError:
			line("  ← %s: %s", brief(data.CallID, textWidth), brief(data.Error, textWidth))
		}
	}
	if open {
		_, _ = fmt.Fprintln(a.out)
	}
	return nil
}

// outcome waits for the end of a run and says how it ended; the answer too, if
// it was not shown yet.
func (a *app) outcome(ctx context.Context, r *remote, c *client.Client, reply *events.Reply, shown bool) error {
	seq := events.Int(reply.Seq)
	x, err := c.WaitRun(ctx, events.GetExecution{
		ThreadID: reply.ThreadID, ExecutionID: reply.Result.ExecutionID, Fresh: events.Fresh{MinSeq: &seq},
	})
	if err != nil {
		return err
	}
	if r.json && !shown {
		return a.printJSON(x)
	}
	if !r.json && !shown && x.Status != events.ExecutionFailed {
		answer, err := c.GetItem(ctx, events.GetItem{ThreadID: x.ThreadID, ItemID: x.ReactionItemID})
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(a.out, printable(said(answer.Type, answer.Content), true)); err != nil {
			return err
		}
	}
	if x.Status == events.ExecutionFailed {
		return events.Errorf(events.Unavailable, "the run failed: %s", x.ErrorText)
	}
	return nil
}
