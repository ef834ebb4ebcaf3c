package main

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/connect"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
)

// remote holds the flags of every command that talks to a server.
type remote struct {
	server, tenant string
	actor          string // who acts, for the audit; default cli
	domain         string // of JetStream; default the server's
	connect.Options
	json    bool
	timeout time.Duration
	cmd     *cobra.Command // whose flags these are
}

// flags adds the flags to a command.
func (r *remote) flags(cmd *cobra.Command) {
	r.cmd = cmd
	f := cmd.Flags()
	f.StringVar(&r.server, "server", "nats://127.0.0.1:4222", "URL of the NATS server")
	f.StringVar(&r.Creds, "creds", "", "file of NATS credentials, or of an NKey")
	f.StringVar(&r.CA, "tls-ca", "", "file of the certificate authority that signed the server's certificate")
	f.StringVar(&r.Inbox, "inbox-prefix", "", "prefix of inboxes, if the server permits this user no others; default from --creds")
	f.StringVar(&r.tenant, "tenant", "", "tenant of the threads (required)")
	f.BoolVar(&r.json, "json", false, "print JSON: one document, or one a line for lists and streams")
	f.DurationVar(&r.timeout, "timeout", 10*time.Second, "timeout of one request, including retries")
}

// logTimeout is how long an unanswered read of the log is retried, unless --timeout is
// set.
const logTimeout = 2 * time.Minute

// logFlags adds the flags to a command that reads the log itself.
func (r *remote) logFlags(cmd *cobra.Command) {
	r.flags(cmd)
	f := cmd.Flags().Lookup("timeout")
	r.timeout, f.DefValue = logTimeout, logTimeout.String()
	f.Usage = "how long an unanswered read is retried"
}

// tenantIs says what --tenant is for, where it is not required.
func tenantIs(cmd *cobra.Command, usage string) { cmd.Flags().Lookup("tenant").Usage = usage }

// domainFlag adds the flag that lets an auditor read the log from another account.
func (r *remote) domainFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.domain, "js-domain", "", "domain of JetStream; skein with the credentials of an auditor")
}

// needTenant requires a tenant: there is no default.
func (r *remote) needTenant() error {
	switch {
	case r.tenant == "":
		return wrongUsage("a tenant is required: set --tenant or SKEIN_TENANT")
	case !events.ValidTenant(r.tenant):
		return wrongUsage("--tenant: a tenant is 1 to 64 letters, digits, dashes and underscores")
	}
	return nil
}

// openLog returns the log itself, for what no service offers, and a function to close
// it.
func (r *remote) openLog() (log *eventlog.Log, closeLog func(), err error) {
	if r.timeout <= 0 {
		return nil, nil, wrongUsage("--timeout: %v; use a positive duration such as 2m", r.timeout)
	}
	cfg := eventlog.Config{Patience: r.timeout}
	if r.domain != "" {
		if !events.ValidTenant(r.domain) { // the same alphabet: one token of a subject
			return nil, nil, wrongUsage("--js-domain: %.80q is not a domain", r.domain)
		}
		cfg.API = "$JS." + r.domain + ".API"
	}
	nc, err := r.dial()
	if err != nil {
		return nil, nil, err
	}
	if log, err = eventlog.Open(nc, cfg, zerolog.Nop(), nil); err != nil {
		nc.Close()
		return nil, nil, err
	}
	return log, func() {
		log.Close()
		nc.Close()
	}, nil
}

// dial returns a connection to NATS, for what belongs to no tenant.
func (r *remote) dial() (*nats.Conn, error) {
	opts, err := r.NATS("skein-cli")
	if err != nil {
		return nil, events.Errorf(events.Unauthorized, "%w", err)
	}
	nc, err := nats.Connect(r.server, append(opts, r.denials())...)
	if err != nil {
		return nil, events.Errorf(events.Unavailable, "%w", connect.Failed(r.server, err))
	}
	return nc, nil
}

// connect returns a client.
func (r *remote) connect() (*client.Client, error) {
	if err := r.needTenant(); err != nil {
		return nil, err
	}
	if r.timeout <= 0 {
		return nil, wrongUsage("--timeout: %v; use a positive duration such as 10s", r.timeout)
	}
	return client.Connect(r.server, client.Options{
		Tenant: r.tenant, Creds: r.Creds, CA: r.CA, Inbox: r.Inbox, Name: "skein-cli", Actor: cmp.Or(r.actor, "cli"), Timeout: r.timeout,
	})
}

// remoteCommand returns a command that talks to a server.
func remoteCommand(use, short string, args cobra.PositionalArgs, run func(context.Context, *remote, *client.Client, []string) error) *cobra.Command {
	r := &remote{}
	cmd := &cobra.Command{
		Use: use, Short: short, Args: args,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := r.connect()
			if err != nil {
				return err
			}
			defer c.Close()
			return run(cmd.Context(), r, c, args)
		},
	}
	r.flags(cmd)
	return cmd
}

// reading returns a command that reads: it shows at least what was committed when it
// started.
func reading(use, short string, args cobra.PositionalArgs, run func(context.Context, *remote, *client.Client, []string) error) *cobra.Command {
	return remoteCommand(use, short, args, func(ctx context.Context, r *remote, c *client.Client, args []string) error {
		if now, err := c.UpToDate(ctx); err == nil { // the credentials may not permit it; then the latest commits may be missing
			c = now
		}
		return run(ctx, r, c, args)
	})
}

// jsonFlag is a flag with a JSON value.
type jsonFlag events.JSON

// String returns the flag's text.
func (j *jsonFlag) String() string { return string(*j) }

// Type names the flag's values in help.
func (j *jsonFlag) Type() string { return "JSON" }

// Set parses the flag.
func (j *jsonFlag) Set(text string) error {
	v := events.JSON(text)
	if !jsontext.Value(v).IsValid() {
		return wrongUsage("%.40q is not JSON", text)
	}
	*j = jsonFlag(v)
	return nil
}

// value returns the JSON, nil if the flag is not set.
func (j jsonFlag) value() events.JSON { return events.JSON(j) }

// choice refuses a value that is not allowed.
func choice(flag, value string, allowed []string) error {
	for _, one := range allowed {
		if value == one {
			return nil
		}
	}
	return wrongUsage("%s: %q; use one of: %s", flag, value, strings.Join(allowed, ", "))
}

// choiceOf is a flag with a fixed set of values, or none.
type choiceOf struct {
	flag, value string
	allowed     []string
}

// choices refuses the first flag whose value is not allowed.
func choices(list ...choiceOf) error {
	for _, c := range list {
		if c.value != "" {
			if err := choice(c.flag, c.value, c.allowed); err != nil {
				return err
			}
		}
	}
	return nil
}

// endKey is the key of a command's context for the function that ends the command with an error.
type endKey struct{}

// ending sets for a command a context that what runs in it can end with an error, which is then the
// command's: see [app.reason].
func (a *app) ending(cmd *cobra.Command) {
	ctx, end := context.WithCancelCause(cmd.Context())
	a.ended = func() error { return context.Cause(ctx) }
	cmd.SetContext(context.WithValue(ctx, endKey{}, end))
}

// reason returns the error of a command that has ended with err: a denial, if one has ended it.
// Wrong usage and findings are their own reason.
func (a *app) reason(err error) error {
	var usage *usageError
	var found *foundError
	var denied *events.Error
	if a.ended == nil || errors.As(err, &usage) || errors.As(err, &found) || !errors.As(a.ended(), &denied) {
		return err
	}
	return denied
}

// violation finds what a server does not permit in its message.
var violation = regexp.MustCompile(`(?i)permissions violation for (publish|subscription) to "([^"]+)"`)

// denied returns the error that a server's message is about a permission, or nil. A report of an
// operation is none: nothing depends on it.
func denied(err error) *events.Error {
	found := violation.FindStringSubmatch(err.Error())
	if !errors.Is(err, nats.ErrPermissionViolation) || found == nil || found[2] == events.DefaultNames().OperationReport() {
		return nil
	}
	may := "publish on"
	if found[1][0]|0x20 == 's' {
		may = "subscribe to"
	}
	return events.Errorf(events.Forbidden, "these credentials may not %s %s: docs/access.md says which role may", may, found[2])
}

// denials returns the option that ends the command when the server does not permit what its
// connection does. The server says so apart from the request, which has no answer then and would
// be waited for.
func (r *remote) denials() nats.Option {
	return nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		refusal := denied(err)
		if refusal == nil || r.cmd == nil {
			return
		}
		if end, ok := r.cmd.Context().Value(endKey{}).(context.CancelCauseFunc); ok {
			end(refusal)
		}
	})
}
