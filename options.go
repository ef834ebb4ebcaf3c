package skein

import (
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/serve"
)

// None is the address of what listens nowhere, in Options.NATSListen and HTTPListen.
const None = serve.NoListen

// Options says what to run and how. The zero value of a field means its default. The
// flags of `skein serve` have the same names and meanings.
type Options struct {
	// Store is the folder of the embedded nats-server. One process uses it at a time.
	// Default ./skein-data.
	Store string
	// NATSListen is where the embedded server listens for clients in other processes:
	// host:port, port 0 for a free one, or None. Off loopback it needs Access. Default
	// 127.0.0.1:4222.
	NATSListen string
	// HTTPListen is where Server.Handler is served: a loopback address, or None. Default
	// 127.0.0.1:8420. OpsListen serves it as well, at any address: anybody who reaches
	// it can read health and metrics. Default nowhere.
	HTTPListen, OpsListen string
	// NATS is the URL of a NATS server to use instead of the embedded one, Creds a file
	// of credentials or of an NKey for it, and CA a file of the authorities to trust;
	// default the system's. Replicas is how many copies of every stream it keeps: 1, 3
	// or 5; default 1.
	NATS, Creds, CA string
	Replicas        int
	// Access is a folder of accounts and TLS for the embedded server, as `skein access
	// init` makes it. Default none: anybody who reaches the port may do everything.
	Access string
	Names  events.Names   // of subjects, streams and buckets; default the prefix skein
	Logger zerolog.Logger // default none: see zerolog.Nop

	// Setup registers what the process offers before any run begins. More may be
	// registered later. Its error is Start's.
	Setup func(*Server) error
	Hooks Hooks          // of every run, outside those that agents name
	Env   map[string]any // what tools that are not portable, hooks and effects find as env in their runtime context
	// Workers is how many runs this process works at: default 256, none if negative.
	// Worker is the name under which it claims them; default a random one.
	Workers int
	Worker  string
	// Places is how many effects, uploads, searches and images the process works at, by
	// kind. Those that are not named keep their default.
	Places map[string]int

	// What one tenant may have of this process; rate and work under way hold for
	// commands and for queries, each by itself. Negative: no limit.
	TenantRate     float64 // requests a second; default 50,000
	TenantInFlight int     // requests under way at once; default 2,048
	// TenantPlaces is how many places of a kind (runs, uploads, searches, images,
	// effects) a tenant may hold: default its fair share, negative all that are free.
	TenantPlaces map[string]int
	// TenantFairRate is how many requests a second are begun for a tenant while others
	// are active, default 1,000 for each processor; TenantFairRunning how many commands
	// are worked on at the same time then, and 16 times as many queries, default 4 for
	// each processor.
	TenantFairRate    float64
	TenantFairRunning int
	TenantEffectRate  float64 // effects begun a second; default 20

	// What definitions of tenants may do here.
	MCPPrograms  bool          // start programs, as MCP servers
	MCPVariables []string      // TENANT:NAME=TARGET: variables of the environment for the MCP server at that URL or of that command
	EgressAllow  []string      // addresses, CIDRs and hosts to connect to, besides public ones
	ModelParams  []string      // what params of models may set besides how they answer
	TokensPerDay []string      // NUMBER or TENANT=NUMBER: tokens that models may use on a day (UTC); default any number
	MaxToolTime  time.Duration // the longest call of a tool, whatever its definition says; default 1 h

	MaxUploadTime time.Duration // from the beginning of an upload to its end; default 2 h
	ThreadCache   int64         // bytes for states of threads kept in memory; default 256 MiB
	ArchiveEvery  time.Duration // how often policies of retention are applied; default 1 h
	OTLPEndpoint  string        // URL of an OpenTelemetry collector; default what OTEL_EXPORTER_OTLP_ENDPOINT says
	OTelContent   bool          // traces carry messages, arguments and results
	Version       string        // of the services, as `nats micro` shows it; default 0.0.0

	// Volatile lets the embedded server acknowledge without waiting for the disk: what
	// was acknowledged may be lost with the power. For demos and tests.
	Volatile bool
	// Now is the clock of threads, effects and retention; default time.Now. Package
	// skeintest has one that tests move.
	Now func() time.Time
}

// Validate reports everything that is wrong with the options, at once.
func (o Options) Validate() error { return o.config().Validate() }

// config returns the options as the server takes them, without Setup.
func (o Options) config() serve.Config {
	return serve.Config{
		Store:             o.Store,
		NATSListen:        o.NATSListen,
		HTTPListen:        o.HTTPListen,
		OpsListen:         o.OpsListen,
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
		TenantPlaces:      o.TenantPlaces,
		TenantFairRate:    o.TenantFairRate,
		TenantFairRunning: o.TenantFairRunning,
		TenantEffectRate:  o.TenantEffectRate,
		MCPPrograms:       o.MCPPrograms,
		MCPVariables:      o.MCPVariables,
		EgressAllow:       o.EgressAllow,
		ModelParams:       o.ModelParams,
		TokensPerDay:      o.TokensPerDay,
		MaxToolTime:       o.MaxToolTime,
		MaxUploadTime:     o.MaxUploadTime,
		ThreadCache:       o.ThreadCache,
		ArchiveEvery:      o.ArchiveEvery,
		OTLPEndpoint:      o.OTLPEndpoint,
		OTelContent:       o.OTelContent,
		Version:           o.Version,
		Volatile:          o.Volatile,
		Now:               o.Now,
	}
}
