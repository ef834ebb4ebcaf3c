package audit

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/eventlog/assets"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/rebuild"
	"github.com/skein-threads/skein/schema"
)

// Options says what to verify.
type Options struct {
	Tenant   string         // only this tenant; all if empty
	Threads  []string       // only these threads of the tenant; all if empty
	Range    Range          // only findings in these commits; read models are not checked
	LogOnly  bool           // do not check what is derived: timeline and read models
	Checks   []Check        // of what is outside the log
	Finding  func(Finding)  // called for each finding; may be nil
	Progress func(Progress) // called after each thread, and periodically; may be nil
}

// validate refuses options that would select something else than intended.
func (o Options) validate() error {
	if o.Tenant != "" {
		if err := events.CheckTenant("/tenant", o.Tenant); err != nil {
			return err
		}
	}
	if len(o.Threads) > 0 && o.Tenant == "" {
		return events.Invalid("/tenant", "threads are of a tenant: name it")
	}
	for _, id := range o.Threads {
		if !validAggregate(id) {
			return events.Invalid("/threads", "%.80q is not a thread's id", id)
		}
	}
	return nil
}

// Verify checks the log, and what is derived from it. Findings are reported as they are found;
// an error means that the check itself could not be done, or that a named thread does not
// exist (not_found).
//
// A range limits the findings to its commits, in the log and on the timeline. The threads of
// those commits are still read from the start, since what an event may do depends on the ones
// before it. Documents show the current state of threads, so with a range they are not
// checked.
func Verify(ctx context.Context, log *eventlog.Log, validator *schema.Validator, o Options) (Summary, error) {
	if err := o.validate(); err != nil {
		return Summary{}, err
	}
	v := &verifier{
		log: log, options: o,
		relatives: recall(mostRelatives, func(map[twin]bool) int64 { return 1 }),
		parents:   recall(mostParentItems, func(p *parentItems) int64 { return int64(len(p.items)) + 1 }),
	}
	v.judge = newJudge(validator, v.find)
	v.judge.gone = func(c *events.Commit) bool {
		last, err := log.Last(ctx, c.Tenant, c.Thread)
		if err != nil || last == nil || !tombstone(last) {
			return false // what cannot be read is reported later
		}
		for m, err := range log.Stored(ctx, log.Config().Names.Log(c.Tenant, c.Thread), 1) {
			return err == nil && m.Seq >= c.Seq
		}
		return true
	}
	stream, err := log.JetStream().Stream(ctx, log.Config().Names.Stream(assets.LogStream))
	if err != nil {
		return v.summary, fmt.Errorf("verify: read log: %w", err)
	}
	v.begun = stream.CachedInfo().State
	if len(o.Threads) == 0 && o.Range.whole() {
		v.keys = &keyClaims{open: map[keyClaim]openClaim{}}
		v.inOrder = stream.CachedInfo().Config.Replicas == 1 // of several, one may list what another does not show yet
	}
	if v.first, v.last, err = o.Range.sequences(ctx, log, v.begun.LastSeq); err != nil {
		return v.summary, err
	}
	v.summary.LastSeq = v.last
	for _, stage := range []func(context.Context) error{v.listSnapshots, v.listDerived, v.logs, v.strangeSnapshots, v.claims, v.sequence, v.derived} {
		if err := stage(ctx); err != nil {
			return v.summary, err
		}
	}
	return v.summary, nil
}

type verifier struct {
	log         *eventlog.Log
	options     Options
	judge       *judge
	begun       jetstream.StreamState // of the log when the check started
	first, last uint64                // of the range
	summary     Summary
	erased      int64 // versions that purged threads have lost
	keeps       retention
	snapshots   snapshotCheck
	archived    int64     // commits that are in archives
	suspects    []suspect // keys and threads that do not confirm one another
	relatives   *recalled[map[twin]bool]
	parents     *recalled[*parentItems]
	keys        *keyClaims            // nil: not all of the log is read
	inOrder     bool                  // the log is read in its own order, where that suffices
	shown       *shownSums            // nil: the timeline is not compared with all of the log
	named       []string              // read models to compare
	folds       *rebuild.Verification // nil: they are not compared with all of the log
}

// find reports a finding, if it is in the range.
func (v *verifier) find(f Finding) {
	if !v.options.Range.whole() && f.Seq != 0 && (f.Seq < v.first || f.Seq > v.last) {
		return
	}
	v.tell(f)
}

func (v *verifier) tell(f Finding) {
	v.summary.Findings++
	if v.options.Finding != nil {
		v.options.Finding(f)
	}
}

// progress reports the progress; more is what is not counted yet.
func (v *verifier) progress(stage string, done, of int64, more int) {
	if v.options.Progress != nil {
		v.options.Progress(Progress{Stage: stage, Done: done, Of: of, Commits: v.summary.Commits + more})
	}
}

// logs checks the log itself, thread by thread.
func (v *verifier) logs(ctx context.Context) error {
	done := int64(0)
	var before *ahead
	if v.inOrder {
		before = readAhead(ctx, v.log, anyTenant(v.options.Tenant))
		defer before.stop()
	}
	next := func(one listed, named bool) *work {
		w := &work{listed: one, done: done, named: named, snapshot: v.snapshots.take(one.aggregate)}
		if before != nil {
			w.commits = before.take(v.log.Config().Names, one)
		}
		done++
		return w
	}
	return v.each(ctx, func(yield func(*work) bool) error {
		for i, id := range v.options.Threads {
			if !yield(next(listed{aggregate: aggregate{v.options.Tenant, id}, left: int64(len(v.options.Threads) - i - 1)}, true)) {
				return nil
			}
		}
		if len(v.options.Threads) > 0 {
			return nil
		}
		all := func(ctx context.Context) iter.Seq2[listed, error] {
			return list(ctx, v.log, anyTenant(v.options.Tenant))
		}
		for a, err := range streams.Prefetch(ctx, listBatch, func(listed) int { return 1 }, all) {
			if err != nil {
				return err
			}
			if a.last < v.first {
				done++
			} else if !yield(next(a, false)) {
				return nil
			}
		}
		return nil
	})
}

func anyTenant(tenant string) string {
	if tenant == "" {
		return "*"
	}
	return tenant
}

// tellEvery is the number of commits of one thread after which progress is reported.
const tellEvery = 1000

// aggregate checks the commits of one subject up to the end of the range, and reports whether
// there are any.
func (v *verifier) aggregate(ctx context.Context, w *work) (there bool, err error) {
	a, snapshot := w.aggregate, w.snapshot
	v.judge.begin(a)
	if snapshot {
		if err := v.beginSnapshot(ctx, a); err != nil {
			return false, err
		}
	}
	checks := make([]ThreadCheck, len(v.options.Checks))
	for i, check := range v.options.Checks {
		checks[i] = check.Thread(a.tenant, a.id)
	}
	counted := 0                    // in the range
	first, sum := v.last, uint64(0) // the first commit; of the timeline's messages
	if v.folds != nil {
		checks = append(checks, foldCheck{v.folds.Thread(a.tenant, a.id)})
	}
	commits := v.log.Raw(ctx, v.log.Config().Names.Log(a.tenant, a.id), 1)
	if w.commits != nil {
		commits = func(yield func(streams.Message, error) bool) {
			for _, m := range w.commits {
				if !yield(m, nil) {
					return
				}
			}
		}
	}
	for m, err := range commits {
		var bad *eventlog.ArchiveError
		if errors.As(err, &bad) {
			if err := v.archive(ctx, bad); err != nil {
				return there, err
			}
			continue
		}
		if err != nil {
			err = fmt.Errorf("read %s/%s: %w", a.tenant, a.id, err)
			if err := v.damaged(ctx, err, v.judge.place(KindBroken, 0, "")); err != nil {
				return there, err
			}
			there, v.judge.unsure = true, true
			break
		}
		if m.Seq > v.last {
			there = true
			v.purgedMeanwhile(m)
			break // later, or after the check started
		}
		before := v.judge.events
		if commit, err := v.log.Decode(m); err != nil {
			v.judge.broken(m.Seq, m.Header.Get(events.HeaderChain), err)
		} else {
			v.judge.commit(commit)
			v.compareSnapshot(a, m.Seq)
			if err := v.message(ctx, m, commit, !there); err != nil {
				return true, err
			}
			for _, check := range checks {
				check.Commit(commit)
			}
			if !m.Archived { // else the timeline need not show it
				first = min(first, m.Seq)
				sum += v.shown.commit(v.log.Config().Names, commit)
			}
		}
		there = true
		if m.Archived {
			v.archived++
		}
		if m.Seq >= v.first {
			counted++
			v.summary.Commits++
			v.summary.Events += v.judge.events - before
		}
		if counted > 0 && counted%tellEvery == 0 {
			v.progress(StageLog, 0, 0, 0)
		}
	}
	if counted > 0 && events.IsThread(a.id) {
		v.summary.Threads++
	} else if counted > 0 {
		v.summary.Others++
	}
	v.erased += v.judge.erased
	v.shown.end(a, first, sum)
	if err := v.endSnapshot(ctx, a); err != nil {
		return there, err
	}
	return there, v.outside(ctx, a, checks)
}

// purgedMeanwhile notes what a purge has erased that began after the check did, as m shows: it may
// have been archived before, and so have been missing when the check began.
func (v *verifier) purgedMeanwhile(m streams.Message) {
	c, err := v.log.Decode(m)
	if err == nil && c.First() > v.judge.version && v.judge.followsPurge(c) {
		v.judge.erased = max(v.judge.erased, c.First())
	}
}

// archive reports an archive that cannot be read, and checks the record after it from what it
// claims. That of a purged thread may be gone, partly or entirely.
func (v *verifier) archive(ctx context.Context, bad *eventlog.ArchiveError) error {
	last, err := v.log.Last(ctx, bad.Tenant, bad.Thread)
	var broken *events.BrokenError
	if err != nil && !errors.As(err, &broken) {
		return fmt.Errorf("read %s/%s: %w", bad.Tenant, bad.Thread, err)
	}
	if err == nil && last != nil && tombstone(last) { // it is erased, or about to be
		v.judge.unsure = true
		return nil
	}
	v.find(Finding{Kind: KindArchive, Tenant: bad.Tenant, Thread: bad.Thread, Detail: bad.Error()})
	v.judge.lost = true
	return nil
}

// outside runs the checks of what is outside the log.
func (v *verifier) outside(ctx context.Context, a aggregate, checks []ThreadCheck) error {
	for _, check := range checks {
		found, err := check.End(ctx)
		for _, f := range found {
			v.find(f)
		}
		if err != nil {
			return fmt.Errorf("check outside the log of %s/%s: %w", a.tenant, a.id, err)
		}
	}
	return v.suspect(ctx)
}

// derived checks what is derived from the log.
func (v *verifier) derived(ctx context.Context) error {
	if v.options.LogOnly {
		return nil
	}
	if err := v.timelines(ctx); err != nil {
		return err
	}
	if !v.options.Range.whole() {
		return nil
	}
	return v.documents(ctx)
}
