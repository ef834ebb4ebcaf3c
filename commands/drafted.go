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

// drafted is what a round is about to store.
type drafted struct {
	draft *thread.Draft
	taken []*job          // whose commands are in the draft
	rest  []*job          // that are for the next round
	key   *eventlog.Write // the claim or release of a key that goes with it

	ids   map[string]bool // of the commands in the draft
	fresh bool            // the state is known to show all that the log has
	joins func([]events.Event) *Joined
}

// fate is what becomes of a job in a round.
type fate int

const (
	answered fate = iota // it has its answer
	taken                // it is in the draft, and others may follow
	closing              // it is in the draft, and nothing may follow
	later                // it is for the next round; others may still go with this one
	full                 // it is for the next round, and so are all after it
)

// draft decides as many jobs as may share a commit. Those that are refused, change
// nothing or were done before are answered at once.
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

// place finds out what becomes of one job.
func (d *Dispatcher) place(e *entry, r *drafted, j *job) fate {
	switch {
	case r.ids[j.id] || len(r.taken) >= mergedCommands || len(r.draft.Events()) >= mergedEvents:
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

// repeats answers a job whose command was done before as it was then.
func (d *Dispatcher) repeats(e *entry, j *job) bool {
	if !j.changes() {
		return false
	}
	seq, did := e.state.Receipt(j.id)
	if !did {
		return false
	}
	j.show(e.state)
	j.answer(d.again(j, seq))
	return true
}

// tell answers a job that changes nothing by what the log shows now.
func (d *Dispatcher) tell(e *entry, r *drafted, j *job) {
	defer r.clear(e)
	if !e.state.Deleted || j.kind == looking { // a deleted thread does nothing more
		if err := d.freshen(j.ctx, e); err != nil {
			j.answer(nil, err)
			return
		}
	}
	j.show(e.state)
	var reply *events.Reply
	if seq, did := e.state.Receipt(j.id); did && j.kind == asking {
		reply = &events.Reply{ThreadID: e.id, Seq: int64(seq)}
	}
	j.answer(reply, nil)
}

// try decides the command of a job. What is refused, or does nothing, is so only on
// all that the log shows now, and never because of what is not stored yet.
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
		return later // what refuses it may be what is not stored yet: it is decided again after that
	case err != nil:
		j.answer(nil, err)
		return answered
	case changesNothing(j, made) && len(r.taken) > 0:
		return full // what it found is not stored yet: it is decided alone
	case changesNothing(j, made): // it is not remembered: a repeat is decided again
		r.clear(e)
		j.show(e.state)
		j.answer(events.ReplyWithout(e.id, e.state.Version, int64(e.state.Seq), made), nil)
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

// changesNothing reports whether a command that was decided is to write nothing.
func changesNothing(j *job, made []events.Event) bool { return len(made) == 0 || j.command.Dry() }

// decideWithKey decides a command, and what is to be written of the key that it
// claims or releases.
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

// clear begins the draft again, of which nothing was taken.
func (r *drafted) clear(e *entry) {
	r.draft, r.key = thread.NewDraft(e.state), nil
}

// store appends a draft, and answers its jobs if it was stored.
func (d *Dispatcher) store(e *entry, r *drafted) error {
	commit, err := events.NewCommit(e.state.Chain, r.draft.Events())
	if err != nil {
		return fmt.Errorf("encoding a commit: %w", err)
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
	if d.cfg.Stored != nil {
		d.cfg.Stored(commit)
	}
	for _, j := range r.taken {
		j.show(e.state)
		j.stored(commit)
	}
	return nil
}

// again returns the first reply of a command that was done before.
func (d *Dispatcher) again(j *job, seq uint64) (*events.Reply, error) {
	commit, err := d.log.Commit(j.ctx, j.tenant, j.thread, seq)
	if err != nil {
		return nil, err
	}
	if commit == nil {
		return nil, events.Errorf(events.NotFound, "the command was done, and its events were erased since")
	}
	j.commit = commit
	return events.ReplyOf(commit, j.id), nil
}
