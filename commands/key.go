package commands

import (
	"context"
	"errors"
	"hash/fnv"
	"slices"
	"time"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/eventlog"
	"github.com/skein-threads/skein/events"
)

// claim is how a key stands in the log, on an aggregate of its own.
type claim struct {
	holder  string // the thread, or nothing
	seq     uint64 // of the aggregate's last commit
	version int64
	chain   string
	time    events.Time
}

// claim reads how a key stands, or stood a moment ago: what is refused because of
// it must be so by claimNow.
func (d *Dispatcher) claim(ctx context.Context, tenant, key string) (claim, error) {
	last, err := d.log.Last(ctx, tenant, events.KeyAggregate(key))
	return claimOf(key, last), err
}

// claimNow reads how a key stands at this moment.
func (d *Dispatcher) claimNow(ctx context.Context, tenant, key string) (claim, error) {
	last, err := d.log.Newest(ctx, tenant, events.KeyAggregate(key))
	return claimOf(key, last), err
}

// claimOf gives how a key stands by the last commit of its aggregate.
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

// write makes the commit that claims or releases a key, to go with the
// thread's own in one atomic write.
func (c claim) write(e events.Event) (eventlog.Write, error) {
	key := keyOf(e.Data)
	e.ThreadID = events.KeyAggregate(key)
	e.ID = events.EventID(e.Tenant, e.ThreadID, e.CommandID, 0)
	e.Subject, e.Version, e.CommandIndex = e.ThreadID, c.version+1, 0
	e.Time = max(e.Time, c.time+1) // the threads that held the key had clocks of their own
	commit, err := events.NewCommit(c.chain, []events.Event{e})
	return eventlog.Write{Commit: commit, Expected: c.seq}, err
}

// keyOf gives the key that an event claims or releases, or nothing.
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

// resolve does thread.resolve: on the thread that holds the key, or on a new
// one that claims it. Two that make it at once are settled by the log.
func (d *Dispatcher) resolve(ctx context.Context, c *thread.Command, key string) (*events.Reply, error) {
	fresh := c.ThreadID
	return d.byKey(ctx, c, key, func(held claim) (*events.Reply, error) {
		return d.resolveAs(ctx, c, key, fresh, held)
	})
}

// onKey does a command on the thread that holds a key.
func (d *Dispatcher) onKey(ctx context.Context, c *thread.Command, key string) (*events.Reply, error) {
	ref := c.ThreadID
	return d.byKey(ctx, c, key, func(held claim) (*events.Reply, error) {
		if held.holder == "" {
			return nil, events.Missing("thread", ref)
		}
		c.ThreadID = held.holder
		return d.queue(ctx, c)
	})
}

// byKey does a command by how its key stands. Before the thread was reached
// another command may have taken or freed the key: then a refusal is about what
// is not so any more, and the command is done by how the key stands now.
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
		gone := errors.Is(err, &events.Error{Code: events.AlreadyExists}) || errors.Is(err, &events.Error{Code: events.NotFound})
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
	// formerAge is how long ago a thread may have lost a key for a command to be looked
	// for there: as long as threads remember commands, and an hour for clocks that differ.
	formerAge = 25 * time.Hour
	// formerHolders is how many threads that lost a key are asked, the last ones first.
	formerHolders = 64
)

// byFormer returns the first answer of a command that names its thread by a key, if
// a thread did it that held the key before; nil if none did.
func (d *Dispatcher) byFormer(ctx context.Context, c *thread.Command, key string, held claim) (*events.Reply, error) {
	former, err := d.former(ctx, c.Tenant, key, held)
	if err != nil {
		return nil, err
	}
	for _, id := range former {
		ask := askJob(ctx, c.Tenant, id, c.ID)
		did, err := d.wait(ask)
		if err != nil {
			return nil, err
		}
		if did != nil {
			return d.again(ask, uint64(did.Seq))
		}
	}
	return nil, nil
}

// former returns the threads that held a key before it stood as held says, the last
// one first.
func (d *Dispatcher) former(ctx context.Context, tenant, key string, held claim) ([]string, error) {
	if held.version < 2 { // nobody has lost it
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

// resolveAs does it with the key held so. Those of this process that would make
// a thread for a key come one after another: all but the first find it then, and
// do not write what the log would refuse.
func (d *Dispatcher) resolveAs(ctx context.Context, c *thread.Command, key, fresh string, held claim) (*events.Reply, error) {
	if held.holder == "" {
		h := fnv.New32a()
		_, _ = h.Write([]byte(c.Tenant + "." + key))
		turn := d.turns[h.Sum32()%uint32(len(d.turns))]
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
		case <-ctx.Done():
			return nil, events.Errorf(events.Unavailable, "too many ask for the key; nothing was written")
		}
		now, err := d.claimNow(ctx, c.Tenant, key)
		if err != nil {
			return nil, err
		}
		if now != held { // the caller has looked at the holders before
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
	return d.wait(j)
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
