package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
)

// A command over several threads is run by its caller's goroutine, never by a thread's goroutine.
// It locks each thread that it concerns, in the order of their ids, so that commands cannot
// deadlock. Other commands on these threads wait for the duration of one append. The locks are
// local to this process. If another process writes one of the threads, the log refuses the batch,
// and the command is decided again.

// threadLock is the lock of one thread for a command over several threads. The thread's goroutine
// waits while the lock is held.
type threadLock struct {
	granted  chan *entry // unbuffered, so the lock is passed on only if the caller still waits
	released chan struct{}
}

// grantTo passes the thread to the caller of lockThread, and waits until it is released. It
// returns without passing it on if ctx ends first.
func (h *threadLock) grantTo(ctx context.Context, e *entry) {
	select {
	case h.granted <- e:
		<-h.released
	case <-ctx.Done():
	}
}

// lockThread waits until no other command uses the thread. The caller must call release. Until
// then it must not wait for any other thread, except to lock one with a greater id.
func (d *Dispatcher) lockThread(ctx context.Context, tenant, id string) (e *entry, release func(), err error) {
	h := &threadLock{granted: make(chan *entry), released: make(chan struct{})}
	j := &job{kind: locking, ctx: ctx, done: make(chan jobResult, 1), tenant: tenant, thread: id, lock: h}
	e = d.cache.acquire(tenant, id)
	e.mu.Lock()
	if e.busy {
		e.waiting = append(e.waiting, j)
		e.mu.Unlock()
	} else {
		e.busy = true
		e.mu.Unlock()
		go d.runJobs(d.cache.acquire(tenant, id), []*job{j}, nil) // runJobs releases this reference to the entry
	}
	select {
	case <-h.granted:
		return e, func() {
			close(h.released)
			d.cache.release(e)
		}, nil
	case <-ctx.Done():
		d.cache.release(e)
		return nil, nil, errBusy()
	}
}

func errBusy() error {
	return events.Errorf(events.Unavailable, "the thread was too busy; nothing was written; try again")
}

// runMulti runs a command that may concern several threads. Which threads these are may depend on
// the state of the command's own thread. If that state changes before all of them are locked,
// runMulti starts again with the new set.
func (d *Dispatcher) runMulti(j *job) (*events.Reply, error) {
	ctx, c := j.ctx, j.command
	if err := d.resolveOthers(ctx, c); err != nil {
		return nil, err
	}
	copied, err := d.takeHistory(ctx, c)
	if err != nil {
		return nil, err
	}
	defer func() { d.closeHistory(copied) }()
	leave, err := d.forkPlace(ctx, c)
	if err != nil {
		return nil, err
	}
	defer leave()
	if copied, err = d.beginFork(ctx, copied); err != nil {
		return nil, err
	}
	for ids := []string{c.ThreadID}; ; {
		g := &multiTx{d: d, ctx: ctx, job: j, entries: map[string]*entry{}, copied: copied}
		reply, more, err := g.run(ids)
		if err != nil || len(more) == 0 {
			return reply, err
		}
		ids = more
	}
}

// resolveOthers replaces the keys of the other threads that a command names by their ids.
func (d *Dispatcher) resolveOthers(ctx context.Context, c *thread.Command) error {
	mention, ok := c.Parts[0].Data.(events.MentionThread)
	if !ok {
		return nil
	}
	_, key := events.ThreadRef(mention.MentionedID)
	if key == "" {
		return nil
	}
	held, err := d.claimNow(ctx, c.Tenant, key)
	switch {
	case err != nil:
		return err
	case held.holder == "":
		return events.MissingThread(mention.MentionedID)
	}
	mention.MentionedID = held.holder
	c.Parts[0].Data = mention
	return nil
}

// multiTx is one attempt to run a command with several threads locked.
type multiTx struct {
	d       *Dispatcher
	ctx     context.Context //nolint:containedctx // it lives as long as the command
	job     *job
	entries map[string]*entry
	ids     []string // the keys of entries, sorted, except that the command's own thread is last
	copied  *history // of a fork: its parent's
}

// run locks the threads and runs the command. If the command concerns further threads, run does
// nothing, and returns the ids of all threads to lock.
func (g *multiTx) run(ids []string) (*events.Reply, []string, error) {
	slices.Sort(ids)
	own := g.job.thread
	g.ids = append(slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == own }), own)
	for _, id := range ids {
		e, release, err := g.d.lockThread(g.ctx, g.job.tenant, id)
		if err != nil {
			return nil, nil, err
		}
		defer release()
		g.entries[id] = e
	}
	for {
		if g.ctx.Err() != nil {
			return nil, nil, errBusy()
		}
		if err := g.refresh(); err != nil {
			return nil, nil, err
		}
		own := g.entries[g.job.thread].state
		seq, done, err := own.Executed(g.job.command)
		if err != nil {
			return nil, nil, err
		}
		if done {
			g.job.show(own)
			reply, err := g.d.firstReply(g.job, g.job.command, seq)
			return reply, nil, err
		}
		if more := g.others(); more != nil {
			return nil, more, nil
		}
		reply, err := g.decide()
		if err != nil || reply != nil {
			return reply, nil, err
		}
	}
}

// refresh brings the state of every thread up to date with the log, the command's own thread last.
// So if another process has stored this command meanwhile, and one of the other threads shows its
// events, the own thread shows its receipt.
func (g *multiTx) refresh() error {
	for _, id := range g.ids {
		e := g.entries[id]
		if err := g.d.load(g.ctx, e); err != nil {
			return err
		}
		if err := g.d.freshen(g.ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// others returns all threads that the command concerns if one of them is not locked, otherwise
// nil.
func (g *multiTx) others() []string {
	ids := []string{g.job.thread}
	missing := false
	for _, id := range g.entries[g.job.thread].state.Others(g.job.command) {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
			missing = missing || g.entries[id] == nil
		}
	}
	if !missing {
		return nil
	}
	return ids
}

// decide decides the command on the current states, and stores its events. Both results are nil if
// another process has written to one of the threads meanwhile.
func (g *multiTx) decide() (*events.Reply, error) {
	if err := g.readOn(); err != nil {
		return nil, err
	}
	states := make(map[string]*thread.State, len(g.entries))
	for id, e := range g.entries {
		states[id] = e.state
	}
	own := states[g.job.thread]
	if err := g.d.fillKnown(g.job, thread.NewDraft(own).Needs(g.job.command)); err != nil {
		return nil, err
	}
	if err := g.d.keyIsFree(g.ctx, g.job.command); err != nil {
		return nil, err
	}
	draft := thread.NewGroup(states)
	if err := draft.Do(g.job.command); err != nil {
		return nil, err
	}
	if len(draft.Threads()) == 0 {
		g.job.show(own)
		return events.ReplyWithout(g.job.thread, own.Version, int64(own.Seq), nil), nil
	}
	commits, err := g.store(draft)
	var moved *eventlog.ConflictError
	var big *eventlog.TooLargeError
	var unknown *eventlog.UnknownError
	switch {
	case err == nil:
		g.job.commit = commits[g.job.thread]
		g.job.show(own)
		return withToken(events.ReplyOf(g.job.commit, g.job.id), g.job.command, untilIn(g.job.commit, g.job.id))
	case errors.As(err, &moved):
		return nil, g.catchUp(moved)
	case errors.As(err, &big):
		return nil, events.TooLarge("the commit", big.Size, big.Limit)
	case errors.As(err, &unknown):
		for _, e := range g.entries {
			e.state = nil
		}
		return nil, unknownOutcome(g.job.id, err)
	}
	return nil, err
}

// store appends the events of all threads in one atomic batch, and applies them. The command's own
// thread is last, so a client that waits for the reply's sequence sees the other threads, too.
func (g *multiTx) store(draft *thread.Group) (map[string]*events.Commit, error) {
	commits := map[string]*events.Commit{}
	var writes []eventlog.Write
	ids := draft.Threads()
	if own := slices.Index(ids, g.job.thread); own >= 0 {
		ids = append(slices.Delete(ids, own, own+1), g.job.thread)
	}
	for _, id := range ids {
		e := g.entries[id]
		commit, err := events.NewCommit(e.state.Chain, draft.Draft(id).Events())
		if err != nil {
			return nil, fmt.Errorf("encode commit: %w", err)
		}
		commits[id] = commit
		writes = append(writes, eventlog.Write{Commit: commit, Expected: e.state.Seq})
		key, err := g.d.keyWrite(g.job, draft.Draft(id).Events())
		if err != nil {
			return nil, err
		}
		if key != nil {
			writes = append(writes, *key)
		}
	}
	if err := g.d.log.Append(context.WithoutCancel(g.ctx), writes...); err != nil {
		return nil, err
	}
	for id, commit := range commits {
		draft.Draft(id).Apply(commit)
		g.d.cfg.Intake.Stored(commit)
	}
	g.d.metrics.Merged(1)
	return commits, nil
}

// catchUp reads what another process has written to one of the threads. If it is unknown to which,
// it does nothing, because refresh reads them all.
func (g *multiTx) catchUp(moved *eventlog.ConflictError) error {
	for id, e := range g.entries {
		if moved.Subject != g.d.log.Config().Names.Log(e.tenant, id) {
			continue
		}
		if err := g.d.catchUp(g.ctx, e, moved.Last); err != nil {
			e.state = nil
		}
	}
	return nil
}

// keyIsFree refuses a handoff if its key is taken, before an agent spends time on the summary.
func (d *Dispatcher) keyIsFree(ctx context.Context, c *thread.Command) error {
	handoff, ok := c.Parts[0].Data.(events.HandoffThread)
	if !ok || handoff.Key == "" || handoff.Summary != "" {
		return nil
	}
	held, err := d.claimNow(ctx, c.Tenant, handoff.Key)
	if err == nil && held.holder != "" {
		err = events.Taken("thread key", handoff.Key)
	}
	return err
}
