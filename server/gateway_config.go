package server

import (
	"errors"
	"fmt"
	"net"
	"net/url"

	"github.com/skein-threads/skein/api"
	"github.com/skein-threads/skein/connect"
	"github.com/skein-threads/skein/console/chart"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/operator/access"
)

// GatewayConfig configures a Gateway. The zero value of a field means its default.
type GatewayConfig struct {
	NATS      string // --nats: URL of the server; required
	Creds, CA string // --creds, --tls-ca: credentials of the role gateway, unless the URL has them, and the authorities to trust
	// Tenant is --tenant: whose requests are, without keys; default, without credentials, that of
	// their header Skein-Tenant.
	Tenant    string
	Listen    api.ListenOptions
	OpsListen string       // --ops-listen
	Prices    []string     // --console-price: MODEL=INPUT/OUTPUT, what a million tokens cost, for the console
	A2AAgent  string       // --a2a-agent: the agent whose card is at /.well-known/agent-card.json
	Names     events.Names // of subjects; default prefix skein
}

// keys reports whether requests have API keys.
func (c GatewayConfig) keys() bool { return c.credentials() && c.Tenant == "" }

// credentials reports whether the gateway has credentials of the role gateway, in a file or in
// the URL.
func (c GatewayConfig) credentials() bool { return c.Creds != "" || c.user() != "" }

// user returns the user that the URL names; empty if it names none.
func (c GatewayConfig) user() string {
	at, err := url.Parse(c.NATS)
	if err != nil {
		return ""
	}
	return at.User.Username()
}

func (c GatewayConfig) connection() connect.Options {
	o := connect.Options{Creds: c.Creds, CA: c.CA}
	if user := c.user(); c.Creds == "" && events.ValidTenant(user) { // a token of a subject, not a secret in its place
		o.Inbox = access.InboxOf(user)
	}
	return o
}

// withDefaults returns the configuration with every default filled in.
func (c GatewayConfig) withDefaults() GatewayConfig {
	if c.Names.Prefix == "" {
		c.Names = events.DefaultNames()
	}
	return c
}

// Validate reports everything that is wrong with the configuration, as one error.
func (c GatewayConfig) Validate() error {
	var errs []error
	if c.NATS == "" {
		errs = append(errs, errors.New("--nats: the URL of the NATS server is required"))
	}
	errs = append(errs, c.Listen.Validate(c.keys()), c.withDefaults().Names.Validate())
	if c.Tenant != "" && c.Listen.Tokens.Enabled() {
		errs = append(errs, errors.New("--tenant: with --jwt-issuer a request has a token, which names its tenant"))
	}
	if c.Tenant != "" && !events.ValidTenant(c.Tenant) {
		errs = append(errs, errors.New("--tenant: "+events.AsError(events.CheckTenant("", c.Tenant)).Message))
	}
	if c.OpsListen != "" {
		if _, _, err := net.SplitHostPort(c.OpsListen); err != nil {
			errs = append(errs, fmt.Errorf("--ops-listen: %q is not a host and a port: %w", c.OpsListen, err))
		}
	}
	if c.A2AAgent != "" && !events.Pattern(events.PatternName).MatchString(c.A2AAgent) {
		errs = append(errs, fmt.Errorf("--a2a-agent: %q is no name of an agent", c.A2AAgent))
	}
	if _, err := chart.ParsePrices(c.Prices); err != nil {
		errs = append(errs, fmt.Errorf("--console-price: %w", err))
	}
	return errors.Join(errs...)
}
