package query

import (
	"context"
	"errors"
	"time"

	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/internal/retry"
	"github.com/skein-threads/skein/projections/buckets"
	"github.com/skein-threads/skein/projections/documents"
)

// behind returns the error that the read models are not as far as a query asks.
func (q *Queries) behind(format string, args ...any) *events.Error {
	e := events.Errorf(events.ProjectionBehind, format, args...)
	e.Details = &events.ErrorDetails{Seq: int64(q.cfg.Progress.Seq())}
	return e
}

// answerWithin is the part of the time of a query's sender that remains for the answer: a query
// that waited longer would end without one.
const answerWithin = 250 * time.Millisecond

// waiting returns a context for what is left of the time that the query may wait for the read
// models. It ends before the sender of the query stops waiting: a sender with less time than
// that is told how far the read models are too. Call done when the wait is over.
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

// awaitSeq waits until the read models show a sequence of the log, or, if the
// answer comes from the log itself, until the log has it.
func (a *asking) awaitSeq(least *int64, fromLog bool) error {
	if least == nil || a.cfg.Progress.Seq() >= uint64(*least) {
		return nil
	}
	if fromLog {
		if end, err := a.log.LastSeq(a.ctx); err == nil && end >= uint64(*least) {
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
		retry.Sleep(ctx, 2*time.Millisecond) // not each of many commits a second need be looked at
	}
}

// reached reports whether the read models show a version of the thread, and which one its
// document shows. It does not wait for a thread that is not in the log.
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
		// The other buckets are written at the same time: all of them must be there.
		return a.cfg.Progress.Wait(ctx, uint64(doc.Seq)) == nil, doc.Version, nil
	}
	end, err := a.log.LastSeq(ctx)
	if err != nil {
		return false, 0, err
	}
	if progress < end {
		return false, 0, a.cfg.Progress.Wait(ctx, end)
	}
	return true, 0, nil // everything is shown, and there is no such thread
}

// confirmed checks a not_found about a thread, of an answer that began when the read models
// showed the log up to a sequence. It is right only if the log had no more of the thread. If it
// had, confirmed returns the sequence that must be shown before the query is answered again. Read
// models that claim more than they show, or more than the log has, are behind.
func (a *asking) confirmed(err error, shown uint64) (unshown int64, _ error) {
	var e *events.Error
	if err == nil || a.past || !events.IsThread(a.thread) || !errors.As(err, &e) || e.Code != events.NotFound {
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
		return 0, err // what is not in it is not there
	}
	return 0, a.behind("the read models do not show the thread, and the log has it at version %d", last.Version)
}
