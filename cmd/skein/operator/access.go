package operator

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/keys"
	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/internal/access"
)

// accessOptions are the flags of all access commands.
type accessOptions struct {
	dir  string
	json bool
}

func (o *accessOptions) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.dir, "dir", "./skein-access", "folder of accounts, keys and credentials")
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

func (a *app) accessKey() *cobra.Command {
	return cli.Group("key", "Manage API keys for HTTP", a.accessKeyCreate(), a.accessKeyList(), a.accessKeyRevoke())
}

func (a *app) accessKeyCreate() *cobra.Command {
	var o accessOptions
	var k keys.Key
	var can []string
	var expires string
	cmd := &cobra.Command{
		Use: "create", Short: "Create an API key of a tenant, and print it once", Args: cobra.NoArgs,
		Long: "Create an API key of a tenant, and print it. It is printed only once: the folder has no secret of it.\n" +
			"--user, --thread and --can limit it further than its roles do.",
		RunE: func(*cobra.Command, []string) error {
			for _, c := range can {
				k.Can = append(k.Can, edge.Capability(c))
			}
			if expires != "" {
				d, err := daysOrDuration(expires)
				if err != nil {
					return cli.WrongUsage("--expires: %v", err)
				}
				at := time.Now().Add(d).UTC().Truncate(time.Second)
				k.Expires = &at
			}
			f, err := access.Open(o.dir)
			if err != nil {
				return accessFailed(err)
			}
			made, text, err := f.AddKey(k)
			if err != nil {
				return accessFailed(err)
			}
			if o.json {
				return a.PrintJSON(struct {
					ID      string     `json:"id"`
					Key     string     `json:"key"`
					Tenant  string     `json:"tenant"`
					Roles   []string   `json:"roles"`
					Expires *time.Time `json:"expiresAt,omitzero"`
				}{made.ID, text, made.Tenant, made.Roles, made.Expires})
			}
			_, err = fmt.Fprintln(a.Out, text)
			return err
		},
	}
	o.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&k.Tenant, "tenant", "", "tenant that the key belongs to")
	f.StringSliceVar(&k.Roles, "role", nil, "publisher, subscriber or both; repeatable")
	f.StringVar(&k.Name, "name", "", "what the key is for, in lists")
	f.StringVar(&expires, "expires", "", "validity, such as 90d or 12h; default unlimited")
	f.StringVar(&k.User, "user", "", "limit it to the threads of this user")
	f.StringSliceVar(&k.Threads, "thread", nil, "limit it to this thread; repeatable")
	f.StringSliceVar(&can, "can", nil, "limit it to read, write, approve or define; repeatable")
	return cmd
}

// daysOrDuration parses a positive duration, which may be a number of days.
func daysOrDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		var n int
		n, err = strconv.Atoi(days)
		if err == nil && n > 36500 {
			return 0, fmt.Errorf("%q is more than 100 years", s)
		}
		d = time.Duration(n) * 24 * time.Hour
	}
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q is not a positive duration such as 90d or 12h", s)
	}
	return d, nil
}

func (a *app) accessKeyRevoke() *cobra.Command {
	var o accessOptions
	cmd := &cobra.Command{
		Use: "revoke ID", Short: "Revoke an API key; running servers end its requests within a second", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			f, err := access.Open(o.dir)
			if err == nil {
				err = f.RevokeKey(args[0])
			}
			if err != nil {
				return accessFailed(err)
			}
			if o.json {
				return a.PrintJSON(struct {
					Revoked string `json:"revoked"`
				}{args[0]})
			}
			_, err = fmt.Fprintf(a.Out, "revoked %s\n", args[0])
			return err
		},
	}
	o.flags(cmd)
	return cmd
}

func (a *app) accessKeyList() *cobra.Command {
	var o accessOptions
	cmd := &cobra.Command{
		Use: "list", Short: "List the API keys, and when each was last used", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			f, err := access.Open(o.dir)
			if err != nil {
				return accessFailed(err)
			}
			list, used, err := f.Keys()
			if err != nil {
				return err
			}
			now := time.Now()
			w := tabwriter.NewWriter(a.Out, 0, 4, 2, ' ', 0)
			if !o.json {
				_, _ = fmt.Fprintln(w, "ID\tTENANT\tROLES\tNAME\tSTATE\tLIMITS\tCREATED\tEXPIRES\tLAST USED")
			}
			for _, k := range list {
				if o.json {
					if err := a.PrintJSON(listedKey{k.ID, k.Tenant, k.Roles, k.Name, k.User, k.Threads, k.Can, k.State(now), k.Created, k.Expires, used[k.ID]}); err != nil {
						return err
					}
					continue
				}
				_, _ = fmt.Fprintln(w, strings.Join([]string{
					k.ID, k.Tenant, strings.Join(k.Roles, ","), k.Name, k.State(now), limitsOf(k), k.Created.Format(time.RFC3339), moment(k.Expires), momentOf(used[k.ID]),
				}, "\t"))
			}
			return w.Flush()
		},
	}
	o.flags(cmd)
	return cmd
}

// listedKey is a key in the list as JSON.
type listedKey struct {
	ID      string            `json:"id"`
	Tenant  string            `json:"tenant"`
	Roles   []string          `json:"roles"`
	Name    string            `json:"name,omitzero"`
	User    string            `json:"user,omitzero"`
	Threads []string          `json:"threads,omitempty"`
	Can     []edge.Capability `json:"can,omitempty"`
	State   string            `json:"state"`
	Created time.Time         `json:"createdAt"`
	Expires *time.Time        `json:"expiresAt,omitzero"`
	Used    time.Time         `json:"lastUsedAt,omitzero"`
}

// limitsOf returns what limits a key below its tenant.
func limitsOf(k keys.Key) string {
	var limits []string
	if k.User != "" {
		limits = append(limits, "user "+k.User)
	}
	if n := len(k.Threads); n > 0 {
		limits = append(limits, fmt.Sprintf("%d threads", n))
	}
	for _, c := range k.Can {
		limits = append(limits, string(c))
	}
	if len(limits) == 0 {
		return "-"
	}
	return strings.Join(limits, ",")
}

func moment(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return momentOf(*t)
}

func momentOf(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Format(time.RFC3339)
}
