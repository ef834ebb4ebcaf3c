package operator

import (
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/operator/access"
)

// accessOptions are the flags of all access commands.
type accessOptions struct {
	dir  string
	json bool
}

func (o *accessOptions) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.dir, "access", "./skein-access", "folder of accounts, keys and credentials, as for skein serve --access")
	cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "dir" { // its name before
			name = "access"
		}
		return pflag.NormalizedName(name)
	})
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON: one document, or one a line for lists")
}

func (a *app) accessCommand() *cobra.Command {
	return cli.Group("access", "Manage who may connect, and what they may do", a.accessInit(), a.accessTenant(), a.accessUser(), a.accessRevoke(), a.accessList(), a.accessKey())
}

// reloadHint tells how a server applies a change.
const reloadHint = "reload the server: kill -HUP its process (skein serve --access), or nats-server --signal reload"

func (a *app) accessInit() *cobra.Command {
	var o accessOptions
	var i access.InitOptions
	cmd := &cobra.Command{
		Use: "init", Short: "Create a folder with a server's configuration, keys, and Skein's own credentials", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			f, err := access.Init(o.dir, i)
			if err != nil {
				return accessFailed(err)
			}
			ca, made := f.CA()
			if !made {
				ca = ""
			}
			if o.json {
				return a.PrintJSON(struct {
					Conf    string `json:"conf"`
					Creds   string `json:"creds"`
					Account string `json:"account"`
					CA      string `json:"tlsCa,omitzero"`
				}{f.Conf(), f.Creds(), f.Account(), ca})
			}
			_, err = fmt.Fprintf(a.Out, "created %s\nserve with it: skein serve --access %s\n", f.Conf(), o.dir)
			if made {
				_, err = fmt.Fprintf(a.Out, "clients need the certificate authority: --tls-ca %s\n", ca)
			}
			return err
		},
	}
	o.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&i.Listen, "listen", "127.0.0.1:4222", "listen address of a standalone nats-server")
	f.StringVar(&i.Store, "store", "./skein-data", "store of a standalone nats-server")
	f.StringVar(&i.Cert, "tls-cert", "", "file with the server's certificate")
	f.StringVar(&i.Key, "tls-key", "", "file with its key")
	f.StringSliceVar(&i.Hosts, "host", nil, "host name or address to create a certificate for, instead of --tls-cert; repeatable")
	return cmd
}

func (a *app) accessTenant() *cobra.Command {
	var o accessOptions
	cmd := &cobra.Command{
		Use: "tenant NAME", Short: "Add a tenant, to which users can be added without a reload", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			f, err := access.Open(o.dir)
			if err != nil {
				return accessFailed(err)
			}
			account, reload, err := f.AddTenant(args[0])
			if err != nil {
				return accessFailed(err)
			}
			if o.json {
				return a.PrintJSON(struct {
					Tenant  string `json:"tenant"`
					Account string `json:"account"`
					Reload  bool   `json:"reload"`
				}{args[0], account, reload})
			}
			if !reload {
				_, err = fmt.Fprintf(a.Out, "%s is a tenant already, with the account %s\n", args[0], account)
				return err
			}
			_, err = fmt.Fprintf(a.Out, "added %s, with the account %s\nthe tenant is new; %s\n", args[0], account, reloadHint)
			return err
		},
	}
	o.flags(cmd)
	return cmd
}

func (a *app) accessUser() *cobra.Command {
	var o accessOptions
	var u access.User
	var roles []string
	var expires time.Duration
	cmd := &cobra.Command{
		Use: "user", Short: "Add a user, and write the credentials", Args: cobra.NoArgs,
		Long: "Add a user, and write the credentials. A role is publisher or subscriber (of a tenant; may be both),\n" +
			"worker, gateway, auditor or administrator. What each may do: docs/access.md.",
		RunE: func(*cobra.Command, []string) error {
			for _, r := range roles {
				u.Roles = append(u.Roles, access.Role(r))
			}
			if expires > 0 {
				at := time.Now().Add(expires).UTC().Truncate(time.Second)
				u.Expires = &at
			}
			f, err := access.Open(o.dir)
			if err != nil {
				return accessFailed(err)
			}
			creds, reload, err := f.Add(u)
			if err != nil {
				return accessFailed(err)
			}
			if o.json {
				return a.PrintJSON(struct {
					Creds  string `json:"creds"`
					Inbox  string `json:"inbox"`
					Reload bool   `json:"reload"`
				}{creds, access.InboxOf(u.Name), reload})
			}
			_, err = fmt.Fprintf(a.Out, "credentials: %s\ninbox prefix, for clients other than Skein's: %s\n", creds, access.InboxOf(u.Name))
			if reload {
				_, err = fmt.Fprintf(a.Out, "the tenant is new; %s\n", reloadHint)
			}
			return err
		},
	}
	o.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&u.Name, "name", "", "name of the user")
	f.StringVar(&u.Tenant, "tenant", "", "tenant of a publisher or subscriber")
	f.StringSliceVar(&roles, "role", nil, "publisher, subscriber, worker, gateway, auditor or administrator; repeatable")
	f.StringSliceVar(&u.Reactors, "reactor", nil, "reactor that a worker serves; repeatable")
	f.StringSliceVar(&u.Tools, "tool", nil, "tool that a worker serves; repeatable")
	f.StringSliceVar(&u.Effects, "effect", nil, "effect that a worker runs; repeatable")
	f.StringSliceVar(&u.Serves, "serves", nil, "tenant that a gateway serves; repeatable; default all")
	f.DurationVar(&expires, "expires", 0, "validity of the credentials, such as 720h; default unlimited")
	return cmd
}

func (a *app) accessRevoke() *cobra.Command {
	var o accessOptions
	var tenant, name string
	cmd := &cobra.Command{
		Use: "revoke", Short: "Revoke a user's right to connect", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			f, err := access.Open(o.dir)
			if err == nil {
				err = f.Revoke(tenant, name)
			}
			if err != nil {
				return accessFailed(err)
			}
			if o.json {
				return a.PrintJSON(struct {
					Revoked string `json:"revoked"`
					Reload  bool   `json:"reload"`
				}{name, true})
			}
			_, err = fmt.Fprintf(a.Out, "revoked %s; %s\n", name, reloadHint)
			return err
		},
	}
	o.flags(cmd)
	cmd.Flags().StringVar(&name, "name", "", "name of the user")
	cmd.Flags().StringVar(&tenant, "tenant", "", "tenant of the user, if it has one")
	return cmd
}

func (a *app) accessList() *cobra.Command {
	var o accessOptions
	cmd := &cobra.Command{
		Use: "list", Short: "List the users", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			f, err := access.Open(o.dir)
			if err != nil {
				return accessFailed(err)
			}
			now := time.Now()
			if o.json {
				for _, u := range f.Users() {
					if err := a.PrintJSON(struct {
						access.User
						State string `json:"state"`
					}{u, u.State(now)}); err != nil {
						return err
					}
				}
				return nil
			}
			w := tabwriter.NewWriter(a.Out, 0, 4, 2, ' ', 0)
			_, _ = fmt.Fprintln(w, "NAME\tTENANT\tROLES\tSTATE\tISSUED\tEXPIRES\tKEY")
			for _, u := range f.Users() {
				var roles []string
				for _, r := range u.Roles {
					roles = append(roles, string(r))
				}
				expires := "-"
				if u.Expires != nil {
					expires = u.Expires.Format(time.RFC3339)
				}
				_, _ = fmt.Fprintln(w, strings.Join([]string{
					u.Name, u.Tenant, strings.Join(roles, ","), u.State(now), u.Issued.Format(time.RFC3339), expires, u.Key,
				}, "\t"))
			}
			return w.Flush()
		},
	}
	o.flags(cmd)
	return cmd
}

// accessFailed maps an error to an exit code: an invalid request is wrong usage.
func accessFailed(err error) error {
	var bad *access.BadUserError
	if errors.As(err, &bad) {
		return cli.WrongUsage("%s", bad.Problem)
	}
	return err
}
