package operator

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/audit"
	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/events"
)

func (a *app) auditDiff() *cobra.Command {
	r := &remote{}
	var from, to string
	cmd := &cobra.Command{
		Use: "diff THREAD", Short: "Show what changed in a thread between two points of it", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := r.NeedTenant(); err != nil {
				return err
			}
			first, err := parsePoint("--from", from)
			if err != nil {
				return err
			}
			if from == "" {
				return cli.WrongUsage("--from is required: a version (0: before the thread was created), or a time")
			}
			last, err := parsePoint("--to", to)
			if err != nil {
				return err
			}
			return a.diff(cmd.Context(), r, args[0], first, last)
		},
	}
	r.logFlags(cmd)
	r.domainFlag(cmd)
	cmd.Flags().StringVar(&from, "from", "", "a version such as 12, 0 for before the thread was created, or a time such as 2026-02-20T10:00:00Z"+cli.Required("from"))
	cmd.Flags().StringVar(&to, "to", "", "a version or a time; default now")
	return cmd
}

// parsePoint parses a version or a time of a thread.
func parsePoint(flag, text string) (audit.TrailPoint, error) {
	if text == "" {
		return audit.TrailPoint{}, nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		if n < 0 {
			return audit.TrailPoint{}, cli.WrongUsage("%s: a version is 0 or more", flag)
		}
		return audit.TrailPoint{Version: n, Start: n == 0}, nil
	}
	at, err := events.ParseTime(text)
	if err != nil {
		return audit.TrailPoint{}, cli.WrongUsage("%s: %v", flag, err)
	}
	return audit.TrailPoint{Time: at}, nil
}

func (a *app) diff(ctx context.Context, r *remote, ref string, from, to audit.TrailPoint) error {
	log, closeLog, err := r.openLog()
	if err != nil {
		return err
	}
	defer closeLog()
	id, err := audit.ResolveThread(ctx, log, r.Tenant, ref)
	if err != nil {
		return err
	}
	span, err := audit.DiffThread(ctx, log, r.Tenant, id, from, to)
	if err != nil {
		return err
	}
	if r.JSON {
		return a.PrintJSON(span)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s from version %d to %d: %d documents differ\n", span.Thread, span.From, span.To, len(span.Changes))
	for _, c := range span.Changes {
		changeText(&b, "  ", c)
	}
	if span.Broken > 0 {
		a.Hint("skein: %d commits of the thread cannot be read, and were skipped", span.Broken)
	}
	_, err = fmt.Fprint(a.Out, b.String())
	return err
}
