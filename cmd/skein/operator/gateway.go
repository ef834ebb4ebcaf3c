package operator

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/server"
)

func (a *app) gatewayCommand() *cobra.Command {
	var cfg server.GatewayConfig
	o := &serveOptions{}
	cmd := &cobra.Command{
		Use: "gateway", Short: "Serve HTTP in a process of its own, for a skein serve elsewhere", Args: cobra.NoArgs,
		Long: "Serve what skein serve serves over HTTP, in a process of its own. Any number of gateways may run: a stream that\n" +
			"began at one continues at another, and a revoked key ends at each within a second. --creds are those of a user\n" +
			"with the role gateway (skein access user --role gateway); --nats may name a user with a password instead.\n" +
			"Without credentials, all requests are those of --tenant, and\n" +
			"it listens on loopback only.\n" +
			"One line with the address is printed when requests are accepted. SIGTERM and SIGINT exit 0 within 10 s.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.fromFile(cmd, o.file); err != nil {
				return err
			}
			return a.gateway(cmd.Context(), cfg, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&cfg.NATS, "nats", "", "URL of the NATS server"+cli.Required("nats"))
	f.StringVar(&cfg.Creds, "creds", "", "file of NATS credentials of the role gateway")
	f.StringVar(&cfg.CA, "tls-ca", "", "file of the certificate authority of --nats")
	f.StringVar(&cfg.Tenant, "tenant", "", "tenant of all requests, on loopback and without keys; default, without credentials, that of their header Skein-Tenant")
	f.StringVar(&cfg.OpsListen, "ops-listen", "", "second address of health and metrics, loopback or not: everyone who can connect can read them")
	f.StringVar(&cfg.OpsListen, "metrics-listen", "", "the same as --ops-listen")
	cmd.MarkFlagsMutuallyExclusive("ops-listen", "metrics-listen")
	f.StringVar(&cfg.Listen.Address, "http-listen", server.DefaultHTTPListen, "address of HTTP; port 0 for a free one")
	f.StringSliceVar(&cfg.Prices, "console-price", nil, "what a million tokens of a model cost, as MODEL=INPUT/OUTPUT or MODEL=INPUT/OUTPUT/CACHED; MODEL* matches every name that begins so. The console shows what runs cost; repeatable")
	f.StringVar(&cfg.A2AAgent, "a2a-agent", "", "the agent whose A2A card is at /.well-known/agent-card.json, of the tenant that asks; each agent has its own at /a2a/AGENT/.well-known/agent-card.json")
	f.StringVar(&cfg.Listen.Cert, "tls-cert", "", "file of a certificate for HTTP; it may be replaced at any time")
	f.StringVar(&cfg.Listen.Key, "tls-key", "", "file of its key")
	f.StringSliceVar(&cfg.Listen.Hosts, "http-host", nil, "another host name that HTTP requests may have, besides those of the listener; repeatable")
	f.StringSliceVar(&cfg.Listen.Origins, "cors-origin", nil, "an origin whose pages may use HTTP, such as https://shop.example; repeatable")
	f.StringSliceVar(&cfg.Listen.Proxies, "trust-proxy", nil, "a CIDR of proxies whose X-Forwarded-Host and X-Forwarded-Proto count; repeatable")
	f.BoolVar(&cfg.Listen.Plain, "http-plain", false, "serve HTTP without TLS on any address, with keys: only a network that you trust, such as that of a container, is between this and what ends TLS")
	f.StringToIntVar(&cfg.Listen.KeyLimits, "http-key-limits", nil, "what one key may use over HTTP, such as rate=100,inflight=32,streams=64,uploads=4; negative: no limit (default rate=5000,inflight=512,streams=4000,uploads=16)")
	f.StringToIntVar(&cfg.Listen.Limits, "http-tenant-limits", nil, "what one tenant may use over HTTP, as --http-key-limits (default rate=10000,inflight=1024,streams=6000,uploads=32)")
	f.StringVar(&cfg.Listen.Tokens.Issuer, "jwt-issuer", "", "URL of an identity provider (OpenID Connect) whose signed tokens HTTP accepts")
	f.StringVar(&cfg.Listen.Tokens.Audience, "jwt-audience", "", "audience that its tokens must have")
	f.StringVar(&cfg.Listen.Tokens.TenantClaim, "jwt-tenant-claim", "", "claim that names the tenant, or a path such as realm.tenant")
	f.StringVar(&cfg.Listen.Tokens.RolesClaim, "jwt-roles-claim", "", "claim that names the roles publisher and subscriber")
	f.StringVar(&cfg.Listen.Tokens.UserClaim, "jwt-user-claim", "", "claim with the user to whose threads a token is limited; default: it is not limited")
	f.StringVar(&o.file, "config", "", "JSON file with an object whose names are flags; flags and variables take precedence")
	f.StringVar(&o.level, "log-level", "info", "debug, info, warn or error")
	f.StringVar(&o.format, "log-format", "json", "json or text")
	f.BoolVar(&o.json, "json", false, "print the ready line as JSON")
	return cmd
}

// gatewayReady is what gateway prints when it accepts requests.
type gatewayReady struct {
	Ready bool   `json:"ready"`
	HTTP  string `json:"http"`
	Ops   string `json:"ops,omitzero"`
}

func (a *app) gateway(ctx context.Context, cfg server.GatewayConfig, o *serveOptions) error {
	logger, err := a.logger(o)
	if err != nil {
		return err
	}
	if err := cfg.Validate(); err != nil {
		return cli.WrongUsage("%v", err)
	}
	g, err := server.StartGateway(cfg, logger)
	if err != nil {
		return err
	}
	http, ops := g.Addresses()
	switch {
	case o.json:
		err = a.PrintJSON(gatewayReady{true, http, ops})
	case ops != "":
		_, err = fmt.Fprintf(a.Out, "skein gateway is ready: http %s, ops %s\n", http, ops)
	default:
		_, err = fmt.Fprintf(a.Out, "skein gateway is ready: http %s\n", http)
	}
	if err == nil {
		<-ctx.Done()
		logger.Info().Msg("stopping: finishing the requests in flight")
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	if stopErr := g.Stop(stop); stopErr != nil {
		return stopErr
	}
	return err
}
