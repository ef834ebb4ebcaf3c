package webhooks

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
	"github.com/skein-threads/skein/quota"
	"github.com/skein-threads/skein/runtime/remote"
)

// DefaultPlaces is how many requests of all tenants are in flight, unless Config.Places has others.
const DefaultPlaces = 64

// Lease is the lease under which one process of an installation delivers.
const Lease = "webhooks"

// Config configures a Hub. The functions are required; the zero value of another field
// means its default.
type Config struct {
	// Endpoint returns the endpoint of a webhook, if the operator allows it.
	Endpoint func(tenant, what string, to *events.HTTPEndpoint) (remote.Endpoint, error)
	// Thread returns a thread as it is at a sequence of the log or later. The error is a
	// not_found if it was deleted.
	Thread func(ctx context.Context, tenant, thread string, seq uint64) (*events.Thread, error)

	// Push returns the endpoint of a push, if the operator allows it. Update returns the
	// notification of an event, which is in the log at a sequence. Without them no pushes are sent.
	Push   func(to *events.SetPush) (remote.Endpoint, error)
	Update func(ctx context.Context, to *events.SetPush, e *events.Event, seq uint64) (*Update, error)

	PushAttempts int // at one update; default 50, which takes 39 hours

	Metrics    Metrics
	Timeout    time.Duration // of one request; default 15 s
	Backoff    retry.Policy  // between attempts at a thread's events; default 1 s to 1 h
	Probe      retry.Policy  // between attempts while an endpoint accepts nothing; default 1 s to 1 min
	SaveEvery  time.Duration // how much is delivered again after a crash; default 1 s
	PerHook    int           // requests in flight of a webhook; default 4
	Places     *quota.Pool   // for requests in flight of all tenants; default DefaultPlaces of them
	MaxBehind  int           // threads of a webhook that are behind; default 10,000
	ManyFailed int           // failures in a row after which a webhook makes one attempt at a time; default 5
}

// Metrics counts deliveries. It must not block.
type Metrics interface {
	// Delivery is called after each attempt at an event.
	Delivery(failed bool)
	// Webhooks is called with the number of threads that are behind, and of webhooks whose
	// last attempt failed.
	Webhooks(behind, failing int)
}

// NoMetrics implements Metrics and does nothing.
type NoMetrics struct{}

// Delivery implements Metrics.
func (NoMetrics) Delivery(bool) {}

// Webhooks implements Metrics.
func (NoMetrics) Webhooks(int, int) {}

func (c Config) withDefaults() Config {
	orElse := func(n *int, usual int) {
		if *n == 0 {
			*n = usual
		}
	}
	orElse(&c.PerHook, 4)
	if c.Places == nil {
		c.Places = quota.NewPool("webhooks", quota.Places{Total: DefaultPlaces}, nil)
	}
	orElse(&c.MaxBehind, 10_000)
	orElse(&c.ManyFailed, 5)
	orElse(&c.PushAttempts, 50)
	if c.Metrics == nil {
		c.Metrics = NoMetrics{}
	}
	if c.Timeout == 0 {
		c.Timeout = 15 * time.Second
	}
	if c.Backoff.First == 0 {
		c.Backoff = retry.Policy{First: time.Second, Max: time.Hour}
	}
	if c.Probe.First == 0 {
		c.Probe = retry.Policy{First: time.Second, Max: time.Minute}
	}
	if c.SaveEvery == 0 {
		c.SaveEvery = time.Second
	}
	return c
}

// Hub delivers the events of all tenants.
type Hub struct {
	log    *eventlog.Log
	cfg    Config
	logger zerolog.Logger
}

// New returns a hub of a log.
func New(log *eventlog.Log, cfg Config, logger zerolog.Logger) *Hub {
	return &Hub{log: log, cfg: cfg.withDefaults(), logger: logger}
}

// running is one run of a hub.
type running struct {
	hub   *Hub
	store *store
	work  sync.WaitGroup

	mu    sync.Mutex // guards the fields below
	seq   uint64     // up to which the log was dispatched
	hooks map[name]*hook
	gone  []*hook // webhooks that were removed, whose state is still stored

	pushes map[place]map[string]*hook // by id
	ended  []string                   // keys of pushes that are still stored
}

// name is the name of a webhook.
type name struct{ tenant, hook string }

// Run delivers until ctx ends, or the log or the store of positions fails: it may then be
// called again, and continues. Run it under [Lease].
func (h *Hub) Run(ctx context.Context) error {
	s, err := openStore(ctx, h.log)
	if err != nil {
		return err
	}
	r := &running{hub: h, store: s, hooks: map[name]*hook{}, pushes: map[place]map[string]*hook{}}
	if err := r.load(ctx); err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer r.work.Wait()
	defer stop(nil)
	for _, one := range r.hooks {
		r.start(ctx, one)
	}
	if h.cfg.Push != nil {
		loaded := make(chan struct{})
		r.work.Go(func() { stop(r.followPushes(ctx, func() { close(loaded) })) })
		select {
		case <-loaded:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	after := r.seq
	r.work.Go(func() {
		if err := r.keepSaved(ctx); err != nil {
			stop(err)
		}
	})
	err = eventlog.Follow(ctx, h.log, Lease, after, eventlog.FollowHandler{Take: func(e eventlog.Entry) error {
		r.dispatch(ctx, e)
		return nil
	}})
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return err
}

// dispatch notes an entry of the log for the webhooks of its tenant.
func (r *running) dispatch(ctx context.Context, e eventlog.Entry) {
	if e.Commit != nil { // else it is counted and reported already
		r.changeHooks(ctx, e.Commit)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for n, one := range r.hooks {
		if e.Commit == nil || n.tenant == e.Commit.Tenant {
			one.dispatch(e.Seq, e.Commit)
		}
	}
	if e.Commit != nil {
		for _, one := range r.pushes[place{e.Commit.Tenant, e.Commit.Thread}] {
			one.dispatch(e.Seq, e.Commit)
		}
	}
	r.seq = e.Seq
}

// changeHooks makes, changes and removes webhooks as a commit defines them.
func (r *running) changeHooks(ctx context.Context, c *events.Commit) {
	if c.Thread != events.TenantAggregate {
		return
	}
	for i := range c.Events {
		d, ok := c.Events[i].Data.(events.DefinitionChanged)
		if !ok || d.Kind != events.WebhookKind {
			continue
		}
		n := name{c.Tenant, d.Name}
		r.mu.Lock()
		one := r.hooks[n]
		r.mu.Unlock()
		switch {
		case one == nil && d.Definition != nil:
			if one = newHook(r, n, c.Seq); one.define(d) {
				r.start(ctx, one)
			}
		case one != nil && d.Definition == nil && d.Version > one.definedAt():
			r.mu.Lock()
			delete(r.hooks, n)
			r.gone = append(r.gone, one)
			r.mu.Unlock()
			one.stop()
		case one != nil:
			one.define(d)
		}
	}
}

// start runs a webhook's scheduler.
func (r *running) start(ctx context.Context, one *hook) {
	r.mu.Lock()
	r.hooks[one.name] = one
	r.mu.Unlock()
	ctx, one.stop = context.WithCancel(ctx)
	r.work.Go(func() { one.schedule(ctx) })
}

// keepSaved stores what changed until ctx ends, and again at the end.
func (r *running) keepSaved(ctx context.Context) error {
	for {
		going := retry.Sleep(ctx, r.hub.cfg.SaveEvery)
		saving, cancel := context.WithoutCancel(ctx), func() {}
		if !going { // the process waits for it
			saving, cancel = context.WithTimeout(saving, saveTime)
		}
		err := r.save(saving)
		cancel()
		if err != nil || !going {
			return err
		}
	}
}

// saveTime is the timeout of saving one state, however many there are.
const saveTime = 10 * time.Second

// within calls save with that timeout.
func within(ctx context.Context, save func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, saveTime)
	defer cancel()
	return save(ctx)
}

// save stores the webhooks that changed, and then the position.
func (r *running) save(ctx context.Context) error {
	r.mu.Lock()
	seq, gone := r.seq, r.gone
	r.gone = nil
	var all []*hook
	for _, one := range r.hooks {
		all = append(all, one)
	}
	r.mu.Unlock()
	behind, failing := 0, 0
	for _, one := range gone { // first: another may have its name
		if err := within(ctx, func(ctx context.Context) error { return r.store.remove(ctx, one) }); err != nil {
			return err
		}
	}
	for _, one := range all {
		state, changed := one.state()
		behind += len(state.Lanes)
		if state.Failures > 0 {
			failing++
		}
		if !changed {
			continue
		}
		if err := within(ctx, func(ctx context.Context) error { return r.store.put(ctx, one, state) }); err != nil {
			return err
		}
	}
	if err := r.savePushes(ctx); err != nil {
		return err
	}
	r.hub.cfg.Metrics.Webhooks(behind, failing)
	return within(ctx, func(ctx context.Context) error { return r.store.at.Save(ctx, seq) })
}

// headers are the headers of a delivery, besides those of every signed request.
func headers(n name, event string) http.Header {
	return http.Header{"Skein-Webhook": {n.hook}, remote.IDHeader: {event}}
}
