package server

import (
	"context"

	"github.com/nats-io/nats.go"

	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/timeline"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/files"
	"github.com/skein-threads/skein/internal/build"
	"github.com/skein-threads/skein/projections"
	"github.com/skein-threads/skein/projections/query"
	"github.com/skein-threads/skein/quota"
	"github.com/skein-threads/skein/runtime"
	"github.com/skein-threads/skein/runtime/webhooks"
	"github.com/skein-threads/skein/schema"
	"github.com/skein-threads/skein/service"
)

// assembly is a server that is being started, with what one step of the start makes for the next.
type assembly struct {
	*Server
	ctx        context.Context // of the start
	background context.Context // of what runs until the server stops

	log         *eventlog.Log // of commands
	validator   *schema.Validator
	contents    *eventlog.Log // of files: they are large, and must not delay commands
	objects     *files.Store  // of contents
	runner      *projections.Runner
	folds       *eventlog.Log // of the runner
	definitions *defined
	reads       *query.Queries
}

// assemble starts everything but the HTTP server.
func (s *Server) assemble(ctx, background context.Context) error {
	a := &assembly{Server: s, ctx: ctx, background: background}
	for _, step := range []func() error{
		a.openLog, a.openConnections, a.openStores, a.startCommands, a.startQueries, a.serveFiles, a.startWork, a.startTimeline, a.serveCommands, a.serveAgents,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return s.openAPI(background)
}

// openLog opens the log, in the embedded server or another one, and creates what is missing.
func (a *assembly) openLog() (err error) {
	a.floods = quota.NewFloods(a.flooded)
	if err := a.embed(a.ctx); err != nil {
		return err
	}
	if a.log, err = a.open("commands"); err != nil {
		return err
	}
	if err := a.confirmStore(a.ctx, a.log); err != nil {
		return err
	}
	if err := assets.CheckWhole(a.ctx, a.log.Streams()); err != nil {
		return err
	}
	if err := a.log.Ensure(a.ctx); err != nil {
		return err
	}
	if err := webhooks.Ensure(a.ctx, a.log, a.logger); err != nil {
		return err
	}
	if a.nats == nil {
		a.warnUnsynced(a.ctx, a.log.Conn())
		a.running.Go(func() { a.warnSlowPings(a.background) })
	}
	a.markStore(a.background, a.log)
	a.watchStore(a.background)
	return nil
}

// openConnections opens the connections on which requests are answered.
func (a *assembly) openConnections() (err error) {
	if a.clients, err = a.connect("clients"); err != nil {
		return err
	}
	if a.answers, err = a.connect("answers"); err != nil {
		return err
	}
	a.refusals, err = a.connect("refusals")
	return err
}

// openStores opens what commands and queries read and write besides the log.
func (a *assembly) openStores() (err error) {
	if a.validator, err = schema.New(); err != nil {
		return err
	}
	if err := a.register(); err != nil {
		return err
	}
	if a.contents, err = a.open("files"); err != nil {
		return err
	}
	if a.objects, err = files.Open(a.ctx, a.contents); err != nil {
		return err
	}
	if a.runner, a.folds, err = a.ensureReadModels(a.ctx, a.objects); err != nil {
		return err
	}
	if a.definitions, err = a.startDefinitions(a.background, a.runner.Progress()); err != nil {
		return err
	}
	if a.work.timers, err = a.startEffects(a.background); err != nil {
		return err
	}
	a.work.runs = runtime.NewIntake(a.log, a.logger)
	if err := a.openPairs(a.ctx); err != nil {
		return err
	}
	if err := a.openPushes(); err != nil {
		return err
	}
	return a.openOperations(a.ctx)
}

// startCommands creates what decides commands.
func (a *assembly) startCommands() error {
	secret, err := a.log.Secret(a.ctx, eventlog.WriterSecret)
	if err != nil {
		return err
	}
	a.dispatcher = commands.NewDispatcher(a.log, a.validator, commands.Config{
		Secret:      secret,
		Pairs:       a.pairs,
		Pushes:      a.pushes,
		Fair:        a.fair(1),
		CacheBytes:  a.cfg.ThreadCache,
		Now:         a.cfg.Now,
		Contents:    a.objects,
		Forks:       a.places(placesForks, 0),
		Definitions: a.definitions,
		Agents:      &a.work,
		Answers:     &a.work,
		Intake:      &a.work,
	}, a.logger, a.metrics)
	a.running.Go(func() { a.forgetWhenIdle(a.background, a.dispatcher) })
	return nil
}

func (a *assembly) startQueries() (err error) {
	a.reads, err = a.startReading(a.background, a.validator, a.objects, a.dispatcher, a.runner, a.folds)
	return err
}

// serveFiles serves the requests for files.
func (a *assembly) serveFiles() error {
	uploads, err := a.connect("files-in")
	if err != nil {
		return err
	}
	a.files, err = files.Serve(a.contents, a.objects, a.dispatcher, a.reads, files.ServiceConfig{
		Version: a.cfg.Version, Build: build.This().Metadata(), Uploads: a.places(placesUploads, 0), Longest: a.cfg.MaxUploadTime, Tenants: a.cfg.limits(), Metrics: a.metrics,
		Conn: uploads, Answers: a.answers, Refusals: a.refusals, Fair: a.fair(1),
	}, a.logger)
	return err
}

// startWork starts what works on threads by itself.
func (a *assembly) startWork() (err error) {
	if a.work.budget, err = a.budget(a.ctx, a.log); err != nil {
		return err
	}
	if err := a.startLives(a.background, a.dispatcher); err != nil {
		return err
	}
	if err := a.startRunning(a.background, a.dispatcher, a.reads, a.definitions.list); err != nil {
		return err
	}
	if err := a.startTelemetry(a.ctx, a.background); err != nil {
		return err
	}
	return a.startArchiving(a.background, a.reads)
}

// startTimeline starts the relay and the execution of submitted commands.
func (a *assembly) startTimeline() error {
	// The relay sends much, and must not delay replies.
	log, err := a.open("timeline")
	if err != nil {
		return err
	}
	a.hold(a.background, log, timeline.Lease, timeline.Of(log).Relay)
	a.hold(a.background, a.log, commands.SubmitLease, a.dispatcher.Submitted)
	return nil
}

// serveCommands serves the requests of commands.
func (a *assembly) serveCommands() error {
	requests, err := a.connect("commands-in")
	if err != nil {
		return err
	}
	peers, err := a.connect("peers", nats.ReconnectBufSize(-1), nats.FlusherTimeout(peersTimeout), nats.ReconnectOnFlusherError())
	if err != nil {
		return err
	}
	a.commands, err = service.Serve(requests, a.cfg.Names, service.Endpoint{
		Name: "skein-commands", Description: "Commands on threads", Kind: events.KindCommand, Version: a.cfg.Version, Build: build.This().Metadata(),
		Requests: namesOf(events.Commands(), func(c events.Command) string { return c.Name }), InFlight: 8192,
		Tenants: a.cfg.limits(), Metrics: a.metrics, Fair: a.fair(1), Answers: a.answers, Refusals: a.refusals,
		Forwarding: &service.Forwarding{Conn: peers, Key: commands.Aggregate, Metrics: a.metrics},
	}, a.command, a.logger)
	return err
}
