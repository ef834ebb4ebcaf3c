package operator

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/archive"
	"github.com/skein-threads/skein/cmd/skein/cli"
)

func (a *app) archiveCommand() *cobra.Command {
	r := &remote{}
	o := archive.Options{}
	idle := daysFlag(90 * 24 * time.Hour)
	cmd := &cobra.Command{
		Use: "archive [THREAD...]", Short: "Move the commits of cold threads to the object store",
		Long: "Move the commits of idle threads from the log into the object store: one object for each thread, which is\n" +
			"read back before anything is removed from the log. Threads are idle if they were not written to for --idle;\n" +
			"without names, all idle threads of the tenant are archived. Archived threads are read and written as\n" +
			"before. Threads with a run or other work in progress are skipped. A Skein must be running. See\n" +
			"docs/retention.md, also for an automatic policy.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := r.NeedTenant(); err != nil {
				return err
			}
			o.Idle = time.Duration(idle)
			return a.archive(cmd.Context(), r, o, args)
		},
	}
	r.logFlags(cmd)
	cmd.Flags().Var(&idle, "idle", "minimum time since the last write to a thread, such as 90d or 36h")
	cli.MayBeZero(cmd.Flags(), "idle")
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "only show what would be archived")
	return cmd
}

func (a *app) archive(ctx context.Context, r *remote, o archive.Options, threads []string) error {
	row := func(got archive.Result) []string {
		return []string{string(got.Outcome), strconv.FormatInt(got.Commits, 10), strconv.FormatInt(got.Bytes, 10), got.Thread, got.Reason}
	}
	return a.withArchiver(ctx, r, threads, []string{"OUTCOME", "COMMITS", "BYTES", "THREAD", "WHY"}, row, func(archiver *archive.Archiver, threads []string, done func(archive.Result), failed func(string, error)) error {
		for _, id := range threads {
			if got, err := archiver.Thread(ctx, r.Tenant, id, o); err != nil {
				failed(id, err)
			} else {
				done(got)
			}
		}
		if len(threads) > 0 {
			return nil
		}
		return archiver.Cold(ctx, r.Tenant, o, nil, func(got archive.Result) {
			if got.Outcome != archive.Already {
				done(got)
			}
		}, failed)
	})
}

// withArchiver opens the log for work on threads, and prints the result of each: as JSON, or as a
// row of a table. The error is the work's own, or else the error of the last thread that failed.
func (a *app) withArchiver(
	ctx context.Context, r *remote, threads, columns []string, row func(archive.Result) []string,
	work func(archiver *archive.Archiver, threads []string, done func(archive.Result), failed func(string, error)) error,
) error {
	log, closeLog, err := r.openLog()
	if err != nil {
		return err
	}
	defer closeLog()
	if threads, err = r.resolve(ctx, log, threads); err != nil {
		return err
	}
	t := a.Table(columns...)
	var failure error
	done := func(got archive.Result) {
		if !r.JSON {
			t.Row(row(got)...)
		} else if err := a.PrintJSON(got); err != nil {
			failure = err
		}
	}
	failed := func(_ string, err error) {
		failure = err
		if ctx.Err() == nil { // else the command's own error says why
			a.Hint("skein: %v", err)
		}
	}
	if err = work(archive.New(log, archive.Config{}, zerolog.Nop()), threads, done, failed); err == nil {
		err = failure
	}
	if r.JSON {
		return err
	}
	if flushErr := t.Flush(); err == nil {
		err = flushErr
	}
	return err
}

func (a *app) threadFreeze() *cobra.Command {
	r := &remote{}
	o := archive.Options{}
	idle := daysFlag(archive.DefaultColdAfter)
	cmd := &cobra.Command{
		Use: "freeze [THREAD...]", Short: "Remove the documents of cold threads from the read models",
		Long: "Mark idle threads as cold: their documents leave the read models within ten minutes, and queries read their\n" +
			"log instead. Threads are idle if they were not written to for --idle; without names, all idle threads of the\n" +
			"tenant are frozen. Nothing is lost; queries take longer. The next write brings the documents back. Threads\n" +
			"with a run or other work in progress are skipped. A Skein must be running: it removes the documents, and\n" +
			"freezes idle threads by itself, see docs/retention.md.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := r.NeedTenant(); err != nil {
				return err
			}
			o.Idle = time.Duration(idle)
			return a.freeze(cmd.Context(), r, o, args)
		},
	}
	r.logFlags(cmd)
	cmd.Flags().Var(&idle, "idle", "minimum time since the last write to a thread, such as 30d or 36h")
	cli.MayBeZero(cmd.Flags(), "idle")
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "only show what would be frozen")
	return cmd
}

func (a *app) freeze(ctx context.Context, r *remote, o archive.Options, threads []string) error {
	row := func(got archive.Result) []string { return []string{string(got.Outcome), got.Thread, got.Reason} }
	return a.withArchiver(ctx, r, threads, []string{"OUTCOME", "THREAD", "WHY"}, row, func(archiver *archive.Archiver, threads []string, done func(archive.Result), failed func(string, error)) error {
		if len(threads) == 0 {
			return archiver.FreezeIdle(ctx, r.Tenant, o, done, failed)
		}
		err := archiver.Freeze(ctx, r.Tenant, threads, o, done, failed)
		if err == nil && !o.DryRun {
			_, err = archiver.Strip(ctx, r.Tenant, threads, true) // what an interrupted removal has left
		}
		return err
	})
}

// daysFlag is a flag with a duration, also in days.
type daysFlag time.Duration

// String returns the flag's text.
func (d *daysFlag) String() string {
	if days := time.Duration(*d) / (24 * time.Hour); days > 0 && time.Duration(*d)%(24*time.Hour) == 0 {
		return strconv.Itoa(int(days)) + "d"
	}
	return time.Duration(*d).String()
}

// Type names the flag's values in help.
func (d *daysFlag) Type() string { return "duration" }

// Set parses the flag.
func (d *daysFlag) Set(text string) error {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return cli.WrongUsage("%.40q is not a number of days", text)
		}
		*d = daysFlag(time.Duration(n) * 24 * time.Hour)
		return nil
	}
	v, err := time.ParseDuration(text)
	if err != nil || v < 0 {
		return cli.WrongUsage("%.40q is not a duration such as 90d or 36h", text)
	}
	*d = daysFlag(v)
	return nil
}
