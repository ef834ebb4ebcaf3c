package user

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/eventtext"
)

func (a *app) filesGrep() *cobra.Command {
	var glob string
	var limit int
	cmd := onFiles("grep THREAD PATTERN", "Search the content of files for a regular expression (RE2)", cobra.ExactArgs(2),
		func(ctx context.Context, r *cli.Remote, f *client.Files, args []string) error {
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
				a.Hint("there are more matches than shown")
			}
			return nil
		})
	cmd.Flags().StringVar(&glob, "glob", "", "only files whose path matches, such as **/*.md")
	cmd.Flags().IntVar(&limit, "limit", 0, "maximum number of lines; default 1,000")
	return cmd
}

func (a *app) printMatches(r *cli.Remote, found *events.GrepResult) error {
	if r.JSON {
		return a.PrintJSON(found)
	}
	for _, m := range found.Matches {
		if _, err := fmt.Fprintf(a.Out, "%s:%d:%s\n", eventtext.Printable(found.Path, false), m.Line, eventtext.Printable(m.Content, true)); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) filesFind() *cobra.Command {
	return onFiles("find THREAD GLOB", "List the files whose path matches, such as **/*.json; with a slash at its end, directories", cobra.ExactArgs(2),
		func(ctx context.Context, r *cli.Remote, f *client.Files, args []string) error {
			list, err := f.FindFiles(ctx, args[0])
			if err != nil {
				return err
			}
			for _, p := range list.Paths {
				if r.JSON {
					err = a.PrintJSON(p)
				} else {
					_, err = fmt.Fprintln(a.Out, eventtext.Printable(p, false))
				}
				if err != nil {
					return err
				}
			}
			if list.Truncated {
				a.Hint("there are more files than shown")
			}
			return nil
		})
}

func (a *app) filesUsage() *cobra.Command {
	return onFiles("du THREAD", "Count the files of a thread, and their bytes", cobra.ExactArgs(1), func(ctx context.Context, r *cli.Remote, f *client.Files, _ []string) error {
		stats, err := f.GetFileStats(ctx)
		if err != nil {
			return err
		}
		if r.JSON {
			return a.PrintJSON(stats)
		}
		_, err = fmt.Fprintf(a.Out, "%s, %s, %s\n", cli.Count(stats.FileCount, "file"), cli.Count(stats.DirectoryCount, "directory"), cli.Count(stats.TotalSize, "byte"))
		return err
	})
}
