package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/audit"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/schema"
)

func (a *app) auditCommand() *cobra.Command {
	return group("audit", "Check what Skein says of itself", a.auditVerify())
}

func (a *app) auditVerify() *cobra.Command {
	r := &remote{}
	var everyone, logOnly bool
	var domain string
	cmd := &cobra.Command{
		Use: "verify [THREAD...]", Short: "Check the log, and that all that is derived from it equals what it says",
		Long: "Check chain, sequence, schema, state machines and links of the log, the timeline, and every read model.\n" +
			"Each finding is printed; the exit code is 3 if there is one.",
		RunE: func(cmd *cobra.Command, args []string) error {
			o := audit.Options{Tenant: r.tenant, Threads: args, LogOnly: logOnly}
			switch {
			case everyone && len(args) > 0:
				return wrongUsage("give --all-tenants or threads, not both")
			case everyone:
				o.Tenant = ""
			default:
				if err := r.needTenant(); err != nil {
					return err
				}
			}
			var cfg eventlog.Config
			if domain != "" {
				if !events.ValidTenant(domain) { // the same letters: one token of a subject
					return wrongUsage("--js-domain: %.80q is no domain", domain)
				}
				cfg.API = "$JS." + domain + ".API"
			}
			return a.verify(cmd.Context(), r, cfg, o)
		},
	}
	r.flags(cmd)
	cmd.Flags().BoolVar(&everyone, "all-tenants", false, "check all tenants, and that no commit is missing from the log as a whole")
	cmd.Flags().BoolVar(&logOnly, "log-only", false, "leave out the timeline and the read models")
	cmd.Flags().StringVar(&domain, "js-domain", "", "domain of JetStream; skein with the credentials of an auditor")
	return cmd
}

func (a *app) verify(ctx context.Context, r *remote, cfg eventlog.Config, o audit.Options) error {
	log, closeLog, err := r.openLog(cfg)
	if err != nil {
		return err
	}
	defer closeLog()
	validator, err := schema.New()
	if err != nil {
		return err
	}
	bar := a.progress()
	var failed error
	o.Finding = func(f audit.Finding) {
		bar.clear()
		failed = errors.Join(failed, a.printFinding(r.json, f))
	}
	o.Progress = func(done, of int) { bar.bar(int64(done), int64(of), "%d of %d threads", done, of) }
	sum, err := audit.Verify(ctx, log, validator, o)
	bar.clear()
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	if r.json {
		err = a.printJSON(sum)
	} else {
		_, err = fmt.Fprintf(a.out, "%d threads, %d commits, %d events, %d events of the timeline, %d documents: %d findings\n",
			sum.Threads, sum.Commits, sum.Events, sum.Timeline, sum.Documents, sum.Findings)
	}
	if err == nil && sum.Findings > 0 {
		err = &foundError{fmt.Sprintf("the log or what is derived from it has %d faults", sum.Findings)}
	}
	return err
}

func (a *app) printFinding(asJSON bool, f audit.Finding) error {
	if asJSON {
		return a.printJSON(f)
	}
	_, err := fmt.Fprintln(a.out, printable(f.String(), false))
	return err
}
