package archive

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
	"github.com/skein-threads/skein/projections/rebuild"
)

// The outcomes of freezing a thread, besides Already, Young, Busy, Moved, Ended and Due.
const (
	Frozen  Outcome = "frozen"  // its documents are removed from the read models once it is certain that they need not be restored
	Long    Outcome = "long"    // it has too much to be read from its log when it is asked for
	Differs Outcome = "differs" // its documents are not what its log says; see skein replay
)

// frozenTogether is how many threads are frozen with one comparison and one burst of writes.
const frozenTogether = 128

// Freeze marks threads of a tenant as cold if they are idle, and reports each; see package
// projections/cold. [Archiver.Strip] removes the documents of those that were marked.
//
// A thread is frozen only if a fold of its log says exactly what its documents say. A write to
// it at the same time wins.
func (a *Archiver) Freeze(ctx context.Context, tenant string, ids []string, o Options, done func(Result), failed func(thread string, err error)) error {
	if !events.ValidTenant(tenant) {
		return events.Invalid("/tenant", "a tenant is 1 to 64 letters, digits, dashes and underscores")
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

// checkRunner returns an unavailable if the runner does not bring cold threads back.
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

// commitBytes is how many bytes of a thread count for each of its commits: reading one costs as
// much as so many bytes do.
const commitBytes = 1 << 10

// FreezeIdle freezes the idle threads of a tenant, those idle for longest first, and reports each
// that is not cold already.
func (a *Archiver) FreezeIdle(ctx context.Context, tenant string, o Options, done func(Result), failed func(thread string, err error)) error {
	if !events.ValidTenant(tenant) {
		return events.Invalid("/tenant", "a tenant is 1 to 64 letters, digits, dashes and underscores")
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
}

// freezeSome freezes threads together.
func (a *Archiver) freezeSome(ctx context.Context, tenant string, ids []string, o Options, done func(Result), failed func(string, error)) error {
	var idle []warmThread
	end := uint64(0)
	for _, id := range ids {
		w := warmThread{id: id}
		outcome, reason, err := a.freezable(ctx, tenant, &w, o)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			failed(id, fmt.Errorf("freeze %s/%s: %w", tenant, id, err))
		case outcome != "":
			done(Result{Tenant: tenant, Thread: id, Outcome: outcome, Reason: reason})
		default:
			idle = append(idle, w)
			end = max(end, w.seq)
		}
	}
	if len(idle) == 0 {
		return nil
	}
	if err := a.awaitDocuments(ctx, end); err != nil {
		return err
	}
	idle, err := a.readOwn(ctx, tenant, idle, done)
	if err != nil || len(idle) == 0 {
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

// freezable reads a thread's log, and returns the outcome if it cannot be frozen.
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
	}
	if w.seq != last.Seq {
		return Moved, "", nil
	}
	if reason = state.Busy(); reason != "" {
		return Busy, reason, nil
	}
	return "", "", nil
}

// readOwn reads the threads' own documents, which show the last commits now, and leaves out the
// threads of which they show others.
func (a *Archiver) readOwn(ctx context.Context, tenant string, idle []warmThread, done func(Result)) ([]warmThread, error) {
	model := a.models.Of(documents.Threads)
	rest := idle[:0]
	for _, w := range idle {
		own, ok, err := a.log.Bucket(model.Bucket).Newest(ctx, documents.ThreadName(tenant, w.id))
		if err != nil {
			return nil, err
		}
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

// compare leaves out the threads whose documents are not what their log says.
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
	if report.Found > int64(len(report.Differences)) { // which others differ is not known
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

// mark marks threads as cold, on condition that their documents have not changed.
func (a *Archiver) mark(ctx context.Context, tenant string, idle []warmThread, done func(Result)) error {
	acks := make([]jetstream.PubAckFuture, len(idle))
	for i, w := range idle {
		var err error
		if acks[i], err = a.remark(tenant, w.id, w.own, buckets.Mark{Cold: true, At: a.cfg.Now().Unix()}); err != nil {
			return err
		}
	}
	for i, w := range idle {
		r := Result{Tenant: tenant, Thread: w.id, Outcome: Frozen}
		switch marked, err := acknowledged(ctx, acks[i]); {
		case err != nil:
			return err
		case !marked:
			r.Outcome = Moved
		}
		done(r)
	}
	return nil
}

// remark writes a thread's own document again with a mark, on condition that it has not changed.
func (a *Archiver) remark(tenant, id string, own streams.Message, mark buckets.Mark) (jetstream.PubAckFuture, error) {
	bucket := a.log.Bucket(a.models.Of(documents.Threads).Bucket)
	header := mark.Header()
	header[jetstream.ExpectedLastSubjSeqHeader] = []string{strconv.FormatUint(own.Seq, 10)}
	header[jetstream.MsgIDHeader] = []string{nuid.Next()} // so that the runner's fence sees it
	return a.log.JetStream().PublishMsgAsync(&nats.Msg{Subject: bucket.Subject(documents.ThreadName(tenant, id)), Data: own.Data, Header: header})
}

// acknowledged waits for a write, and reports false if its key had changed.
func acknowledged(ctx context.Context, ack jetstream.PubAckFuture) (bool, error) {
	select {
	case <-ack.Ok():
		return true, nil
	case err := <-ack.Err():
		if buckets.IsConflict(err) {
			return false, nil
		}
		return false, err
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// Strip removes the documents of cold threads of a tenant, and returns of how many. Threads
// that are not cold are left out, and so are those that became cold after Config.Settle before
// now: until then a server that loses power may lose the mark.
//
// No write of a runner is removed that a thread needs when it is no longer cold: the buckets'
// ends are read first; then the mark is written again, on condition that it is still there, so
// that a runner that is bringing the thread back has to begin again; and only what was stored
// before is removed.
//
// A thread of which an earlier call has begun to remove documents is left out, too, unless again
// is set: each call interrupts the runner.
func (a *Archiver) Strip(ctx context.Context, tenant string, ids []string, again bool) (int, error) {
	stripped := 0
	for len(ids) > 0 {
		part := ids[:min(len(ids), frozenTogether)]
		ids = ids[len(part):]
		n, err := a.stripSome(ctx, tenant, part, again)
		if stripped += n; err != nil {
			return stripped, fmt.Errorf("remove the documents of cold threads of %s: %w", tenant, err)
		}
	}
	return stripped, nil
}

func (a *Archiver) stripSome(ctx context.Context, tenant string, ids []string, again bool) (int, error) {
	var ends [documents.Kinds]uint64
	for _, p := range a.models.List() {
		if documents.ColdKinds.Has(p.Kind) {
			var err error
			if ends[p.Kind], err = a.log.Streams().LastSeq(ctx, a.log.Bucket(p.Bucket).Stream()); err != nil {
				return 0, err
			}
		}
	}
	claimed, err := a.claim(ctx, tenant, ids, again)
	if err != nil || len(claimed) == 0 {
		return 0, err
	}
	results := make(chan error, documents.Kinds)
	asked := 0
	for _, p := range a.models.List() {
		if !documents.ColdKinds.Has(p.Kind) || ends[p.Kind] == 0 {
			continue
		}
		asked++
		go func() { results <- a.purgeDocuments(ctx, p, tenant, claimed, ends[p.Kind]) }()
	}
	var errs []error
	for range asked {
		errs = append(errs, <-results)
	}
	return len(claimed), errors.Join(errs...)
}

// claim marks cold threads as those whose documents are being removed, and returns them.
func (a *Archiver) claim(ctx context.Context, tenant string, ids []string, again bool) ([]string, error) {
	bucket := a.log.Bucket(a.models.Of(documents.Threads).Bucket)
	settled := a.cfg.Now().Add(-a.cfg.Settle).Unix()
	var acks []jetstream.PubAckFuture
	var asked, claimed []string
	for _, id := range ids {
		own, ok, err := bucket.Newest(ctx, documents.ThreadName(tenant, id))
		if err != nil {
			return nil, err
		}
		mark := buckets.MarkOf(own.Header)
		if !ok || !mark.Cold || mark.Bare && !again || mark.At > settled {
			continue
		}
		mark.Bare = true
		ack, err := a.remark(tenant, id, own, mark)
		if err != nil {
			return nil, err
		}
		acks, asked = append(acks, ack), append(asked, id)
	}
	for i, id := range asked {
		ok, err := acknowledged(ctx, acks[i])
		if err != nil {
			return nil, err
		}
		if ok {
			claimed = append(claimed, id)
		}
	}
	return claimed, nil
}

// purgeDocuments removes what a bucket holds of threads up to a sequence of its own.
func (a *Archiver) purgeDocuments(ctx context.Context, p documents.Projection, tenant string, ids []string, end uint64) error {
	bucket := a.log.Bucket(p.Bucket)
	stream, err := a.log.Streams().Stream(ctx, bucket.Stream())
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := streams.Purge(ctx, stream, jetstream.WithPurgeSubject(bucket.Subject(documents.ThreadName(tenant, id)+".>")), jetstream.WithPurgeSequence(end+1)); err != nil {
			return err
		}
	}
	return nil
}
