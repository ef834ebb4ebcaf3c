package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/audit"
	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/eventtext"
	"github.com/skein-threads/skein/internal/heap"
	"github.com/skein-threads/skein/schema"
)

func (a *app) auditCommand() *cobra.Command {
	return cli.Group("audit", "Verify Skein's data, and show who did what",
		a.auditVerify(), a.auditTrail(), a.auditDiff(), a.auditExport(), a.auditImport())
}

// verification holds the options of a verify.
type verification struct {
	*remote
	options      audit.Options
	from, to     string
	against, key string
	everyone     bool
	reports      bool // to Skein, what came of it
}

func (a *app) auditVerify() *cobra.Command {
	v := &verification{remote: &remote{}, reports: true}
	cmd := &cobra.Command{
		Use: "verify [THREAD...]", Short: "Verify the log, and that everything derived from it equals its contents",
		Long: "Verify chain, sequence, schema, state machines and links of the log, the timeline, and every read model.\n" +
			"Each finding is printed as it is found; the exit code is 3 if there is one.\n\n" +
			"--from and --to print only findings in these commits, and skip the read models.\n" +
			"--against FILE also checks that the log still holds what an export shows, which detects a history that was truncated\n" +
			"or rewritten as a whole: see skein audit export --chains.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := v.parse(args); err != nil {
				return err
			}
			return a.verify(cmd.Context(), v, args)
		},
	}
	v.logFlags(cmd)
	v.domainFlag(cmd)
	f := cmd.Flags()
	v.orAllTenants(cmd, &v.everyone, "verify all tenants, and that no commit is missing from the log")
	f.BoolVar(&v.options.LogOnly, "log-only", false, "skip the timeline and the read models")
	f.StringVar(&v.from, "from", "", "print findings from here on: a sequence of the log, or a time such as 2026-02-20T10:00:00Z")
	f.StringVar(&v.to, "to", "", "print findings up to here: a sequence of the log, or a time")
	f.StringVar(&v.against, "against", "", "a file of skein audit export, whose contents must still be in the log")
	f.StringVar(&v.key, "key", "", "the public NKey of the file's signature")
	return cmd
}

// parse parses the options.
func (v *verification) parse(args []string) error {
	if err := v.oneOrAll(v.everyone, args); err != nil {
		return err
	}
	if !v.everyone {
		v.options.Tenant = v.Tenant
	}
	if err := needKey(v.key); err != nil {
		return err
	}
	if v.key != "" && v.against == "" {
		return cli.WrongUsage("--key is the signer of the file of --against; set both")
	}
	r := &v.options.Range
	return errors.Join(parseBound("--from", v.from, &r.From, &r.FromTime), parseBound("--to", v.to, &r.To, &r.ToTime))
}

// parseBound parses an end of a range: a sequence or a time.
func parseBound(flag, text string, seq *uint64, at *time.Time) error {
	if text == "" {
		return nil
	}
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		if n == 0 {
			return cli.WrongUsage("%s: the first sequence is 1", flag)
		}
		*seq = n
		return nil
	}
	t, err := events.ParseTime(text)
	if err != nil {
		return cli.WrongUsage("%s: %q; use a sequence of the log, or a time such as 2026-02-20T10:00:00Z", flag, text)
	}
	*at = t.Go()
	return nil
}

func (a *app) verify(ctx context.Context, v *verification, refs []string) error {
	heap.Fit()
	log, closeLog, err := v.openLog()
	if err != nil {
		return err
	}
	defer closeLog()
	validator, err := schema.New()
	if err != nil {
		return err
	}
	if v.options.Threads, err = v.resolve(ctx, log, refs); err != nil {
		return err
	}
	bar := a.Progress()
	var failed error
	faults := map[audit.Kind]int64{}
	v.options.Finding = func(f audit.Finding) {
		bar.Clear()
		faults[f.Kind]++
		failed = errors.Join(failed, a.printFinding(v.JSON, f))
	}
	v.options.Progress = auditing(bar)
	contents, err := audit.NewContents(ctx, log)
	if err != nil {
		return err
	}
	if !v.options.LogOnly {
		v.options.Checks = []audit.Check{contents}
	}
	begun := time.Now()
	sum, err := audit.Verify(ctx, log, validator, v.options)
	sum.Contents = int(contents.Read())
	if err == nil && v.against != "" {
		err = a.compareExport(ctx, v, log, validator, bar, &sum)
	}
	bar.Clear()
	err = errors.Join(err, failed)
	if v.reports && (err == nil || !events.IsNotFound(err)) { // a thread that does not exist was not verified
		a.report(log, auditReport(v.options, sum, faults), begun, err)
	}
	if err != nil {
		return fileFailed(err)
	}
	if v.JSON {
		err = a.PrintJSON(sum)
	} else {
		_, err = fmt.Fprintf(a.Out, "%s, %s, %s, %s of the timeline, %s, %s: %s\n", cli.Count(sum.Threads, "thread"), cli.Count(sum.Commits, "commit"),
			cli.Count(sum.Events, "event"), cli.Count(sum.Timeline, "event"), cli.Count(sum.Documents, "document"), cli.Count(sum.Contents, "content"), cli.Count(sum.Findings, "finding"))
	}
	if err == nil && sum.Findings > 0 {
		err = cli.Found("the log or what is derived from it has %s", cli.Count(sum.Findings, "fault"))
	}
	return err
}

// compareExport compares the log with a file of an export.
func (a *app) compareExport(ctx context.Context, v *verification, log *eventlog.Log, validator *schema.Validator, bar *cli.Progress, sum *audit.Summary) error {
	file, closeFile, err := a.openExport(v.against)
	if err != nil {
		return err
	}
	defer closeFile()
	report, _, err := audit.Witness(ctx, log, validator, file, audit.ReadOptions{Tenant: v.options.Tenant, Key: v.key, Progress: auditing(bar)}, func(f audit.Finding) {
		if len(v.options.Threads) > 0 && !slices.Contains(v.options.Threads, f.Thread) {
			return
		}
		sum.Findings++
		v.options.Finding(f)
	})
	bar.Clear()
	if err == nil {
		a.warnUnknownSigner(report.Key, v.key)
	}
	return err
}

func (a *app) printFinding(asJSON bool, f audit.Finding) error {
	if asJSON {
		return a.PrintJSON(f)
	}
	_, err := fmt.Fprintln(a.Out, eventtext.Printable(f.String(), false))
	return err
}

// auditing shows the progress of an audit.
func auditing(p *cli.Progress) func(audit.Progress) {
	return func(at audit.Progress) {
		switch at.Stage {
		case audit.StageTimeline:
			p.Bar(at.Done, at.Of, "the timeline")
		case audit.StageDocuments:
			p.Show("the read models")
		case audit.StageCheck, audit.StageWrite, audit.StageWitness:
			p.Bar(at.Done, at.Of, "%s: %d MB of the file, %d commits", at.Stage, at.Done>>20, at.Commits)
		default:
			p.Bar(at.Done, at.Of, "%d of %d threads, %d commits", at.Done, at.Of, at.Commits)
		}
	}
}
