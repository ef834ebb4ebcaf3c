package telemetry

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/lru"
)

// Lease is the lease under which one process of an installation exports.
const Lease = "telemetry"

// Metrics counts spans. It must not block.
type Metrics interface {
	// Spans is called with a number of spans that were exported or dropped.
	Spans(result string, n int)
}

// NoMetrics implements Metrics and does nothing.
type NoMetrics struct{}

// Spans implements Metrics.
func (NoMetrics) Spans(string, int) {}

// Exporter exports the runs of an installation.
type Exporter struct {
	log     *eventlog.Log
	cfg     Config
	logger  zerolog.Logger
	metrics Metrics
}

// New returns an exporter of the runs in a log. The error says what is wrong with the
// configuration.
func New(log *eventlog.Log, cfg Config, logger zerolog.Logger, metrics Metrics) (*Exporter, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if metrics == nil {
		metrics = NoMetrics{}
	}
	return &Exporter{log: log, cfg: cfg.WithDefaults(), logger: logger, metrics: metrics}, nil
}

// Ensure creates what the exporter needs in JetStream. On the first call, the export
// starts at the current end of the log.
func (x *Exporter) Ensure(ctx context.Context) error {
	_, err := resume(ctx, x.log)
	if errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		return nil // another process did it, and continues
	}
	return err
}

// Limits of a batch. Spans with content are large, and collectors accept 4 MiB by
// default.
const (
	maxBatch     = 512
	maxSaidBatch = 64
)

// idle is how long a position may lag when there is nothing to send.
const idle = 5 * time.Second

// saveTime is the timeout of saving a position.
const saveTime = 5 * time.Second

// Run exports until ctx ends, or the log or the position fails: it may then be called
// again, and continues at its position. Run it under [Lease].
func (x *Exporter) Run(ctx context.Context) error {
	of, err := x.cfg.resource(ctx)
	if err != nil {
		return err
	}
	to, err := x.cfg.dial(ctx)
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = to.Shutdown(closing) // nothing is in flight
	}()
	at, err := resume(ctx, x.log)
	if err != nil {
		return err
	}
	f := &follower{
		x: x, to: to, at: at, maker: newMaker(of, x.cfg.Version), runs: lru.New[name, *run](x.cfg.Kept), batch: maxBatch, seq: at.Seq(),
	}
	if x.cfg.Content {
		f.batch = maxSaidBatch
	}
	return eventlog.Follow(ctx, x.log, Lease, at.Seq(), eventlog.FollowHandler{
		Take:    func(e eventlog.Entry) error { return f.take(ctx, e) },
		FlushBy: f.flushBy,
		Flush:   func() error { return f.flush(ctx) },
	})
}

// follower is one run of an exporter.
type follower struct {
	x     *Exporter
	to    sdktrace.SpanExporter
	at    *eventlog.Position
	maker *maker
	runs  *lru.Cache[name, *run] // the active ones; what is dropped is read from the log when it ends
	batch int

	seq     uint64 // up to which the log was read
	waiting []sdktrace.ReadOnlySpan
	since   time.Time // since when something waits to be sent, or to be saved; zero: nothing does
}

// take folds an entry of the log, and sends spans if they are enough for a batch.
func (f *follower) take(ctx context.Context, e eventlog.Entry) error {
	if f.since.IsZero() {
		f.since = time.Now()
	}
	if e.Commit != nil { // else it is counted and reported already
		if err := f.commit(ctx, e.Commit); err != nil {
			return err
		}
	}
	f.seq = e.Seq
	if len(f.waiting) >= f.batch {
		return f.flush(ctx)
	}
	return nil
}

// flushBy returns until when waiting spans, or the position, may wait.
func (f *follower) flushBy() time.Time {
	switch {
	case f.since.IsZero():
		return time.Time{}
	case len(f.waiting) > 0:
		return f.since.Add(f.x.cfg.Linger)
	}
	return f.since.Add(idle)
}

// flush sends the waiting spans, and saves the position.
func (f *follower) flush(ctx context.Context) error {
	for len(f.waiting) > 0 {
		n := min(len(f.waiting), f.batch)
		if err := f.x.send(ctx, f.to, f.waiting[:n]); err != nil {
			return err
		}
		f.waiting = f.waiting[n:]
	}
	f.waiting, f.since = nil, time.Time{}
	// What was sent must not be sent again because ctx ends here.
	saving, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTime)
	defer cancel()
	return f.at.Save(saving, f.seq)
}

// commit folds a commit, and creates the spans of the runs that it ends.
func (f *follower) commit(ctx context.Context, c *events.Commit) error {
	for i := range c.Events {
		e := &c.Events[i]
		if e.Correlation == "" {
			continue
		}
		n := name{c.Tenant, c.Thread, e.Correlation}
		if e.Type == events.ExecutionCreatedType {
			r := begin(e, c, f.x.cfg.Content)
			f.runs.Put(n, r, int64(r.size))
			continue
		}
		r, _ := f.runs.Get(n)
		over := false
		if r != nil {
			was := r.size
			over = r.apply(e)
			f.runs.Grow(n, int64(r.size-was))
		} else if e.Type == events.ThreadFinishedType {
			var err error
			if r, over, err = f.x.read(ctx, n, c.Seq); err != nil {
				return err
			}
		}
		if !over {
			continue
		}
		f.runs.Drop(n)
		above, err := f.above(ctx, r)
		if err != nil {
			return err
		}
		f.waiting = append(f.waiting, f.maker.spans(r, above)...)
	}
	return nil
}

// above returns the span of the run that waited for one.
func (f *follower) above(ctx context.Context, r *run) (trace.SpanContext, error) {
	if r.Parent == nil {
		return trace.SpanContext{}, nil
	}
	n := name{r.Tenant, r.Parent.ThreadID, r.Parent.ExecutionID}
	parent, _ := f.runs.Get(n)
	if parent == nil {
		var err error
		if parent, _, err = f.x.read(ctx, n, 0); parent == nil || err != nil {
			return trace.SpanContext{}, err
		}
	}
	return n.root(parent.TraceParent), nil
}

// read folds a run from its thread, up to the commit with the sequence to, or only its
// beginning if that is 0. It is nil if the thread no longer has it.
func (x *Exporter) read(ctx context.Context, n name, to uint64) (r *run, over bool, err error) {
	for c, err := range x.log.Thread(ctx, n.tenant, n.thread, 1) {
		var broken *events.BrokenError
		if errors.As(err, &broken) {
			continue
		}
		if err != nil {
			return nil, false, err
		}
		for i := range c.Events {
			e := &c.Events[i]
			switch {
			case e.Correlation != n.execution:
			case e.Type == events.ExecutionCreatedType:
				if r = begin(e, c, x.cfg.Content); to == 0 {
					return r, false, nil
				}
			case r != nil && r.apply(e):
				return r, true, nil
			}
		}
		if to != 0 && c.Seq >= to {
			break
		}
	}
	return r, false, nil
}
