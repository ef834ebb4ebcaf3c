package user

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/eventtext"
)

func (a *app) effectCommand() *cobra.Command {
	return cli.Group("effect", "Show and cancel scheduled effects", a.effectList(), a.effectCancel())
}

func (a *app) effectList() *cobra.Command {
	var q events.ListEffects
	var only string
	var limit int
	cmd := reading("list [THREAD]", "List the pending effects of a thread, or of the tenant, the earliest due first", cobra.MaximumNArgs(1),
		func(ctx context.Context, r *cli.Remote, c *client.Client, args []string) error {
			q.Only = events.EffectView(only)
			if err := cli.Choice("--only", only, q.Only.Enum()); only != "" && err != nil {
				return err
			}
			columns := []string{"EFFECT", "NAME", "DUE", "REPEATS", "ATTEMPT", "LAST ERROR"}
			if len(args) > 0 {
				q.ThreadID = args[0]
			} else {
				columns = append([]string{"THREAD"}, columns...)
			}
			t := a.table(columns...)
			row := func(e *events.ScheduledEffect) {
				if cells := effectCells(e); q.ThreadID != "" {
					t.Row(cells...)
				} else {
					t.Row(append([]string{e.ThreadID}, cells...)...)
				}
			}
			return printPages(a, r, limit, t, row, q.Cursor, func(n int64, cursor string) ([]events.ScheduledEffect, string, error) {
				q.Limit, q.Cursor = &n, cursor
				list, err := client.Read(ctx, c, q)
				if err != nil {
					return nil, "", err
				}
				return list.Effects, list.NextCursor, nil
			})
		})
	f := cmd.Flags()
	f.StringVar(&q.Name, "name", "", "only those with this name")
	f.StringVar(&only, "only", "", "only those that are: "+strings.Join(q.Only.Enum(), ", "))
	pageFlags(f, &q.Cursor, &limit, 0)
	return cmd
}

// effectCells returns the row of an effect in a list.
func effectCells(e *events.ScheduledEffect) []string {
	repeats := "-"
	switch {
	case e.Cron != "":
		repeats = e.Cron
	case e.EveryMs > 0:
		repeats = "every " + (time.Duration(e.EveryMs) * time.Millisecond).String()
	}
	return []string{e.ID, e.Name, cli.Local(events.TimeOf(time.UnixMicro(e.ScheduledAt)).ISO()), repeats, fmt.Sprint(e.Attempt), cli.OrDash(eventtext.Brief(e.ErrorText, 60))}
}

func (a *app) effectCancel() *cobra.Command {
	return remoteCommand("cancel THREAD EFFECT", "Cancel a pending effect", cobra.ExactArgs(2),
		func(ctx context.Context, r *cli.Remote, c *client.Client, args []string) error {
			reply, err := c.Send(ctx, args[0], events.CancelEffect{EffectID: args[1]})
			if err != nil {
				return err
			}
			if reply.Result == nil || !reply.Result.Cancelled {
				return events.Errorf(events.NotFound, "effect %s is not pending: it has run, is running, was cancelled, or never existed; skein effect list shows the pending ones", args[1])
			}
			return a.printReply(r, reply, nil)
		})
}
