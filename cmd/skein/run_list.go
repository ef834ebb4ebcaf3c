package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/happened"
)

func (a *app) runList() *cobra.Command {
	var q events.ListRuns
	var status string
	var limit int
	cmd := remoteCommand("list", "List the tenant's runs, and what each waits for", cobra.NoArgs,
		func(ctx context.Context, r *remote, c *client.Client, _ []string) error {
			q.Status = events.ExecutionStatus(status)
			if err := choice("--status", status, q.Status.Enum()); status != "" && err != nil {
				return err
			}
			t := a.table("THREAD", "EXECUTION", "AGENT", "STATUS", "STEPS", "CREATED", "WAITS FOR")
			row := func(x *events.Run) {
				t.row(x.ThreadID, x.ExecutionID, x.AgentID, string(x.Status), strconv.FormatInt(x.StepCount, 10), x.CreatedAt, orDash(waitsFor(x.WaitingFor)))
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
		func(ctx context.Context, r *remote, c *client.Client, _ []string) error {
			q.Status = events.ApprovalStatus(status)
			if err := choice("--status", status, q.Status.Enum()); err != nil {
				return err
			}
			t := a.table("THREAD", "CALL", "AGENT", "STATUS", "REASON", "ASKED", "TOOL")
			row := func(x *events.Approval) {
				t.row(x.ThreadID, x.CallID, x.AgentID, string(x.Status), orDash(string(x.Reason)), x.RequestedAt, happened.Brief(asked(x), happened.Width))
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
