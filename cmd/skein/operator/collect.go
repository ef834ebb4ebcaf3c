package operator

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/cmd/skein/cli"
	contents "github.com/skein-threads/skein/files"
	"github.com/skein-threads/skein/internal/eventtext"
)

// filesCollect reads the store itself: contents are shared by the threads of a tenant,
// and all tenants share one store.
func (a *app) filesCollect() *cobra.Command {
	r := &remote{}
	var o contents.CollectOptions
	cmd := &cobra.Command{
		Use: "gc", Short: "Find unreferenced contents of all tenants, and remove them with --delete", Args: cobra.NoArgs,
		Long: "Find contents that no thread's history refers to, and the remains of aborted uploads, of all tenants.\n" +
			"Nothing is removed without --delete. It is safe while others write.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Grace < contents.MinGrace {
				return cli.WrongUsage("--grace: %v; at least %v", o.Grace, contents.MinGrace)
			}
			return a.collect(cmd.Context(), r, o)
		},
	}
	r.logFlags(cmd)
	tenantIs(cmd, "not used: contents of all tenants are found")
	cmd.Flags().BoolVar(&o.Delete, "delete", false, "remove what is found")
	cmd.Flags().DurationVar(&o.Grace, "grace", time.Hour, "skip what was written within this time")
	cli.MayBeZero(cmd.Flags(), "grace")
	return cmd
}

func (a *app) collect(ctx context.Context, r *remote, o contents.CollectOptions) error {
	log, closeLog, err := r.openLog()
	if err != nil {
		return err
	}
	defer closeLog()
	store, err := contents.Open(ctx, log)
	if err != nil {
		return err
	}
	t := a.Table("BYTES", "SINCE", "TAKEN", "WHAT")
	o.Found = func(g contents.Garbage) {
		if r.JSON {
			_ = a.PrintJSON(g) // the summary fails too
			return
		}
		what := g.Tenant + "/" + g.Digest
		if g.Upload != "" {
			what = "upload " + g.Upload
		}
		t.Row(strconv.FormatInt(g.Bytes, 10), g.Since.In(time.Local).Format("2006-01-02 15:04:05"), strconv.FormatBool(g.Taken), eventtext.Printable(what, false))
	}
	sum, err := store.Collect(ctx, log, o)
	if err != nil {
		return err
	}
	if r.JSON {
		return a.PrintJSON(sum)
	}
	if sum.Garbage > 0 {
		if err := t.Flush(); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(a.Out, "%d objects of %d bytes; %d of %d bytes are unreferenced; %d removed\n",
		sum.Objects, sum.Bytes, sum.Garbage, sum.GarbageBytes, sum.Taken)
	return err
}
