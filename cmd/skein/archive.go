package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/archive"
)

func (a *app) archiveCommand() *cobra.Command {
	r := &remote{}
	o := archive.Options{}
	idle := daysFlag(90 * 24 * time.Hour)
	cmd := &cobra.Command{
		Use: "archive [THREAD...]", Short: "Move the commits of cold threads to the object store",
		Long: "Move the commits of a tenant's threads that were not written to for the time of --idle, or of the named threads\n" +
			"if that holds for them, from the log into the object store: one object each, which is read back before\n" +
			"anything is removed from the log. Archived threads are read and written as before. Threads with a run or other\n" +
			"work in progress are skipped. A Skein must be running. See docs/retention.md, also for an automatic policy.",
		Example: "  skein archive --tenant acme --idle 90d --dry-run\n  skein archive --tenant acme key:order-42 --idle 0",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := r.needTenant(); err != nil {
				return err
			}
			o.Idle = time.Duration(idle)
			return a.archive(cmd.Context(), r, o, args)
		},
	}
	r.logFlags(cmd)
	cmd.Flags().Var(&idle, "idle", "minimum time since the last write to a thread, such as 90d or 36h")
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "only show what would be archived")
	return cmd
}

func (a *app) archive(ctx context.Context, r *remote, o archive.Options, threads []string) error {
	log, closeLog, err := r.openLog()
	if err != nil {
		return err
	}
	defer closeLog()
	if threads, err = r.resolve(ctx, log, threads); err != nil {
		return err
	}
	archiver := archive.New(log, archive.Config{}, zerolog.Nop())
	t := a.table("OUTCOME", "COMMITS", "BYTES", "THREAD", "WHY")
	var failure error
	failed := func(_ string, err error) {
		failure = err
		a.hint("skein: %v", err)
	}
	done := func(got archive.Result) {
		switch {
		case r.json:
			if err := a.printJSON(got); err != nil {
				failure = err
			}
		default:
			t.row(string(got.Outcome), strconv.FormatInt(got.Commits, 10), strconv.FormatInt(got.Bytes, 10), got.Thread, got.Reason)
		}
	}
	for _, id := range threads {
		if got, err := archiver.Thread(ctx, r.tenant, id, o); err != nil {
			failed(id, err)
		} else {
			done(got)
		}
	}
	if len(threads) == 0 {
		err = archiver.Cold(ctx, r.tenant, o, nil, func(got archive.Result) {
			if got.Outcome != archive.Already {
				done(got)
			}
		}, failed)
	}
	if err == nil {
		err = failure
	}
	if r.json {
		return err
	}
	if flushErr := t.flush(); err == nil {
		err = flushErr
	}
	return err
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
			return wrongUsage("%.40q is not a number of days", text)
		}
		*d = daysFlag(time.Duration(n) * 24 * time.Hour)
		return nil
	}
	v, err := time.ParseDuration(text)
	if err != nil || v < 0 {
		return wrongUsage("%.40q is not a duration such as 90d or 36h", text)
	}
	*d = daysFlag(v)
	return nil
}
