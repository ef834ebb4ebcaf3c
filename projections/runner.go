package projections

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/internal/retry"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/cleanup"
	"github.com/skein-threads/skein/projections/documents"
	"github.com/skein-threads/skein/projections/rebuild"
)

// RunnerLease is the lease under which the runner runs. Two runners at once do no harm:
// the fences of the buckets let one of them write at a time.
const RunnerLease = "projections"

// Runner keeps the read models up to date.
type Runner struct {
	log     *eventlog.Log
	models  *documents.Models
	pages   *eventlog.Pages
	cfg     Config
	logger  zerolog.Logger
	metrics Metrics

	mu       sync.Mutex     // guards what follows
	renewing bool           // read models of another version are being rebuilt
	renewed  documents.Mask // the read models that this process has rebuilt

	removals removals
	swept    uint64 // the number of the connection after which the read models were swept; 0: not yet
	marked   uint64 // the number of the connection after which the buckets got an incarnation; 0: not yet
	cleaner  *cleanup.Cleaner
	running  sync.WaitGroup // waits for work outside the runner's loop
}

// New returns a runner on a log. It creates no bucket; see Ensure.
func New(log *eventlog.Log, cfg Config, logger zerolog.Logger, metrics Metrics) *Runner {
	if metrics == nil {
		metrics = NoMetrics{}
	}
	r := &Runner{log: log, models: documents.NewModels(), pages: eventlog.PagesOn(log.Streams()), cfg: cfg.withDefaults(), logger: logger, metrics: metrics}
	r.cleaner = cleanup.New(log, r.models, cleanup.Config{EraseTurn: r.cfg.EraseTurn, Contents: r.cfg.Contents}, logger, metrics)
	return r
}

// Progress returns how far this runner is.
func (r *Runner) Progress() *buckets.Progress { return r.cfg.Progress }

// Ensure creates the buckets of the read models, or updates their configuration. It removes
// documents of deleted threads that a killed server has restored. It returns a *streams.AssetError
// if a stream with the name of a bucket is something else.
func (r *Runner) Ensure(ctx context.Context) error {
	for _, p := range r.models.List() {
		if err := assets.EnsureBucket(ctx, r.log.Streams(), p.Bucket); err != nil {
			return err
		}
	}
	return r.log.Streams().Patiently(ctx, r.sweep) // another process may just have created the buckets
}

// sweep removes documents that a killed server has restored. Notes of removals are kept longer
// afterwards, until the new removals are on the disk.
func (r *Runner) sweep(ctx context.Context) error {
	at := r.connections()
	r.removals.since = time.Time{}
	err := r.cleaner.Sweep(ctx)
	if err == nil {
		r.swept = at
	}
	return err
}

// connections returns the number of the current connection. With a new connection the server may
// have been restarted.
func (r *Runner) connections() uint64 { return r.log.Streams().Reconnects() + 1 }

// errRenewed means that a session must start again because the index was rebuilt.
var errRenewed = errors.New("the index was rebuilt")

// Run folds the log into the read models until ctx ends. Call it under the lease
// RunnerLease. After any interruption it starts again from the checkpoints.
func (r *Runner) Run(ctx context.Context) error {
	background, cancel := context.WithCancel(ctx)
	defer r.running.Wait()
	defer cancel()
	r.running.Go(func() { r.cleaner.Run(background) })
	changed, stop := r.log.Streams().Connects()
	defer stop()
	for ctx.Err() == nil {
		var err error
		if r.swept != r.connections() {
			err = r.sweep(ctx)
		}
		if err == nil {
			err = streams.UntilReconnect(ctx, changed, func(ctx context.Context) error { return r.runSession(ctx, background) })
		}
		pause := 250 * time.Millisecond
		switch {
		case ctx.Err() != nil:
			return nil
		case streams.IsFenced(err):
			// Another runner or a rebuild has written. Without the jitter, two that start at the
			// same moment would keep interrupting each other.
			pause = time.Duration(5+r.cfg.Jitter(40)) * time.Millisecond
			r.logger.Debug().Err(err).Msg("the read models have another writer; starting again from the checkpoints")
		case errors.Is(err, streams.ErrReconnected), errors.Is(err, errRenewed):
			pause = 0
		default:
			r.logger.Warn().Err(err).Msg("the read models were interrupted; starting again from the checkpoints")
		}
		retry.Sleep(ctx, pause)
	}
	return nil
}

// forgetAfter is for how long no commit must come before the documents in memory are given up.
const forgetAfter = time.Minute

// runSession runs from the checkpoints until something interrupts it.
func (r *Runner) runSession(ctx, background context.Context) error {
	s, err := r.newSession(ctx, background)
	if err != nil {
		return fmt.Errorf("starting to fold: %w", err)
	}
	if s.stale.Has(documents.Index) {
		// The fold reads the index to count down hidden items, so nothing can be folded without
		// it.
		if err := r.rebuildStale(ctx, documents.Mask(0).With(documents.Index), rebuild.RepairAlone); err != nil {
			return err
		}
		r.setRenewed(documents.Mask(0).With(documents.Index))
		return errRenewed
	}
	tail, err := r.log.Tail(ctx, "projections", s.from())
	if err != nil {
		return err
	}
	defer tail.Stop()
	for used := s.cfg.Now(); ; {
		batch, err := s.gather(ctx, tail)
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			return err
		}
		if batch != nil {
			if err := s.store(ctx, batch); err != nil {
				return err
			}
			s.rest(batch)
			used = s.cfg.Now()
		} else if s.cfg.Now().Sub(used) > forgetAfter {
			s.cache.empty()
		}
		if err := s.tick(ctx); err != nil {
			return err
		}
	}
}

// renew rebuilds read models of another version while the runner runs.
func (r *Runner) renew(ctx context.Context, stale documents.Mask) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.renewing {
		return
	}
	r.renewing = true
	r.running.Go(func() {
		err := r.rebuildStale(ctx, stale, rebuild.Repair)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.renewing = false
		if err == nil {
			r.renewed |= stale
		} else if ctx.Err() == nil {
			r.logger.Error().Err(err).Msg("read models of another version could not be rebuilt; it is tried again when the runner starts again")
		}
	})
}

// repair is rebuild.Repair or rebuild.RepairAlone.
type repair func(ctx context.Context, log *eventlog.Log, names ...string) (rebuild.Report, error)

// rebuildStale rebuilds read models of another version.
func (r *Runner) rebuildStale(ctx context.Context, stale documents.Mask, repair repair) error {
	var names []string
	for _, p := range r.models.List() {
		if stale.Has(p.Kind) {
			names = append(names, p.Name)
		}
	}
	r.logger.Info().Strs("projections", names).Msg("read models are of another version and are rebuilt")
	report, err := repair(ctx, r.log, names...)
	if err == nil {
		r.logger.Info().Strs("projections", names).Int64("threads", report.Threads).Int64("repaired", report.Repaired).Msg("read models were rebuilt")
	}
	return err
}

func (r *Runner) setRenewed(which documents.Mask) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.renewed |= which
}

// forgetRenewed records that a read model's checkpoint has its new version.
func (r *Runner) forgetRenewed(k documents.Kind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.renewed &^= 1 << k
}

// rebuilt returns the read models that this process has rebuilt.
func (r *Runner) rebuilt() documents.Mask {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.renewed
}
