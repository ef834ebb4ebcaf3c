package commands

import (
	"context"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
	"github.com/skein-threads/skein/schema"
)

// Pairs stores the key-value pairs of tenants, which are not in the log. A command with an id
// that was executed on a key returns its first reply. Package eventlog/pairs implements it.
type Pairs interface {
	Set(ctx context.Context, tenant, commandID string, d events.SetKV) (*events.Reply, error)
	Delete(ctx context.Context, tenant, commandID string, d events.DeleteKV) (*events.Reply, error)
}

// Pushes stores where the updates of runs are sent. The same command again does the same. Package
// runtime/webhooks implements it.
type Pushes interface {
	Set(ctx context.Context, tenant, thread string, d events.SetPush) (*events.Reply, error)
	Delete(ctx context.Context, tenant, thread string, d events.DeletePush) (*events.Reply, error)
}

// unlogged executes a command that changes nothing in the log. done is false for any other command.
func (d *Dispatcher) unlogged(ctx context.Context, c *thread.Command) (reply *events.Reply, err error, done bool) {
	row, ok := events.LookupCommand(c.Parts[0].Name)
	if !ok || !row.Unlogged {
		return nil, nil, false
	}
	if c.Expected != nil {
		return nil, events.Invalid("/expectedVersion", "%s changes no thread, whose version this would be", c.Parts[0].Name), true
	}
	if row.Tenant {
		reply, err = d.onPairs(ctx, c)
	} else {
		reply, err = d.onPushes(ctx, c)
	}
	return reply, schema.Under("/data", err), true
}

// onPairs executes a command on key-value pairs.
func (d *Dispatcher) onPairs(ctx context.Context, c *thread.Command) (*events.Reply, error) {
	if d.cfg.Pairs == nil {
		return nil, events.Errorf(events.Unavailable, "this process stores no key-value pairs")
	}
	if data, is := c.Parts[0].Data.(events.DeleteKV); is {
		return d.cfg.Pairs.Delete(ctx, c.Tenant, c.ID, data)
	}
	data, _ := c.Parts[0].Data.(events.SetKV)
	return d.cfg.Pairs.Set(ctx, c.Tenant, c.ID, data)
}

// onPushes executes a command on pushes. The error is a not_found if the tenant has no such thread.
func (d *Dispatcher) onPushes(ctx context.Context, c *thread.Command) (*events.Reply, error) {
	switch {
	case d.cfg.Pushes == nil:
		return nil, events.Errorf(events.Unavailable, "this process stores no pushes")
	case !events.ValidThreadID(c.ThreadID):
		return nil, events.Invalid("/threadId", "%s names its thread by its id, and not by a key", c.Parts[0].Name)
	}
	there := false
	if err := d.Look(ctx, c.Tenant, c.ThreadID, func(s *thread.State) { there = s.Exists() }); err != nil {
		return nil, err
	}
	if !there {
		return nil, events.Missing("thread", c.ThreadID)
	}
	if data, is := c.Parts[0].Data.(events.DeletePush); is {
		return d.cfg.Pushes.Delete(ctx, c.Tenant, c.ThreadID, data)
	}
	data, _ := c.Parts[0].Data.(events.SetPush)
	return d.cfg.Pushes.Set(ctx, c.Tenant, c.ThreadID, data)
}
