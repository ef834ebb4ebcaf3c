package commands

import (
	"context"
	"errors"
	"hash/fnv"

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

// claim reads how a key stands.
func (d *Dispatcher) claim(ctx context.Context, tenant, key string) (claim, error) {
	last, err := d.log.Last(ctx, tenant, events.KeyAggregate(key))
	if err != nil || last == nil {
		return claim{}, err
	}
	e := &last.Events[len(last.Events)-1]
	c := claim{seq: last.Seq, version: last.Version, chain: last.Chain, time: e.Time}
	if held, ok := e.Data.(events.KeyClaimed); ok && held.Key == key {
		c.holder = held.ThreadID
	}
	return c, nil
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
	for {
		held, err := d.claim(ctx, c.Tenant, key)
		if err != nil {
			return nil, err
		}
		reply, err := d.resolveAs(ctx, c, key, fresh, held)
		// Before the thread was reached another command may have taken or freed
		// the key: then the refusal is about what is not so any more.
		gone := errors.Is(err, &events.Error{Code: events.AlreadyExists}) || errors.Is(err, &events.Error{Code: events.NotFound})
		if !gone {
			return reply, err
		}
		if now, readErr := d.claim(ctx, c.Tenant, key); readErr != nil {
			return nil, readErr
		} else if now == held {
			return nil, err
		}
	}
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
		var err error
		if held, err = d.claim(ctx, c.Tenant, key); err != nil {
			return nil, err
		}
	}
	c.ThreadID = held.holder
	if held.holder == "" {
		c.ThreadID = fresh
	}
	return d.queue(ctx, c)
}
