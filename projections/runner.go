package projections

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/internal/retry"
	"github.com/skein-threads/skein/projections/documents"
)

// RunnerLease is the lease under which the runner runs. Two runners by mistake
// do no harm: the fences of the buckets let one of them write at a time.
const RunnerLease = "projections"

// Runner keeps the read models up to date.
type Runner struct {
	log     *eventlog.Log
	models  *documents.Models
	cfg     Config
	logger  zerolog.Logger
	metrics Metrics

	mu       sync.Mutex     // guards what follows
	renewing bool           // read models of another version are being rebuilt
	renewed  documents.Mask // those that have been, by this process

	enders  *enders
	running sync.WaitGroup // work beside the runner's own loop
}

// New makes a runner on a log. It makes no bucket; see Ensure.
func New(log *eventlog.Log, cfg Config, logger zerolog.Logger, metrics Metrics) *Runner {
	if metrics == nil {
		metrics = NoMetrics{}
	}
	return &Runner{
		log: log, models: documents.NewModels(), cfg: cfg.withDefaults(), logger: logger, metrics: metrics, enders: newEnders(),
	}
}

// Progress gives how far this runner has got.
func (r *Runner) Progress() *Progress { return r.cfg.Progress }

// Ensure makes the buckets of the read models, or brings them up to date, and
// removes what a server that was killed has brought back into them of threads that
// have ended. It returns an *streams.AssetError if a bucket is there that is
// something else.
func (r *Runner) Ensure(ctx context.Context) error {
	for _, p := range r.models.List() {
		if err := assets.EnsureBucket(ctx, r.log.Streams(), p.Bucket); err != nil {
			return err
		}
	}
	return r.sweepEnded(ctx)
}

// errReconnected says that the server may have been another one, or may have
// lost its newest writes, since the runner last looked.
var errReconnected = errors.New("the connection was made anew")

// errRenewed says that the runner can begin, on what was rebuilt.
var errRenewed = errors.New("the index was rebuilt")

// Run folds the log into the read models until ctx ends. Call it under the
// lease RunnerLease; see eventlog.Log.Hold. Whatever stops it, it begins again
// from the checkpoints.
func (r *Runner) Run(ctx context.Context) error {
	beside, cancel := context.WithCancel(ctx)
	defer r.running.Wait()
	defer cancel()
	r.running.Go(func() { r.finishEnds(beside) })
	changed, stop := r.log.Streams().Connects()
	defer stop()
	restarted := false // the server may have been
	for ctx.Err() == nil {
		var err error
		if restarted {
			err = r.sweepEnded(ctx)
		}
		if err == nil {
			restarted = false
			err = r.session(ctx, beside, changed)
		}
		restarted = restarted || errors.Is(err, errReconnected)
		pause := 250 * time.Millisecond
		switch {
		case ctx.Err() != nil:
			return nil
		case streams.IsFenced(err):
			// Another runner, or a rebuild. Two that begin at the same moment would
			// stop each other again and again.
			pause = time.Duration(5+r.cfg.Jitter(40)) * time.Millisecond
			r.logger.Debug().Err(err).Msg("the read models have another writer; beginning again from the checkpoints")
		case errors.Is(err, errReconnected), errors.Is(err, errRenewed):
			pause = 0
		default:
			r.logger.Warn().Err(err).Msg("the read models were interrupted; beginning again from the checkpoints")
		}
		retry.Sleep(ctx, pause)
	}
	return nil
}

// session runs from the checkpoints until something stops it.
func (r *Runner) session(ctx, beside context.Context, changed <-chan nats.Status) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stopped := make(chan struct{})
	defer close(stopped)
	go func() {
		select {
		case <-changed:
			cancel(errReconnected)
		case <-stopped:
		}
	}()
	s, err := r.begin(ctx, beside)
	if err != nil {
		return fmt.Errorf("beginning to fold: %w", err)
	}
	if s.stale.Has(documents.Index) {
		// What is hidden is counted down by what the index says: nothing can be
		// folded without it.
		if err := r.rebuildStale(ctx, documents.Mask(0).With(documents.Index), true); err != nil {
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
	for {
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
		}
		if err := s.tick(ctx); err != nil {
			return err
		}
	}
}

// renew rebuilds read models whose fold has changed, beside the runner.
func (r *Runner) renew(ctx context.Context, stale documents.Mask) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.renewing {
		return
	}
	r.renewing = true
	r.running.Go(func() {
		err := r.rebuildStale(ctx, stale, false)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.renewing = false
		if err == nil {
			r.renewed |= stale
		} else if ctx.Err() == nil {
			r.logger.Error().Err(err).Msg("read models of another version could not be rebuilt; it is tried again when the runner begins again")
		}
	})
}

// rebuildStale rebuilds read models; alone says that no runner runs meanwhile.
func (r *Runner) rebuildStale(ctx context.Context, stale documents.Mask, alone bool) error {
	var names []string
	for _, p := range r.models.List() {
		if stale.Has(p.Kind) {
			names = append(names, p.Name)
		}
	}
	r.logger.Info().Strs("projections", names).Msg("read models are of another version and are rebuilt")
	report, err := r.rebuild(ctx, names, &rebuilding{Runner: r, repair: true, alone: alone})
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

// forgetRenewed says that a read model's checkpoint tells of it by now.
func (r *Runner) forgetRenewed(k documents.Kind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.renewed &^= 1 << k
}

// done gives the read models that were rebuilt by this process.
func (r *Runner) done() documents.Mask {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.renewed
}
