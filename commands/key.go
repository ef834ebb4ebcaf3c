package commands

import (
	"context"
	"hash/fnv"
	"slices"
	"time"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
)

// claim is the state of a key, which is an aggregate of its own in the log.
type claim struct {
	holder  string // the thread, or ""
	seq     uint64 // of the aggregate's last commit
	version int64
	chain   string
	time    events.Time
}

// claim reads the state of a key, possibly from a lagging replica. Before a command is refused
// because of it, claimNow must confirm it.
func (d *Dispatcher) claim(ctx context.Context, tenant, key string) (claim, error) {
	last, err := d.log.Last(ctx, tenant, events.KeyAggregate(key))
	return claimOf(key, last), err
}

// claimNow reads the current state of a key.
func (d *Dispatcher) claimNow(ctx context.Context, tenant, key string) (claim, error) {
	last, err := d.log.Newest(ctx, tenant, events.KeyAggregate(key))
	return claimOf(key, last), err
}

// claimOf returns the state of a key after the last commit of its aggregate.
func claimOf(key string, last *events.Commit) claim {
	if last == nil {
		return claim{}
	}
	e := &last.Events[len(last.Events)-1]
	c := claim{seq: last.Seq, version: last.Version, chain: last.Chain, time: e.Time}
	if held, ok := e.Data.(events.KeyClaimed); ok && held.Key == key {
		c.holder = held.ThreadID
	}
	return c
}

// write returns the commit that claims or releases a key, which is written atomically with the
// thread's own.
func (c claim) write(e events.Event) (eventlog.Write, error) {
	key := keyOf(e.Data)
	e.ThreadID = events.KeyAggregate(key)
	e.ID = events.EventID(e.Tenant, e.ThreadID, e.CommandID, 0)
	e.Subject, e.Version, e.CommandIndex, e.CommandDigest = e.ThreadID, c.version+1, 0, ""
	e.Time = max(e.Time, c.time+1) // events of other threads that held the key may have later times
	commit, err := events.NewCommit(c.chain, []events.Event{e})
	return eventlog.Write{Commit: commit, Expected: c.seq}, err
}

// keyOf returns the key that an event claims or releases, or "".
func keyOf(data any) string {
	switch k := data.(type) {
	case events.KeyClaimed:
		return k.Key
	case events.KeyReleased:
		return k.Key
	}
	return ""
}

// keyEvent finds the event of a command that claims or releases a key.
func keyEvent(made []events.Event) (events.Event, bool) {
	for _, e := range made {
		if keyOf(e.Data) != "" {
			return e, true
		}
	}
	return events.Event{}, false
}

// resolve runs thread.resolve: on the thread that holds the key, or on a new one that claims
// it. If two do so at once, the log decides.
func (d *Dispatcher) resolve(ctx context.Context, c *thread.Command, key string) (*events.Reply, error) {
	fresh := c.ThreadID
	return d.byKey(ctx, c, key, func(held claim) (*events.Reply, error) {
		return d.resolveAs(ctx, c, key, fresh, held)
	})
}

// onKey runs a command on the thread that holds a key.
func (d *Dispatcher) onKey(ctx context.Context, c *thread.Command, key string) (*events.Reply, error) {
	ref := c.ThreadID
	return d.byKey(ctx, c, key, func(held claim) (*events.Reply, error) {
		if held.holder == "" {
			return nil, missing(c, ref)
		}
		c.ThreadID = held.holder
		return d.queue(ctx, c)
	})
}

// missing returns the refusal of a command on a thread that does not exist.
func missing(c *thread.Command, ref string) error {
	switch c.Parts[0].Data.(type) {
	case events.MentionThread, events.ForkThread, events.HandoffThread:
		return events.MissingThread(ref)
	}
	return events.Missing("thread", ref)
}

// byKey runs a command according to the state of its key. Another command may claim or free the
// key meanwhile. A refusal is then outdated, and the command is run again according to the key's
// current state.
func (d *Dispatcher) byKey(ctx context.Context, c *thread.Command, key string, do func(claim) (*events.Reply, error)) (*events.Reply, error) {
	held, err := d.claim(ctx, c.Tenant, key)
	for {
		if err != nil {
			return nil, err
		}
		if reply, err := d.byFormer(ctx, c, key, held); reply != nil || err != nil {
			return reply, err
		}
		reply, err := do(held)
		gone := events.HasCode(err, events.AlreadyExists, events.NotFound)
		if !gone {
			return reply, err
		}
		now, readErr := d.claimNow(ctx, c.Tenant, key)
		if readErr != nil {
			return nil, readErr
		}
		if now == held {
			return nil, err
		}
		held = now
	}
}

const (
	// formerAge is how far back former holders of a key are searched for an executed command: as
	// long as threads remember commands, plus an hour for clock differences.
	formerAge = 25 * time.Hour
	// formerHolders bounds how many former holders of a key are asked, latest first.
	formerHolders = 64
)

// byFormer returns the first reply of a command that names its thread by a key, if a thread that
// held the key before executed it; nil if none has.
func (d *Dispatcher) byFormer(ctx context.Context, c *thread.Command, key string, held claim) (*events.Reply, error) {
	former, err := d.former(ctx, c.Tenant, key, held)
	if err != nil {
		return nil, err
	}
	for _, id := range former {
		ask := askJob(ctx, id, c)
		receipt, err := d.runJob(ask)
		if err != nil {
			return nil, err
		}
		if receipt != nil {
			return d.firstReply(ask, c, uint64(receipt.Seq))
		}
	}
	return nil, nil
}

// former returns the threads that held a key before the claim held, latest first.
func (d *Dispatcher) former(ctx context.Context, tenant, key string, held claim) ([]string, error) {
	if held.version < 2 { // no thread has released the key
		return nil, nil
	}
	var ids []string
	seen := uint64(0)
	take := func(commit *events.Commit) {
		seen = commit.Seq
		for i := range commit.Events {
			if lost, ok := commit.Events[i].Data.(events.KeyReleased); ok {
				ids = append(ids, lost.ThreadID)
			}
		}
	}
	for commit, err := range d.log.Since(ctx, tenant, events.KeyAggregate(key), d.cfg.Now().Add(-formerAge)) {
		if err != nil {
			return nil, err
		}
		take(commit)
	}
	for seen > 0 && seen < held.seq { // the copy that was read lags
		commit, err := d.log.After(ctx, tenant, events.KeyAggregate(key), seen)
		if err != nil {
			return nil, err
		}
		if commit == nil {
			break
		}
		take(commit)
	}
	slices.Reverse(ids)
	return ids[:min(len(ids), formerHolders)], nil
}

// resolveAs runs the command for a key in the state held. Commands of this process that would
// create a thread for the same key run one after another, so that all but the first find its
// thread instead of a conflict in the log.
func (d *Dispatcher) resolveAs(ctx context.Context, c *thread.Command, key, fresh string, held claim) (*events.Reply, error) {
	if held.holder == "" {
		h := fnv.New32a()
		_, _ = h.Write([]byte(c.Tenant + "." + key))
		turn := d.keyLocks[h.Sum32()%uint32(len(d.keyLocks))]
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
		case <-ctx.Done():
			return nil, events.Errorf(events.Unavailable, "too many commands wait for the key; nothing was written; try again")
		}
		now, err := d.claimNow(ctx, c.Tenant, key)
		if err != nil {
			return nil, err
		}
		if now != held { // the caller has checked the former holders before
			if reply, err := d.byFormer(ctx, c, key, now); reply != nil || err != nil {
				return reply, err
			}
		}
		held = now
	}
	c.ThreadID = held.holder
	if held.holder == "" {
		c.ThreadID = fresh
	}
	j := commandJob(ctx, requested, c)
	j.key = &held
	return d.decideJob(j)
}

// keyWrite returns the write for the key that a command's events touch, nil if they touch none. It
// must not wait for another thread, which may wait for this one.
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
		// This very command may have claimed the key meanwhile, and the key may have been freed
		// since: the caller reads it again.
		return nil, events.Taken("thread key", key)
	}
	w, err := held.write(e)
	return &w, err
}
