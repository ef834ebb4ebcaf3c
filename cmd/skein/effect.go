package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/happened"
)

func (a *app) effectCommand() *cobra.Command {
	return group("effect", "Show and cancel the scheduled effects of a thread", a.effectList(), a.effectCancel())
}

func (a *app) effectList() *cobra.Command {
	var q events.ListEffects
	cmd := reading("list THREAD", "List the pending effects of a thread, the earliest due first", cobra.ExactArgs(1),
		func(ctx context.Context, r *remote, c *client.Client, args []string) error {
			q.ThreadID = args[0]
			list, err := c.ListEffects(ctx, q)
			if err != nil {
				return err
			}
			t := a.table("EFFECT", "NAME", "DUE", "REPEATS", "ATTEMPT", "LAST ERROR")
			return printPages(a, r, 0, t, t.effect, "", func(int64, string) ([]events.ScheduledEffect, string, error) {
				return list.Effects, "", nil
			})
		})
	cmd.Flags().StringVar(&q.Name, "name", "", "only those with this name")
	return cmd
}

func (t table) effect(e *events.ScheduledEffect) {
	repeats := "-"
	switch {
	case e.Cron != "":
		repeats = e.Cron
	case e.EveryMs > 0:
		repeats = "every " + (time.Duration(e.EveryMs) * time.Millisecond).String()
	}
	t.row(e.ID, e.Name, local(events.TimeOf(time.UnixMicro(e.ScheduledAt)).ISO()), repeats, fmt.Sprint(e.Attempt), orDash(happened.Brief(e.ErrorText, 60)))
}

func (a *app) effectCancel() *cobra.Command {
	return remoteCommand("cancel THREAD EFFECT", "Cancel a pending effect", cobra.ExactArgs(2),
		func(ctx context.Context, r *remote, c *client.Client, args []string) error {
			reply, err := c.CancelEffect(ctx, args[0], events.CancelEffect{EffectID: args[1]})
			if err != nil {
				return err
			}
			if reply.Result == nil || !reply.Result.Cancelled {
				return events.Errorf(events.NotFound, "effect %s is not pending: it has run, is running, was cancelled, or never existed; skein effect list shows the pending ones", args[1])
			}
			return a.printReply(r, reply, nil)
		})
}
