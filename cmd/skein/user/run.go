package user

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/eventtext"
)

func (a *app) runCommand() *cobra.Command {
	return cli.Group("run", "Manage the runs of agents", a.runList(), a.runStop(), a.runCancel(), a.runRetry(), a.runTurn())
}

func (a *app) runList() *cobra.Command {
	var q events.ListRuns
	var status string
	var limit int
	cmd := remoteCommand("list", "List the tenant's runs, and what each waits for", cobra.NoArgs,
		func(ctx context.Context, r *cli.Remote, c *client.Client, _ []string) error {
			q.Status = events.ExecutionStatus(status)
			if err := cli.Choice("--status", status, q.Status.Enum()); status != "" && err != nil {
				return err
			}
			t := a.table("THREAD", "EXECUTION", "AGENT", "STATUS", "STEPS", "CREATED", "WAITS FOR")
			row := func(x *events.Run) {
				t.Row(x.ThreadID, x.ExecutionID, x.AgentID, string(x.Status), strconv.FormatInt(x.StepCount, 10), x.CreatedAt, cli.OrDash(waitsFor(x.WaitingFor)))
			}
			return printPages(a, r, limit, t, row, q.Cursor, func(n int64, cursor string) ([]events.Run, string, error) {
				q.Limit, q.Cursor = &n, cursor
				got, err := client.Read(ctx, c, q)
				if err != nil {
					return nil, "", err
				}
				return got.Runs, got.NextCursor, nil
			})
		})
	f := cmd.Flags()
	f.StringVar(&status, "status", "", "only this state: "+strings.Join(q.Status.Enum(), ", "))
	f.StringVar(&q.AgentID, "agent", "", "only this agent")
	pageFlags(f, &q.Cursor, &limit, 50)
	return cmd
}

// waitsFor describes what a run waits for.
func waitsFor(list []events.RunWait) string {
	var all []string
	for _, w := range list {
		text := string(w.Kind)
		if w.Name != "" {
			text += " of " + w.Name
		}
		if w.CallID != "" {
			text += " (" + w.CallID + ")"
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

func (a *app) runStop() *cobra.Command {
	var d events.StopRun
	cmd := a.sending("stop THREAD", "End the run of a thread after its current operation", cobra.ExactArgs(1), func(args []string) (any, error) {
		return d, nil
	})
	cmd.Flags().StringVar(&d.ExecutionID, "execution", "", "the execution; default the active one")
	cmd.Flags().StringVar(&d.Reason, "reason", "", "why")
	cmd.Flags().BoolVar(&d.Now, "now", false, "interrupt the model; its partial output is the answer")
	return cmd
}

func (a *app) runCancel() *cobra.Command {
	var d events.CancelRun
	cmd := a.sending("cancel THREAD", "End the run of a thread during its current operation", cobra.ExactArgs(1), func(args []string) (any, error) {
		return d, nil
	})
	cmd.Flags().StringVar(&d.ExecutionID, "execution", "", "the execution; default the active one")
	cmd.Flags().StringVar(&d.Reason, "reason", "", "why")
	cmd.Flags().BoolVar(&d.Discard, "discard", false, "discard the output of the current step")
	return cmd
}

func (a *app) runRetry() *cobra.Command {
	var d events.RetryRun
	var follow, wait bool
	cmd := remoteCommand("retry THREAD", "Retry the failed run of a thread, from its partial results", cobra.ExactArgs(1),
		func(ctx context.Context, r *cli.Remote, c *client.Client, args []string) error {
			reply, err := c.Send(ctx, args[0], d)
			if err != nil || !follow && !wait {
				return a.printReply(r, reply, err)
			}
			return a.await(ctx, r, c, reply, follow)
		})
	f := cmd.Flags()
	f.StringVar(&d.ExecutionID, "execution", "", "the failed execution; default the thread's last one")
	f.BoolVar(&follow, "follow", false, "stream the agent's output, and show the answer at the end")
	f.BoolVar(&wait, "wait", false, "wait for the end, and show the answer")
	return cmd
}

func (a *app) runTurn() *cobra.Command {
	return a.sending("turn THREAD SIDE", "Assign the next turn of a dual_ai agent to side a or b", cobra.ExactArgs(2), func(args []string) (any, error) {
		side := events.Side(args[1])
		if err := cli.Choice("SIDE", args[1], side.Enum()); err != nil {
			return nil, err
		}
		return events.TurnRun{Side: side}, nil
	})
}

func (a *app) approvalCommand() *cobra.Command {
	return cli.Group("approval", "Answer calls of tools that wait for a person", a.approvalList(), a.approvalGrant(), a.approvalDeny(), a.approvalResolve())
}

// asked describes what a person is asked: the question, or whether a call may be made.
func asked(x *events.Approval) string {
	if x.Question != "" {
		return x.Name + ": " + x.Question
	}
	return x.Name + " " + string(x.Arguments)
}

func (a *app) approvalList() *cobra.Command {
	var q events.ListApprovals
	var status string
	var limit int
	cmd := remoteCommand("list", "List the calls of tools that wait for a person", cobra.NoArgs,
		func(ctx context.Context, r *cli.Remote, c *client.Client, _ []string) error {
			q.Status = events.ApprovalStatus(status)
			if err := cli.Choice("--status", status, q.Status.Enum()); err != nil {
				return err
			}
			t := a.table("THREAD", "CALL", "AGENT", "STATUS", "REASON", "ASKED", "TOOL")
			row := func(x *events.Approval) {
				t.Row(x.ThreadID, x.CallID, x.AgentID, string(x.Status), cli.OrDash(string(x.Reason)), x.RequestedAt, eventtext.Brief(asked(x), eventtext.Width))
			}
			return printPages(a, r, limit, t, row, q.Cursor, func(n int64, cursor string) ([]events.Approval, string, error) {
				q.Limit, q.Cursor = &n, cursor
				got, err := client.Read(ctx, c, q)
				if err != nil {
					return nil, "", err
				}
				return got.Approvals, got.NextCursor, nil
			})
		})
	f := cmd.Flags()
	f.StringVar(&status, "status", string(events.ApprovalWaiting), "only this state: "+strings.Join(q.Status.Enum(), ", "))
	f.StringVar(&q.AgentID, "agent", "", "only this agent")
	pageFlags(f, &q.Cursor, &limit, 50)
	return cmd
}

func (a *app) approvalGrant() *cobra.Command {
	var d events.GrantApproval
	var arguments jsonFlag
	cmd := a.sending("grant THREAD CALL", "Permit a call of a tool", cobra.ExactArgs(2), func(args []string) (any, error) {
		d.CallID, d.Arguments = args[1], arguments.value()
		return d, nil
	})
	cmd.Flags().Var(&arguments, "arguments", "arguments to use instead: a JSON object")
	cmd.Flags().StringVar(&d.Comment, "comment", "", "a note to record")
	return cmd
}

func (a *app) approvalDeny() *cobra.Command {
	var d events.DenyApproval
	cmd := a.sending("deny THREAD CALL", "Refuse a call of a tool; the model is told", cobra.ExactArgs(2), func(args []string) (any, error) {
		d.CallID = args[1]
		return d, nil
	})
	cmd.Flags().StringVar(&d.Comment, "comment", "", "what the model is told")
	return cmd
}

func (a *app) approvalResolve() *cobra.Command {
	d := events.ResolveApproval{}
	var arguments, result jsonFlag
	cmd := a.sending("resolve THREAD CALL", "Resolve a call of a tool: permit it, refuse it, or set its result", cobra.ExactArgs(2), func(args []string) (any, error) {
		d.CallID, d.Arguments, d.Result = args[1], arguments.value(), result.value()
		if err := d.Check(); err != nil {
			return nil, cli.WrongUsage("use exactly one of --grant, --deny and --result; --arguments goes with --grant")
		}
		return d, nil
	})
	f := cmd.Flags()
	f.BoolVar(&d.Grant, "grant", false, "permit the call")
	f.Var(&arguments, "arguments", "with --grant: arguments to use instead: a JSON object")
	f.BoolVar(&d.Deny, "deny", false, "refuse the call; the model is told")
	f.StringVar(&d.Reason, "reason", "", "with --grant or --deny: the reason")
	f.Var(&result, "result", "the result of the call, any JSON; the call is not made")
	return cmd
}
