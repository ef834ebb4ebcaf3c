package skein

import (
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/server"
)

// None is the address that disables a listener, in Options.NATSListen and HTTPListen.
const None = server.NoListen

// Options configures a Server. The zero value of a field means its default. The flags
// of `skein serve` have the same names and meanings.
type Options struct {
	// Store is the folder of the embedded nats-server. One process uses it at a time.
	// Default ./skein-data.
	Store string
	// NATSListen is where the embedded server listens for clients in other processes:
	// host:port, port 0 for a free one, or None. An address other than loopback
	// requires Access. Default 127.0.0.1:4222.
	NATSListen string
	// HTTPListen is where Server.Handler is served: an address, or None.
	// Default 127.0.0.1:8420. OpsListen serves health and metrics only, at any address:
	// everyone who can connect can read them. Default none.
	HTTPListen, OpsListen string
	// TLSCert and TLSKey are files of a certificate for HTTP and its key. With Access and
	// these, or with TrustProxy or HTTPPlain, HTTPListen may be another address than loopback.
	TLSCert, TLSKey string
	// AgentsProtocol serves the agents of all tenants over the Synadia Agent Protocol for NATS.
	AgentsProtocol bool
	HTTPHosts      []string       // further host names that HTTP requests may have, besides those of the listener
	CORSOrigins    []string       // whose pages may use HTTP, such as https://shop.example; default its own
	TrustProxy     []string       // CIDRs of proxies whose X-Forwarded-Host and X-Forwarded-Proto count
	HTTPPlain      bool           // HTTP needs no TLS: only the network of a container or a pod is between Skein and what ends TLS
	HTTPKeyLimits  map[string]int // of a credential over HTTP: rate, inflight, streams, uploads; negative: no limit
	// HTTPTenantLimits are the same of a tenant.
	HTTPTenantLimits map[string]int
	// Tenant is the tenant of all requests over HTTP without Access: default the one in their
	// header Skein-Tenant.
	Tenant string
	// JWTIssuer is the URL of an identity provider (OpenID Connect) whose tokens HTTP accepts: those
	// for JWTAudience. JWTTenantClaim and JWTRolesClaim name the claims with the tenant and the
	// roles, and JWTUserClaim, which may be empty, that with the user to whose threads a
	// token is limited.
	JWTIssuer, JWTAudience, JWTTenantClaim, JWTRolesClaim, JWTUserClaim string
	// HTTPKeys is a folder like Access. HTTP accepts its API keys when the NATS server is external.
	HTTPKeys string
	// NATS is the URL of a NATS server to use instead of the embedded one, Creds a file
	// of credentials or of an NKey for it, and CA a file of the authorities to trust,
	// default the system's. Replicas is the number of replicas of every stream: 1, 3 or
	// 5; default 1.
	NATS, Creds, CA string
	Replicas        int
	// Access is a folder of accounts and TLS for the embedded server, as created by
	// `skein access init`. Default none: every client that can connect has all
	// permissions.
	Access string
	Names  events.Names   // of subjects, streams and buckets; default the prefix skein
	Logger zerolog.Logger // default none: see zerolog.Nop

	// Setup registers what the process offers before any run begins. More may be
	// registered later. Start returns its error. The server has not started yet: a Client,
	// for example, is to be had when Start has returned.
	Setup func(*Server) error
	Hooks Hooks          // of every run, in addition to those that agents name
	Env   map[string]any // the values of env in the runtime context of hooks, effects and tools that are not portable
	// Workers is how many runs this process executes concurrently: default 256, none if
	// negative. Worker is the name under which it claims them; default a random one.
	Workers int
	Worker  string
	// Places is how many effects, uploads, searches, images, forks and cold threads the process handles
	// concurrently, by kind. Kinds that are not named keep their default.
	Places map[string]int

	// Limits of each tenant in this process; rate and requests in flight are limited
	// for commands and for queries separately. Negative: no limit.
	TenantRate     float64 // requests per second; default 50,000
	TenantInFlight int     // requests in flight; default 2,048
	TenantKVMiB    int     // MiB of key-value pairs; default 1,024
	// TenantPlaces is how many places of a kind (runs, uploads, searches, images,
	// effects, forks, cold) a tenant may hold: default its fair share, negative all that are free.
	TenantPlaces map[string]int
	// TenantFairRate is how many requests per second are started for a tenant while
	// others are active, default 1,000 for each processor; TenantFairRunning how many
	// of its commands are executed concurrently then, and 16 times as many queries,
	// default 4 for each processor.
	TenantFairRate    float64
	TenantFairRunning int
	TenantEffectRate  float64 // effects started per second; default 20

	// What tenants' definitions may do in this process.
	MCPPrograms  bool     // start programs, as MCP servers
	MCPVariables []string // TENANT:NAME=TARGET: environment variables for the MCP server with that URL or command
	HTTPSecrets  []string // TENANT:NAME=URL: environment variables whose secrets sign requests to endpoints below that URL
	Operators    []string // ids of API keys whose holders see the page System of the console
	Prices       []string // MODEL=INPUT/OUTPUT: what a million tokens of a model cost, for the console
	A2AAgent     string   // the agent whose A2A card is at /.well-known/agent-card.json
	EgressAllow  []string // addresses, CIDRs and hosts that may be connected to, besides public ones
	ModelParams  []string // params of models that definitions may set, besides those that shape the answer
	// Of the models' endpoint: the longest silence in a call (default 5 min), the longest call
	// (default 10 min), and the most calls for one step (default what an agent's retries permit).
	ModelIdle, ModelTimeout time.Duration
	ModelAttempts           int
	// ModelEndpoints are endpoints of models, NAME=PROTOCOL,URL[,KEY_VARIABLE], besides those that
	// the environment names; ModelEndpointOptions are NAME.KEY=VALUE. docs/models.md describes both.
	ModelEndpoints, ModelEndpointOptions []string

	TokensPerDay []string      // NUMBER or TENANT=NUMBER: tokens that models may use per day (UTC); default unlimited
	MaxToolTime  time.Duration // the longest call of a tool, whatever its definition says; default 1 h

	MaxUploadTime time.Duration // from the start of an upload to its end; default 2 h
	ThreadCache   int64         // size of the cache of thread states, in bytes; default 256 MiB
	ArchiveEvery  time.Duration // how often retention policies are applied; default 1 h
	OTLPEndpoint  string        // URL of an OpenTelemetry collector; default OTEL_EXPORTER_OTLP_ENDPOINT
	OTelContent   bool          // traces contain messages, arguments and results
	Version       string        // of the services, as `nats micro` shows it; default 0.0.0

	// Volatile lets the embedded server acknowledge writes before they are on disk: a
	// power failure may lose acknowledged writes. For demos and tests.
	Volatile bool
	// Now is the clock of threads, effects and retention; default time.Now. Package
	// skeintest has one that tests can advance.
	Now func() time.Time
}

// Validate reports everything that is wrong with the options, as one error.
func (o Options) Validate() error { return errors.Join(append(o.unused(), o.config().Validate())...) }

// unused reports what is set and would have no effect: options of the embedded server, where NATS
// names another one, and the other way around.
func (o Options) unused() []error {
	var errs []error
	for _, f := range []struct {
		name string
		set  bool
		nats bool // it has an effect with NATS only, else without NATS only
		why  string
	}{
		{"Store", o.Store != "", false, "the server of NATS has a folder of its own"},
		{"NATSListen", o.NATSListen != "" && o.NATSListen != None, false, "clients connect to the server of NATS"},
		{"Volatile", o.Volatile, false, "the configuration of that server decides, as sync_interval"},
		{"Creds", o.Creds != "", true, "the embedded server needs none from this process"},
		{"CA", o.CA != "", true, "this process does not connect to the embedded server over TLS"},
	} {
		switch {
		case !f.set || f.nats == (o.NATS != ""):
		case f.nats:
			errs = append(errs, fmt.Errorf("%s has no effect without NATS: %s; leave it out", f.name, f.why))
		default:
			errs = append(errs, fmt.Errorf("%s has no effect with NATS: %s; leave it out", f.name, f.why))
		}
	}
	return errs
}

// config returns the options as the server's configuration, without Setup.
func (o Options) config() server.Config {
	return server.Config{
		Store:             o.Store,
		NATSListen:        o.NATSListen,
		HTTPListen:        o.HTTPListen,
		OpsListen:         o.OpsListen,
		TLSCert:           o.TLSCert,
		TLSKey:            o.TLSKey,
		AgentsProtocol:    o.AgentsProtocol,
		HTTPHosts:         o.HTTPHosts,
		CORSOrigins:       o.CORSOrigins,
		TrustProxy:        o.TrustProxy,
		HTTPPlain:         o.HTTPPlain,
		HTTPKeyLimits:     o.HTTPKeyLimits,
		HTTPTenantLimits:  o.HTTPTenantLimits,
		Tenant:            o.Tenant,
		HTTPKeys:          o.HTTPKeys,
		JWTIssuer:         o.JWTIssuer,
		JWTAudience:       o.JWTAudience,
		JWTTenantClaim:    o.JWTTenantClaim,
		JWTRolesClaim:     o.JWTRolesClaim,
		JWTUserClaim:      o.JWTUserClaim,
		NATS:              o.NATS,
		Creds:             o.Creds,
		CA:                o.CA,
		Replicas:          o.Replicas,
		Access:            o.Access,
		Names:             o.Names,
		Hooks:             o.Hooks,
		Env:               o.Env,
		Workers:           o.Workers,
		Worker:            o.Worker,
		Places:            o.Places,
		TenantRate:        o.TenantRate,
		TenantInFlight:    o.TenantInFlight,
		TenantKVMiB:       o.TenantKVMiB,
		TenantPlaces:      o.TenantPlaces,
		TenantFairRate:    o.TenantFairRate,
		TenantFairRunning: o.TenantFairRunning,
		TenantEffectRate:  o.TenantEffectRate,
		MCPPrograms:       o.MCPPrograms,
		MCPVariables:      o.MCPVariables,
		HTTPSecrets:       o.HTTPSecrets,
		Operators:         o.Operators,
		Prices:            o.Prices,
		A2AAgent:          o.A2AAgent,
		EgressAllow:       o.EgressAllow,
		ModelParams:       o.ModelParams,
		ModelIdle:         o.ModelIdle,
		ModelTimeout:      o.ModelTimeout,
		ModelAttempts:     o.ModelAttempts,
		ModelEndpoints:    o.ModelEndpoints, ModelEndpointOptions: o.ModelEndpointOptions,
		TokensPerDay:  o.TokensPerDay,
		MaxToolTime:   o.MaxToolTime,
		MaxUploadTime: o.MaxUploadTime,
		ThreadCache:   o.ThreadCache,
		ArchiveEvery:  o.ArchiveEvery,
		OTLPEndpoint:  o.OTLPEndpoint,
		OTelContent:   o.OTelContent,
		Version:       o.Version,
		Volatile:      o.Volatile,
		Now:           o.Now,
	}
}
