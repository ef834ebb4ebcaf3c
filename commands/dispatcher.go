package commands

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/jsonplan"
	"github.com/skein-threads/skein/quota"
	"github.com/skein-threads/skein/schema"
	"github.com/skein-threads/skein/service"
)

// Config bounds a dispatcher. The zero value of a field means its default.
type Config struct {
	CacheBytes    int64            // of thread states kept in memory; default DefaultCacheBytes
	InFlight      int              // commands in flight; more are refused as unavailable; default 8192
	SnapshotEvery int64            // least number of events between two snapshots of a thread, and never less than a quarter of its events; default 500
	Timeout       time.Duration    // for one command, from validation to the log; default 20 s
	Now           func() time.Time // default time.Now
	Intake        Intake           // receives what this process stores; default: nothing does
	Fair          quota.Fair       // of each tenant's submitted commands, while others are active
	Contents      Contents         // stores the content of files; default: contents are refused
	// Forks limits how many threads are forked at once, since each fork may read a long history;
	// default DefaultForks places.
	Forks *quota.Pool
	// Secret is the key from which the tokens of writer.claim are derived. All processes on a log
	// must have the same, see [eventlog.Log.Secret]; default: a random key.
	Secret []byte
	// Pairs stores tenants' key-value pairs; default: commands on pairs are refused.
	Pairs Pairs
	// Pushes stores where the updates of runs are sent; default: commands on pushes are refused.
	Pushes Pushes
	// Definitions provides the tenants' definitions; default: none.
	Definitions Definitions
	Agents      Agents  // knows the agents that can be asked; default: every name is an agent's
	Answers     Answers // checks people's answers; default: answers to questions with a schema are refused
}

// Intake receives the commits that this process stores, so that a worker can start the work that
// follows from them. The worker itself stores its results through the dispatcher; with an Intake
// between them, either can be created first. Its methods must return at once. *runtime.Intake
// implements it.
type Intake interface {
	// Stored receives every commit that this process stored, before its commands are replied to. A
	// call may be lost: the process may crash before it.
	Stored(c *events.Commit)
	// Joins receives the events of a command that is about to be stored, and returns a command of
	// this process to be stored in the same commit, or nil. It is called again if the first
	// command is decided again.
	Joins(made []events.Event) *Joined
}

// noIntake is the default of Config.Intake.
type noIntake struct{}

func (noIntake) Stored(*events.Commit)        {}
func (noIntake) Joins([]events.Event) *Joined { return nil }

// Agents knows the agents that can be asked to answer.
type Agents interface {
	// Knows returns a not_found for an agent that no tenant defines and no process has ever served.
	Knows(ctx context.Context, tenant, name string) error
}

// Answers checks the answers of people.
type Answers interface {
	// Fits checks an answer against the JSON Schema of its question.
	Fits(schema, answer events.JSON) error
}

// DefaultCacheBytes suffices for threads with about 130,000 turns together. If more are in use, a
// command on an evicted thread loads its state again.
const DefaultCacheBytes = 256 << 20

// DefaultForks is how many threads are forked at once by default.
const DefaultForks = 8

// Contents stores what files hold, and the pages of long histories. Package files implements it.
type Contents interface {
	// Keep stores content for a tenant, and returns when it is durable.
	Keep(ctx context.Context, tenant string, content []byte) (events.FileContent, error)
	// KeepPage stores a page of a thread's history, and returns when it is durable. The page is
	// erased with that thread, unless another thread has inherited it by then.
	KeepPage(ctx context.Context, tenant, thread string, page []byte) error
	// Hold reports whether content is stored. If so, it protects the content from the collector
	// for long enough that an event can name it.
	Hold(ctx context.Context, tenant, digest string) (bool, error)
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
	if c.Intake == nil {
		c.Intake = noIntake{}
	}
	c.Fair = c.Fair.WithActivity()
	if c.Forks == nil {
		c.Forks = quota.NewPool("forks", quota.Places{Total: DefaultForks}, nil)
	}
	if c.Definitions == nil {
		c.Definitions = noDefinitions{}
	}
	if c.Secret == nil {
		c.Secret = newKey()
	}
	return c
}

// Metrics receives measurements of the dispatcher. Each method must return at once.
type Metrics interface {
	// Done reports a command, how it ended (ok, or an error's code), and how long it took.
	Done(command, result string, seconds float64)
	// Cached reports the contents of the cache of thread states.
	Cached(threads int, bytes int64)
	// Merged reports how many commands one commit holds.
	Merged(commands int)
}

// NoMetrics discards everything.
type NoMetrics struct{}

// Done implements Metrics.
func (NoMetrics) Done(string, string, float64) {}

// Cached implements Metrics.
func (NoMetrics) Cached(int, int64) {}

// Merged implements Metrics.
func (NoMetrics) Merged(int) {}

// Dispatcher runs commands. It is safe for concurrent use.
type Dispatcher struct {
	log     *eventlog.Log
	schema  *schema.Validator
	cfg     Config
	logger  zerolog.Logger
	metrics Metrics
	cache   *cache
	places  chan struct{}      // one for each command in flight
	snaps   chan *bytes.Buffer // one snapshot is written at a time, from the buffer in it

	histories *histories // of threads that were forked
	pages     *eventlog.Pages
	replies   *jsonplan.Plan // encodes replies
	closed    sync.Once
	shares    []byte            // the key of the tokens of shares; random, and never leaves this process
	keyLocks  [64]chan struct{} // striped by key: this process creates only one thread at a time for a key
}

// NewDispatcher returns a dispatcher that writes to a log.
func NewDispatcher(log *eventlog.Log, validator *schema.Validator, cfg Config, logger zerolog.Logger, metrics Metrics) *Dispatcher {
	cfg = cfg.withDefaults()
	if metrics == nil {
		metrics = NoMetrics{}
	}
	d := &Dispatcher{
		log: log, schema: validator, cfg: cfg, logger: logger, metrics: metrics,
		cache: newCache(cfg.CacheBytes, metrics), places: make(chan struct{}, cfg.InFlight), snaps: make(chan *bytes.Buffer, 1), pages: eventlog.PagesOn(log.Streams()),
		histories: newHistories(), shares: newKey(), replies: jsonplan.Of(reflect.TypeFor[events.Reply]()),
	}
	d.snaps <- new(bytes.Buffer)
	for i := range d.keyLocks {
		d.keyLocks[i] = make(chan struct{}, 1)
	}
	return d
}

// Forget forgets the states of threads that no command is using: the next command of each reads it from
// the log.
func (d *Dispatcher) Forget() { d.cache.forget() }

// Meta holds what accompanies the body of a command.
type Meta struct {
	TraceParent string
	Cause       string // the id of the event that caused it
}

// Handle runs a command that arrived as a request. It is a service.Handler.
func (d *Dispatcher) Handle(ctx context.Context, tenant, name string, body []byte, meta service.Meta) (any, error) {
	service.GrowStack()
	reply, err := d.Do(ctx, tenant, name, body, Meta{TraceParent: meta.TraceParent})
	if err != nil {
		return nil, err
	}
	raw, err := d.replies.Append(nil, reply)
	if err != nil {
		return nil, fmt.Errorf("encoding a reply: %w", err)
	}
	return service.Bytes(raw), nil
}

// Do runs a command of a tenant and returns its reply, or an *events.Error.
func (d *Dispatcher) Do(ctx context.Context, tenant, name string, body []byte, meta Meta) (*events.Reply, error) {
	return d.do(ctx, tenant, name, len(body), func() (events.Request, error) { return d.schema.DecodeRequest(body) }, meta)
}

// Execute is Do for a request that was not encoded as JSON. Its data must be encoded by this process,
// so that it is valid JSON without repeated names. The caller must not change r, or anything that it
// refers to, because the command's events refer to it.
func (d *Dispatcher) Execute(ctx context.Context, tenant, name string, r *events.Request, meta Meta) (*events.Reply, error) {
	service.GrowStack()
	return d.do(ctx, tenant, name, Size(r), func() (events.Request, error) {
		own := *r
		if string(own.Data) == "null" { // as if it were absent
			own.Data = nil
		}
		return own, d.schema.CheckRequest(&own)
	}, meta)
}

// Size returns about how many bytes a request has as JSON.
func Size(r *events.Request) int {
	const names = len(`{"commandId":"","threadId":"","actor":"","data":}`)
	size := names + len(r.CommandID) + len(r.ThreadID) + len(r.WriterToken) + len(r.Actor) + len(r.Data)
	if r.Rights != nil {
		size += len(r.Rights.User)
		for _, thread := range r.Rights.Threads {
			size += len(thread) + len(`"",`)
		}
	}
	return size
}

// do runs the command that read returns. size is the size of the request in bytes.
func (d *Dispatcher) do(ctx context.Context, tenant, name string, size int, read func() (events.Request, error), meta Meta) (*events.Reply, error) {
	return d.measured(name, func() (*events.Reply, error) { return d.admitAndRun(ctx, tenant, name, size, read, meta) })
}

// measured runs do and reports the command to the metrics.
func (d *Dispatcher) measured(name string, do func() (*events.Reply, error)) (*events.Reply, error) {
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

// label returns the name of a command for metrics and log lines, "unknown" if it is not in the
// catalog: clients must not be able to create labels.
func label(name string) string {
	if _, known := events.LookupCommand(name); !known {
		return "unknown"
	}
	return name
}

func (d *Dispatcher) admitAndRun(ctx context.Context, tenant, name string, size int, read func() (events.Request, error), meta Meta) (*events.Reply, error) {
	select {
	case d.places <- struct{}{}:
		defer func() { <-d.places }()
	default:
		return nil, events.Errorf(events.Unavailable, "too many commands are in flight; try again")
	}
	ctx, cancel := context.WithTimeout(ctx, d.cfg.Timeout)
	defer cancel()
	c, err := d.admitRequest(tenant, name, size, read, meta)
	if err != nil {
		return nil, err
	}
	if err := chargeQuota(ctx, c, size); err != nil {
		return nil, err
	}
	ctx = quota.Unmeasured(ctx) // reads of the thread are not throttled, because other commands may wait for the thread
	concealClaim(d.cfg.Secret, c)
	c.ShareKey = d.shares
	reply, err := d.run(ctx, name, c)
	if err != nil {
		return nil, err
	}
	return d.withShareToken(c, reply), nil
}

// chargeQuota waits until the tenant's quota allows the command. Each part of a thread.commit
// counts as a command.
func chargeQuota(ctx context.Context, c *thread.Command, bytes int) error {
	if err := quota.SpendRequests(ctx, len(c.Parts), bytes); err != nil {
		return events.Errorf(events.Unavailable, "the command waited too long for commands of its tenant: %w; nothing was written; try again", err)
	}
	return nil
}

// newKey returns a random key.
func newKey() []byte {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // rand.Read never fails
	return key
}

// withShareToken adds the token of a share to the reply of the command that made it. The log holds
// only a digest of the token. The token is computed from the command and this process's key, so a
// repeat returns it again. Another process has a different key, so its reply to a repeat has no
// token.
func (d *Dispatcher) withShareToken(c *thread.Command, reply *events.Reply) *events.Reply {
	if reply.Result == nil || reply.Result.ShareID == "" {
		return reply
	}
	token := events.ShareToken(d.shares, c.Tenant, reply.ThreadID, c.ID, reply.Result.ShareID)
	if events.ShareDigest(token) == reply.Result.ShareDigest {
		reply.Result.Token = token
	}
	return reply
}

// newCommandID returns an id for a command whose caller set none.
func newCommandID() string { return uuid.Must(uuid.NewV7()).String() }

// run finds the command's thread and runs the command there. While the store refuses writes, every
// command is refused, even one that would write nothing: what this process reads may never have
// been stored.
func (d *Dispatcher) run(ctx context.Context, name string, c *thread.Command) (*events.Reply, error) {
	if d.log.Config().Outage.Err() != nil {
		return nil, events.Errorf(events.Unavailable, "the store takes no writes until the operator has started Skein again; nothing was written")
	}
	if reply, err, done := d.unlogged(ctx, c); done {
		return reply, err
	}
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

// resolveThread finds the thread that currently holds the key that a command names.
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
