package webhooks

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
)

// Bucket holds how far webhooks are, without its prefix: a document for each at
// {tenant}.webhook.{name}, and the position of all. Only the process with the lease writes.
const Bucket = "thread_webhooks"

// stored is how far a webhook is, as it is stored. It begins with what queries show.
type stored struct {
	events.Webhook
	Definition events.JSON           `json:"definition"`
	Version    int64                 `json:"version"`
	Lanes      map[string]storedLane `json:"lanes,omitempty"`
}

// storedLane is a thread that is behind.
type storedLane struct {
	Next     uint64 `json:"next"`
	Head     uint64 `json:"head"`
	Failures int    `json:"failures,omitzero"`
}

// store is the bucket. A writer that was replaced is refused.
type store struct {
	kv     jetstream.KeyValue
	pushes jetstream.KeyValue
	log    *eventlog.Log
	at     *eventlog.Position // up to which every webhook's state is stored
}

// Ensure creates what webhooks are stored in. Without a position of this log, as on the
// first start and after a restore, every webhook that is defined begins at the log's end.
func Ensure(ctx context.Context, log *eventlog.Log, logger zerolog.Logger) error {
	for _, bucket := range []string{Bucket, PushBucket} {
		if err := assets.EnsureBucket(ctx, log.Streams(), bucket); err != nil {
			return err
		}
	}
	// Another process may have created the bucket at this moment, and not every server of a
	// cluster knows it.
	return retry.Do(ctx, retry.Policy{First: 250 * time.Millisecond, Limit: time.Minute}, func() error { return ensurePosition(ctx, log, logger) },
		func(err error) bool { return streams.MayPass(err) || errors.Is(err, jetstream.ErrBucketNotFound) })
}

// ensurePosition stores a position of this log, unless there is one.
func ensurePosition(ctx context.Context, log *eventlog.Log, logger zerolog.Logger) error {
	s, err := openStore(ctx, log)
	if err != nil {
		return err
	}
	r := &running{hub: New(log, Config{}, logger), store: s, hooks: map[name]*hook{}}
	if s.at.Known() {
		return nil
	}
	r.seq = s.at.Seq()
	if err := r.define(ctx); err != nil {
		return err
	}
	if err := s.clear(ctx); err != nil {
		return err
	}
	if err = r.save(ctx); err == nil {
		return nil
	}
	if now, later := openPosition(ctx, log); later == nil && now.Known() { // another process did it
		return nil
	}
	return err
}

// clear removes what is stored of webhooks and pushes: it is about another log.
func (s *store) clear(ctx context.Context) error {
	return errors.Join(clearBucket(ctx, s.kv), clearBucket(ctx, s.pushes))
}

func clearBucket(ctx context.Context, kv jetstream.KeyValue) error {
	keys, err := kv.ListKeys(ctx)
	if err != nil {
		return fmt.Errorf("the bucket %s: %w", kv.Bucket(), err)
	}
	for key := range keys.Keys() {
		if key == eventlog.PositionKey {
			continue
		}
		if err := kv.Purge(ctx, key); err != nil {
			return fmt.Errorf("the bucket %s: %w", kv.Bucket(), err)
		}
	}
	return nil
}

func openStore(ctx context.Context, log *eventlog.Log) (*store, error) {
	kv, err := log.JetStream().KeyValue(ctx, log.Config().Names.Bucket(Bucket))
	if err != nil {
		return nil, fmt.Errorf("the bucket of webhooks: %w", err)
	}
	pushes, err := openPushes(ctx, log)
	if err != nil {
		return nil, err
	}
	at, err := openPosition(ctx, log)
	return &store{kv: kv, pushes: pushes, log: log, at: at}, err
}

func openPosition(ctx context.Context, log *eventlog.Log) (*eventlog.Position, error) {
	return eventlog.OpenPosition(ctx, log, Bucket, "webhooks")
}

func (n name) key() string {
	return n.tenant + "." + events.DefinitionRef{Kind: events.WebhookKind, Name: n.hook}.Key()
}

// put stores how far a webhook is.
func (s *store) put(ctx context.Context, h *hook, doc *stored) error {
	raw, err := json.Marshal(doc, json.Deterministic(true))
	if err != nil {
		return err
	}
	if h.stored == 0 {
		h.stored, err = s.kv.Create(ctx, h.name.key(), raw)
	} else {
		h.stored, err = s.kv.Update(ctx, h.name.key(), raw, h.stored)
	}
	if err != nil {
		return fmt.Errorf("store how far the webhook %s is: %w", h.name.hook, err)
	}
	return nil
}

// remove removes how far a webhook is, if that is stored.
func (s *store) remove(ctx context.Context, h *hook) error {
	if h.stored == 0 {
		return nil
	}
	if err := s.kv.Purge(ctx, h.name.key(), jetstream.LastRevision(h.stored)); err != nil {
		return fmt.Errorf("remove how far the webhook %s is: %w", h.name.hook, err)
	}
	return nil
}

// load reads the webhooks as they were stored.
func (r *running) load(ctx context.Context) error {
	if !r.store.at.Known() {
		return errors.New("the position of webhooks is not stored, or is beyond the log; start skein serve again")
	}
	r.seq = r.store.at.Seq()
	bucket := r.store.log.Bucket(Bucket)
	if err := bucket.ShowsAll(ctx); err != nil { // a replica that lags would lose what is behind
		return fmt.Errorf("how far the webhooks are: %w", err)
	}
	docs, err := bucket.All(ctx, "*."+string(events.WebhookKind)+".*")
	if err != nil {
		return fmt.Errorf("how far the webhooks are: %w", err)
	}
	for _, m := range docs {
		var doc stored
		if err := json.Unmarshal(m.Data, &doc); err != nil {
			return fmt.Errorf("how far the webhook %.200s is: %w", m.Subject, err)
		}
		tenant, _, _ := strings.Cut(m.Subject, ".")
		r.restore(name{tenant, doc.Name}, &doc, m.Seq)
	}
	return nil
}

// restore adds a webhook as it was stored. One whose definition cannot be read keeps its place,
// and is sent to when it is applied again.
func (r *running) restore(n name, doc *stored, revision uint64) {
	h := newHook(r, n, max(uint64(doc.Seq), r.dispatchedTo(doc)))
	if !h.define(events.DefinitionChanged{Kind: events.WebhookKind, Name: n.hook, Version: doc.Version, Definition: doc.Definition}) {
		h.raw, h.version = doc.Definition, doc.Version
	}
	h.full, h.delivered, h.failures, h.lastError = doc.Full, doc.Delivered, int(doc.Failures), doc.LastError
	if at, err := events.ParseTime(doc.FailingSince); err == nil {
		h.since = at
	}
	for thread, l := range doc.Lanes {
		one := &lane{thread: thread, next: l.Next, head: l.Head, failures: l.Failures}
		h.lanes[thread] = one
		heap.Push(&h.due, one)
	}
	h.changed, h.stored = false, revision
	r.hooks[n] = h
}

// dispatchedTo returns up to which the log was dispatched to a webhook when the position was
// stored.
func (r *running) dispatchedTo(doc *stored) uint64 {
	if doc.Full {
		return 0
	}
	return r.seq
}

// define adds the webhooks that are defined in the log, from now on.
func (r *running) define(ctx context.Context) error {
	subject := r.store.log.Config().Names.Log("*", events.TenantAggregate)
	for m, err := range r.store.log.Stored(ctx, subject, 1) {
		if err != nil {
			return err
		}
		c, err := r.store.log.Decode(m)
		if err != nil {
			continue // it is counted and reported already
		}
		for i := range c.Events {
			d, ok := c.Events[i].Data.(events.DefinitionChanged)
			if !ok || d.Kind != events.WebhookKind || c.Seq > r.seq {
				continue
			}
			n := name{c.Tenant, d.Name}
			if delete(r.hooks, n); d.Definition != nil {
				if h := newHook(r, n, r.seq); h.define(d) {
					r.hooks[n] = h
				}
			}
		}
	}
	return nil
}

// state returns how far the webhook is, and whether that changed since it was asked last.
func (h *hook) state() (*stored, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	doc := &stored{
		Webhook: events.Webhook{
			Name: h.name.hook, Seq: int64(h.seq), Delivered: h.delivered, Behind: int64(len(h.lanes)), Full: h.full, Failures: int64(h.failures), LastError: h.lastError,
		},
		Definition: h.raw, Version: h.version, Lanes: make(map[string]storedLane, len(h.lanes)),
	}
	if h.failures > 0 {
		doc.FailingSince = h.since.String()
	}
	for thread, l := range h.lanes {
		doc.Lanes[thread] = storedLane{l.next, l.head, l.failures}
	}
	changed := h.changed
	h.changed = false
	return doc, changed
}
