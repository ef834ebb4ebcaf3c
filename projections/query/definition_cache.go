package query

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/lru"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
)

// DefinitionsConfig bounds the definitions that a process caches. The zero value of a field means its
// default.
type DefinitionsConfig struct {
	CacheBytes int64            // of definitions, decoded; default 16 MiB
	MaxAge     time.Duration    // after which a definition is read again in any case; default 30 s
	Now        func() time.Time // default time.Now
	// Defined returns the last commit that is known to have changed a definition of a tenant.
	// Shown returns the commit up to which the read models are stored. A definition that was read
	// before they showed Defined is read again. Default: no commit is known.
	Defined func(tenant string) uint64
	Shown   func() uint64
}

func (c DefinitionsConfig) withDefaults() DefinitionsConfig {
	if c.CacheBytes == 0 {
		c.CacheBytes = 16 << 20
	}
	if c.MaxAge == 0 {
		c.MaxAge = 30 * time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Defined == nil {
		c.Defined = func(string) uint64 { return 0 }
	}
	if c.Shown == nil {
		c.Shown = func() uint64 { return 0 }
	}
	return c
}

// Defined is a definition with its value: an events.ModelDefinition,
// PromptDefinition, ToolDefinition or AgentDefinition. It is shared: do not change
// it.
type Defined struct {
	*events.Definition
	Value any
}

// Definitions caches the definitions of all tenants that were read recently. It is safe for
// concurrent use.
//
// What it returns may lag behind the log by as much as the read model does. On a cluster a read
// may be answered by a lagging replica; then an old definition may be returned for MaxAge.
//
// Without Run it works, too, but reads each definition from its bucket.
type Definitions struct {
	source DefinitionSource
	cfg    DefinitionsConfig
	logger zerolog.Logger

	mu      sync.Mutex                          // guards what follows
	follows bool                                // Run notifies it of changes
	changes uint64                              // the number of notifications; a read that began before the last one may be outdated
	kept    *lru.Cache[string, *keptDefinition] // by the key of the document; for a past version with @ and the version
}

type keptDefinition struct {
	defined *Defined // nil: the definition does not exist
	read    time.Time
	shown   uint64 // the sequence that the read models showed when it was read
}

// NewDefinitions returns a reader of the definitions in a log and its buckets.
func NewDefinitions(log *eventlog.Log, cfg DefinitionsConfig, logger zerolog.Logger) *Definitions {
	d := &Definitions{source: NewDefinitionSource(log, documents.NewModels()), cfg: cfg.withDefaults(), logger: logger}
	d.kept = lru.New[string, *keptDefinition](d.cfg.CacheBytes)
	return d
}

// Get returns a definition as it is now. The error is not_found if there is none.
func (d *Definitions) Get(ctx context.Context, tenant string, kind events.DefinitionKind, name string) (*Defined, error) {
	ref := events.DefinitionRef{Kind: kind, Name: name}
	return d.getKept(ctx, tenant, ref, tenant+"."+ref.Key(), d.cfg.Defined(tenant), func() (*events.Definition, error) { return d.source.One(ctx, tenant, ref) })
}

// Absent reports whether Get has found that there is no such definition, and no change was noticed
// since. Like a definition, it may lag behind. Get itself reads the bucket each time for a
// definition that does not exist.
func (d *Definitions) Absent(tenant string, kind events.DefinitionKind, name string) bool {
	kept, _ := d.lookUp(tenant+"."+events.DefinitionRef{Kind: kind, Name: name}.Key(), d.cfg.Defined(tenant))
	return kept != nil && kept.defined == nil
}

// Version returns a version of a definition. The error is a not_found if the definition never had
// that version, or was removed with it. A version other than the current one is searched in the
// tenant's part of the log.
func (d *Definitions) Version(ctx context.Context, tenant string, kind events.DefinitionKind, name string, version int64) (*Defined, error) {
	now, err := d.Get(ctx, tenant, kind, name)
	if err == nil && now.Definition.Version == version || err != nil && !events.IsNotFound(err) {
		return now, err
	}
	ref := events.DefinitionRef{Kind: kind, Name: name}
	key := tenant + "." + ref.Key() + "@" + strconv.FormatInt(version, 10)
	return d.getKept(ctx, tenant, ref, key, 0, func() (*events.Definition, error) { return d.source.At(ctx, tenant, ref, version) })
}

// LoadDefinition returns the current definition as its Go type, such as events.AgentDefinition, and its
// version.
func LoadDefinition[T any](ctx context.Context, d *Definitions, tenant string, kind events.DefinitionKind, name string) (T, int64, error) {
	var zero T
	defined, err := d.Get(ctx, tenant, kind, name)
	if err != nil {
		return zero, 0, err
	}
	value, ok := defined.Value.(T)
	if !ok {
		return zero, 0, fmt.Errorf("loading the definition of %s %s: it is a %T, and not a %T", kind, name, defined.Value, zero)
	}
	return value, defined.Definition.Version, nil
}

// getKept returns the cached definition under a key if it is as new as a commit. Otherwise it
// reads and caches the definition.
func (d *Definitions) getKept(ctx context.Context, tenant string, ref events.DefinitionRef, key string, seq uint64, read func() (*events.Definition, error)) (*Defined, error) {
	if !events.ValidTenant(tenant) || !events.Pattern(events.PatternName).MatchString(ref.Name) {
		return nil, events.Missing(string(ref.Kind), ref.Name)
	}
	kept, changes := d.lookUp(key, seq)
	if kept != nil && kept.defined != nil {
		return kept.defined, nil
	}
	k, bytes := &keptDefinition{read: d.cfg.Now(), shown: d.cfg.Shown()}, int64(400)
	doc, err := read()
	if err != nil {
		return nil, err
	}
	if doc != nil {
		k.defined, bytes = &Defined{Definition: doc}, bytes+3*int64(len(doc.Definition))
		if k.defined.Value, err = events.DecodeDefinition(ref.Kind, doc.Definition); err != nil {
			return nil, fmt.Errorf("the definition of %s: %w", ref, err)
		}
	}
	d.keep(key, k, bytes, changes)
	if doc == nil {
		return nil, events.Missing(string(ref.Kind), ref.Name)
	}
	return k.defined, nil
}

// lookUp returns the cached definition if it is as new as a commit, nil if it has to be read, and
// the number of changes so far.
func (d *Definitions) lookUp(key string, seq uint64) (*keptDefinition, uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	k, ok := d.kept.Get(key)
	if ok && (k.shown < seq || d.cfg.Now().Sub(k.read) > d.cfg.MaxAge) {
		d.kept.Drop(key)
		k = nil
	}
	return k, d.changes
}

// keep caches what was read, unless there was a change meanwhile.
func (d *Definitions) keep(key string, k *keptDefinition, bytes int64, changes uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.follows && d.changes == changes {
		d.kept.Put(key, k, bytes)
	}
}

// changed drops a definition that has changed.
func (d *Definitions) changed(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.changes++
	d.kept.Drop(key)
}

// forget drops everything. follows says whether d is notified of changes from now on.
func (d *Definitions) forget(follows bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.follows = follows
	d.changes++
	d.kept.Clear()
}

// Run follows the changes until ctx ends. After a reconnect it drops everything, because a server
// that crashed may have lost its newest writes.
func (d *Definitions) Run(ctx context.Context) error {
	buckets.KeepFollowing(ctx, d.source.log.Streams(), d.follow, func(err error) {
		d.logger.Warn().Err(err).Msg("following the definitions was interrupted; each is read from its bucket until it goes on")
	})
	return nil
}

// follow follows the changes until ctx ends or something interrupts it, and then drops everything.
func (d *Definitions) follow(ctx context.Context) error {
	defer d.forget(false)
	bucket := d.source.log.Bucket(d.source.models.Of(documents.Definitions).Bucket)
	stream, err := d.source.log.JetStream().Stream(ctx, bucket.Stream())
	if err != nil {
		return fmt.Errorf("the bucket of definitions: %w", err)
	}
	// A definition's key has two dots; the checkpoint's has one.
	from := jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{bucket.Subject("*.*.*")},
		DeliverPolicy:  jetstream.DeliverByStartSequencePolicy, OptStartSeq: stream.CachedInfo().State.LastSeq + 1, HeadersOnly: true,
	}
	return buckets.Follow(ctx, stream, from, func() { d.forget(true) }, func(m jetstream.Msg, _ bool) { d.changed(bucket.Key(m.Subject())) })
}

// Every returns the definitions of a kind, of all tenants, as their bucket has them now.
func (d *Definitions) Every(ctx context.Context, kind events.DefinitionKind) ([]OwnedDefinition, error) {
	return d.source.Every(ctx, kind)
}
