package operator

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/audit"
	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/internal/eventtext"
)

func (a *app) sizeCommand() *cobra.Command {
	r := &remote{}
	var limit int
	cmd := &cobra.Command{
		Use: "size [THREAD...]", Short: "Show the storage of tenants and threads: messages, archives, documents, snapshots and files, and their bytes",
		Long: "Without --tenant, a line for each tenant; with it, one for each of its threads, or for the named ones.\n" +
			"The largest come first, and the total last. Bytes are those of bodies, before the server compresses them; those of\n" +
			"archived commits are compressed. COMMITS are those in the log.\n" +
			"The files of a thread are its current ones; those of a tenant are its stored contents, each once.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 || r.Tenant != "" {
				if err := r.NeedTenant(); err != nil {
					return err
				}
			}
			return a.size(cmd.Context(), r, audit.SizeOptions{Tenant: r.Tenant, Threads: args}, limit)
		},
	}
	r.logFlags(cmd)
	tenantIs(cmd, "tenant of the threads (default all)")
	cmd.Flags().IntVar(&limit, "limit", 50, "maximum number of lines before the total; 0 for all")
	cli.MayBeZero(cmd.Flags(), "limit")
	return cmd
}

func (a *app) size(ctx context.Context, r *remote, o audit.SizeOptions, limit int) error {
	log, closeLog, err := r.openLog()
	if err != nil {
		return err
	}
	defer closeLog()
	if o.Threads, err = r.resolve(ctx, log, o.Threads); err != nil {
		return err
	}
	bar := a.Progress()
	o.Progress = func(stream string, messages int64) { bar.Show("%s: %s", stream, cli.Count(messages, "message")) }
	sizes, err := audit.Measure(ctx, log, o)
	bar.Clear()
	if err != nil {
		return err
	}
	rows, sum := sizes.Tenants, sizes.All
	if o.Tenant != "" {
		rows = sizes.Threads
		sum.Tenant = o.Tenant
	}
	more := 0
	if limit > 0 && len(rows) > limit {
		rows, more = rows[:limit], len(rows)-limit
	}
	rows = append(rows, sum)
	if r.JSON {
		for _, z := range rows {
			if err := a.PrintJSON(z); err != nil {
				return err
			}
		}
		return nil
	}
	t := a.Table("BYTES", "LOG", "ARCHIVE", "TIMELINE", "CHUNKS", "DOCUMENTS", "SNAPSHOTS", "FILES", "COMMITS", "WHAT")
	for i, z := range rows {
		n := func(v int64) string { return strconv.FormatInt(v, 10) }
		what := z.Tenant
		if z.Thread != "" {
			what = z.Thread
		}
		if i == len(rows)-1 {
			what = n(z.Threads) + " threads"
		}
		t.Row(n(z.Bytes), n(z.Log.Bytes), n(z.Archive.Bytes), n(z.Timeline.Bytes), n(z.Chunks.Bytes), n(z.Documents.Bytes), n(z.Snapshots.Bytes), n(z.Files.Bytes),
			n(z.Log.Number), eventtext.Printable(what, false))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if more > 0 {
		a.Hint("… and %d more; use --limit 0", more)
	}
	return nil
}
