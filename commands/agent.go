package commands

import (
	"context"
	"errors"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
)

// knowAgents refuses a command that asks an agent to answer which nobody has defined
// or ever served. Whether that is known now or not, what else goes wrong is for the
// run to say.
func (d *Dispatcher) knowAgents(ctx context.Context, c *thread.Command) error {
	if d.cfg.Agents == nil {
		return nil
	}
	own := "" // of the thread, or assigned by the commands before
	for i, p := range c.Parts {
		switch data := p.Data.(type) {
		case events.AssignAgent:
			own = data.AgentID
		case events.ReactThread:
			name := data.AgentID
			if name == "" {
				name = own
			}
			if name == "" {
				name = d.agentOf(ctx, c)
			}
			if name == "" { // the decision says that it needs one
				continue
			}
			if err := d.cfg.Agents(ctx, c.Tenant, name); errors.Is(err, &events.Error{Code: events.NotFound}) {
				return thread.Blame(err, c, i)
			}
		}
	}
	return nil
}

// agentOf returns the agent in charge of a command's thread, empty if it is not
// known.
func (d *Dispatcher) agentOf(ctx context.Context, c *thread.Command) (name string) {
	found := *c
	if err := d.resolveThread(ctx, &found); err != nil {
		return ""
	}
	if err := d.Look(ctx, found.Tenant, found.ThreadID, func(s *thread.State) {
		if s.Exists() {
			name = s.AgentID()
		}
	}); err != nil {
		return ""
	}
	return name
}
