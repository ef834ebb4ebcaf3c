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

// ColdLease is the lease under which one process of an installation freezes threads. Two processes
// at once do no harm.
const ColdLease = "cold"

// DefaultColdAfter is how long after the last write a thread is frozen unless its tenant's policy
// sets another time.
const DefaultColdAfter = 30 * 24 * time.Hour

// Threads lists threads from an index in memory. *query.Queries implements it.
type Threads interface {
	// Tenants returns the tenants that have threads.
	Tenants(ctx context.Context) ([]string, error)
	// Warm returns up to most threads that have not changed since until and are not cold. It
	// begins after a place in its list, and returns the place to continue after; 0: there are no
	// more.
	Warm(tenant string, until time.Time, after uint64, most int) (ids []string, next uint64)
	// Marked is Warm for cold threads that still have documents.
	Marked(tenant string, after uint64, most int) (ids []string, next uint64)
	// Claimed returns, by tenant, the threads for which the removal of documents began after
	// since. It returns the latest, a few hundred at most.
	Claimed(since time.Time) map[string][]string
}

// ColdPolicies returns, for each tenant with a policy that sets it, how long after the last write
// threads are frozen; negative: never. Other tenants have [DefaultColdAfter].
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
// that are cold, until ctx ends. It freezes threads only after the first period: during an update
// of the installation, an older Skein, which does not know cold threads, may still answer queries.
// Call it under the lease [ColdLease].
func (a *Archiver) RunCold(ctx context.Context, threads Threads) error {
	switch _, err := threads.Tenants(ctx); { // when Tenants returns, the list of threads is complete
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	}
	unfinished := threads.Claimed(time.Now().Add(-strippedWithin)) // another process may have been killed while removing their documents
	refused := map[string]time.Time{}                              // when to try again to freeze idle threads that could not be frozen
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

// refusedFor is how long a thread that could not be frozen is not tried again: each try reads all
// of it.
const refusedFor = 24 * time.Hour

// freezeAll freezes the idle threads of all tenants, except those in refused.
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

// stripAll removes the documents of all cold threads that still have them. It begins with the
// threads in unfinished, and adds threads for which the removal fails to it.
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

// eachPage calls work with each page of threads of every tenant. After an error it skips the rest
// of the tenant, and continues with the next one.
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

// strippedWithin is how far back a new process looks for interrupted removals. The leftovers of an
// older one only cost memory.
const strippedWithin = time.Hour
