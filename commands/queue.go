package commands

import (
	"cmp"
	"context"
	"errors"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
)

// queue runs a command when its thread is free, and returns its reply.
func (d *Dispatcher) queue(ctx context.Context, c *thread.Command) (*events.Reply, error) {
	return d.decideJob(commandJob(ctx, requested, c))
}

// decideJob runs a job's command, with locks if it concerns several threads.
func (d *Dispatcher) decideJob(j *job) (*events.Reply, error) {
	if j.command.Groups() {
		return d.runMulti(j)
	}
	return d.runJob(j)
}

// runJob passes a job to the goroutine that works on its thread, and waits for the result. If
// there is none, the caller becomes that goroutine: it runs all jobs that arrive, until it has its
// own result.
//
// A thread's goroutine must never wait for a thread, or two of them could deadlock.
func (d *Dispatcher) runJob(j *job) (*events.Reply, error) {
	e := d.cache.acquire(j.tenant, j.thread)
	e.mu.Lock()
	if e.busy {
		e.waiting = append(e.waiting, j)
		e.mu.Unlock()
		defer d.cache.release(e)
	} else {
		e.busy = true
		e.mu.Unlock()
		d.runJobs(e, []*job{j}, j) // runJobs releases this reference to the entry
	}
	a := <-j.done
	return a.reply, a.err
}

// runJobs runs the jobs, and those that arrive meanwhile, until none is left. Once own has its
// result, another goroutine runs the rest.
func (d *Dispatcher) runJobs(e *entry, jobs []*job, own *job) {
	for {
		for len(jobs) > 0 {
			if own != nil && len(own.done) > 0 {
				go d.runJobs(e, jobs, nil)
				return
			}
			jobs = d.runRound(e, jobs)
		}
		if own != nil && d.snapshotDue(e) {
			go d.runJobs(e, nil, nil)
			return
		}
		d.snapshot(e)
		e.mu.Lock()
		jobs, e.waiting = e.waiting, nil
		if len(jobs) == 0 {
			e.busy = false
			e.mu.Unlock()
			d.cache.release(e)
			return
		}
		e.mu.Unlock()
	}
}

// runRound runs some of the jobs in one commit, ends them, and returns the remaining ones.
func (d *Dispatcher) runRound(e *entry, jobs []*job) []*job {
	if jobs[0].kind == locking {
		jobs[0].lock.grantTo(jobs[0].ctx, e)
		return jobs[1:]
	}
	return d.commitRound(e, jobs, d.cfg.Intake.Joins)
}

// commitRound is runRound with joins, which returns the command of this process that joins a
// client's command; nil: none joins.
func (d *Dispatcher) commitRound(e *entry, jobs []*job, joins func([]events.Event) *Joined) []*job {
	for {
		if err := jobs[0].ctx.Err(); err != nil {
			jobs[0].finish(nil, errBusy())
			return jobs[1:]
		}
		draft := jobs
		if err := d.load(jobs[0].ctx, e); err != nil {
			d.logger.Error().Err(err).Str("tenant", e.tenant).Str("thread", e.id).Msg("load thread")
			if e.state == nil || !jobs[0].deletes() {
				jobs[0].finish(nil, err)
				return jobs[1:]
			}
			draft = jobs[:1] // a thread can be deleted even if its inherited history is lost
		}
		r := d.draft(e, draft, joins)
		r.rest = append(r.rest, jobs[len(draft):]...)
		if len(r.taken) == 0 {
			return r.rest
		}
		err := d.store(e, r)
		var moved *eventlog.ConflictError
		var big *eventlog.TooLargeError
		var unknown *eventlog.UnknownError
		switch {
		case err == nil:
			return r.rest
		case errors.As(err, &moved):
			jobs = append(withoutJoined(r.taken), r.rest...) // all other jobs have ended
			if r.key != nil && moved.Subject != d.log.Config().Names.Log(e.tenant, e.id) {
				continue // only the key has changed: it is read again
			}
			if err := d.catchUp(jobs[0].ctx, e, moved.Last); err != nil {
				e.state = nil
			}
		case errors.As(err, &big) && len(r.taken) > 1:
			for _, j := range withoutJoined(r.taken) { // one of them is too large: run each alone
				for rest := []*job{j}; len(rest) > 0; {
					rest = d.commitRound(e, rest, nil)
				}
			}
			return r.rest
		case errors.As(err, &big):
			r.taken[0].finish(nil, events.TooLarge("the commit", big.Size, big.Limit))
			return r.rest
		case errors.As(err, &unknown):
			e.state = nil
			for _, j := range r.taken {
				j.finish(nil, unknownOutcome(cmp.Or(j.command.Repeat, j.id), err))
			}
			return r.rest
		default:
			for _, j := range r.taken {
				j.finish(nil, err)
			}
			return r.rest
		}
	}
}

// unknownOutcome returns the error of a command that may or may not have been stored.
func unknownOutcome(id string, err error) error {
	refusal := events.Errorf(events.Unavailable, "the outcome of the command is unknown; repeat it with the same commandId: %w", err)
	refusal.Details = &events.ErrorDetails{Outcome: "unknown", ID: id}
	return refusal
}
