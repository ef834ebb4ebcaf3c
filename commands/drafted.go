package commands

import (
	"context"
	"fmt"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
)

// Bounds of one commit that several commands share.
const (
	mergedCommands = 64
	mergedEvents   = 1000
)

// drafted is the commit that one round prepares.
type drafted struct {
	draft *thread.Draft
	taken []*job          // jobs with their commands in the draft
	rest  []*job          // for the next round
	key   *eventlog.Write // the claim or release of a key, written atomically with the draft

	ids   map[string]bool // of the commands in the draft
	fresh bool            // the state is known to be up to date with the log
	joins func([]events.Event) *Joined
}

// fate says what a round has done with a job.
type fate int

const (
	answered fate = iota // the job has its result
	taken                // it is in the draft, and others may follow
	closing              // it is in the draft, and nothing may follow
	later                // it is for the next round; others may still go with this one
	full                 // it and all after it are for the next round
)

// draft decides as many jobs as may share a commit. A job that is refused, changes nothing or
// repeats an executed command gets its result at once.
func (d *Dispatcher) draft(e *entry, jobs []*job, joins func([]events.Event) *Joined) *drafted {
	r := &drafted{draft: thread.NewDraft(e.state), ids: map[string]bool{}, joins: joins}
	for i, j := range jobs {
		switch d.placeJob(e, r, j) {
		case later:
			r.rest = append(r.rest, j)
		case full:
			r.rest = append(r.rest, jobs[i:]...)
			return r
		case closing:
			r.rest = append(r.rest, jobs[i+1:]...)
			return r
		}
	}
	return r
}

// placeJob decides one job and returns its fate.
func (d *Dispatcher) placeJob(e *entry, r *drafted, j *job) fate {
	switch {
	case j.kind == locking || r.ids[j.id] || len(r.taken) >= mergedCommands || len(r.draft.Events()) >= mergedEvents:
		return full
	case d.replyRepeat(e, j):
		return answered
	case len(r.taken) > 0 && j.alone():
		return full
	case !j.changes():
		d.replyUnchanged(e, r, j)
		return answered
	}
	return d.tryJob(e, r, j)
}

// replyRepeat ends a job with the first reply if its command was executed before, and reports
// whether it was.
func (d *Dispatcher) replyRepeat(e *entry, j *job) bool {
	if !j.changes() {
		return false
	}
	seq, done, err := e.state.Executed(j.command)
	if err != nil {
		j.show(e.state)
		j.finish(nil, err)
		return true
	}
	if !done {
		return false
	}
	j.show(e.state)
	j.finish(d.firstReply(j, j.command, seq))
	return true
}

// replyUnchanged ends a job that changes nothing, from the current state of the log.
func (d *Dispatcher) replyUnchanged(e *entry, r *drafted, j *job) {
	defer r.clear(e)
	if !e.state.Deleted || j.kind == looking { // a deleted thread changes no more
		if err := d.freshen(j.ctx, e); err != nil {
			j.finish(nil, err)
			return
		}
	}
	j.show(e.state)
	if j.kind != asking {
		j.finish(nil, nil)
		return
	}
	seq, done, err := e.state.Executed(j.asks)
	if !done {
		j.finish(nil, err)
		return
	}
	j.finish(&events.Reply{ThreadID: e.id, Seq: int64(seq)}, nil)
}

// tryJob decides a job's command. It refuses the command, or finds that it changes nothing, only
// on the current state of the log, never because of events that are not stored yet.
func (d *Dispatcher) tryJob(e *entry, r *drafted, j *job) fate {
	made, err := d.decideWithKey(e, r, j)
	for (err != nil || changesNothing(j, made)) && len(r.taken) == 0 && !r.fresh {
		before := e.state.Seq
		stale := d.freshen(j.ctx, e)
		r.clear(e)
		if stale != nil {
			j.finish(nil, stale)
			return answered
		}
		r.fresh = true
		if e.state.Seq != before {
			if d.replyRepeat(e, j) {
				return answered
			}
			made, err = d.decideWithKey(e, r, j)
		}
	}
	switch {
	case err != nil && len(r.taken) > 0:
		return later // the refusal may be due to events that are not stored yet: decide again afterwards
	case err != nil:
		j.finish(nil, err)
		return answered
	case changesNothing(j, made) && len(r.taken) > 0:
		return full // it may change nothing because of events that are not stored yet: decide it alone
	case changesNothing(j, made): // the command leaves no receipt: a repeat is decided again
		r.clear(e)
		j.show(e.state)
		j.finish(withToken(events.ReplyWithout(e.id, e.state.Version, int64(e.state.Seq), made), j.command, e.state.Hold))
		return answered
	}
	r.ids[j.id] = true
	r.taken = append(r.taken, j)
	r.join(j, made)
	if claims(j.command) {
		return closing
	}
	return taken
}

// changesNothing reports whether a decided command writes nothing.
func changesNothing(j *job, made []events.Event) bool { return len(made) == 0 || j.command.Dry() }

// decideWithKey decides a command, and prepares the write of the key that it claims or
// releases.
func (d *Dispatcher) decideWithKey(e *entry, r *drafted, j *job) ([]events.Event, error) {
	made, err := d.decide(j, r.draft)
	if err != nil || !claims(j.command) {
		return made, err
	}
	if r.key, err = d.keyWrite(j, made); err != nil {
		r.clear(e)
		return nil, err
	}
	return made, nil
}

// clear resets a draft that is empty.
func (r *drafted) clear(e *entry) {
	r.draft, r.key = thread.NewDraft(e.state), nil
}

// store appends a draft and, if it was stored, ends its jobs.
func (d *Dispatcher) store(e *entry, r *drafted) error {
	commit, err := events.NewCommit(e.state.Chain, r.draft.Events())
	if err != nil {
		return fmt.Errorf("encode commit: %w", err)
	}
	writes := []eventlog.Write{{Commit: commit, Expected: e.state.Seq}}
	if r.key != nil {
		writes = append(writes, *r.key)
	}
	if err := d.log.Append(context.WithoutCancel(r.taken[0].ctx), writes...); err != nil {
		return err
	}
	r.draft.Apply(commit)
	d.metrics.Merged(len(r.taken))
	d.cfg.Intake.Stored(commit)
	for _, j := range r.taken {
		j.show(e.state)
		j.stored(commit)
	}
	return nil
}

// firstReply returns the first reply of a command that was executed before.
func (d *Dispatcher) firstReply(j *job, c *thread.Command, seq uint64) (*events.Reply, error) {
	commit, err := d.log.Commit(j.ctx, j.tenant, j.thread, seq)
	if err != nil {
		return nil, err
	}
	if commit == nil {
		return nil, events.Errorf(events.NotFound, "the command was executed, but its events were erased since")
	}
	j.commit = commit
	return withToken(events.ReplyOf(commit, j.id), c, untilIn(commit, j.id))
}
