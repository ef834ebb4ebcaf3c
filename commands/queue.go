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

// decideJob runs a job's command, on its thread or on all that it concerns.
func (d *Dispatcher) decideJob(j *job) (*events.Reply, error) {
	if j.command.Groups() {
		return d.group(j)
	}
	return d.wait(j)
}

// wait hands a job to the goroutine of its thread and waits for the answer. A caller that
// finds the thread free becomes that goroutine, for all jobs that arrive meanwhile, until it
// has its own answer.
//
// Nothing that a thread's goroutine calls may wait for a thread, or two of them could
// deadlock.
func (d *Dispatcher) wait(j *job) (*events.Reply, error) {
	e := d.cache.take(j.tenant, j.thread)
	e.mu.Lock()
	if e.busy {
		e.waiting = append(e.waiting, j)
		e.mu.Unlock()
		defer d.cache.give(e)
	} else {
		e.busy = true
		e.mu.Unlock()
		d.work(e, []*job{j}, j) // takes over this reference to the entry
	}
	a := <-j.done
	return a.reply, a.err
}

// work runs the jobs, and those that arrive meanwhile, until none is left. Once own has its
// answer, the rest continues in another goroutine.
func (d *Dispatcher) work(e *entry, jobs []*job, own *job) {
	for {
		for len(jobs) > 0 {
			if own != nil && len(own.done) > 0 {
				go d.work(e, jobs, nil)
				return
			}
			jobs = d.round(e, jobs)
		}
		if own != nil && d.snapshotDue(e) {
			go d.work(e, nil, nil)
			return
		}
		d.snapshot(e)
		e.mu.Lock()
		jobs, e.waiting = e.waiting, nil
		if len(jobs) == 0 {
			e.busy = false
			e.mu.Unlock()
			d.cache.give(e)
			return
		}
		e.mu.Unlock()
	}
}

// round runs some of the jobs in one commit, answers them, and returns the remaining ones.
func (d *Dispatcher) round(e *entry, jobs []*job) []*job {
	if jobs[0].kind == holding {
		jobs[0].hold.grant(jobs[0].ctx, e)
		return jobs[1:]
	}
	return d.commit(e, jobs, d.cfg.Intake.Joins)
}

// commit is round with joins, by which commands of this process join others; nil: none do.
func (d *Dispatcher) commit(e *entry, jobs []*job, joins func([]events.Event) *Joined) []*job {
	for {
		if err := jobs[0].ctx.Err(); err != nil {
			jobs[0].answer(nil, errBusy())
			return jobs[1:]
		}
		draft := jobs
		if err := d.load(jobs[0].ctx, e); err != nil {
			d.logger.Error().Err(err).Str("tenant", e.tenant).Str("thread", e.id).Msg("load thread")
			if e.state == nil || !jobs[0].deletes() {
				jobs[0].answer(nil, err)
				return jobs[1:]
			}
			draft = jobs[:1] // the thread can go even if the history that it has inherited is lost
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
			jobs = append(part(r.taken), r.rest...) // the others are answered
			if r.key != nil && moved.Subject != d.log.Config().Names.Log(e.tenant, e.id) {
				continue // the key has changed, not the thread: it is read again
			}
			if err := d.catchUp(jobs[0].ctx, e, moved.Last); err != nil {
				e.state = nil
			}
		case errors.As(err, &big) && len(r.taken) > 1:
			for _, j := range part(r.taken) { // one of them is too large: each alone
				for rest := []*job{j}; len(rest) > 0; {
					rest = d.commit(e, rest, nil)
				}
			}
			return r.rest
		case errors.As(err, &big):
			r.taken[0].answer(nil, events.TooLarge("the commit", big.Size, big.Limit))
			return r.rest
		case errors.As(err, &unknown):
			e.state = nil
			for _, j := range r.taken {
				j.answer(nil, unknownOutcome(cmp.Or(j.command.Repeat, j.id), err))
			}
			return r.rest
		default:
			for _, j := range r.taken {
				j.answer(nil, err)
			}
			return r.rest
		}
	}
}

// unknownOutcome returns the refusal of a command of which it is unknown whether it was stored.
func unknownOutcome(id string, err error) error {
	refusal := events.Errorf(events.Unavailable, "the outcome of the command is unknown; repeat it with the same commandId: %w", err)
	refusal.Details = &events.ErrorDetails{Outcome: "unknown", ID: id}
	return refusal
}
