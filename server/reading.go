package server

import (
	"context"
	"errors"
	"time"

	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/files"
	"github.com/skein-threads/skein/internal/build"
	"github.com/skein-threads/skein/projections"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/query"
	"github.com/skein-threads/skein/schema"
	"github.com/skein-threads/skein/service"
)

// ensureReadModels creates the buckets of the read models, which others follow from the
// start, and returns the runner that fills them.
func (s *Server) ensureReadModels(ctx context.Context, store *files.Store) (*projections.Runner, *eventlog.Log, error) {
	log, err := s.open("projections")
	if err != nil {
		return nil, nil, err
	}
	runner := projections.New(log, projections.Config{Progress: buckets.NewProgress(), Contents: files.NewEraser(store, log, nil)}, s.logger, s.metrics.ReadModels())
	return runner, log, runner.Ensure(ctx)
}

// startReading starts the read models and the queries.
func (s *Server) startReading(background context.Context, validator *schema.Validator, store *files.Store, dispatcher *commands.Dispatcher, runner *projections.Runner, foldLog *eventlog.Log) (*query.Queries, error) {
	progress := runner.Progress()
	s.hold(background, foldLog, projections.RunnerLease, runner.Run)
	readLog, err := s.open("queries")
	if err != nil {
		return nil, err
	}
	end, err := readLog.LastSeq(background)
	if err != nil {
		return nil, err
	}
	progress.Start(end)
	s.running.Go(func() { s.reportCatchingUp(background, progress) })
	queries := query.New(readLog, validator, query.Config{Now: s.cfg.Now, Progress: progress, Contents: files.NewViewer(store, s.places(placesImages, 0), s.places(placesSearches, 0)), Roster: &s.work, States: dispatcher, Pairs: s.pairs, Pushes: s.pushes, Cold: s.places(placesCold, 0), Past: s.places(placesPast, 0)}, s.logger, s.metrics.ReadModels())
	s.running.Go(func() {
		if err := queries.Run(background); err != nil && background.Err() == nil {
			s.logger.Error().Err(err).Msg("the queries no longer receive the progress of the read models")
		}
	})
	s.reading = reading{readLog, progress, queries}
	s.metrics.WatchLags(s.lags)
	s.watchWriting()
	requests, err := s.connect("queries-in")
	if err != nil {
		return nil, err
	}
	s.queries, err = service.Serve(requests, s.cfg.Names, service.Endpoint{
		Name: "skein-queries", Description: "Queries of threads", Kind: events.KindQuery, Version: s.cfg.Version, Build: build.This().Metadata(),
		Requests: queries.Names(), InFlight: queriesInFlight, Time: service.RequestTime, Long: s.reads(),
		Tenants: s.cfg.limits(), Metrics: s.metrics, Fair: s.fair(queriesToCommands), Answers: s.answers, Refusals: s.refusals,
	}, queries.Handle, s.logger)
	return queries, err
}

// reportCatchingUp logs that the read models do not show the log yet, and when they do.
func (s *Server) reportCatchingUp(background context.Context, progress *buckets.Progress) {
	const usual = 2 * time.Second // what was folded just before the last stop takes a moment
	began, end := time.Now(), progress.Started()
	for wait := usual; ; wait = 30 * time.Second {
		ctx, cancel := context.WithTimeout(background, wait)
		err := progress.Wait(ctx, end)
		cancel()
		switch {
		case background.Err() != nil || err == nil && wait == usual:
			return
		case err == nil:
			s.logger.Info().Uint64("commits", end).Dur("took", time.Since(began)).Msg("the read models have caught up; lists are answered")
			return
		}
		s.logger.Warn().Msg(query.NotShown(progress) + "; until then lists are refused as projection_behind, and /readyz says so")
	}
}

// queriesInFlight limits concurrent queries. Most of them wait for a read model, and
// cost little.
const queriesInFlight = 4096

// reading reports whether the read side is ready: whether the read models show the log as it was
// when this process began to follow them. A later lag does not make it unready: a query says what
// it needs, and waits for it.
type reading struct {
	log      *eventlog.Log
	progress *buckets.Progress
	queries  *query.Queries
}

func (r reading) ready(ctx context.Context) error {
	switch shown := r.progress.Seq(); {
	case shown < r.progress.Started():
		return errors.New(query.NotShown(r.progress))
	case shown > 0:
		return nil
	}
	last, err := r.log.LastSeq(ctx)
	switch {
	case err != nil:
		return err
	case last > 0:
		return errors.New("the progress of the read models is unknown")
	}
	return nil
}
