package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

func (a *app) sessionCommand() *cobra.Command {
	return group("session", "Record the requests of a conversation", a.sessionStart(), a.sessionComplete())
}

func (a *app) sessionStart() *cobra.Command {
	var d events.StartSession
	cmd := remoteCommand("start THREAD SESSION", "Record that a request started; SESSION is sess_ and hex digits", cobra.ExactArgs(2),
		func(ctx context.Context, r *remote, c *client.Client, args []string) error {
			d.SessionID = args[1]
			reply, err := client.Send(ctx, c, args[0], d)
			return a.printReply(r, reply, err)
		})
	cmd.Flags().StringVar(&d.StartedAt, "started-at", "", "when it started; default now")
	return cmd
}

func (a *app) sessionComplete() *cobra.Command {
	var d events.CompleteSession
	cmd := remoteCommand("complete THREAD SESSION", "Record that a request has ended", cobra.ExactArgs(2),
		func(ctx context.Context, r *remote, c *client.Client, args []string) error {
			d.SessionID = args[1]
			reply, err := client.Send(ctx, c, args[0], d)
			return a.printReply(r, reply, err)
		})
	cmd.Flags().StringVar(&d.ErrorText, "error", "", "why it failed")
	return cmd
}
