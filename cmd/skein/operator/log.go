package operator

import (
	"context"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/audit"
	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/events"
)

// remote holds the flags of a command that reads the log itself, for what no service offers.
type remote struct {
	cli.Remote
	domain string // of JetStream; default the server's
}

// logTimeout is how long an unanswered read of the log is retried, unless --timeout is
// set.
const logTimeout = 2 * time.Minute

// logFlags adds the flags to a command that reads the log itself.
func (r *remote) logFlags(cmd *cobra.Command) {
	r.Flags(cmd)
	f := cmd.Flags().Lookup("timeout")
	r.Timeout, f.DefValue = logTimeout, logTimeout.String()
	f.Usage = "how long an unanswered read is retried; if it is set, timeout of the whole command"
}

// orAllTenants adds the flag of a command that works on one tenant, or on all.
func (r *remote) orAllTenants(cmd *cobra.Command, everyone *bool, usage string) {
	cmd.Flags().BoolVar(everyone, "all-tenants", false, usage)
	tenantIs(cmd, "tenant of the threads (required, here or as SKEIN_TENANT, without --all-tenants)")
}

// tenantIs says what --tenant is for, where it is not required.
func tenantIs(cmd *cobra.Command, usage string) { cmd.Flags().Lookup("tenant").Usage = usage }

// domainFlag adds the flag that lets an auditor read the log from another account.
func (r *remote) domainFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.domain, "js-domain", "", "domain of JetStream; skein with the credentials of an auditor")
}

// openLog returns the log itself, for what no service offers, and a function to close
// it.
func (r *remote) openLog() (log *eventlog.Log, closeLog func(), err error) {
	cfg := eventlog.Config{Patience: r.Timeout}
	if r.domain != "" {
		if !events.ValidTenant(r.domain) { // the same alphabet: one token of a subject
			return nil, nil, cli.WrongUsage("--js-domain: %.80q is not a domain", r.domain)
		}
		cfg.API = "$JS." + r.domain + ".API"
	}
	nc, err := r.Dial()
	if err != nil {
		return nil, nil, err
	}
	if log, err = eventlog.Open(nc, cfg, zerolog.Nop(), nil); err != nil {
		nc.Close()
		return nil, nil, err
	}
	closeLog = func() {
		log.Close()
		nc.Close()
	}
	ctx, cancel := context.WithTimeout(r.Context(), r.Timeout)
	defer cancel()
	if err := assets.CheckFormat(ctx, log.Streams()); err != nil {
		closeLog()
		return nil, nil, err
	}
	return log, closeLog, nil
}

// oneOrAll requires a tenant, or --all-tenants and no threads.
func (r *remote) oneOrAll(everyone bool, threads []string) error {
	switch {
	case everyone && len(threads) > 0:
		return cli.WrongUsage("set --all-tenants or name threads, not both")
	case everyone:
		return nil
	}
	return r.NeedTenant()
}

// resolve returns the ids of threads that may be named by their keys.
func (r *remote) resolve(ctx context.Context, log *eventlog.Log, refs []string) ([]string, error) {
	var ids []string
	for _, ref := range refs {
		id, err := audit.ResolveThread(ctx, log, r.Tenant, ref)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}
