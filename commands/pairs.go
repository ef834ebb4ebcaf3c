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

// onPairs executes a command on key-value pairs. done is false for any other command.
func (d *Dispatcher) onPairs(ctx context.Context, c *thread.Command) (reply *events.Reply, err error, done bool) {
	if row, ok := events.LookupCommand(c.Parts[0].Name); !ok || !row.Unlogged {
		return nil, nil, false
	}
	switch {
	case d.cfg.Pairs == nil:
		return nil, events.Errorf(events.Unavailable, "this process stores no key-value pairs"), true
	case c.Expected != nil:
		return nil, events.Invalid("/expectedVersion", "%s is about no thread, whose version this would be", c.Parts[0].Name), true
	}
	switch data := c.Parts[0].Data.(type) {
	case events.SetKV:
		reply, err = d.cfg.Pairs.Set(ctx, c.Tenant, c.ID, data)
	case events.DeleteKV:
		reply, err = d.cfg.Pairs.Delete(ctx, c.Tenant, c.ID, data)
	}
	return reply, schema.Under("/data", err), true
}
