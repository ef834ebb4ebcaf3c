package commands

import (
	"context"
	"errors"
	"fmt"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
)

// job is a command that waits for its thread.
type job struct {
	ctx     context.Context
	command *thread.Command
	look    func(*thread.State) // sees the state after it; may be nil
	key     *claim              // how its caller found the key that it may claim; nil: it did not look
	done    chan answer         // of capacity 1
	commit  *events.Commit      // that did it, once it is answered
	inside  bool                // nobody wants its reply
	joined  *Joined             // it goes with the job before it, and nobody else waits for it
	alone   bool                // nothing is to go with it
}

type answer struct {
	reply *events.Reply
	err   error
}

func (j *job) answer(reply *events.Reply, err error) {
	if j.joined != nil {
		j.joined.Done(j.commit, err)
		return
	}
	j.done <- answer{reply, err}
}

// Bounds of one commit that several commands share.
const (
	mergedCommands = 64
	mergedEvents   = 1000
)

// queue does a command when its thread is free, and gives its answer. Who finds
// the thread free works for all who come meanwhile, until it has its own answer.
func (d *Dispatcher) queue(ctx context.Context, c *thread.Command) (*events.Reply, error) {
	return d.wait(&job{ctx: ctx, command: c, done: make(chan answer, 1)})
}

// wait hands a job to the goroutine of its thread and waits for the answer.
func (d *Dispatcher) wait(j *job) (*events.Reply, error) {
	e := d.cache.take(j.command.Tenant, j.command.ThreadID)
	e.mu.Lock()
	if e.busy {
		e.waiting = append(e.waiting, j)
		e.mu.Unlock()
		defer d.cache.give(e)
	} else {
		e.busy = true
		e.mu.Unlock()
		d.work(e, []*job{j}, j) // takes over this use of the entry
	}
	a := <-j.done
	return a.reply, a.err
}

// work does the jobs, and what waits for the thread by then, until nothing does.
// When own has its answer, what is left goes on in another goroutine.
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

// round does some of the jobs in one commit, answers them, and gives back the
// others.
func (d *Dispatcher) round(e *entry, jobs []*job) []*job {
	for {
		if err := jobs[0].ctx.Err(); err != nil {
			jobs[0].answer(nil, events.Errorf(events.Unavailable, "the thread was too busy; nothing was written"))
			return jobs[1:]
		}
		if err := d.load(jobs[0].ctx, e); err != nil {
			d.logger.Error().Err(err).Str("tenant", e.tenant).Str("thread", e.id).Msg("a thread could not be loaded")
			jobs[0].answer(nil, err)
			return jobs[1:]
		}
		r := d.draft(e, jobs)
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
			r.taken = part(r.taken)
			jobs = append(r.taken, r.rest...) // the others have their answers
			if r.key != nil && moved.Subject != d.log.Config().Names.Log(e.tenant, e.id) {
				continue // the key has moved, not the thread: it is read anew
			}
			if err := d.catchUp(jobs[0].ctx, e, moved.Last); err != nil {
				e.state = nil
			}
		case errors.As(err, &big) && len(r.taken) > 1:
			for _, j := range part(r.taken) { // one of them is too large: each on its own
				j.alone = true
				for rest := []*job{j}; len(rest) > 0; {
					rest = d.round(e, rest)
				}
			}
			return r.rest
		case errors.As(err, &big):
			r.taken[0].answer(nil, events.TooLarge("the commit", big.Size, big.Limit))
			return r.rest
		case errors.As(err, &unknown):
			e.state = nil
			for _, j := range r.taken {
				refusal := events.Errorf(events.Unavailable, "it is not known whether the command was done; repeat it with the same commandId: %w", err)
				refusal.Details = &events.ErrorDetails{Outcome: "unknown", ID: j.command.ID}
				j.answer(nil, refusal)
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

// drafted is what a round is about to store.
type drafted struct {
	draft *thread.Draft
	taken []*job
	rest  []*job
	key   *eventlog.Write // the claim or release of a key that goes with it
}

// draft decides as many jobs as may share a commit. Those that are refused or
// were done before are answered at once.
func (d *Dispatcher) draft(e *entry, jobs []*job) drafted {
	r := drafted{draft: thread.NewDraft(e.state)}
	fresh := false // the state is known to show the whole log
	ids := map[string]bool{}
	for i := 0; i < len(jobs); i++ {
		j := jobs[i]
		if ids[j.command.ID] || len(r.taken) >= mergedCommands || len(r.draft.Events()) >= mergedEvents {
			r.rest = append(r.rest, jobs[i:]...)
			return r
		}
		if seq, done := e.state.Receipt(j.command.ID); done && len(j.command.Parts) > 0 {
			if j.look != nil {
				j.look(e.state)
			}
			j.answer(d.again(j, seq))
			continue
		}
		if len(r.taken) > 0 && (len(j.command.Parts) == 0 || solo(j.command) || j.command.Dry()) {
			r.rest = append(r.rest, jobs[i:]...)
			return r
		}
		if len(j.command.Parts) == 0 { // it does nothing, and only asks whether it was done
			j.answer(d.known(j, e))
			r.draft = thread.NewDraft(e.state)
			continue
		}
		made, err := d.decide(j, r.draft)
		if err == nil && solo(j.command) {
			if r.key, err = d.keyWrite(j, made); err != nil {
				r.draft = thread.NewDraft(e.state) // it stood alone in it
			}
		}
		nothing := err == nil && (len(made) == 0 || j.command.Dry()) // it is to write nothing
		if nothing {
			if len(r.taken) > 0 { // what it found is not stored yet: it is decided alone
				r.rest = append(r.rest, jobs[i:]...)
				return r
			}
			r.draft = thread.NewDraft(e.state)
		}
		if (err != nil || nothing) && !fresh && len(r.taken) == 0 {
			// The state may be stale: refuse, or do nothing, only on what the log shows now.
			before := e.state.Seq
			if stale := d.freshen(j.ctx, e); stale != nil {
				j.answer(nil, stale)
				r.draft = thread.NewDraft(e.state)
				continue
			}
			fresh = true
			r.draft, r.key = thread.NewDraft(e.state), nil
			if e.state.Seq != before {
				i-- // decide it anew
				continue
			}
		}
		if err != nil && len(r.taken) > 0 {
			// What refuses it may be what is not stored yet, and may never be: it is
			// decided again after that.
			r.rest = append(r.rest, j)
			continue
		}
		if err != nil {
			j.answer(nil, err)
			continue
		}
		if nothing { // it is not remembered: a repeat is decided anew
			if j.look != nil {
				j.look(e.state)
			}
			j.answer(events.ReplyWithout(e.id, e.state.Version, int64(e.state.Seq), made), nil)
			continue
		}
		ids[j.command.ID] = true
		r.taken = append(r.taken, j)
		d.join(&r, j, made)
		if solo(j.command) {
			r.rest = append(r.rest, jobs[i+1:]...)
			return r
		}
	}
	return r
}

// solo reports whether a command may touch a key, and so stands alone in its
// commit.
func solo(c *thread.Command) bool {
	switch c.Parts[0].Data.(type) {
	case events.CreateThread, events.ResolveThread, events.DeleteThread:
		return true
	}
	return false
}

// keyWrite makes the write of the key that a command's events touch, nil if
// they touch none. It waits for no other thread: that one may wait for this one.
func (d *Dispatcher) keyWrite(j *job, made []events.Event) (*eventlog.Write, error) {
	e, ok := keyEvent(made)
	if !ok {
		return nil, nil
	}
	key := keyOf(e.Data)
	held, err := d.claimNow(j.ctx, e.Tenant, key)
	if err != nil {
		return nil, err
	}
	if e.Type == events.KeyClaimedType && held.holder != "" {
		return nil, events.Taken("thread key", key)
	}
	if j.key != nil && held != *j.key {
		// The key may have been taken for this very command since, and freed: the
		// caller looks again.
		return nil, events.Taken("thread key", key)
	}
	w, err := held.write(e)
	return &w, err
}

// store appends a draft, and answers its jobs if it was stored.
func (d *Dispatcher) store(e *entry, r drafted) error {
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
		if j.look != nil {
			j.look(e.state)
		}
		j.commit = commit
		if j.inside {
			j.answer(nil, nil)
			continue
		}
		j.answer(events.ReplyOf(commit, j.command.ID), nil)
	}
	return nil
}

// known says, by a reply, that the log shows a command as done; by none, that it
// does not.
func (d *Dispatcher) known(j *job, e *entry) (*events.Reply, error) {
	if !e.state.Deleted || j.look != nil { // a deleted thread does nothing more
		if err := d.freshen(j.ctx, e); err != nil {
			return nil, err
		}
	}
	if j.look != nil {
		j.look(e.state)
		return nil, nil
	}
	if seq, done := e.state.Receipt(j.command.ID); done {
		return &events.Reply{ThreadID: e.id, Seq: int64(seq)}, nil
	}
	return nil, nil
}

// again gives the first answer of a command that was done before.
func (d *Dispatcher) again(j *job, seq uint64) (*events.Reply, error) {
	commit, err := d.log.Commit(j.ctx, j.command.Tenant, j.command.ThreadID, seq)
	if err != nil {
		return nil, err
	}
	if commit == nil {
		return nil, events.Errorf(events.NotFound, "the command was done, and its events were erased since")
	}
	j.commit = commit
	return events.ReplyOf(commit, j.command.ID), nil
}
