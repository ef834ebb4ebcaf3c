package audit

import (
	"context"
	"runtime"
	"sync"

	"github.com/skein-threads/skein/eventlog/streams"
	"github.com/skein-threads/skein/events"
)

// Aggregates are independent, so several are checked at a time: while one waits for the
// server, others are checked on the other processors.
const (
	leastWorkers = 2
	mostWorkers  = 8 // each holds a batch of commits
	aheadOfTell  = 4 // aggregates a worker may be ahead of the one whose findings are being reported
	heldFindings = 8 // each is a hundred bytes, of every aggregate
)

// work is one aggregate to check, and its results. Findings are reported in the order of the
// list, whichever finishes first.
type work struct {
	listed
	done     int64             // aggregates before it
	named    bool              // it was requested, so it must exist
	snapshot bool              // it has one
	commits  []streams.Message // all that the log has of it; nil: they are to be read

	found chan news // closed when it is done; then the rest may be read
	there bool
	part  verifier // the counts of this one
	err   error
}

// news is a finding, or the progress of a long thread.
type news struct {
	finding Finding
	commits int // 0: it is a finding
}

// each checks aggregates, several at a time, and reports findings in the order in which give
// yields the aggregates.
func (v *verifier) each(ctx context.Context, give func(yield func(*work) bool) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	workers := min(max(2*runtime.GOMAXPROCS(0), leastWorkers), mostWorkers)
	jobs, order := make(chan *work), make(chan *work, aheadOfTell*workers)
	var listed error // read when order is closed
	running.Go(func() {
		defer close(order)
		defer close(jobs)
		listed = give(func(w *work) bool {
			w.found = make(chan news, heldFindings)
			for _, to := range []chan *work{order, jobs} {
				select {
				case to <- w:
				case <-ctx.Done():
					return false
				}
			}
			return true
		})
	})
	for range workers {
		running.Go(func() {
			j := newJudge(v.judge.schema, nil)
			j.gone = v.judge.gone
			for w := range jobs {
				v.work(ctx, w, j)
			}
		})
	}
	for w := range order {
		if err := v.take(ctx, w); err != nil {
			return err
		}
	}
	return listed
}

// work checks an aggregate on behalf of v, without changing v.
func (v *verifier) work(ctx context.Context, w *work, j *judge) {
	defer close(w.found)
	mine := &verifier{log: v.log, options: v.options, judge: j, begun: v.begun, first: v.first, last: v.last, relatives: v.relatives, parents: v.parents, keys: v.keys, shown: v.shown, folds: v.folds}
	mine.options.Finding = func(f Finding) {
		select {
		case w.found <- news{finding: f}:
		case <-ctx.Done():
		}
	}
	mine.options.Progress = func(p Progress) {
		select {
		case w.found <- news{commits: p.Commits}:
		default: // reported later
		}
	}
	j.find = mine.find
	w.there, w.err = mine.aggregate(ctx, w)
	w.part = *mine
}

// take reports the findings of an aggregate as they arrive, and adds its counts.
func (v *verifier) take(ctx context.Context, w *work) error {
	for {
		select {
		case t, more := <-w.found:
			switch {
			case !more:
				return v.add(w)
			case t.commits > 0:
				v.progress(StageLog, w.done, w.done+w.left+1, t.commits)
			default:
				v.tell(t.finding)
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// add adds the counts of a finished aggregate.
func (v *verifier) add(w *work) error {
	p := &w.part
	v.summary.Threads += p.summary.Threads
	v.summary.Others += p.summary.Others
	v.summary.Commits += p.summary.Commits
	v.summary.Events += p.summary.Events
	v.erased += p.erased
	v.archived += p.archived
	for _, s := range p.suspects {
		v.suspicious(s)
	}
	switch {
	case w.err != nil:
		return w.err
	case w.named && !w.there:
		return events.Missing("thread", w.id)
	}
	v.progress(StageLog, w.done+1, w.done+w.left+1, 0)
	return nil
}
