package server

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"regexp"
	goruntime "runtime"
	"time"

	"github.com/skein-threads/skein/api"
	"github.com/skein-threads/skein/api/keys"
	"github.com/skein-threads/skein/archive"
	"github.com/skein-threads/skein/connect"
	"github.com/skein-threads/skein/console/chart"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/embedded"
	"github.com/skein-threads/skein/operator/access"
	"github.com/skein-threads/skein/quota"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/agents"
	"github.com/skein-threads/skein/runtime/egress"
	"github.com/skein-threads/skein/runtime/telemetry"
)

// DefaultHTTPListen is the default address of HTTP.
const DefaultHTTPListen = "127.0.0.1:8420"

// NoListen is the address of a disabled listener.
const NoListen = embedded.NoListen

// DefaultWorkers is how many runs a process executes concurrently.
const DefaultWorkers = 256

// DefaultStore is the folder of the embedded server.
const DefaultStore = "./skein-data"

// Config configures a Server. The zero value of a field means its default.
type Config struct {
	Store            string         // --store: folder of the embedded server; default ./skein-data
	NATSListen       string         // --nats-listen: where the embedded server listens, or none; default 127.0.0.1:4222
	HTTPListen       string         // --http-listen: where HTTP is served, or none; default 127.0.0.1:8420
	OpsListen        string         // --ops-listen: second address of health and metrics, loopback or not; default none
	NATS             string         // --nats: URL of a server to use instead of the embedded one; default none
	Creds            string         // --creds: file of credentials for it; default none
	CA               string         // --tls-ca: file of the authorities to trust when connecting to it; default the system's
	Tenant           string         // --tenant: whose requests over HTTP are that carry no key, without Access; default that in their header Skein-Tenant
	TLSCert          string         // --tls-cert: file of a certificate for HTTP; default no TLS
	TLSKey           string         // --tls-key: file of its key
	HTTPHosts        []string       // --http-host: further host names that HTTP requests may have, besides those of the listener
	CORSOrigins      []string       // --cors-origin: whose pages may use HTTP, such as https://shop.example; default its own
	TrustProxy       []string       // --trust-proxy: CIDRs of proxies whose X-Forwarded-Host and -Proto count
	HTTPPlain        bool           // --http-plain: HTTP needs no TLS on addresses other than loopback
	AgentsProtocol   bool           // --agents-protocol: agents are served over the Synadia Agent Protocol for NATS
	HTTPKeyLimits    map[string]int // --http-key-limits: rate, inflight, streams, uploads of a credential over HTTP; negative: no limit
	HTTPTenantLimits map[string]int // --http-tenant-limits: the same of a tenant
	Access           string         // --access: folder of accounts and TLS for the embedded server; default none, and loopback only
	HTTPKeys         string         // --http-keys: folder of access whose API keys HTTP accepts, with NATS; default that of Access
	JWTIssuer        string         // --jwt-issuer: URL of an identity provider whose tokens HTTP accepts; default none
	JWTAudience      string         // --jwt-audience: for which the tokens are
	JWTTenantClaim   string         // --jwt-tenant-claim: the claim that names the tenant
	JWTRolesClaim    string         // --jwt-roles-claim: the claim that names the roles
	JWTUserClaim     string         // --jwt-user-claim: the claim with the user to whose threads a token is limited; default none
	// Limits of each tenant in this process. Rate and requests in flight are limited
	// for commands and for queries separately.
	TenantRate     float64 // --tenant-rate: requests per second; default 50,000; negative: no limit
	TenantInFlight int     // --tenant-inflight: requests in flight; default 2,048; negative: no limit
	TenantKVMiB    int     // --tenant-kv-mib: MiB of key-value pairs; default 1,024; negative: no limit
	// TenantPlaces is --tenant-places: places of a kind (runs, uploads, searches,
	// images, effects, forks) that it may hold; 0 or missing: its fair share; negative: all
	// that are free.
	TenantPlaces map[string]int
	// TenantFairRate is --tenant-fair-rate: requests started per second while other
	// tenants are active; default 1,000 for each processor; negative: no limit.
	// TenantFairRunning is --tenant-fair-running: commands executed concurrently then,
	// and 16 times as many queries; default 4 for each processor; negative: no limit.
	TenantFairRate    float64
	TenantFairRunning int
	TenantEffectRate  float64        // --tenant-effect-rate: effects started per second; default 20; negative: no limit
	Replicas          int            // --replicas: replicas of every stream, on such a server; default 1
	Names             events.Names   // of subjects, streams and buckets; default prefix skein
	Version           string         // of the services, as `nats micro` shows it; default 0.0.0
	Worker            string         // the name under which runs are claimed; default a random one
	Places            map[string]int // --places: concurrent uploads, searches, images, effects, forks and cold threads; default DefaultPlaces
	ThreadCache       int64          // --thread-cache: size of the cache of thread states, in bytes; default commands.DefaultCacheBytes
	Workers           int            // --workers: runs executed concurrently; default 256; none if negative
	// Register adds the reactors, tools and so on of this process, before runs begin.
	// More may be added later; see Server.Registry.
	Register      func(*runtime.Registry) error
	Endpoints     *api.Endpoints // thread endpoints over HTTP; default those of every server
	Hooks         runtime.Hooks  // of every run
	Env           map[string]any // the values of env in the runtime context of hooks, effects and tools that are not portable
	MCPPrograms   bool           // --mcp-programs: definitions may start programs as MCP servers
	MCPVariables  []string       // --mcp-variable: TENANT:NAME=TARGET, environment variables that definitions may pass to MCP servers
	HTTPSecrets   []string       // --http-secret: TENANT:NAME=URL, environment variables whose secrets sign requests to endpoints of definitions
	Operators     []string       // --console-operator: ids of API keys whose holders see the page System of the console
	Prices        []string       // --console-price: MODEL=INPUT/OUTPUT, what a million tokens cost, for the console
	A2AAgent      string         // --a2a-agent: the agent whose card is at /.well-known/agent-card.json
	EgressAllow   []string       // --egress-allow: addresses, CIDRs and hosts that definitions may connect to, besides public ones
	ModelParams   []string       // --model-param: params that definitions of models may set, besides those that shape the answer
	ModelIdle     time.Duration  // --model-idle: the longest silence of the models' endpoint in a call; default 5 min
	ModelTimeout  time.Duration  // --model-timeout: the longest call of that endpoint; default 10 min
	ModelAttempts int            // --model-attempts: the most calls of it for one step; default what an agent's retries permit
	// ModelEndpoints are --model-endpoint, NAME=PROTOCOL,URL[,KEY_VARIABLE]; ModelEndpointOptions
	// --model-endpoint-option, NAME.KEY=VALUE.
	ModelEndpoints       []string
	ModelEndpointOptions []string
	TokensPerDay         []string      // --tokens-per-day: NUMBER or TENANT=NUMBER, tokens that the models of a tenant may use per day; default unlimited
	MaxToolTime          time.Duration // --max-tool-time: the longest call of a tool, whatever its definition says; default 1 h
	MaxUploadTime        time.Duration // --max-upload-time: from the start of an upload to its end; default 2 h
	OTLPEndpoint         string        // --otlp-endpoint: URL of an OpenTelemetry collector; default OTEL_EXPORTER_OTLP_ENDPOINT
	OTelContent          bool          // --otel-content: traces contain messages, arguments and results
	ArchiveEvery         time.Duration // how often retention policies are applied; default 1 h
	Volatile             bool          // the embedded server acknowledges before writes are on disk: for demos and tests
	// Now is the clock of threads, effects and retention; default time.Now. After a
	// clock was moved by hand, call Server.FireDue.
	Now func() time.Time
}

// Defaults of the limits of a tenant.
const (
	DefaultTenantRate     = 50000
	DefaultTenantInFlight = 2048
)

// limits returns the limits of a tenant for the services.
func (c Config) limits() quota.Limits {
	return quota.Limits{Rate: max(c.TenantRate, 0), InFlight: max(c.TenantInFlight, 0)}
}

// fair returns the limits of a tenant while others are active, for the services: times
// as many running as of commands.
func (s *Server) fair(times int) quota.Fair {
	return quota.Fair{Rate: max(s.cfg.TenantFairRate, 0), Running: times * max(s.cfg.TenantFairRunning, 0), Activity: s.activity, Floods: s.floods}
}

// queriesToCommands is how many more queries than commands may run concurrently: most
// of them wait.
const queriesToCommands = 16

// DefaultFairRate and DefaultFairRunning depend on the processors of this process.
func DefaultFairRate() float64 { return 1000 * float64(goruntime.GOMAXPROCS(0)) }

// DefaultFairRunning is like DefaultFairRate.
func DefaultFairRunning() int { return 4 * goruntime.GOMAXPROCS(0) }

// WithDefaults returns the configuration with every default filled in.
func (c Config) WithDefaults() Config {
	if c.Store == "" {
		c.Store = DefaultStore
	}
	if c.NATSListen == "" {
		c.NATSListen = embedded.DefaultListen
	}
	if c.HTTPListen == "" {
		c.HTTPListen = DefaultHTTPListen
	}
	if c.TenantRate == 0 {
		c.TenantRate = DefaultTenantRate
	}
	if c.TenantInFlight == 0 {
		c.TenantInFlight = DefaultTenantInFlight
	}
	if c.TenantFairRate == 0 {
		c.TenantFairRate = DefaultFairRate()
	}
	if c.TenantFairRunning == 0 {
		c.TenantFairRunning = DefaultFairRunning()
	}
	if c.ArchiveEvery == 0 {
		c.ArchiveEvery = archive.DefaultEvery
	}
	if c.Replicas == 0 {
		c.Replicas = 1
	}
	places := DefaultPlaces()
	maps.Copy(places, c.Places)
	c.Places = places
	if c.Workers == 0 {
		c.Workers = DefaultWorkers
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Names.Prefix == "" {
		c.Names = events.DefaultNames()
	}
	if !semantic.MatchString(c.Version) { // the services accept no other
		c.Version = "0.0.0"
	}
	return c
}

var semantic = regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)

// Validate reports everything that is wrong with the configuration, as one error.
func (c Config) Validate() error {
	c = c.WithDefaults()
	var errs []error
	errs = append(errs, c.log().Validate(), c.telemetry().Validate())
	errs = append(errs, c.checkHTTP())
	if c.OpsListen != "" {
		if _, _, err := net.SplitHostPort(c.OpsListen); err != nil {
			errs = append(errs, fmt.Errorf("--ops-listen: %q is not a host and a port: %w", c.OpsListen, err))
		}
	}
	errs = append(errs, c.checkTenant())
	if c.NATS == "" {
		if o, err := c.embedded(); err != nil {
			errs = append(errs, fmt.Errorf("--access: %w", err))
		} else if err := o.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("--nats-listen: %w", err))
		}
		if c.Replicas > 1 {
			errs = append(errs, fmt.Errorf("--replicas: the embedded server is one node with one replica, not %d; use --nats", c.Replicas))
		}
	}
	errs = append(errs, c.checkPlaces()...)
	errs = append(errs, c.checkBounds()...)
	errs = append(errs, c.checkModels())
	if _, err := parseTokenLimits(c.TokensPerDay); err != nil {
		errs = append(errs, fmt.Errorf("--tokens-per-day: %w", err))
	}
	if _, err := chart.ParsePrices(c.Prices); err != nil {
		errs = append(errs, fmt.Errorf("--console-price: %w", err))
	}
	if c.A2AAgent != "" && !events.Pattern(events.PatternName).MatchString(c.A2AAgent) {
		errs = append(errs, fmt.Errorf("--a2a-agent: %q is no name of an agent", c.A2AAgent))
	}
	if _, err := egress.Parse(c.EgressAllow); err != nil {
		errs = append(errs, fmt.Errorf("--egress-allow: %w", err))
	}
	if _, err := agents.ParseVariables(c.MCPVariables); err != nil {
		errs = append(errs, fmt.Errorf("--mcp-variable: %w", err))
	}
	if _, err := agents.ParseSecrets(c.HTTPSecrets); err != nil {
		errs = append(errs, fmt.Errorf("--http-secret: %w", err))
	}
	if c.NATS != "" && c.Access != "" {
		errs = append(errs, errors.New("--access is for the embedded server; start the one of --nats with nats.conf in that folder, and pass its creds/skein.creds as --creds"))
	}
	if c.HTTPKeys != "" && c.NATS == "" {
		errs = append(errs, errors.New("--http-keys is for --nats; with the embedded server, --access has the keys"))
	}
	return errors.Join(errs...)
}

// keysFolder returns the folder with the API keys; empty at a desk.
func (c Config) keysFolder() string { return cmp.Or(c.Access, c.HTTPKeys) }

// checkTenant reports what is wrong with Tenant.
func (c Config) checkTenant() error {
	switch {
	case c.Tenant == "":
		return nil
	case c.keysFolder() != "" || c.JWTIssuer != "":
		return errors.New("--tenant: with --access, --http-keys or --jwt-issuer a request has a key or a token, which names its tenant")
	case !events.ValidTenant(c.Tenant):
		return errors.New("--tenant: " + events.AsError(events.CheckTenant("", c.Tenant)).Message)
	}
	return nil
}

// embedded returns the options of the embedded server.
func (c Config) embedded() (embedded.Options, error) {
	o := embedded.NewOptions(c.Store)
	o.Listen, o.SyncAlways = c.NATSListen, !c.Volatile
	if c.Access == "" {
		return o, nil
	}
	folder, err := access.Open(c.Access)
	if err != nil {
		return o, err
	}
	if folder.Prefix() != c.Names.Prefix {
		return o, fmt.Errorf("the folder is for the prefix %s, not %s", folder.Prefix(), c.Names.Prefix)
	}
	o.Conf, o.Account = folder.Conf(), folder.Account()
	return o, nil
}

// connection returns how this process connects to the server.
func (c Config) connection() connect.Options {
	if c.NATS == "" && c.Access != "" {
		return connect.Options{Creds: filepath.Join(c.Access, access.SkeinCreds)}
	}
	return connect.Options{Creds: c.Creds, CA: c.CA}
}

func (c Config) log() eventlog.Config {
	return eventlog.Config{Names: c.Names, Replicas: c.Replicas, Embedded: c.NATS == ""}
}

func (c Config) telemetry() telemetry.Config {
	return telemetry.Config{Endpoint: c.OTLPEndpoint, Content: c.OTelContent, Version: c.Version}
}

// listen returns where HTTP is served, and for whom.
func (c Config) listen() api.ListenOptions {
	return api.ListenOptions{
		Address: c.HTTPListen, Cert: c.TLSCert, Key: c.TLSKey, Hosts: c.HTTPHosts, Origins: c.CORSOrigins, Proxies: c.TrustProxy, Plain: c.HTTPPlain,
		Tokens:    keys.TokenOptions{Issuer: c.JWTIssuer, Audience: c.JWTAudience, TenantClaim: c.JWTTenantClaim, RolesClaim: c.JWTRolesClaim, UserClaim: c.JWTUserClaim},
		KeyLimits: c.HTTPKeyLimits, Limits: c.HTTPTenantLimits, Fair: c.TenantFairRate,
	}
}

// loopback reports whether an address can be reached from this machine only.
func loopback(address string) bool {
	return api.ListenOptions{Address: address}.Validate(false) == nil
}

// checkHTTP reports what is wrong with the options of HTTP. Those of requests are in effect without
// a listener, too: a program may serve Server.Handler itself.
func (c Config) checkHTTP() error {
	o := c.listen()
	if c.HTTPListen != NoListen {
		return o.Validate(c.keysFolder() != "")
	}
	if o.Cert != "" || o.Key != "" || o.Plain {
		return errors.New("--tls-cert, --tls-key and --http-plain are for --http-listen, which is none")
	}
	o.Address = DefaultHTTPListen
	return o.Validate(c.keysFolder() != "")
}
