package server

import (
	"context"
	"iter"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/queues"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/query"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/agents"
	"github.com/skein-threads/skein/runtime/effects"
	"github.com/skein-threads/skein/runtime/egress"
	"github.com/skein-threads/skein/runtime/model"
	"github.com/skein-threads/skein/runtime/remote"
	"github.com/skein-threads/skein/schema/arguments"
	"github.com/skein-threads/skein/server/metrics"
)

// OpenAIReactor is the name of the reactor over an OpenAI-compatible endpoint.
const OpenAIReactor = "openai"

// running is the part of a server that runs agents.
type running struct {
	schemas   *arguments.Checker
	registry  *runtime.Registry
	models    *model.Endpoints // nil: this process runs no agents
	directory atomic.Pointer[agents.Directory]
	roster    atomic.Pointer[agents.Roster]
	runs      *runtime.Intake
	timers    *effects.Timers
	busy      runtime.Busy       // set before the worker serves
	budget    runtime.Budget     // of tokens; nil: none
	defined   sync.Map           // by tenant: the sequence of the last definition through this process
	workers   sync.WaitGroup     // of executions and effects
	stop      context.CancelFunc // of taking work
}

// drain lets the workers finish current work, and take no more.
func (r *running) drain() {
	if r.stop != nil {
		r.stop()
	}
	r.workers.Wait()
}

func (r *running) close() {
	if d := r.directory.Load(); d != nil {
		d.Close()
	}
}

// register registers the reactors and tools of this process.
func (s *Server) register() error {
	s.work.schemas = arguments.New()
	s.work.registry = runtime.NewRegistry(s.work.schemas)
	if s.cfg.Workers < 0 { // they are for processes that run agents
		return nil
	}
	reactor, err := s.cfg.modelEndpoints(os.Getenv, s.logger)
	if err != nil {
		return err
	}
	s.work.models = reactor
	if err := s.work.registry.AddReactor(OpenAIReactor, reactor); err != nil {
		return err
	}
	if s.cfg.Register == nil {
		return nil
	}
	return s.cfg.Register(s.work.registry)
}

// Registry returns what this process offers to runs. Additions take effect from then
// on.
func (s *Server) Registry() *runtime.Registry { return s.work.registry }

// Stored implements commands.Intake.
func (r *running) Stored(c *events.Commit) {
	if c.Thread == events.TenantAggregate {
		r.defined.Store(c.Tenant, c.Seq)
	}
	r.runs.Stored(c)
	r.timers.Committed(c)
}

// Joins implements commands.Intake.
func (r *running) Joins(made []events.Event) *commands.Joined { return r.runs.Joins(made) }

// HasReactor implements query.Roster.
func (r *running) HasReactor(name string) bool {
	_, err := r.registry.Reactor(name)
	return err == nil
}

// startRunning starts the workers of executions and of effects.
func (s *Server) startRunning(background context.Context, dispatcher *commands.Dispatcher, queries *query.Queries, definitions *query.Definitions) error {
	log, err := s.open("runs")
	if err != nil {
		return err
	}
	presence, err := agents.NewPresence(background, log)
	if err != nil {
		return err
	}
	if s.cfg.Workers < 0 {
		s.work.roster.Store(&agents.Roster{Definitions: definitions, Presence: presence})
		return nil
	}
	// Requests of runs use a connection of their own.
	stateLog, err := s.open("states")
	if err != nil {
		return err
	}
	threads := &states{
		nc: stateLog.Conn(), names: s.cfg.Names, env: s.cfg.Env, clients: map[string]*client.Client{},
		warn: func(text string) { s.logger.Warn().Msg(text) },
	}
	if err := s.work.registry.AddEffect(events.PurgeEffect, runtime.EffectFunc(threads.purge)); err != nil {
		return err
	}
	variables, err := agents.ParseVariables(s.cfg.MCPVariables)
	if err != nil {
		return err
	}
	secrets, err := agents.ParseSecrets(s.cfg.HTTPSecrets)
	if err != nil {
		return err
	}
	allowed, err := egress.Parse(s.cfg.EgressAllow)
	if err != nil {
		return err
	}
	builtIn, err := threads.tools()
	if err != nil {
		return err
	}
	s.work.roster.Store(&agents.Roster{Definitions: definitions, Presence: presence, Registry: s.work.registry, BuiltIn: builtIn})
	directory := agents.New(agents.Config{
		Presence: presence, BuiltIn: builtIn,
		Definitions: definitions, Registry: s.work.registry, Conn: log.Conn(), Names: s.cfg.Names,
		CatchUp:  func(ctx context.Context, tenant string, all bool) error { return s.defined(ctx, log, tenant, all) },
		Programs: s.cfg.MCPPrograms, Variables: variables, Lookup: os.LookupEnv,
		Secrets: secrets, Egress: allowed, Logger: s.logger,
	})
	s.work.directory.Store(directory)
	if err := s.startWebhooks(background, directory, queries); err != nil {
		return err
	}
	if err := s.serveEmbeddings(log, definitions); err != nil {
		return err
	}
	var taking context.Context
	taking, s.work.stop = context.WithCancel(background)
	worker := runtime.New(log, dispatcher, runtime.Config{
		Name: s.cfg.Worker, Places: s.cfg.Workers, Reactors: directory, Agents: directory, Arguments: s.work.schemas, Hooks: s.cfg.Hooks,
		State: threads.state, Metrics: s.metrics.Runs(), Budget: s.work.budget, Shares: s.places(placesRuns, s.cfg.Workers), MostToolTime: s.cfg.MaxToolTime, ParkAfter: runtime.ParkAfter,
	}, s.logger)
	s.work.busy = busy(queries)
	s.work.runs.Serve(worker)
	s.metrics.WatchWork(func() (metrics.Work, error) { return work(worker, log, queries) })
	s.work.workers.Go(func() {
		if err := worker.Run(taking); err != nil && background.Err() == nil {
			s.logger.Error().Err(err).Msg("the worker takes no more runs")
		}
	})
	s.hold(background, log, runtime.RunLease, func(ctx context.Context) error {
		ctx, stop := context.WithCancel(ctx)
		var waking sync.WaitGroup
		defer waking.Wait()
		defer stop()
		waking.Go(func() { worker.Wake(ctx, queries.Parked, directory.Served, runtime.WakeEvery) })
		return worker.Sweep(ctx, s.work.busy, runtime.SweepEvery)
	})
	s.work.workers.Go(func() { presence.Announce(taking, s.work.registry) })
	effecting := effects.New(log, dispatcher, s.effect(log.Conn()), effects.Config{
		Drain: 5 * time.Second, State: threads.state, Concurrency: s.cfg.Places[placesEffects], Shares: s.places(placesEffects, 0), Rate: s.cfg.TenantEffectRate,
		Metrics: s.metrics.Runs(), Now: s.cfg.Now,
	}, s.logger)
	s.work.workers.Go(func() { effecting.Run(taking) })
	return nil
}

// Knows returns a not_found if there is no such agent, as far as this process can
// tell: one without workers knows none.
func (r *running) Knows(ctx context.Context, tenant, name string) error {
	if d := r.directory.Load(); d != nil {
		return d.Knows(ctx, tenant, name)
	}
	return nil
}

// Workers returns who serves what a definition needs.
func (r *running) Workers(ctx context.Context, tenant string, of events.DefinitionRef) ([]events.Worker, error) {
	if roster := r.roster.Load(); roster != nil {
		return roster.Workers(ctx, tenant, of)
	}
	return nil, events.Errorf(events.Unavailable, "this process has just started; try again")
}

// work counts the work that waits for workers.
func work(worker *runtime.Worker, log *eventlog.Log, queries *query.Queries) (w metrics.Work, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
	defer cancel()
	w.Places = worker.Places()
	runs, err := queues.RunsOf(log).Depth(ctx)
	if err != nil {
		return w, err
	}
	due, err := queues.TimersOf(log).Depth(ctx)
	if err != nil {
		return w, err
	}
	w.Queued, w.Taken, w.Due = runs.Waiting, runs.Taken, due.Waiting+due.Taken
	waiting, err := queries.Waiting(ctx)
	if err != nil {
		return w, err
	}
	w.Waiting = map[string]int{}
	for _, reason := range events.RunWaitKind("").Enum() { // none is 0, and not absent
		w.Waiting[reason] = waiting[events.RunWaitKind(reason)]
	}
	return w, nil
}

// effect returns a function that finds effects: of this process, or else on NATS.
func (s *Server) effect(nc *nats.Conn) func(name string) (runtime.Effect, bool) {
	return func(name string) (runtime.Effect, bool) {
		if e, err := s.work.registry.Effect(name); err == nil {
			return e, true
		}
		e, err := remote.Effect(nc, s.cfg.Names, name)
		return e, err == nil // otherwise the name is invalid
	}
}

// definedBy returns the sequence of the last commit by which this process changed a
// tenant's definitions, 0 if none.
func (r *running) definedBy(tenant string) uint64 {
	seq, _ := r.defined.Load(tenant)
	own, _ := seq.(uint64)
	return own
}

// defined waits until the read models show a tenant's definitions: those through this
// process or, with all, through any.
func (s *Server) defined(ctx context.Context, log *eventlog.Log, tenant string, all bool) error {
	seq := s.work.definedBy(tenant)
	if all {
		last, err := log.Last(ctx, tenant, events.TenantAggregate)
		if err != nil || last == nil {
			return err
		}
		seq = max(seq, last.Seq)
	}
	if seq <= s.reading.progress.Seq() {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, 5*time.Second,
		events.Errorf(events.ProjectionBehind, "the definitions do not show commit %d yet; try again", seq))
	defer cancel()
	return s.reading.progress.Wait(ctx, seq)
}

// busy returns the threads that are streaming.
func busy(queries *query.Queries) runtime.Busy {
	return func(ctx context.Context) iter.Seq2[runtime.ThreadRef, error] {
		return func(yield func(runtime.ThreadRef, error) bool) {
			list, err := queries.In(ctx, events.ThreadStreaming)
			if err != nil {
				yield(runtime.ThreadRef{}, err)
				return
			}
			for _, one := range list {
				if !yield(runtime.ThreadRef{Tenant: one[0], Thread: one[1]}, nil) {
					return
				}
			}
		}
	}
}
