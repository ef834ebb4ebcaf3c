package effects

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/rs/zerolog"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/queues"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/documents"
)

// Lease is the lease under which lost timers of effects are set again.
const Lease = "effects"

// Timers maintains the timers of effects according to the log. Every process that
// executes commands has one: it sets the timer of an effect that was scheduled there,
// and removes that of a cancelled one. One process at a time sweeps: it sets missing
// timers of pending effects, because a process died between the commit and the timer,
// or timers were lost.
//
// A timer that is set twice, or remains after a cancel, does no harm: the decision on
// the thread refuses what must not run.
type Timers struct {
	log    *eventlog.Log
	now    func() time.Time
	logger zerolog.Logger
	queue  chan func(context.Context) error
	open   atomic.Int64 // queued, or in progress
}

// Limits of setting timers.
const (
	timerQueue   = 8192
	timerWorkers = 8
	timerTimeout = 5 * time.Second
	sweepEvery   = 30 * time.Second
	sweepPage    = 500
)

// NewTimers returns the timers on a log, whose streams exist. now is the clock by
// which effects are due; nil: time.Now.
func NewTimers(log *eventlog.Log, now func() time.Time, logger zerolog.Logger) *Timers {
	if now == nil {
		now = time.Now
	}
	return &Timers{log: log, now: now, logger: logger, queue: make(chan func(context.Context) error, timerQueue)}
}

// Committed handles a commit; see commands.Config. It does not block. A timer that does
// not fit into the queue is left to the sweep.
func (t *Timers) Committed(c *events.Commit) {
	for i := range c.Events {
		e := &c.Events[i]
		switch d := e.Data.(type) {
		case events.EffectScheduled:
			due := dueEffect{Name: d.Name, Args: d.Args, At: micros(d.ScheduledAt), Firing: 1, Attempt: 1}
			t.enqueue(func(ctx context.Context) error { return putEffect(ctx, t.log, t.now, c.Tenant, c.Thread, d.ID, due) })
		case events.EffectCancelled:
			t.enqueue(func(ctx context.Context) error {
				return queues.TimersOf(t.log).Drop(ctx, c.Tenant, c.Thread, e.Subject)
			})
		case events.LifecycleDeleted:
			t.enqueue(func(ctx context.Context) error { return queues.TimersOf(t.log).Drop(ctx, c.Tenant, c.Thread, "*") })
		}
	}
}

func (t *Timers) enqueue(work func(context.Context) error) {
	t.open.Add(1)
	select {
	case t.queue <- work:
	default:
		t.open.Add(-1)
		t.logger.Warn().Msg("too many timers wait to be set; the sweep sets the lost ones")
	}
}

// Run sets timers until ctx ends, and then those that still wait.
func (t *Timers) Run(ctx context.Context) {
	var working sync.WaitGroup
	for range timerWorkers {
		working.Go(func() {
			for {
				select {
				case work := <-t.queue:
					t.runWork(ctx, work)
					continue
				default:
				}
				select {
				case work := <-t.queue:
					t.runWork(ctx, work)
				case <-ctx.Done():
					return
				}
			}
		})
	}
	working.Wait()
}

func (t *Timers) runWork(ctx context.Context, work func(context.Context) error) {
	defer t.open.Add(-1)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timerTimeout)
	defer cancel()
	if err := work(ctx); err != nil {
		t.logger.Warn().Err(err).Msg("cannot set or remove a timer; the sweep sets the lost ones")
	}
}

// putEffect sets the timer of an effect, which is due by that clock.
func putEffect(ctx context.Context, log *eventlog.Log, now func() time.Time, tenant, thread, id string, due dueEffect) error {
	if due.Args == nil {
		due.Args = events.JSON("{}")
	}
	body, err := json.Marshal(due)
	if err != nil {
		return fmt.Errorf("set the timer of an effect: %w", err)
	}
	at := time.Now().Add(due.At.Go().Sub(now())) // the server has its own clock
	return queues.TimersOf(log).Put(ctx, queues.Timer{Tenant: tenant, Thread: thread, ID: id, At: at, Data: body})
}

// Sweeping sweeps immediately and then at intervals, until ctx ends. Run it under
// Lease.
func (t *Timers) Sweeping(ctx context.Context) error {
	for {
		if n, err := t.Sweep(ctx); err != nil && ctx.Err() == nil {
			t.logger.Warn().Err(err).Msg("cannot sweep the timers of effects; it is retried")
		} else if n > 0 {
			t.logger.Info().Int("timers", n).Msg("timers of effects were lost and have been set again")
		}
		select {
		case <-time.After(sweepEvery):
		case <-ctx.Done():
			return nil
		}
	}
}

// Sweep sets lost timers, and returns their number. Commits after its start are left to
// the next one.
func (t *Timers) Sweep(ctx context.Context) (int, error) {
	end, err := t.log.LastSeq(ctx)
	if err != nil {
		return 0, err
	}
	have, err := queues.TimersOf(t.log).Names(ctx)
	if err != nil {
		return 0, err
	}
	return t.putPending(ctx, func(key string, seq uint64, _ *events.ScheduledEffect) bool {
		_, has := have[key]
		return !has && seq <= end
	})
}

// Fire sets the timers of everything due by the clock, whether it has one or not, and
// returns their number. It is for a clock that was moved: timers use the server's
// clock.
func (t *Timers) Fire(ctx context.Context) (int, error) {
	now := events.TimeOf(t.now())
	return t.putPending(ctx, func(_ string, _ uint64, e *events.ScheduledEffect) bool {
		return events.Time(e.ScheduledAt) <= now
	})
}

// Due reports whether an effect is due by the clock, or a timer is being set.
func (t *Timers) Due(ctx context.Context) (bool, error) {
	if t.open.Load() > 0 {
		return true, nil
	}
	now, due := events.TimeOf(t.now()), false
	_, err := t.putPending(ctx, func(_ string, _ uint64, e *events.ScheduledEffect) bool {
		due = due || events.Time(e.ScheduledAt) <= now
		return false
	})
	return due, err
}

// putPending sets the timers of the pending effects that wanted selects, and returns
// their number. The key of an effect is as in eventlog.Log.Timers, and seq the sequence
// of the commit that last changed it.
func (t *Timers) putPending(ctx context.Context, wanted func(key string, seq uint64, e *events.ScheduledEffect) bool) (int, error) {
	model := documents.NewModels().Of(documents.Effects)
	put := 0
	for from := uint64(1); ; {
		page, err := t.log.Bucket(model.Bucket).Range(ctx, ">", from, sweepPage)
		if err != nil {
			return put, fmt.Errorf("read pending effects: %w", err)
		}
		for _, m := range page {
			from = m.Seq + 1
			place, ok := documents.ParsePlace(documents.Effects, m.Subject)
			if !ok {
				continue
			}
			doc, seq, err := model.Decode(m.Data)
			if err != nil {
				continue // the runner reports it
			}
			e := doc.(*events.ScheduledEffect)
			if !wanted(m.Subject, seq, e) {
				continue
			}
			tenant, _, _ := strings.Cut(place.Thread, ".")
			due := dueEffect{Name: e.Name, Args: e.Args, At: events.Time(e.ScheduledAt), Firing: e.Firing, Attempt: e.Attempt + 1}
			if err := putEffect(ctx, t.log, t.now, tenant, e.ThreadID, e.ID, due); err != nil {
				return put, err
			}
			put++
		}
		if len(page) < sweepPage {
			return put, nil
		}
	}
}

// micros parses a time of the log; 0, which is in the past, if it is invalid.
func micros(text string) events.Time {
	at, err := events.ParseTime(text)
	if err != nil {
		return 0
	}
	return at
}

// dueEffect is the body of an effect's timer: enough to start it.
type dueEffect struct {
	Name    string      `json:"name"`
	Args    events.JSON `json:"args"`
	At      events.Time `json:"at"` // in microseconds
	Firing  int64       `json:"firing"`
	Attempt int64       `json:"attempt"` // to be made
}
