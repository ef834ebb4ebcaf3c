package commands

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/schema"
	"github.com/skein-threads/skein/service"
)

// Config bounds a dispatcher. The zero value of a field means its default.
type Config struct {
	CacheBytes    int64            // of thread states kept in memory; default DefaultCacheBytes
	InFlight      int              // commands under way at once; more are refused as unavailable; default 8192
	SnapshotEvery int64            // events of a thread between two snapshots of its state, at least, and a quarter of all it has; default 500
	Timeout       time.Duration    // for one command, from the door to the log; default 20 s
	Now           func() time.Time // default time.Now
	// Stored is told of every commit that this process has stored, before its
	// commands are answered. It must return at once. What it does with a commit
	// must be safe to lose: the process may die before it is told. Default none.
	Stored func(*events.Commit)
	// Joins may give a command of this process that is to go with another one, which
	// is about to be stored with these events; nil: none. It must return at once, and
	// is asked again if that command is decided anew. Default none.
	Joins    func(made []events.Event) *Joined
	Floods   *service.Floods   // knows the tenants that flood; default none does
	Fair     service.Fair      // of each tenant's submitted commands, while others are active
	Activity *service.Activity // of all that the process does for tenants; default one of its own
	Contents Contents          // where the content of files is kept; default: none is taken
	// Definitions are the tenants'; default: none is known.
	Definitions Definitions
	// Agents returns a not_found for an agent that nobody has defined or ever served,
	// which is not asked to answer; default every name is an agent's.
	Agents func(ctx context.Context, tenant, name string) error
	// Answers holds a person's answer to the JSON Schema of the question; default
	// none is taken that has one.
	Answers func(schema, answer events.JSON) error
}

// DefaultCacheBytes is about 130,000 turns: once the threads that are in use do
// not fit, each command may have to load its thread anew.
const DefaultCacheBytes = 256 << 20

// Contents keeps what files hold. Package files implements it.
type Contents interface {
	// Keep stores content for a tenant, and returns when it is durable.
	Keep(ctx context.Context, tenant string, content []byte) (events.FileContent, error)
}

func (c Config) withDefaults() Config {
	if c.CacheBytes == 0 {
		c.CacheBytes = DefaultCacheBytes
	}
	if c.InFlight == 0 {
		c.InFlight = 8192
	}
	if c.SnapshotEvery == 0 {
		c.SnapshotEvery = 500
	}
	if c.Timeout == 0 {
		c.Timeout = 20 * time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Activity == nil {
		c.Activity = &service.Activity{}
	}
	if c.Definitions == nil {
		c.Definitions = noDefinitions{}
	}
	return c
}

// Metrics is told what the dispatcher does. Each method must return at once.
type Metrics interface {
	// Done is told of a command, how it ended (ok, or an error's code), and how
	// long it took.
	Done(command, result string, seconds float64)
	// Cached is told what the cache of thread states holds.
	Cached(threads int, bytes int64)
	// Merged is told how many commands went into one commit.
	Merged(commands int)
}

// NoMetrics tells nobody.
type NoMetrics struct{}

// Done implements Metrics.
func (NoMetrics) Done(string, string, float64) {}

// Cached implements Metrics.
func (NoMetrics) Cached(int, int64) {}

// Merged implements Metrics.
func (NoMetrics) Merged(int) {}

// Dispatcher does commands. It is safe for concurrent use.
type Dispatcher struct {
	log     *eventlog.Log
	schema  *schema.Validator
	cfg     Config
	logger  zerolog.Logger
	metrics Metrics
	cache   *cache
	places  chan struct{} // one for each command under way
	snaps   chan struct{} // one snapshot is written at a time
	closed  sync.Once
	turns   [64]chan struct{} // each for some keys: one thread is made for a key at a time
}

// NewDispatcher makes a dispatcher on a log.
func NewDispatcher(log *eventlog.Log, validator *schema.Validator, cfg Config, logger zerolog.Logger, metrics Metrics) *Dispatcher {
	cfg = cfg.withDefaults()
	if metrics == nil {
		metrics = NoMetrics{}
	}
	d := &Dispatcher{
		log: log, schema: validator, cfg: cfg, logger: logger, metrics: metrics,
		cache: newCache(cfg.CacheBytes, metrics), places: make(chan struct{}, cfg.InFlight), snaps: make(chan struct{}, 1),
	}
	for i := range d.turns {
		d.turns[i] = make(chan struct{}, 1)
	}
	return d
}

// Meta is what comes with a command besides its body.
type Meta struct {
	TraceParent string
	Cause       string // the id of the event that caused it
}

// Handle does a command that came as a request. It is a service.Handler.
func (d *Dispatcher) Handle(ctx context.Context, tenant, name string, body []byte, meta service.Meta) (any, error) {
	return d.Do(ctx, tenant, name, body, Meta{TraceParent: meta.TraceParent})
}

// Do does a command of a tenant and returns its answer, or an *events.Error.
func (d *Dispatcher) Do(ctx context.Context, tenant, name string, body []byte, meta Meta) (*events.Reply, error) {
	return d.counted(name, func() (*events.Reply, error) { return d.do(ctx, tenant, name, body, meta) })
}

// counted tells the metrics of a command.
func (d *Dispatcher) counted(name string, do func() (*events.Reply, error)) (*events.Reply, error) {
	start := time.Now()
	reply, err := do()
	result := "ok"
	if err != nil {
		e := events.AsError(err)
		result, err = string(e.Code), e
	}
	d.metrics.Done(label(name), result, time.Since(start).Seconds())
	return reply, err
}

// label gives the name of a command for metrics and log lines: what a stranger
// sent must not become one.
func label(name string) string {
	if _, known := events.LookupCommand(name); !known {
		return "unknown"
	}
	return name
}

func (d *Dispatcher) do(ctx context.Context, tenant, name string, body []byte, meta Meta) (*events.Reply, error) {
	select {
	case d.places <- struct{}{}:
		defer func() { <-d.places }()
	default:
		return nil, events.Errorf(events.Unavailable, "too many commands are under way; try again")
	}
	ctx, cancel := context.WithTimeout(ctx, d.cfg.Timeout)
	defer cancel()
	c, err := d.admit(tenant, name, body, meta)
	if err != nil {
		return nil, err
	}
	return d.run(ctx, name, c)
}

// newCommandID names a command whose caller did not.
func newCommandID() string { return uuid.Must(uuid.NewV7()).String() }

// run finds the command's thread and does it there.
func (d *Dispatcher) run(ctx context.Context, name string, c *thread.Command) (*events.Reply, error) {
	if err := d.keepContents(ctx, c); err != nil {
		return nil, err
	}
	if resolve, ok := c.Parts[0].Data.(events.ResolveThread); ok && name == "thread.resolve" {
		return d.resolve(ctx, c, resolve.Key)
	}
	if _, key := events.ThreadRef(c.ThreadID); key != "" {
		return d.onKey(ctx, c, key)
	}
	return d.queue(ctx, c)
}

// resolveThread finds the thread that a command names by its key at this moment.
func (d *Dispatcher) resolveThread(ctx context.Context, c *thread.Command) error {
	id, key := events.ThreadRef(c.ThreadID)
	if key != "" {
		claim, err := d.claimNow(ctx, c.Tenant, key)
		if err != nil {
			return err
		}
		if claim.holder == "" {
			return events.Missing("thread", c.ThreadID)
		}
		id = claim.holder
	}
	c.ThreadID = id
	return nil
}
