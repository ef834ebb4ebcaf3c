package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/skein-threads/skein"
	"github.com/skein-threads/skein/cmd/skein/cli"
	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/internal/heap"
	"github.com/skein-threads/skein/runtime/egress"
	"github.com/skein-threads/skein/server"
)

// stopWithin is how long a stop may take. The promise is 10 s, including the end of the
// process.
const stopWithin = 9 * time.Second

// serveOptions are the flags of serve.
type serveOptions struct {
	skein.Options
	file, level, format string
	firstTenant         string // for whom the folder of --access is created
	dev, json           bool
	cacheMiB            int
}

func (a *app) serveCommand() *cobra.Command {
	o := &serveOptions{}
	cmd := &cobra.Command{
		Use: "serve", Short: "Serve commands and queries", Args: cobra.NoArgs,
		Long: "Serve commands and queries, with an embedded nats-server unless --nats names another.\n" +
			"One line with the addresses is printed when, and only when, commands are accepted.\n" +
			"SIGTERM and SIGINT finish the requests in flight and exit 0 within 10 s. A second signal, at least a\n" +
			"second later, exits at once: the next start reads the whole store.\n" +
			"SIGHUP reads the folder of --access again: new tenants, revoked users, new certificates.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.fromFile(cmd, o.file); err != nil {
				return err
			}
			return a.serve(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.dev, "dev", false, "for development: readable debug logs, and MCP servers on this machine's own addresses")
	f.StringVar(&o.Store, "store", server.DefaultStore, "folder of the embedded nats-server")
	f.StringVar(&o.NATSListen, "nats-listen", "127.0.0.1:4222", "address of the embedded nats-server; port 0 for a free one, none for no listener")
	f.StringVar(&o.HTTPListen, "http-listen", server.DefaultHTTPListen, "address of HTTP; port 0 for a free one, none for no listener")
	f.StringVar(&o.OpsListen, "ops-listen", "", "second address of health and metrics, loopback or not: everyone who can connect can read them")
	f.StringVar(&o.OpsListen, "metrics-listen", "", "the same as --ops-listen")
	cmd.MarkFlagsMutuallyExclusive("ops-listen", "metrics-listen")
	f.StringVar(&o.TLSCert, "tls-cert", "", "file of a certificate for HTTP; it may be replaced at any time")
	f.StringVar(&o.TLSKey, "tls-key", "", "file of its key")
	f.StringSliceVar(&o.HTTPHosts, "http-host", nil, "another host name that HTTP requests may have, besides those of the listener; repeatable")
	f.StringSliceVar(&o.CORSOrigins, "cors-origin", nil, "an origin whose pages may use HTTP, such as https://shop.example; repeatable")
	f.StringSliceVar(&o.TrustProxy, "trust-proxy", nil, "a CIDR of proxies whose X-Forwarded-Host and X-Forwarded-Proto count; repeatable")
	f.BoolVar(&o.HTTPPlain, "http-plain", false, "serve HTTP without TLS on any address, with keys: only a network that you trust, such as that of a container, is between this and what ends TLS")
	f.StringToIntVar(&o.HTTPKeyLimits, "http-key-limits", nil, "what one key may use over HTTP, such as rate=100,inflight=32,streams=64,uploads=4; negative: no limit (default rate=5000,inflight=512,streams=4000,uploads=16)")
	f.StringToIntVar(&o.HTTPTenantLimits, "http-tenant-limits", nil, "what one tenant may use over HTTP, as --http-key-limits (default rate=10000,inflight=1024,streams=6000,uploads=32)")
	f.StringVar(&o.Tenant, "tenant", "", "tenant of all requests over HTTP, without --access; default that of their header Skein-Tenant")
	f.StringVar(&o.JWTIssuer, "jwt-issuer", "", "URL of an identity provider (OpenID Connect) whose signed tokens HTTP accepts")
	f.StringVar(&o.JWTAudience, "jwt-audience", "", "audience that its tokens must have")
	f.StringVar(&o.JWTTenantClaim, "jwt-tenant-claim", "", "claim that names the tenant, or a path such as realm.tenant")
	f.StringVar(&o.JWTRolesClaim, "jwt-roles-claim", "", "claim that names the roles publisher and subscriber")
	f.StringVar(&o.JWTUserClaim, "jwt-user-claim", "", "claim with the user to whose threads a token is limited; default: it is not limited")
	f.StringVar(&o.HTTPKeys, "http-keys", "", "with --nats: folder of skein access whose API keys HTTP accepts, here and at gateways")
	f.StringVar(&o.NATS, "nats", "", "URL of a NATS server to use instead of the embedded one")
	f.StringVar(&o.Creds, "creds", "", "file of NATS credentials, or of an NKey, for --nats")
	f.StringVar(&o.CA, "tls-ca", "", "file of the certificate authority of --nats")
	f.StringVar(&o.Access, "access", "", "folder of accounts and TLS for the embedded nats-server, as created by skein access init")
	f.StringVar(&o.firstTenant, "access-create", "", "tenant for which the folder of --access is created where there is none, with one API key, which is printed once")
	f.Float64Var(&o.TenantRate, "tenant-rate", server.DefaultTenantRate, "requests per second of one tenant; negative: no limit")
	f.IntVar(&o.TenantInFlight, "tenant-inflight", server.DefaultTenantInFlight, "requests in flight of one tenant; negative: no limit")
	f.IntVar(&o.TenantKVMiB, "tenant-kv-mib", 0, "MiB of key-value pairs that one tenant may store (default 1024); negative: no limit")
	f.Float64Var(&o.TenantFairRate, "tenant-fair-rate", server.DefaultFairRate(), "requests per second that are started for one tenant while others are active; further ones wait; negative: no limit")
	f.IntVar(&o.TenantFairRunning, "tenant-fair-running", server.DefaultFairRunning(), "commands of one tenant that are executed concurrently while others are active, as many submitted ones, and 16 times as many queries; negative: no limit")
	f.StringToIntVar(&o.TenantPlaces, "tenant-places", nil, "places that one tenant may hold, as `kind=number`, such as runs=64,uploads=8; kinds are runs, effects, uploads, searches, images, forks, cold, past, reads and webhooks; negative: all that are free (default its fair share)")
	f.Float64Var(&o.TenantEffectRate, "tenant-effect-rate", server.DefaultTenantEffectRate, "effects per second that are started for one tenant; further ones wait; negative: no limit")
	f.StringToIntVar(&o.Places, "places", server.DefaultPlaces(), "what this process handles concurrently, as `kind=number`: effects, uploads, searches, images, forks, cold threads, questions about the past, queries that read much, and webhooks; kinds not named keep their default")
	f.Lookup("places").DefValue, f.Lookup("tenant-places").DefValue = inOrder(server.DefaultPlaces()), ""
	f.IntVar(&o.Replicas, "replicas", 1, "replicas of every stream, with --nats: 1, 3 or 5")
	f.IntVar(&o.cacheMiB, "thread-cache", 0, "MiB for the thread states cached in memory (default a sixteenth of the memory that the process may use; at least 256, but at most an eighth)")
	f.IntVar(&o.Workers, "workers", server.DefaultWorkers, "runs of agents that this process executes concurrently; -1 for none")
	f.DurationVar(&o.MaxToolTime, "max-tool-time", server.DefaultMaxToolTime, "maximum duration of a call of a tool, whatever its definition says")
	f.DurationVar(&o.MaxUploadTime, "max-upload-time", server.DefaultMaxUploadTime, "maximum duration of an upload")
	f.BoolVar(&o.MCPPrograms, "mcp-programs", false, "permit definitions of tenants to start programs here, as MCP servers")
	f.StringSliceVar(&o.HTTPSecrets, "http-secret", nil, "TENANT:NAME=URL: an environment variable whose secret signs requests to the tenant's HTTP reactors, tools and webhooks below that URL; repeatable")
	f.StringSliceVar(&o.Operators, "console-operator", nil, "the id of an API key whose holder sees the page System of the console: this process and what it stores, of all tenants together; repeatable")
	f.StringSliceVar(&o.MCPVariables, "mcp-variable", nil, "TENANT:NAME=TARGET: an environment variable that the tenant's definitions may pass to the MCP server with that URL prefix or command; repeatable")
	f.StringSliceVar(&o.EgressAllow, "egress-allow", nil, "an address, a CIDR or a host (mcp.internal, *.internal) that tenants' definitions may connect to, besides public ones; an address or a host with :PORT allows only that port; repeatable")
	f.StringSliceVar(&o.TokensPerDay, "tokens-per-day", nil, "tokens that the models of a tenant may use per day (UTC): NUMBER for every tenant, TENANT=NUMBER for one; 0 is unlimited; repeatable")
	f.StringSliceVar(&o.Prices, "console-price", nil, "what a million tokens of a model cost, as MODEL=INPUT/OUTPUT or MODEL=INPUT/OUTPUT/CACHED; MODEL* matches every name that begins so. The console shows what runs cost; repeatable")
	f.StringVar(&o.A2AAgent, "a2a-agent", "", "the agent whose A2A card is at /.well-known/agent-card.json, of the tenant that asks; each agent has its own at /a2a/AGENT/.well-known/agent-card.json")
	f.StringSliceVar(&o.ModelParams, "model-param", nil, "params that a tenant's models may set, besides those that shape the answer: store, service_tier, tools, tools.web_search, include, or another name; repeatable")
	f.DurationVar(&o.ModelIdle, "model-idle", 0, "longest silence of the models' endpoint in a call, as while a model reasons (default 5m)")
	f.DurationVar(&o.ModelTimeout, "model-timeout", 0, "longest call of the models' endpoint (default 10m)")
	f.IntVar(&o.ModelAttempts, "model-attempts", 0, "most calls of the models' endpoint for one step, after failures that may be temporary; default what an agent's retries permit")
	f.StringArrayVar(&o.ModelEndpoints, "model-endpoint", nil, "NAME=PROTOCOL,URL[,KEY_VARIABLE]: an endpoint that models may name; PROTOCOL is responses, chat or messages; repeatable")
	f.StringArrayVar(&o.ModelEndpointOptions, "model-endpoint-option", nil, "NAME.KEY=VALUE of an endpoint; KEY is timeout, idle, attempts, maxBytes, rawReasoning or tenants (names separated by commas); repeatable")
	f.BoolVar(&o.AgentsProtocol, "agents-protocol", false, "serve the agents of all tenants to any NATS client over the Synadia Agent Protocol: they are found as the micro service agents")
	f.StringVar(&o.OTLPEndpoint, "otlp-endpoint", "", "URL of an OpenTelemetry collector for traces of runs; default OTEL_EXPORTER_OTLP_ENDPOINT")
	f.BoolVar(&o.OTelContent, "otel-content", false, "include messages, arguments and results in traces, truncated to 4 KiB each")
	f.StringVar(&o.file, "config", "", "JSON file with an object whose names are flags; flags and variables take precedence")
	f.StringVar(&o.level, "log-level", "", "debug, info, warn or error (default info; debug with --dev)")
	f.StringVar(&o.format, "log-format", "", "json or text (default json; text with --dev)")
	f.BoolVar(&o.json, "json", false, "print the ready line as JSON")
	cli.MayBeNegative(f, "tenant-rate", "tenant-inflight", "tenant-kv-mib", "tenant-fair-rate", "tenant-fair-running", "tenant-effect-rate", "workers")
	return cmd
}

// fromFile sets flags that are not on the command line from a file.
func (a *app) fromFile(cmd *cobra.Command, name string) error {
	if name == "" {
		return nil
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		return cli.WrongUsage("--config: %v", err)
	}
	var fields map[string]jsontext.Value
	if err := json.Unmarshal(raw, &fields); err != nil {
		return cli.WrongUsage("--config: %s: %v", name, err)
	}
	for key, value := range fields {
		flag := cmd.Flags().Lookup(key)
		if flag == nil || key == "config" || key == "help" {
			return cli.WrongUsage("--config: %s: there is no flag --%s", name, key)
		}
		if value.Kind() == '[' && !flag.Changed {
			var list []string
			if err := json.Unmarshal(value, &list); err != nil {
				return cli.WrongUsage("--config: %s: %s: a list must contain strings: %v", name, key, err)
			}
			many, ok := flag.Value.(pflag.SliceValue)
			if !ok {
				return cli.WrongUsage("--config: %s: %s takes one value, not a list", name, key)
			}
			if err := many.Replace(list); err != nil {
				return cli.WrongUsage("--config: %s: %s: %v", name, key, err)
			}
			continue
		}
		text := string(value)
		if value.Kind() == '"' {
			if err := json.Unmarshal(value, &text); err != nil {
				return cli.WrongUsage("--config: %s: %s: %v", name, key, err)
			}
		}
		if flag.Changed {
			continue
		}
		if err := errors.Join(cmd.Flags().Set(key, text), cli.CheckNumber(flag)); err != nil {
			return cli.WrongUsage("--config: %s: %s: %v", name, key, err)
		}
	}
	return nil
}

// readyLine is what serve prints when it accepts commands.
type readyLine struct {
	Ready bool   `json:"ready"`
	NATS  string `json:"nats"`
	HTTP  string `json:"http"`
	Ops   string `json:"ops,omitzero"`
}

// leaveOut clears what has no effect with --nats, or without it: these flags have defaults, or
// variables that other commands read too.
func (o *serveOptions) leaveOut() {
	if o.NATS != "" {
		o.Store, o.NATSListen, o.firstTenant = "", "", ""
	} else {
		o.Creds, o.CA = "", ""
	}
}

func (a *app) serve(ctx context.Context, o *serveOptions) error {
	logger, err := a.logger(o)
	if err != nil {
		return err
	}
	o.Version = cli.Version()
	if o.dev {
		o.EgressAllow = append(o.EgressAllow, egress.Loopback()...)
	}
	o.ThreadCache = heap.Cache(o.cacheMiB, heap.Fit(), commands.DefaultCacheBytes)
	go heap.ReturnIdle(ctx)
	o.leaveOut()
	if err := a.firstAccess(o); err != nil {
		return err
	}
	if err := o.Validate(); err != nil {
		return cli.WrongUsage("%v", err)
	}
	o.Logger = logger
	s, err := skein.Start(ctx, o.Options)
	if err != nil {
		return err
	}
	at := s.Addresses()
	if o.json {
		err = a.PrintJSON(readyLine{true, at.NATS, at.HTTP, at.Ops})
	} else {
		ops := ""
		if at.Ops != "" {
			ops = ", ops " + at.Ops
		}
		_, err = fmt.Fprintf(a.Out, "skein is ready: nats %s, http %s%s\n", cmp.Or(at.NATS, "none"), cmp.Or(at.HTTP, "none"), ops)
	}
	if err == nil {
		reloads(ctx, s, logger)
		logger.Info().Msg("stopping: finishing the requests in flight")
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	if stopErr := s.Stop(stop); stopErr != nil {
		return stopErr
	}
	return err
}

// reloads reads the folder of --access again on each signal, until ctx ends.
func reloads(ctx context.Context, s *skein.Server, logger zerolog.Logger) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	for {
		select {
		case <-hangup:
			if err := s.Reload(); err != nil {
				logger.Error().Err(err).Msg("cannot reload the configuration; nothing has changed")
				continue
			}
			logger.Info().Msg("reloaded the configuration")
		case <-ctx.Done():
			return
		}
	}
}

// logger returns the logger that the flags select, on standard error.
func (a *app) logger(o *serveOptions) (zerolog.Logger, error) {
	level, format := o.level, o.format
	if level == "" {
		level = "info"
		if o.dev {
			level = "debug"
		}
	}
	if format == "" {
		format = "json"
		if o.dev {
			format = "text"
		}
	}
	if err := cli.Choice("--log-level", level, []string{"debug", "info", "warn", "error"}); err != nil {
		return zerolog.Nop(), err
	}
	if err := cli.Choice("--log-format", format, []string{"json", "text"}); err != nil {
		return zerolog.Nop(), err
	}
	parsed, err := zerolog.ParseLevel(level)
	if err != nil {
		return zerolog.Nop(), err
	}
	out := a.Err
	if format == "text" {
		out = zerolog.ConsoleWriter{Out: a.Err, NoColor: !a.Colour(a.Err), TimeFormat: "15:04:05.000"}
	}
	return zerolog.New(out).Level(parsed).With().Timestamp().Logger(), nil
}

// inOrder returns the pairs of a map as a flag of them is written, by name.
func inOrder(m map[string]int) string {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		pairs = append(pairs, fmt.Sprintf("%s=%d", name, m[name]))
	}
	return strings.Join(pairs, ",")
}
