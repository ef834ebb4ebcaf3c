package query

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
)

// behind returns the error that the read models do not show yet what a query asks for.
func (q *Queries) behind(format string, args ...any) *events.Error {
	e := events.Errorf(events.ProjectionBehind, format, args...)
	e.Details = &events.ErrorDetails{Seq: int64(q.cfg.Progress.Seq())}
	return e
}

// answerWithin is how much of the sender's time a query reserves for sending the answer after it
// has waited.
const answerWithin = 250 * time.Millisecond

// waiting returns a context for the rest of the time that the query may wait for the read models.
// It ends answerWithin before the sender's deadline, so that the sender still gets the answer that
// the read models are behind. Call done when the wait is over.
func (a *asking) waiting() (_ context.Context, done func()) {
	most := *a.patience
	if end, ok := a.ctx.Deadline(); ok {
		left := time.Until(end)
		most = min(most, left-min(left/4, answerWithin))
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(a.ctx, most)
	return ctx, func() {
		cancel()
		*a.patience -= time.Since(began)
	}
}

// awaitSeq waits until the read models show a sequence of the log or, if the answer comes from the
// log itself, until the log has reached it.
func (a *asking) awaitSeq(least *int64, fromLog bool) error {
	if least == nil || a.cfg.Progress.Seq() >= uint64(*least) {
		return nil
	}
	if fromLog {
		if reached, err := a.log.Reaches(a.ctx, uint64(*least)); err == nil && reached {
			return nil
		}
	}
	ctx, done := a.waiting()
	defer done()
	if a.cfg.Progress.Wait(ctx, uint64(*least)) != nil {
		return a.behind("the read models show the log up to %d, not yet %d", a.cfg.Progress.Seq(), *least)
	}
	return nil
}

// awaitLast waits until the read models show a sequence that the log has reached, as far as an
// aggregate is concerned: its documents follow from its own commits, and nothing of others is waited
// for.
func (a *asking) awaitLast(aggregate string, least *int64) error {
	shown := a.cfg.Progress.Seq()
	if least == nil || shown >= uint64(*least) {
		return nil
	}
	last, err := a.log.LastSeqBetween(a.ctx, a.tenant, aggregate, shown, uint64(*least))
	if err != nil {
		return err
	}
	return a.awaitSeq(new(int64(last)), false)
}

// awaitStart waits until the read models show the log up to a sequence, at most up to where the
// log ended when this process began to follow them. Before that, after a restore or during a
// rebuild, the read models lack documents.
func (a *asking) awaitStart(upTo uint64) error {
	least := min(a.cfg.Progress.Started(), upTo)
	if a.cfg.Progress.Seq() >= least {
		return nil
	}
	ctx, done := a.waiting()
	defer done()
	if a.cfg.Progress.Wait(ctx, least) != nil {
		return a.behind("%s", NotShown(a.cfg.Progress))
	}
	return nil
}

// awaitThread is awaitStart for one thread, which the read models may show before all others.
func (a *asking) awaitThread(at *events.At) error {
	if at != nil || a.cfg.Progress.Seq() >= a.cfg.Progress.Started() {
		return nil
	}
	last, err := a.log.Newest(a.ctx, a.tenant, a.thread)
	if err != nil || last == nil {
		return err
	}
	return a.awaitStart(last.Seq)
}

// NotShown reports how far the read models are if they do not show the log yet up to where it
// ended when this process began to follow them.
func NotShown(p *buckets.Progress) string {
	shown, end := p.Seq(), p.Started()
	return fmt.Sprintf("the read models are being built from the log, and show it up to commit %d of %d (%d %%); commands are executed meanwhile; try again later", shown, end, shown*100/max(end, 1))
}

// awaitVersion waits until the read models show a version of the thread.
func (a *asking) awaitVersion(least *int64) error {
	if least == nil || *least == 0 {
		return nil
	}
	ctx, done := a.waiting()
	defer done()
	at := int64(0)
	for {
		seq, change := a.cfg.Progress.Now()
		shown, version, err := a.reached(ctx, *least, seq)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if shown {
			return nil
		}
		at = max(at, version)
		a.cfg.Progress.Want()
		select {
		case <-change:
		case <-ctx.Done():
			return a.behind("the read models show the thread at version %d, not yet %d", at, *least)
		}
		retry.Sleep(ctx, 2*time.Millisecond) // under many commits a second, do not check after each
	}
}

// reached reports whether the read models show a version of the thread, and returns the version
// that its document shows. It does not wait for a thread that is not in the log.
func (a *asking) reached(ctx context.Context, least int64, progress uint64) (bool, int64, error) {
	got, err := (&live{q: a.Queries}).get(ctx, a.place(documents.Threads, ""))
	if err != nil {
		return false, 0, err
	}
	if got[0].doc != nil {
		doc := got[0].doc.(*events.Thread)
		if doc.Version < least {
			return false, doc.Version, nil
		}
		// The buckets are written concurrently: wait until all of them have the commit.
		return a.cfg.Progress.Wait(ctx, uint64(doc.Seq)) == nil, doc.Version, nil
	}
	end, err := a.log.LastSeq(ctx)
	if err != nil {
		return false, 0, err
	}
	if progress < end {
		return false, 0, a.cfg.Progress.Wait(ctx, end)
	}
	return true, 0, nil // all commits are shown, so the thread does not exist
}

// confirmed checks a not_found about a thread. shown is the sequence that the read models showed
// when the query began. If the log has a later commit of the thread, confirmed returns its
// sequence: the read models must show it before the query is answered again. Read models that
// claim to show more than they do, or more than the log has, are behind.
func (a *asking) confirmed(err error, shown uint64) (unshown int64, _ error) {
	if a.past || !events.IsThread(a.thread) || !events.IsNotFound(err) {
		return 0, err
	}
	if a.fresh {
		end, failed := a.log.LastSeq(a.ctx)
		if failed != nil {
			return 0, failed
		}
		if shown := a.cfg.Progress.Seq(); shown > end {
			return 0, a.behind("the read models show the log up to %d, and it ends at %d: they belong to a log that has lost its end; see docs/store.md", shown, end)
		}
	}
	last, failed := a.log.Newest(a.ctx, a.tenant, a.thread)
	switch {
	case failed != nil:
		return 0, failed
	case last == nil || len(last.Events) == 0 || buckets.Deletes(last):
		return 0, err
	case last.Seq > shown:
		return int64(last.Seq), err
	}
	got, failed := (&live{q: a.Queries}).get(a.ctx, a.place(documents.Threads, ""))
	if failed != nil {
		return 0, failed
	}
	if doc, shown := got[0].doc.(*events.Thread); shown && doc.Version >= last.Version {
		return 0, err // a thread that is not in the log does not exist
	}
	return 0, a.behind("the read models do not show the thread, and the log has it at version %d", last.Version)
}

// Run follows the bucket of threads until ctx ends, to know how far the read models are and which
// threads exist. After a reconnect it starts over, because a server that crashed may have lost its
// newest writes.
func (q *Queries) Run(ctx context.Context) error {
	buckets.KeepFollowing(ctx, q.log.Streams(), q.follow, func(err error) {
		q.logger.Warn().Err(err).Msg("following the read models was interrupted; starting again")
	})
	return nil
}

// follow follows the bucket of threads until ctx ends or something interrupts it.
func (q *Queries) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := q.models.Of(documents.Threads)
	stream, err := q.log.JetStream().Stream(ctx, q.log.Bucket(p.Bucket).Stream())
	if err != nil {
		return fmt.Errorf("the bucket of %s: %w", p.Name, err)
	}
	all, err := buckets.ReadCheckpoints(ctx, q.log, q.models)
	if err != nil {
		return err
	}
	believed := all[documents.Threads].At + 1 // only checkpoints of threads from this message on are valid
	if all[documents.Threads].Checkpoint == nil || all.Whole() {
		believed = 0
	} else {
		q.cfg.Progress.Set(0) // 0 until a runner has checked it
	}
	end, err := q.log.LastSeq(ctx)
	if err != nil {
		return err
	}
	q.cfg.Progress.Start(end)
	q.directory.Reset()
	var both sync.WaitGroup
	defer both.Wait()
	defer cancel(nil)
	both.Go(func() { cancel(q.followProgress(ctx, stream, believed)) })
	both.Go(func() { cancel(q.followThreads(ctx, stream)) })
	<-ctx.Done()
	return context.Cause(ctx)
}

// threads returns the bucket of threads.
func (q *Queries) threads() streams.Bucket {
	return q.log.Bucket(q.models.Of(documents.Threads).Bucket)
}

// followProgress follows the checkpoint of threads, which says how far all read models are. It
// ignores checkpoints before a given message of the bucket.
func (q *Queries) followProgress(ctx context.Context, stream jetstream.Stream, from uint64) error {
	return buckets.Follow(ctx, stream, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{q.threads().Subject(buckets.CheckpointKey)}, DeliverPolicy: jetstream.DeliverLastPolicy,
	}, nil, func(m jetstream.Msg, _ bool) {
		var c buckets.Checkpoint
		meta, err := m.Metadata()
		if err == nil && meta.Sequence.Stream >= from && json.Unmarshal(m.Data(), &c) == nil && q.shows(ctx, &c) == nil {
			q.cfg.Progress.Set(c.Progress)
		}
	})
}

// shows waits until the replicas that answer reads have what a checkpoint describes. On a cluster
// they may lag.
func (q *Queries) shows(ctx context.Context, c *buckets.Checkpoint) error {
	for _, p := range q.models.List() {
		if len(c.Ends) == documents.Kinds {
			q.log.Bucket(p.Bucket).Shows(c.Ends[p.Kind])
		} else if err := q.log.Bucket(p.Bucket).ShowsAll(ctx); err != nil {
			return err
		}
	}
	return nil
}

// followThreads keeps the directory up to date. Changes that arrive together are applied together,
// so that they take the lock once.
func (q *Queries) followThreads(ctx context.Context, stream jetstream.Stream) error {
	const together = 512
	var waiting []directoryUpdate
	see := func(m jetstream.Msg, last bool) {
		key := q.threads().Key(m.Subject())
		u, ok, err := directoryUpdateOf(key, m)
		if ok || err != nil {
			q.noteDocument(q.models.Of(documents.Threads).Bucket, key, err)
		}
		if ok {
			waiting = append(waiting, u)
		}
		if last || len(waiting) == together {
			q.directory.Apply(waiting)
			clear(waiting)
			waiting = waiting[:0]
		}
	}
	return buckets.Follow(ctx, stream, jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverAllPolicy}, q.directory.Loaded, see)
}
