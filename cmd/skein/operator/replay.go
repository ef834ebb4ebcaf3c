package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/audit"
	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/timeline"
	"github.com/skein-threads/skein/projections/rebuild"
	"github.com/skein-threads/skein/schema"
)

// replayTimeline is the name under which the timeline is replayed: it is derived too,
// but has no documents.
const replayTimeline = "timeline"

func (a *app) replayCommand() *cobra.Command {
	r := &remote{}
	var verify, rewrite bool
	cmd := &cobra.Command{
		Use: "replay [PROJECTION...]", Short: "Fold the log again and repair what is derived from it",
		Long: "Fold the log again, compare it with the live read models, and repair what differs; readers see no gap.\n" +
			"Without a name, all read models; the name timeline means the stream of events, which is replayed only\n" +
			"when named, since live subscribers see it again. With --verify nothing is changed, and the exit code is 3\n" +
			"if something differs. With --rewrite every document is written again, so that nothing of replaced or\n" +
			"removed documents, such as those of purged threads, remains in the server's files. It works on all tenants.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if verify && rewrite {
				return cli.WrongUsage("--verify changes nothing, --rewrite writes everything: use one of them")
			}
			return a.replay(cmd.Context(), r, args, verify, rewrite)
		},
	}
	r.logFlags(cmd)
	tenantIs(cmd, "not used: all tenants are replayed")
	cmd.Flags().BoolVar(&verify, "verify", false, "only compare, and print what differs")
	cmd.Flags().BoolVar(&rewrite, "rewrite", false, "also write documents that do not differ")
	return cmd
}

// replayDocuments compares the documents of read models with the log.
func (a *app) replayDocuments(ctx context.Context, log *eventlog.Log, names []string, verify, rewrite bool) (rebuild.Report, error) {
	bar := a.Progress()
	defer bar.Clear()
	tell := rebuild.Progress(func(threads, documents int64) {
		bar.Show("%s, %s compared", cli.Count(threads, "thread"), cli.Count(documents, "document"))
	})
	switch {
	case verify:
		return tell.Verify(ctx, log, rebuild.Scope{}, names...)
	case rewrite:
		return tell.Rewrite(ctx, log, names...)
	}
	return tell.Repair(ctx, log, names...)
}

func (a *app) replay(ctx context.Context, r *remote, names []string, verify, rewrite bool) error {
	log, closeLog, err := r.openLog()
	if err != nil {
		return err
	}
	defer closeLog()
	timeline := slices.Contains(names, replayTimeline)
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == replayTimeline })
	var found int64
	if timeline {
		if found, err = a.replayTimeline(ctx, r, log, verify); err != nil {
			return err
		}
	}
	if len(names) > 0 || !timeline {
		report, err := a.replayDocuments(ctx, log, names, verify, rewrite)
		var unknown *rebuild.UnknownProjectionError
		if errors.As(err, &unknown) {
			return cli.WrongUsage("%v", err)
		}
		if err != nil {
			return err
		}
		if err := a.printReport(r, report); err != nil {
			return err
		}
		found += report.Found
	}
	if verify && found > 0 {
		return cli.Found("%d places differ from the log; repair them with skein replay", found)
	}
	return nil
}

// replayTimeline rebuilds the timeline, or reports where it differs from the log.
func (a *app) replayTimeline(ctx context.Context, r *remote, log *eventlog.Log, verify bool) (int64, error) {
	if !verify {
		if err := timeline.Of(log).Rebuild(ctx); err != nil {
			return 0, err
		}
		if r.JSON {
			return 0, a.PrintJSON(timelineReport{Timeline: "rebuilt"})
		}
		_, err := fmt.Fprintln(a.Out, "the timeline was rebuilt from the log")
		return 0, err
	}
	validator, err := schema.New()
	if err != nil {
		return 0, err
	}
	var found int64
	var failed error
	bar := a.Progress()
	defer bar.Clear()
	_, err = audit.Verify(ctx, log, validator, audit.Options{Progress: auditing(bar), Finding: func(f audit.Finding) {
		if f.Kind == audit.KindTimeline {
			found++
			bar.Clear()
			failed = errors.Join(failed, a.printFinding(r.JSON, f))
		}
	}})
	return found, errors.Join(err, failed)
}

// timelineReport is the result for the timeline, which has no documents.
type timelineReport struct {
	Timeline string `json:"timeline"`
}

// printReport prints what a rebuild found and repaired.
func (a *app) printReport(r *remote, report rebuild.Report) error {
	if r.JSON {
		return a.PrintJSON(report)
	}
	for _, d := range report.Differences {
		if _, err := fmt.Fprintf(a.Out, "%s: %s %s\n", d.Kind, d.Bucket, d.Key); err != nil {
			return err
		}
	}
	if left := report.Found - int64(len(report.Differences)); left > 0 {
		a.Hint("… and %d more", left)
	}
	_, err := fmt.Fprintf(a.Out, "%s, %s compared, %d differ, %d repaired\n",
		cli.Count(report.Threads, "thread"), cli.Count(report.Documents, "document"), report.Found, report.Repaired)
	if report.Broken > 0 {
		a.Hint("%d commits cannot be read; run skein audit verify", report.Broken)
	}
	return err
}
