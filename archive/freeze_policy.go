package archive

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
	"github.com/skein-threads/skein/projections/documents"
)

// ColdLease is the lease under which one process of an installation freezes threads. Two
// processes that do so do no harm.
const ColdLease = "cold"

// DefaultColdAfter is how long after the last write a thread is frozen if its tenant's policy
// does not say.
const DefaultColdAfter = 30 * 24 * time.Hour

// Threads lists threads by what is in memory. The queries implement it.
type Threads interface {
	// Tenants returns the tenants that have threads.
	Tenants(ctx context.Context) ([]string, error)
	// Warm returns up to most threads that did not change since a time and are not cold, those
	// after a place, and the place after which to go on; 0: there are no more.
	Warm(tenant string, until time.Time, after uint64, most int) (ids []string, next uint64)
	// Marked does the same for threads that are cold and whose documents are still there.
	Marked(tenant string, after uint64, most int) (ids []string, next uint64)
	// Claimed returns threads, by tenant, whose documents somebody began to remove after a time:
	// those with which that began last, some hundred at most.
	Claimed(since time.Time) map[string][]string
}

// ColdPolicies returns how long after the last write the threads of the tenants that say so are
// frozen; negative: never. All others have [DefaultColdAfter].
func ColdPolicies(ctx context.Context, log *eventlog.Log) (map[string]time.Duration, error) {
	out := map[string]time.Duration{}
	err := eachRetention(ctx, log, func(tenant string, p events.PolicyDefinition) {
		switch {
		case p.ColdAfterDays == nil:
		case *p.ColdAfterDays == 0:
			out[tenant] = -1
		default:
			out[tenant] = days(*p.ColdAfterDays)
		}
	})
	return out, err
}

// RunCold freezes the idle threads of all tenants periodically, and removes the documents of those
// that are cold, until ctx ends. It first freezes some when the first period is over: while an
// installation is updated, queries may be answered by an older Skein, which does not know cold
// threads. Call it under the lease [ColdLease].
func (a *Archiver) RunCold(ctx context.Context, threads Threads) error {
	switch _, err := threads.Tenants(ctx); { // when it returns, the list is complete
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	}
	unfinished := threads.Claimed(time.Now().Add(-strippedWithin)) // by a process that may have been killed meanwhile
	refused := map[string]time.Time{}                              // threads that were idle and not frozen, and when they are looked at again
	for due := a.cfg.Now().Add(a.cfg.Every); ; {
		if now := a.cfg.Now(); !now.Before(due) {
			due = now.Add(a.cfg.Every)
			maps.DeleteFunc(refused, func(_ string, until time.Time) bool { return !now.Before(until) })
			if err := a.freezeAll(ctx, threads, refused); err != nil && ctx.Err() == nil {
				a.logger.Warn().Err(err).Msg("freeze idle threads: incomplete; retrying")
			}
		}
		if err := a.stripAll(ctx, threads, unfinished); err != nil && ctx.Err() == nil {
			a.logger.Warn().Err(err).Msg("remove documents of cold threads: incomplete; retrying")
		}
		if !retry.Sleep(ctx, min(a.cfg.Every, max(a.cfg.Settle, time.Second))) {
			return nil
		}
	}
}

// refusedFor is how long a thread that could not be frozen is left alone: to find that out, all of
// it is read.
const refusedFor = 24 * time.Hour

// freezeAll freezes the idle threads of all tenants, but for those that were refused.
func (a *Archiver) freezeAll(ctx context.Context, threads Threads, refused map[string]time.Time) error {
	policies, err := ColdPolicies(ctx, a.log)
	if err != nil {
		return err
	}
	return eachPage(ctx, threads, func(tenant string, after uint64) ([]string, uint64) {
		idle, ok := policies[tenant]
		if !ok {
			idle = DefaultColdAfter
		}
		if idle < 0 {
			return nil, 0
		}
		ids, next := threads.Warm(tenant, a.cfg.Now().Add(-idle), after, frozenTogether)
		return slices.DeleteFunc(ids, func(id string) bool { _, known := refused[documents.ThreadName(tenant, id)]; return known }), next
	}, func(tenant string, ids []string) error {
		idle, ok := policies[tenant]
		if !ok {
			idle = DefaultColdAfter
		}
		began, frozen := time.Now(), 0
		err := a.Freeze(ctx, tenant, ids, Options{Idle: idle}, func(r Result) {
			switch r.Outcome {
			case Frozen:
				frozen++
			case Busy, Long:
				refused[documents.ThreadName(tenant, r.Thread)] = a.cfg.Now().Add(refusedFor)
			case Differs:
				refused[documents.ThreadName(tenant, r.Thread)] = a.cfg.Now().Add(refusedFor)
				a.logger.Error().Str("tenant", tenant).Str("thread", r.Thread).Str("why", r.Reason).Msg("an idle thread is not frozen")
			}
		}, func(id string, err error) {
			a.logger.Error().Err(err).Str("tenant", tenant).Str("thread", id).Msg("an idle thread is not frozen")
		})
		if frozen > 0 {
			a.logger.Info().Str("tenant", tenant).Int("threads", frozen).Msg("idle threads were frozen")
		}
		retry.Sleep(ctx, time.Duration(float64(len(ids))/a.cfg.ColdRate*float64(time.Second))-time.Since(began))
		return err
	})
}

// stripAll removes the documents of all cold threads that still have them, first of those whose
// removal was interrupted. Of threads whose removal fails it notes that it is unfinished.
func (a *Archiver) stripAll(ctx context.Context, threads Threads, unfinished map[string][]string) error {
	for tenant, ids := range unfinished {
		if _, err := a.Strip(ctx, tenant, ids, true); err != nil {
			return err
		}
		delete(unfinished, tenant)
	}
	return eachPage(ctx, threads, func(tenant string, after uint64) ([]string, uint64) {
		return threads.Marked(tenant, after, frozenTogether)
	}, func(tenant string, ids []string) error {
		_, err := a.Strip(ctx, tenant, ids, false)
		if err != nil {
			unfinished[tenant] = append(unfinished[tenant], ids...)
		}
		return err
	})
}

// eachPage passes the pages of threads of every tenant on. The first error of a tenant ends its
// pages, and the others continue.
func eachPage(ctx context.Context, threads Threads, page func(tenant string, after uint64) ([]string, uint64), work func(tenant string, ids []string) error) error {
	tenants, err := threads.Tenants(ctx)
	if err != nil {
		return err
	}
	for _, tenant := range tenants {
		for after, more := uint64(0), true; more && ctx.Err() == nil; {
			ids, next := page(tenant, after)
			if len(ids) > 0 {
				if failed := work(tenant, ids); failed != nil {
					err = failed
					break
				}
			}
			after, more = next, next > 0
		}
	}
	return err
}

// strippedWithin is how long before a process takes over a removal may have been interrupted. What
// an older one has left costs memory, and nothing else.
const strippedWithin = time.Hour
