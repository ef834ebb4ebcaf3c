package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/api/keys"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/connect"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/operator/access"
)

// revocation is one run of access key revoke.
type revocation struct {
	accessOptions
	id      string
	shares  bool // ends the key's shares
	server  string
	connect connect.Options
	timeout time.Duration
}

func (a *app) accessKeyRevoke() *cobra.Command {
	var r revocation
	cmd := &cobra.Command{
		Use: "revoke ID", Short: "Revoke an API key, and list or end the shares that it made", Args: cobra.ExactArgs(1),
		Long: "Revoke an API key. Running servers end its requests within a second.\n\n" +
			"Shares that the key made stay open for those who have their tokens. They are listed, and --shares ends\n" +
			"them; for this the command asks the server. With --shares the key may have been revoked before.",
		RunE: func(cmd *cobra.Command, args []string) error {
			r.id = args[0]
			return a.revokeKey(cmd.Context(), &r)
		},
	}
	r.flags(cmd)
	f := cmd.Flags()
	f.BoolVar(&r.shares, "shares", false, "end the shares that the key made")
	f.StringVar(&r.server, "server", "nats://127.0.0.1:4222", "URL of the NATS server, for the key's shares")
	f.StringVar(&r.connect.Creds, "creds", "", "credentials for it; default Skein's own of the folder")
	f.StringVar(&r.connect.CA, "tls-ca", "", "file of the certificate authority that signed its certificate; default the folder's")
	f.DurationVar(&r.timeout, "timeout", 10*time.Second, "timeout of one request to it")
	return cmd
}

func (a *app) revokeKey(ctx context.Context, r *revocation) error {
	f, err := access.Open(r.dir)
	if err != nil {
		return accessFailed(err)
	}
	key, err := f.Key(r.id)
	if err == nil {
		err = f.RevokeKey(r.id)
	}
	var ended *access.NoKeyError
	if before := key.Revoked != nil && r.shares; err != nil && !(before && errors.As(err, &ended)) {
		return accessFailed(err)
	}
	list, err := r.sharesOf(ctx, f, key)
	switch {
	case err != nil && r.shares:
		_, _ = fmt.Fprintf(a.Err, "skein: key %s is revoked; its shares were not all ended; repeat the command\n", r.id)
		return err
	case err != nil:
		_, _ = fmt.Fprintf(a.Err, "skein: the key's shares, which stay open, could not be listed: %v\nskein: end them: skein access key revoke %s --shares --dir %s --server URL\n", err, r.id, r.dir)
	}
	return a.printRevoked(r, list, err == nil)
}

// sharesOf lists the shares that a key made, and ends them if it was asked to.
func (r *revocation) sharesOf(ctx context.Context, f *access.Folder, key keys.Key) ([]events.Share, error) {
	if r.connect.Creds == "" {
		r.connect.Creds = f.Creds()
	}
	if ca, made := f.CA(); made && r.connect.CA == "" {
		r.connect.CA = ca
	}
	c, err := (&cli.Remote{Server: r.server, Tenant: key.Tenant, Options: r.connect, Timeout: r.timeout}).Connect()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if c, err = c.UpToDate(ctx); err != nil {
		return nil, err
	}
	var list []events.Share
	query := events.ListShares{Actor: key.Actor()}
	for {
		page, err := client.Read(ctx, c, query)
		if err != nil {
			return nil, err
		}
		list = append(list, page.Shares...)
		if query.Cursor = page.NextCursor; query.Cursor == "" {
			break
		}
	}
	if !r.shares {
		return list, nil
	}
	for _, s := range list {
		if _, err := c.Send(ctx, s.ThreadID, events.UnshareThread{ShareID: s.ID}); err != nil && !events.IsNotFound(err) {
			return nil, fmt.Errorf("end share %s of thread %s: %w", s.ID, s.ThreadID, err)
		}
	}
	return list, nil
}

// printRevoked prints what was done. Shares are unknown if no server was asked.
func (a *app) printRevoked(r *revocation, list []events.Share, known bool) error {
	if r.json {
		out := struct {
			Revoked string          `json:"revoked"`
			Ended   bool            `json:"sharesEnded"`
			Shares  *[]events.Share `json:"shares,omitzero"`
		}{Revoked: r.id, Ended: known && r.shares}
		if known {
			list = append([]events.Share{}, list...)
			out.Shares = &list
		}
		return a.PrintJSON(out)
	}
	if _, err := fmt.Fprintf(a.Out, "revoked %s\n", r.id); err != nil || len(list) == 0 {
		return err
	}
	text := "these shares that it made stay open; end them with --shares:"
	if r.shares {
		text = "ended the shares that it made:"
	}
	if _, err := fmt.Fprintln(a.Out, text); err != nil {
		return err
	}
	t := a.Table("SHARE", "THREAD", "MADE", "ENDS")
	for i := range list {
		s := &list[i]
		t.Row(s.ID, s.ThreadID, cli.Local(s.CreatedAt), cli.OrDash(s.ExpiresAt))
	}
	return t.Flush()
}
