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

// drafted is what one round will store.
type drafted struct {
	draft *thread.Draft
	taken []*job          // their commands are in the draft
	rest  []*job          // for the next round
	key   *eventlog.Write // the claim or release of a key in the same write

	ids   map[string]bool // of the commands in the draft
	fresh bool            // the state is known to be up to date with the log
	joins func([]events.Event) *Joined
}

// fate is the outcome of a job in a round.
type fate int

const (
	answered fate = iota // it has its answer
	taken                // it is in the draft, and others may follow
	closing              // it is in the draft, and nothing may follow
	later                // it is for the next round; others may still go with this one
	full                 // it and all after it are for the next round
)

// draft decides as many jobs as may share a commit. It answers at once those that are refused,
// change nothing or were done before.
func (d *Dispatcher) draft(e *entry, jobs []*job, joins func([]events.Event) *Joined) *drafted {
	r := &drafted{draft: thread.NewDraft(e.state), ids: map[string]bool{}, joins: joins}
	for i, j := range jobs {
		switch d.place(e, r, j) {
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

// place decides one job and returns its fate.
func (d *Dispatcher) place(e *entry, r *drafted, j *job) fate {
	switch {
	case j.kind == holding || r.ids[j.id] || len(r.taken) >= mergedCommands || len(r.draft.Events()) >= mergedEvents:
		return full
	case d.repeats(e, j):
		return answered
	case len(r.taken) > 0 && j.alone():
		return full
	case !j.changes():
		d.tell(e, r, j)
		return answered
	}
	return d.try(e, r, j)
}

// repeats answers a job whose command was done before with the first reply.
func (d *Dispatcher) repeats(e *entry, j *job) bool {
	if !j.changes() {
		return false
	}
	seq, done, err := e.state.Executed(j.command)
	if err != nil {
		j.show(e.state)
		j.answer(nil, err)
		return true
	}
	if !done {
		return false
	}
	j.show(e.state)
	j.answer(d.again(j, j.command, seq))
	return true
}

// tell answers a job that changes nothing from the current state of the log.
func (d *Dispatcher) tell(e *entry, r *drafted, j *job) {
	defer r.clear(e)
	if !e.state.Deleted || j.kind == looking { // a deleted thread changes no more
		if err := d.freshen(j.ctx, e); err != nil {
			j.answer(nil, err)
			return
		}
	}
	j.show(e.state)
	if j.kind != asking {
		j.answer(nil, nil)
		return
	}
	seq, done, err := e.state.Executed(j.asks)
	if !done {
		j.answer(nil, err)
		return
	}
	j.answer(&events.Reply{ThreadID: e.id, Seq: int64(seq)}, nil)
}

// try decides a job's command. It refuses, or finds nothing to do, only on the current state
// of the log, and never because of events that are not stored yet.
func (d *Dispatcher) try(e *entry, r *drafted, j *job) fate {
	made, err := d.decideWithKey(e, r, j)
	for (err != nil || changesNothing(j, made)) && len(r.taken) == 0 && !r.fresh {
		before := e.state.Seq
		stale := d.freshen(j.ctx, e)
		r.clear(e)
		if stale != nil {
			j.answer(nil, stale)
			return answered
		}
		r.fresh = true
		if e.state.Seq != before {
			if d.repeats(e, j) {
				return answered
			}
			made, err = d.decideWithKey(e, r, j)
		}
	}
	switch {
	case err != nil && len(r.taken) > 0:
		return later // what refuses it may not be stored yet: it is decided again after that
	case err != nil:
		j.answer(nil, err)
		return answered
	case changesNothing(j, made) && len(r.taken) > 0:
		return full // what it found is not stored yet: it is decided alone
	case changesNothing(j, made): // it is not recorded: a repeat is decided again
		r.clear(e)
		j.show(e.state)
		j.answer(withToken(events.ReplyWithout(e.id, e.state.Version, int64(e.state.Seq), made), j.command, e.state.Hold))
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

// store appends a draft, and answers its jobs if it was stored.
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

// again returns the first reply of a command that was done before.
func (d *Dispatcher) again(j *job, c *thread.Command, seq uint64) (*events.Reply, error) {
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
