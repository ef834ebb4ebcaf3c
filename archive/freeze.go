package archive

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
	"github.com/skein-threads/skein/projections/rebuild"
)

// The outcomes of freezing a thread, besides Already, Young, Busy, Moved, Ended and Due.
const (
	Frozen  Outcome = "frozen"  // it is marked as cold; its documents are removed after Config.Settle
	Long    Outcome = "long"    // it is too large to be folded from its log on every read
	Differs Outcome = "differs" // its documents differ from a fold of its log; run skein replay
)

// frozenTogether is how many threads are compared and marked together.
const frozenTogether = 128

// Freeze marks threads of a tenant as cold if they are idle, and reports each; see package
// projections/query. [Archiver.Strip] removes the documents of marked threads.
//
// A thread is frozen only if its documents equal a fold of its log. If it is written to at the
// same time, it is not frozen.
func (a *Archiver) Freeze(ctx context.Context, tenant string, ids []string, o Options, done func(Result), failed func(thread string, err error)) error {
	if err := events.CheckTenant("/tenant", tenant); err != nil {
		return err
	}
	for len(ids) > 0 {
		if err := a.checkRunner(ctx); err != nil {
			return fmt.Errorf("freeze threads of %s: %w", tenant, err)
		}
		part := ids[:min(len(ids), frozenTogether)]
		ids = ids[len(part):]
		if err := a.freezeSome(ctx, tenant, part, o, done, failed); err != nil {
			return fmt.Errorf("freeze threads of %s: %w", tenant, err)
		}
	}
	return nil
}

// checkRunner returns an error of code unavailable if the runner is of an older version that
// cannot thaw cold threads.
func (a *Archiver) checkRunner(ctx context.Context) error {
	c, err := buckets.ReadCheckpoint(ctx, a.log, a.models.Of(documents.Threads))
	switch {
	case err != nil:
		return err
	case c.Checkpoint != nil && !c.Thaws:
		return events.Errorf(events.Unavailable, "the read models are kept by an older Skein, which does not know cold threads; update it first")
	}
	return nil
}

// commitBytes is what each commit adds to the size of a thread: reading one more commit costs as
// much as reading that many more bytes.
const commitBytes = 1 << 10

// FreezeIdle freezes the idle threads of a tenant, the longest idle first, and reports each that
// was not cold already.
func (a *Archiver) FreezeIdle(ctx context.Context, tenant string, o Options, done func(Result), failed func(thread string, err error)) error {
	if err := events.CheckTenant("/tenant", tenant); err != nil {
		return err
	}
	cold, err := a.listCold(ctx, tenant)
	if err != nil {
		return fmt.Errorf("list cold threads of %s: %w", tenant, err)
	}
	idle, err := a.list(ctx, tenant, a.cfg.Now().Add(-o.Idle), func(id string, _ uint64) bool { return cold[id] })
	if err != nil {
		return fmt.Errorf("list threads of %s: %w", tenant, err)
	}
	return a.Freeze(ctx, tenant, idle, o, done, func(id string, err error) {
		if !isMissing(err) { // erased since it was listed
			failed(id, err)
		}
	})
}

// listCold returns the threads of a tenant that are cold.
func (a *Archiver) listCold(ctx context.Context, tenant string) (map[string]bool, error) {
	bucket := a.log.Bucket(a.models.Of(documents.Threads).Bucket)
	cold := map[string]bool{}
	for m, err := range a.log.Streams().List(ctx, bucket.Stream(), jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{bucket.Subject(tenant + ".*")}, HeadersOnly: true,
	}) {
		if err != nil {
			return nil, err
		}
		if place, ok := documents.ParsePlace(documents.Threads, bucket.Key(m.Subject())); ok && buckets.MarkOf(m.Headers()).Cold {
			_, id := documents.CutThreadName(place.Thread)
			cold[id] = true
		}
	}
	return cold, nil
}

// warmThread is a thread that may be frozen.
type warmThread struct {
	id  string
	seq uint64          // of its last commit
	own streams.Message // its own document
	in  documents.Mask  // the read models that may have documents of it
}

// readTogether is how many threads are read, or removed from a bucket, at the same time.
const readTogether = 8

// freezeSome freezes at most frozenTogether threads.
func (a *Archiver) freezeSome(ctx context.Context, tenant string, ids []string, o Options, done func(Result), failed func(string, error)) error {
	idle, err := a.readIdle(ctx, tenant, ids, o, done, failed)
	if err != nil || len(idle) == 0 {
		return err
	}
	end := uint64(0)
	for _, w := range idle {
		end = max(end, w.seq)
	}
	if err := a.awaitDocuments(ctx, end); err != nil {
		return err
	}
	if idle, err = a.readOwn(ctx, tenant, idle, done); err != nil || len(idle) == 0 {
		return err
	}
	if idle, err = a.compare(ctx, tenant, idle, done); err != nil {
		return err
	}
	if o.DryRun {
		for _, w := range idle {
			done(Result{Tenant: tenant, Thread: w.id, Outcome: Due})
		}
		return nil
	}
	return a.mark(ctx, tenant, idle, done)
}

// readIdle reads the logs of threads, several at once, and returns those that can be frozen, in
// their order.
func (a *Archiver) readIdle(ctx context.Context, tenant string, ids []string, o Options, done func(Result), failed func(string, error)) ([]warmThread, error) {
	type read struct {
		warmThread
		outcome Outcome
		reason  string
		err     error
	}
	reads := make([]read, len(ids))
	var g errgroup.Group
	g.SetLimit(readTogether)
	for i, id := range ids {
		g.Go(func() error {
			r := &reads[i]
			r.id = id
			r.outcome, r.reason, r.err = a.freezable(ctx, tenant, &r.warmThread, o)
			return nil
		})
	}
	if err := g.Wait(); err != nil || ctx.Err() != nil {
		return nil, errors.Join(err, context.Cause(ctx))
	}
	var idle []warmThread
	for _, r := range reads {
		switch {
		case r.err != nil:
			failed(r.id, fmt.Errorf("freeze %s/%s: %w", tenant, r.id, r.err))
		case r.outcome != "":
			done(Result{Tenant: tenant, Thread: r.id, Outcome: r.outcome, Reason: r.reason})
		default:
			idle = append(idle, r.warmThread)
		}
	}
	return idle, nil
}

// freezable reads a thread's log. If the thread cannot be frozen, it returns the outcome.
func (a *Archiver) freezable(ctx context.Context, tenant string, w *warmThread, o Options) (outcome Outcome, reason string, err error) {
	if !events.ValidThreadID(w.id) {
		return "", "", events.Invalid("/threadId", "%.80q is not a thread's id", w.id)
	}
	last, err := a.log.Newest(ctx, tenant, w.id)
	switch {
	case err != nil:
		return "", "", err
	case last == nil:
		return "", "", events.Missing("thread", w.id)
	case buckets.Deletes(last):
		return Ended, "", nil
	case last.Events[len(last.Events)-1].Type != events.LifecycleArchivedType && last.Events[len(last.Events)-1].Time.Go().After(a.cfg.Now().Add(-o.Idle)):
		return Young, "", nil
	}
	own, ok, err := a.log.Bucket(a.models.Of(documents.Threads).Bucket).Newest(ctx, documents.ThreadName(tenant, w.id))
	if err != nil {
		return "", "", err
	}
	if ok && buckets.MarkOf(own.Header).Cold {
		return Already, "", nil
	}
	state, bytes := &thread.State{}, 0
	for c, err := range a.log.Thread(ctx, tenant, w.id, 1) {
		if err != nil {
			return "", "", err
		}
		if bytes += c.Whole() + commitBytes; bytes > a.cfg.ColdBytes {
			return Long, fmt.Sprintf("its commits have more than %d MiB", a.cfg.ColdBytes>>20), nil
		}
		thread.Apply(state, c)
		w.seq = c.Seq
		w.in |= a.models.Touched(c, documents.ColdKinds)
	}
	if w.seq != last.Seq {
		return Moved, "", nil
	}
	if reason = state.Busy(); reason != "" {
		return Busy, reason, nil
	}
	return "", "", nil
}

// readOwn reads the threads' own documents, and leaves out threads with a document that does not
// show the last commit. The read may be from a lagging replica, because marks are written
// conditionally.
func (a *Archiver) readOwn(ctx context.Context, tenant string, idle []warmThread, done func(Result)) ([]warmThread, error) {
	model := a.models.Of(documents.Threads)
	ids := make([]string, len(idle))
	for i, w := range idle {
		ids[i] = w.id
	}
	owns, err := a.ownDocuments(ctx, tenant, ids)
	if err != nil {
		return nil, err
	}
	rest := idle[:0]
	for _, w := range idle {
		own, ok := owns[w.id]
		seq := uint64(0)
		if ok {
			_, seq, err = model.Decode(own.Data)
		}
		switch {
		case err != nil || !ok:
			done(Result{Tenant: tenant, Thread: w.id, Outcome: Differs, Reason: "it has no document that can be read; run skein replay"})
		case seq != w.seq:
			done(Result{Tenant: tenant, Thread: w.id, Outcome: Moved})
		default:
			w.own = own
			rest = append(rest, w)
		}
	}
	return rest, nil
}

// ownDocuments returns the threads' own documents, without those that do not exist.
func (a *Archiver) ownDocuments(ctx context.Context, tenant string, ids []string) (map[string]streams.Message, error) {
	bucket := a.log.Bucket(a.models.Of(documents.Threads).Bucket)
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = documents.ThreadName(tenant, id)
	}
	got, err := bucket.Get(ctx, names...)
	owns := make(map[string]streams.Message, len(got))
	for _, m := range got {
		_, id := documents.CutThreadName(m.Subject)
		owns[id] = m
	}
	return owns, err
}

// compare leaves out the threads with documents that differ from a fold of their log.
func (a *Archiver) compare(ctx context.Context, tenant string, idle []warmThread, done func(Result)) ([]warmThread, error) {
	scope := rebuild.Scope{Tenant: tenant}
	for _, w := range idle {
		scope.Threads = append(scope.Threads, w.id)
	}
	report, err := rebuild.Verify(ctx, a.log, scope)
	if err != nil {
		return nil, err
	}
	wrong := map[string]string{}
	for _, d := range report.Differences {
		if p, ok := a.models.Named(d.Projection); ok {
			if place, ok := documents.ParsePlace(p.Kind, d.Key); ok {
				wrong[place.Thread] = d.Bucket + " " + d.Key
			}
		}
	}
	if report.Found > int64(len(report.Differences)) { // the report does not list all differences
		return nil, fmt.Errorf("%d documents are not what the log says; run skein replay", report.Found)
	}
	rest := idle[:0]
	for _, w := range idle {
		if key, differs := wrong[documents.ThreadName(tenant, w.id)]; differs {
			done(Result{Tenant: tenant, Thread: w.id, Outcome: Differs, Reason: key + " is not what the log says; run skein replay"})
			continue
		}
		rest = append(rest, w)
	}
	return rest, nil
}
