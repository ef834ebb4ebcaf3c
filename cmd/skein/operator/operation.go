package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/audit"
	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/backup"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/eventtext"
)

// reportWithin is how long a program waits for Skein to take its report.
const reportWithin = 2 * time.Second

func (a *app) operationCommand() *cobra.Command {
	return cli.Group("operation", "Show the last audits and backups", a.operationList())
}

func (a *app) operationList() *cobra.Command {
	r := &remote{}
	cmd := &cobra.Command{
		Use: "list", Short: "List the last audits and backups, the latest first", Args: cobra.NoArgs,
		Long: "List the last audits (skein audit verify) and backups (skein backup), 20 of each, as they were reported to\n" +
			"Skein. It is for the credentials of an auditor or an administrator.",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.listOperations(cmd.Context(), r) },
	}
	r.Flags(cmd)
	tenantIs(cmd, "ignored: operations are of all tenants")
	return cmd
}

func (a *app) listOperations(ctx context.Context, r *remote) error {
	nc, err := r.Dial()
	if err != nil {
		return err
	}
	defer nc.Close()
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	list, err := eventlog.ListOperations(ctx, nc, events.DefaultNames())
	if err != nil {
		return err
	}
	t := a.Table("ENDED", "KIND", "OF", "RESULT", "TOOK", "THREADS", "COMMITS", "BYTES")
	for i := range list.Operations {
		o := &list.Operations[i]
		if r.JSON {
			if err := a.PrintJSON(o); err != nil {
				return err
			}
			continue
		}
		took := (time.Duration(o.TookMs) * time.Millisecond).Round(100 * time.Millisecond)
		t.Row(cli.Local(o.RecordedAt), string(o.Kind), operationScope(o), operationResult(o), took.String(), fmt.Sprint(o.Threads), fmt.Sprint(o.Commits), fmt.Sprint(o.Bytes))
	}
	if r.JSON {
		return nil
	}
	return t.Flush()
}

// operationScope returns the scope of an operation, in words.
func operationScope(o *events.Operation) string {
	of := cmp.Or(o.Tenant, "all tenants")
	if o.Partial {
		of = "part of " + of
	}
	if o.LogOnly {
		of += ", log only"
	}
	return of
}

// operationResult returns the result of an operation, in words.
func operationResult(o *events.Operation) string {
	switch {
	case o.Failed:
		return "failed"
	case o.Kind == events.BackupOperation:
		return "done"
	case len(o.Findings) == 0:
		return "no findings"
	}
	var kinds []string
	for _, f := range o.Findings {
		kinds = append(kinds, fmt.Sprintf("%s %d", eventtext.Printable(f.Kind, false), f.Count))
	}
	return cli.Count(o.Found(), "finding") + ": " + strings.Join(kinds, ", ")
}

// report reports an operation that began at a time and has ended, with err. Nothing depends on it:
// what cannot be reported in a moment is not, and the operation's own result stands. A warning says
// so if a Skein might have taken it.
func (a *app) report(log *eventlog.Log, o events.Operation, begun time.Time, err error) {
	o.StartedAt, o.TookMs, o.Failed = events.TimeOf(begun).ISO(), time.Since(begun).Milliseconds(), err != nil
	ctx, cancel := context.WithTimeout(context.Background(), reportWithin) // also after an interrupt
	defer cancel()
	sent := eventlog.ReportOperation(ctx, log.Conn(), log.Config().Names, o)
	switch {
	case sent == nil || err != nil || errors.Is(sent, nats.ErrNoResponders): // no Skein runs, or an older one
	case errors.Is(sent, context.DeadlineExceeded):
		a.Hint("warning: Skein did not take a report of this within %v, and the console does not show it: these credentials may not permit reports; see docs/access.md", reportWithin)
	default:
		a.Hint("warning: the report of this was not accepted: %v", sent)
	}
}

// auditReport returns the report of a verify, without its times. faults are its findings by kind.
func auditReport(o audit.Options, sum audit.Summary, faults map[audit.Kind]int64) events.Operation {
	out := events.Operation{
		Kind: events.AuditOperation, Tenant: o.Tenant, LogOnly: o.LogOnly, Partial: len(o.Threads) > 0 || o.Range != (audit.Range{}),
		Threads: int64(sum.Threads), Commits: int64(sum.Commits), Events: int64(sum.Events),
	}
	for kind, n := range faults {
		out.Findings = append(out.Findings, events.OperationFault{Kind: string(kind), Count: n})
	}
	slices.SortFunc(out.Findings, func(a, b events.OperationFault) int { return strings.Compare(a.Kind, b.Kind) })
	return out
}

// backupReport returns the report of a backup, without its times. b is nil if it failed.
func backupReport(b *backup.Manifest) events.Operation {
	out := events.Operation{Kind: events.BackupOperation}
	if b == nil {
		return out
	}
	out.Streams = int64(len(b.Streams))
	for _, s := range b.Streams {
		out.Bytes += s.Bytes
	}
	return out
}
