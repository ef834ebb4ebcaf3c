package runtime

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

// EffectLease is the lease under which lost timers of effects are put again.
const EffectLease = "effects"

// EffectTimers keeps the timers of effects as the log says. Every process that
// does commands has one: it puts the timer of an effect that was scheduled here,
// and removes that of one that was cancelled. One process at a time sweeps: it
// puts what is pending and has no timer, because a process died between the
// commit and the timer, or the timers were lost.
//
// A timer that is put twice, or stays after a cancel, does no harm: the decision
// on the thread refuses what is not to be run.
type EffectTimers struct {
	log    *eventlog.Log
	now    func() time.Time
	logger zerolog.Logger
	queue  chan func(context.Context) error
	open   atomic.Int64 // what is queued, or being done
}

// How timers are put.
const (
	timerQueue   = 8192
	timerWorkers = 8
	timerTimeout = 5 * time.Second
	sweepEvery   = 30 * time.Second
	sweepPage    = 500
)

// NewEffectTimers returns the timers on a log, whose streams exist. now is the clock
// by which effects are due; nil: time.Now.
func NewEffectTimers(log *eventlog.Log, now func() time.Time, logger zerolog.Logger) *EffectTimers {
	if now == nil {
		now = time.Now
	}
	return &EffectTimers{log: log, now: now, logger: logger, queue: make(chan func(context.Context) error, timerQueue)}
}

// Committed takes notice of a commit; see commands.Config. It returns at once. A
// timer that finds no place in the queue is left to the sweep.
func (t *EffectTimers) Committed(c *events.Commit) {
	for i := range c.Events {
		e := &c.Events[i]
		switch d := e.Data.(type) {
		case events.EffectScheduled:
			due := dueEffect{Name: d.Name, Args: d.Args, At: micros(d.ScheduledAt), Firing: 1, Attempt: 1}
			t.later(func(ctx context.Context) error { return putEffect(ctx, t.log, t.now, c.Tenant, c.Thread, d.ID, due) })
		case events.EffectCancelled:
			t.later(func(ctx context.Context) error {
				return queues.TimersOf(t.log).Drop(ctx, c.Tenant, c.Thread, e.Subject)
			})
		case events.LifecycleDeleted:
			t.later(func(ctx context.Context) error { return queues.TimersOf(t.log).Drop(ctx, c.Tenant, c.Thread, "*") })
		}
	}
}

func (t *EffectTimers) later(work func(context.Context) error) {
	t.open.Add(1)
	select {
	case t.queue <- work:
	default:
		t.open.Add(-1)
		t.logger.Warn().Msg("too many timers wait to be put; the sweep puts those that are lost")
	}
}

// Run puts timers until ctx ends, and then those that still wait.
func (t *EffectTimers) Run(ctx context.Context) {
	var working sync.WaitGroup
	for range timerWorkers {
		working.Go(func() {
			for {
				select {
				case work := <-t.queue:
					t.do(ctx, work)
					continue
				default:
				}
				select {
				case work := <-t.queue:
					t.do(ctx, work)
				case <-ctx.Done():
					return
				}
			}
		})
	}
	working.Wait()
}

func (t *EffectTimers) do(ctx context.Context, work func(context.Context) error) {
	defer t.open.Add(-1)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timerTimeout)
	defer cancel()
	if err := work(ctx); err != nil {
		t.logger.Warn().Err(err).Msg("a timer was not put or removed; the sweep puts those that are lost")
	}
}

// putEffect sets the timer of an effect, which is due by that clock.
func putEffect(ctx context.Context, log *eventlog.Log, now func() time.Time, tenant, thread, id string, due dueEffect) error {
	if due.Args == nil {
		due.Args = events.JSON("{}")
	}
	body, err := json.Marshal(due)
	if err != nil {
		return fmt.Errorf("the timer of an effect: %w", err)
	}
	at := time.Now().Add(due.At.Go().Sub(now())) // the server has a clock of its own
	return queues.TimersOf(log).Put(ctx, queues.Timer{Tenant: tenant, Thread: thread, ID: id, At: at, Data: body})
}

// Sweeping sweeps at once and then now and again, until ctx ends. Run it under
// EffectLease.
func (t *EffectTimers) Sweeping(ctx context.Context) error {
	for {
		if n, err := t.Sweep(ctx); err != nil && ctx.Err() == nil {
			t.logger.Warn().Err(err).Msg("the timers of effects could not be swept; it is tried again")
		} else if n > 0 {
			t.logger.Info().Int("timers", n).Msg("timers of effects were lost and were put again")
		}
		select {
		case <-time.After(sweepEvery):
		case <-ctx.Done():
			return nil
		}
	}
}

// Sweep puts the timers that are lost, and returns how many. What was committed
// since it began is left to the next one.
func (t *EffectTimers) Sweep(ctx context.Context) (int, error) {
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

// Fire puts what is due by the clock, whether it has a timer or not, and returns how
// much that is. It is for a clock that was moved: timers run by the server's.
func (t *EffectTimers) Fire(ctx context.Context) (int, error) {
	now := events.TimeOf(t.now())
	return t.putPending(ctx, func(_ string, _ uint64, e *events.ScheduledEffect) bool {
		return events.Time(e.ScheduledAt) <= now
	})
}

// Due reports whether an effect is due by the clock, or a timer is being put.
func (t *EffectTimers) Due(ctx context.Context) (bool, error) {
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

// putPending puts the timers of the pending effects that are to have one, and
// returns how many. An effect is named as by eventlog.Log.Timers, and has the
// sequence of the commit that last changed it.
func (t *EffectTimers) putPending(ctx context.Context, wanted func(key string, seq uint64, e *events.ScheduledEffect) bool) (int, error) {
	model := documents.NewModels().Of(documents.Effects)
	put := 0
	for from := uint64(1); ; {
		page, err := t.log.Bucket(model.Bucket).Range(ctx, ">", from, sweepPage)
		if err != nil {
			return put, fmt.Errorf("reading pending effects: %w", err)
		}
		for _, m := range page {
			from = m.Seq + 1
			place, ok := documents.ParsePlace(documents.Effects, m.Subject)
			if !ok {
				continue
			}
			doc, seq, err := model.Decode(m.Data)
			if err != nil {
				continue // the runner knows of it
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

// micros reads a time of the log; 0 if it cannot be read, which has passed.
func micros(text string) events.Time {
	at, err := events.ParseTime(text)
	if err != nil {
		return 0
	}
	return at
}
