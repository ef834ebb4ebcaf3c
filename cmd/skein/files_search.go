package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
	contents "github.com/skein-threads/skein/files"
	"github.com/skein-threads/skein/internal/happened"
)

func (a *app) filesGrep() *cobra.Command {
	var glob string
	var limit int
	cmd := onFiles("grep THREAD PATTERN", "Search the content of files for a regular expression (RE2)", cobra.ExactArgs(2),
		func(ctx context.Context, r *remote, f *client.Files, args []string) error {
			q := events.GrepFiles{Pattern: args[0], Glob: glob}
			if limit > 0 {
				n := int64(limit)
				q.Limit = &n
			}
			list, err := f.Grep(ctx, q)
			if err != nil {
				return err
			}
			for i := range list.Results {
				if err := a.printMatches(r, &list.Results[i]); err != nil {
					return err
				}
			}
			if list.Truncated {
				a.hint("there are more matches than shown")
			}
			return nil
		})
	cmd.Flags().StringVar(&glob, "glob", "", "only files whose path matches, such as **/*.md")
	cmd.Flags().IntVar(&limit, "limit", 0, "maximum number of lines; default 1,000")
	return cmd
}

func (a *app) printMatches(r *remote, found *events.GrepResult) error {
	if r.json {
		return a.printJSON(found)
	}
	for _, m := range found.Matches {
		if _, err := fmt.Fprintf(a.out, "%s:%d:%s\n", happened.Printable(found.Path, false), m.Line, happened.Printable(m.Content, true)); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) filesFind() *cobra.Command {
	return onFiles("find THREAD GLOB", "List the files whose path matches, such as **/*.json; with a slash at its end, directories", cobra.ExactArgs(2),
		func(ctx context.Context, r *remote, f *client.Files, args []string) error {
			list, err := f.FindFiles(ctx, args[0])
			if err != nil {
				return err
			}
			for _, p := range list.Paths {
				if r.json {
					err = a.printJSON(p)
				} else {
					_, err = fmt.Fprintln(a.out, happened.Printable(p, false))
				}
				if err != nil {
					return err
				}
			}
			if list.Truncated {
				a.hint("there are more files than shown")
			}
			return nil
		})
}

func (a *app) filesUsage() *cobra.Command {
	return onFiles("du THREAD", "Count the files of a thread, and their bytes", cobra.ExactArgs(1), func(ctx context.Context, r *remote, f *client.Files, _ []string) error {
		stats, err := f.GetFileStats(ctx)
		if err != nil {
			return err
		}
		if r.json {
			return a.printJSON(stats)
		}
		_, err = fmt.Fprintf(a.out, "%s, %s, %s\n", count(stats.FileCount, "file"), count(stats.DirectoryCount, "directory"), count(stats.TotalSize, "byte"))
		return err
	})
}

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
				return wrongUsage("--grace: %v; at least %v", o.Grace, contents.MinGrace)
			}
			return a.collect(cmd.Context(), r, o)
		},
	}
	r.logFlags(cmd)
	cmd.Flags().BoolVar(&o.Delete, "delete", false, "remove what is found")
	cmd.Flags().DurationVar(&o.Grace, "grace", time.Hour, "skip what was written within this time")
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
	t := a.table("BYTES", "SINCE", "TAKEN", "WHAT")
	o.Found = func(g contents.Garbage) {
		if r.json {
			_ = a.printJSON(g) // the summary fails too
			return
		}
		what := g.Tenant + "/" + g.Digest
		if g.Upload != "" {
			what = "upload " + g.Upload
		}
		t.row(strconv.FormatInt(g.Bytes, 10), g.Since.In(time.Local).Format("2006-01-02 15:04:05"), strconv.FormatBool(g.Taken), happened.Printable(what, false))
	}
	sum, err := store.Collect(ctx, log, o)
	if err != nil {
		return err
	}
	if r.json {
		return a.printJSON(sum)
	}
	if sum.Garbage > 0 {
		if err := t.flush(); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(a.out, "%d objects of %d bytes; %d of %d bytes are unreferenced; %d removed\n",
		sum.Objects, sum.Bytes, sum.Garbage, sum.GarbageBytes, sum.Taken)
	return err
}
