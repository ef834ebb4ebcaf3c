package operator

import (
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/api/edge"
	"github.com/skein-threads/skein/api/keys"
	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/operator/access"
)

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
		Long: "Create an API key of a tenant, and print it. It is printed only once: the folder stores its digest.\n" +
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
	f.StringSliceVar(&can, "can", nil, "limit it to read, write, approve, define or tools; repeatable")
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
