package serve

import (
	"context"
	"errors"

	"github.com/skein-threads/skein/commands"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/files"
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
	queries := query.New(readLog, validator, query.Config{Now: s.cfg.Now, Progress: progress, Contents: files.NewViewer(store, s.places(placesImages, 0), s.places(placesSearches, 0)), Reactor: s.hasReactor, Agents: s.knowsAgent, Workers: s.workersOf, Queue: dispatcher.Queued, Values: dispatcher.Values, Pairs: s.pairs, Cold: s.places(placesCold, 0), Past: s.places(placesPast, 0)}, s.logger, s.metrics.ReadModels())
	s.running.Go(func() {
		if err := queries.Run(background); err != nil && background.Err() == nil {
			s.logger.Error().Err(err).Msg("the queries no longer receive the progress of the read models")
		}
	})
	s.reading = reading{readLog, progress}
	s.metrics.WatchLags(s.lags)
	requests, err := s.connect("queries-in")
	if err != nil {
		return nil, err
	}
	s.queries, err = service.Serve(requests, s.cfg.Names, service.Endpoint{
		Name: "skein-queries", Description: "Queries of threads", Kind: "query", Version: s.cfg.Version,
		Requests: queries.Names(), InFlight: queriesInFlight, Time: service.RequestTime,
		Tenants: s.cfg.limits(), Metrics: s.metrics, Fair: s.cfg.fair(queriesToCommands), Activity: s.activity, Answers: s.answers, Refusals: s.refusals, Floods: s.floods,
	}, queries.Handle, s.logger)
	return queries, err
}

// queriesInFlight limits concurrent queries. Most of them wait for a read model, and
// cost little.
const queriesInFlight = 4096

// reading reports whether the read side is ready: whether the progress of the read
// models is known. A lag does not make it unready: a query says what it needs, and
// waits for it.
type reading struct {
	log      *eventlog.Log
	progress *buckets.Progress
}

func (r reading) ready(ctx context.Context) error {
	if r.progress.Seq() > 0 {
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
