package user

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/events"
)

// threadShare makes, lists and revokes shares of a thread.
func (a *app) threadShare() *cobra.Command {
	var d events.ShareThread
	var list bool
	var revoke string
	cmd := remoteCommand("share THREAD", "Make a token with which a thread's messages can be read; list or revoke shares", cobra.ExactArgs(1),
		func(ctx context.Context, r *cli.Remote, c *client.Client, args []string) error {
			switch {
			case list:
				return a.listShares(ctx, r, c, args[0])
			case revoke != "":
				reply, err := c.Send(ctx, args[0], events.UnshareThread{ShareID: revoke})
				return a.printReply(r, reply, err)
			}
			reply, err := c.Send(ctx, args[0], d)
			if err != nil || r.JSON {
				return a.printReply(r, reply, err)
			}
			t := a.table("SHARE", "TOKEN")
			t.Row(reply.Result.ShareID, cli.OrDash(reply.Result.Token))
			return t.Flush()
		})
	f := cmd.Flags()
	f.StringVar(&d.ExpiresAt, "expires-at", "", "when it ends, such as 2026-02-20T10:00:00Z; default when it is revoked")
	f.BoolVar(&list, "list", false, "list the thread's shares instead")
	f.StringVar(&revoke, "revoke", "", "revoke this share instead")
	cmd.MarkFlagsMutuallyExclusive("expires-at", "list", "revoke")
	return cmd
}

func (a *app) listShares(ctx context.Context, r *cli.Remote, c *client.Client, thread string) error {
	got, err := client.Read(ctx, c, events.ListShares{ThreadID: thread})
	if err != nil {
		return err
	}
	t := a.table("SHARE", "MADE", "ENDS", "BY")
	for i := range got.Shares {
		s := &got.Shares[i]
		if r.JSON {
			if err := a.PrintJSON(s); err != nil {
				return err
			}
			continue
		}
		t.Row(s.ID, s.CreatedAt, cli.OrDash(s.ExpiresAt), cli.OrDash(s.Actor))
	}
	if r.JSON {
		return nil
	}
	return t.Flush()
}
