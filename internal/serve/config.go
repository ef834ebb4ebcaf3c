package serve

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"regexp"
	goruntime "runtime"
	"time"

	"github.com/skein-threads/skein/connect"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/access"
	"github.com/skein-threads/skein/internal/egress"
	"github.com/skein-threads/skein/internal/embedded"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/agents"
	"github.com/skein-threads/skein/runtime/budget"
	"github.com/skein-threads/skein/runtime/openai"
	"github.com/skein-threads/skein/runtime/telemetry"
	"github.com/skein-threads/skein/service"
)

// DefaultHTTPListen is where health and metrics are served.
const DefaultHTTPListen = "127.0.0.1:8420"

// NoListen is the address of what listens nowhere.
const NoListen = embedded.NoListen

// DefaultWorkers is how many runs a process works at.
const DefaultWorkers = 256

// DefaultStore is the folder of the embedded server.
const DefaultStore = "./skein-data"

// Config says what to run. The zero value of a field means its default.
type Config struct {
	Store      string // --store: folder of the embedded server; default ./skein-data
	NATSListen string // --nats-listen: where the embedded server listens, or none; default 127.0.0.1:4222
	HTTPListen string // --http-listen: where health and metrics are served, or none; default 127.0.0.1:8420
	OpsListen  string // --ops-listen: where health and metrics are served as well, on any address; default nowhere
	NATS       string // --nats: URL of a server to use instead of the embedded one; default none
	Creds      string // --creds: file of credentials for it; default none
	CA         string // --tls-ca: file of the authorities to trust when connecting to it; default the system's
	Access     string // --access: folder of accounts and TLS for the embedded server; default none, and loopback only
	// What one tenant may have of this process. Rate and work hold for commands and
	// for queries, each by itself.
	TenantRate     float64 // --tenant-rate: requests a second; default 50,000; negative: no limit
	TenantInFlight int     // --tenant-inflight: requests under way at once; default 2,048; negative: no limit
	// TenantPlaces is --tenant-places: places of a kind (runs, uploads, searches, images,
	// effects) that it may hold; absent or 0: its fair share; negative: all that are free.
	TenantPlaces map[string]int
	// TenantFairRate is --tenant-fair-rate: requests begun a second while other tenants
	// are active; default 1,000 for each processor; negative: no limit. TenantFairRunning
	// is --tenant-fair-running: commands that are worked on at the same time then, and 16
	// times as many queries; default 4 for each processor; negative: no limit.
	TenantFairRate    float64
	TenantFairRunning int
	TenantEffectRate  float64        // --tenant-effect-rate: effects begun a second; default 20; negative: no limit
	Replicas          int            // --replicas: copies of every stream, on such a server; default 1
	Names             events.Names   // of subjects, streams and buckets; default prefix skein
	Version           string         // of the services, as `nats micro` shows it; default 0.0.0
	Worker            string         // the name under which runs are claimed; default a random one
	Places            map[string]int // --places: how many uploads, searches, images and effects at the same time; default DefaultPlaces
	ThreadCache       int64          // --thread-cache: bytes of the states of threads that are kept in memory; default commands.DefaultCacheBytes
	Workers           int            // --workers: how many runs this process works at; default 256; none if below 0
	// Register adds what this process has of its own, before runs are worked on. More
	// may be added later; see Server.Registry.
	Register      func(*runtime.Registry) error
	Hooks         runtime.Hooks  // of every run
	Env           map[string]any // what tools that are not portable, hooks and effects find as env in their runtime context
	MCPPrograms   bool           // --mcp-programs: definitions may start programs as MCP servers
	MCPVariables  []string       // --mcp-variable: TENANT:NAME=TARGET, variables of the environment that definitions may hand to MCP servers
	EgressAllow   []string       // --egress-allow: addresses, CIDRs and hosts to connect to where a tenant names them, besides public ones
	ModelParams   []string       // --model-param: what definitions of models may ask of the provider besides how it answers
	TokensPerDay  []string       // --tokens-per-day: NUMBER or TENANT=NUMBER, tokens that the models of a tenant may use on a day; default any number
	MaxToolTime   time.Duration  // --max-tool-time: that a call of a tool may take, whatever its definition says; default 1 h
	MaxUploadTime time.Duration  // --max-upload-time: from the beginning of an upload to its end; default 2 h
	OTLPEndpoint  string         // --otlp-endpoint: URL of an OpenTelemetry collector; default what OTEL_EXPORTER_OTLP_ENDPOINT says
	OTelContent   bool           // --otel-content: traces bear messages, arguments and results
	ArchiveEvery  time.Duration  // how often policies of retention are applied; default 1 h
	Volatile      bool           // the embedded server does not wait for the disk: for demos and tests
	// Now is the clock of threads, effects and retention; default time.Now. One that is
	// moved is followed by Server.FireDue.
	Now func() time.Time
}

// Defaults of what one tenant may have.
const (
	DefaultTenantRate     = 50000
	DefaultTenantInFlight = 2048
)

// limits returns the limits of a tenant as the services know them.
func (c Config) limits() service.Limits {
	return service.Limits{Rate: max(c.TenantRate, 0), InFlight: max(c.TenantInFlight, 0)}
}

// fair returns what a tenant may have while others are active, as the services know
// it: times as many running as of commands.
func (c Config) fair(times int) service.Fair {
	return service.Fair{Rate: max(c.TenantFairRate, 0), Running: times * max(c.TenantFairRunning, 0)}
}

// queriesToCommands is how many more queries than commands may be worked on: most
// of them wait for something.
const queriesToCommands = 16

// DefaultFairRate and DefaultFairRunning are for the processors of this process.
func DefaultFairRate() float64 { return 1000 * float64(goruntime.GOMAXPROCS(0)) }

// DefaultFairRunning is as DefaultFairRate.
func DefaultFairRunning() int { return 4 * goruntime.GOMAXPROCS(0) }

// WithDefaults gives the configuration with every default filled in.
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
	if !semantic.MatchString(c.Version) { // the services take no other
		c.Version = "0.0.0"
	}
	return c
}

var semantic = regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)

// Validate reports everything that is wrong with the configuration, at once.
func (c Config) Validate() error {
	c = c.WithDefaults()
	var errs []error
	errs = append(errs, c.log().Validate(), c.telemetry().Validate())
	if err := loopback(c.HTTPListen); err != nil && c.HTTPListen != NoListen {
		errs = append(errs, fmt.Errorf("--http-listen: %w; --ops-listen serves health and metrics on any address", err))
	}
	if c.OpsListen != "" {
		if _, _, err := net.SplitHostPort(c.OpsListen); err != nil {
			errs = append(errs, fmt.Errorf("--ops-listen: %q is not a host and a port: %w", c.OpsListen, err))
		}
	}
	if c.NATS == "" {
		if o, err := c.embedded(); err != nil {
			errs = append(errs, fmt.Errorf("--access: %w", err))
		} else if err := o.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("--nats-listen: %w", err))
		}
		if c.Replicas > 1 {
			errs = append(errs, fmt.Errorf("--replicas: the embedded server is one node and keeps one copy, not %d; give --nats", c.Replicas))
		}
	}
	errs = append(errs, c.checkPlaces()...)
	if c.ThreadCache < 0 {
		errs = append(errs, fmt.Errorf("--thread-cache: %d bytes; it cannot be less than 0", c.ThreadCache))
	}
	if err := (openai.Config{BaseURL: openai.DefaultBaseURL, Params: c.ModelParams}).Validate(); err != nil {
		errs = append(errs, err)
	}
	if _, err := budget.Parse(c.TokensPerDay); err != nil {
		errs = append(errs, fmt.Errorf("--tokens-per-day: %w", err))
	}
	if _, err := egress.Parse(c.EgressAllow); err != nil {
		errs = append(errs, fmt.Errorf("--egress-allow: %w", err))
	}
	if _, err := agents.ParseVariables(c.MCPVariables); err != nil {
		errs = append(errs, fmt.Errorf("--mcp-variable: %w", err))
	}
	if c.NATS != "" && c.Access != "" {
		errs = append(errs, errors.New("--access is for the embedded server; start the one of --nats with nats.conf in that folder, and give its creds/skein.creds as --creds"))
	}
	return errors.Join(errs...)
}

// embedded gives the options of the embedded server.
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

// connection says how this process connects to the server.
func (c Config) connection() connect.Options {
	if c.NATS == "" && c.Access != "" {
		return connect.Options{Creds: filepath.Join(c.Access, access.SkeinCreds)}
	}
	return connect.Options{Creds: c.Creds, CA: c.CA}
}

func (c Config) log() eventlog.Config { return eventlog.Config{Names: c.Names, Replicas: c.Replicas} }

func (c Config) telemetry() telemetry.Config {
	return telemetry.Config{Endpoint: c.OTLPEndpoint, Content: c.OTelContent, Version: c.Version}
}

// NotLoopbackError says that HTTPListen can be reached from other machines. Nothing
// authenticates those who read health and metrics there.
type NotLoopbackError struct{ Address string }

func (e *NotLoopbackError) Error() string {
	return fmt.Sprintf("will not listen on %q: there is no authentication, so only loopback addresses such as 127.0.0.1 are allowed", e.Address)
}

// loopback says why an address must not be listened on.
func loopback(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is not a host and a port: %w", address, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return &NotLoopbackError{Address: address}
	}
	return nil
}
