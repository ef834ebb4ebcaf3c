package cli

import (
	"cmp"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/connect"
	"github.com/skein-threads/skein/events"
)

// Remote holds the flags of every command that talks to a server.
type Remote struct {
	Server, Tenant string
	Actor          string // who acts, for the audit; default cli
	connect.Options
	JSON    bool
	Timeout time.Duration
	cmd     *cobra.Command // whose flags these are
}

// Flags adds the flags to a command.
func (r *Remote) Flags(cmd *cobra.Command) {
	r.cmd = cmd
	f := cmd.Flags()
	f.StringVar(&r.Server, "server", "nats://127.0.0.1:4222", "URL of the NATS server")
	f.StringVar(&r.Creds, "creds", "", "file of NATS credentials, or of an NKey")
	f.StringVar(&r.CA, "tls-ca", "", "file of the certificate authority that signed the server's certificate")
	f.StringVar(&r.Inbox, "inbox-prefix", "", "prefix of inboxes, if the server permits this user no others; default from --creds")
	f.StringVar(&r.Tenant, "tenant", "", "tenant of the threads"+Required("tenant"))
	f.BoolVar(&r.JSON, "json", false, "print JSON: one document, or one a line for lists and streams")
	f.DurationVar(&r.Timeout, "timeout", 10*time.Second, "timeout of one request, including retries; if it is set, of the whole command")
}

// perRequest annotates a --timeout that does not bound the whole command.
const perRequest = "per request"

// Serves declares that a command serves until it is ended: --timeout is of one request.
func (r *Remote) Serves() {
	f := r.cmd.Flags().Lookup("timeout")
	f.Usage = "timeout of one request, including retries"
	annotate(r.cmd.Flags(), perRequest, []string{"timeout"})
}

// NeedTenant requires a tenant: there is no default.
func (r *Remote) NeedTenant() error {
	if r.Tenant == "" {
		return WrongUsage("a tenant is required: set --tenant or SKEIN_TENANT")
	}
	if err := events.CheckTenant("", r.Tenant); err != nil {
		return WrongUsage("--tenant: %s", events.AsError(err).Message)
	}
	return nil
}

// Dial returns a connection to NATS, for what belongs to no tenant.
func (r *Remote) Dial() (*nats.Conn, error) {
	greeted := r.Options
	greeted.Within = r.Timeout
	opts, err := greeted.NATS("skein-cli")
	if err != nil {
		return nil, events.Errorf(events.Unauthorized, "%w", err)
	}
	nc, err := nats.Connect(r.Server, append(opts, r.denials())...)
	if err != nil {
		return nil, events.Errorf(events.Unavailable, "%w", connect.Failed(r.Server, err))
	}
	return nc, nil
}

// Connect returns a client.
func (r *Remote) Connect() (*client.Client, error) {
	if err := r.NeedTenant(); err != nil {
		return nil, err
	}
	return client.Connect(r.Server, client.Options{
		Tenant: r.Tenant, Creds: r.Creds, CA: r.CA, Inbox: r.Inbox, Name: "skein-cli", Actor: cmp.Or(r.Actor, "cli"), Timeout: r.Timeout,
	})
}

// Choice refuses a value that is not allowed.
func Choice(flag, value string, allowed []string) error {
	for _, one := range allowed {
		if value == one {
			return nil
		}
	}
	return WrongUsage("%s: %q; use one of: %s", flag, value, strings.Join(allowed, ", "))
}
