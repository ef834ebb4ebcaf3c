package commands

import (
	"context"

	"github.com/skein-threads/skein/commands/thread"
	"github.com/skein-threads/skein/events"
)

// Definitions provides a tenant's definitions to decisions.
type Definitions interface {
	// Policy returns the agent's policy for messages that arrive during a run; "" if the
	// definition has none, or if the agent is not defined.
	Policy(ctx context.Context, tenant, agent string) (events.Policy, error)
	// Modes returns the agent of each mode of a tenant's threads; nil if the tenant has no
	// policy of modes.
	Modes(ctx context.Context, tenant string) (map[string]string, error)
	// Titles returns how a tenant's threads get titles; nil: not by themselves.
	Titles(ctx context.Context, tenant string) (*thread.Titles, error)
	// Summaries returns the agent that writes summaries of a tenant's threads; "": none does.
	Summaries(ctx context.Context, tenant string) (string, error)
	// HasTool reports whether this process has a Go tool of that name.
	HasTool(name string) bool
	// HasEndpoint reports whether an endpoint of models exists for a tenant, as far as this process
	// knows.
	HasEndpoint(tenant, name string) bool
	// Skill reports whether a tenant has a skill.
	Skill(ctx context.Context, tenant, name string) (bool, error)
	// ContextType returns the function that checks a content against a type of contexts. The
	// error is a not_found if there is no such type.
	ContextType(ctx context.Context, tenant, name string) (func(events.JSON) error, error)
	// Lists reports whether an agent's definition lists a tool, so that its model may call it.
	Lists(ctx context.Context, tenant string, of thread.Called) (bool, error)
	// Arguments returns the function that checks the arguments of a call against what its tool
	// takes; nil if this process does not know that.
	Arguments(ctx context.Context, tenant string, of thread.Called) (func(events.JSON) error, error)
}

// noDefinitions is the default of Config.Definitions.
type noDefinitions struct{}

func (noDefinitions) Policy(context.Context, string, string) (events.Policy, error) { return "", nil }

func (noDefinitions) Modes(context.Context, string) (map[string]string, error) { return nil, nil }

func (noDefinitions) Titles(context.Context, string) (*thread.Titles, error) { return nil, nil }

func (noDefinitions) Summaries(context.Context, string) (string, error) { return "", nil }

func (noDefinitions) HasTool(string) bool { return false }

func (noDefinitions) HasEndpoint(string, string) bool { return true }

func (noDefinitions) Skill(context.Context, string, string) (bool, error) { return false, nil }

func (noDefinitions) ContextType(_ context.Context, _, name string) (func(events.JSON) error, error) {
	return nil, events.Missing("definition of the context", name)
}

func (noDefinitions) Lists(context.Context, string, thread.Called) (bool, error) { return false, nil }

func (noDefinitions) Arguments(context.Context, string, thread.Called) (func(events.JSON) error, error) {
	return nil, nil
}

// decide decides a job on a draft, with the tenant's definitions that it needs.
func (d *Dispatcher) decide(j *job, draft *thread.Draft) ([]events.Event, error) {
	if err := d.fillKnown(j, draft.Needs(j.command)); err != nil {
		return nil, err
	}
	return draft.Do(j.command)
}

// fillKnown adds to a job's command what the decision needs to know about the tenant's
// definitions.
func (d *Dispatcher) fillKnown(j *job, need thread.Need) error {
	j.command.Known = thread.Known{}
	if d.cfg.Answers != nil {
		j.command.Known.Fits = d.cfg.Answers.Fits
	}
	if need.Modes {
		modes, err := d.cfg.Definitions.Modes(j.ctx, j.command.Tenant)
		if err != nil {
			return err
		}
		j.command.Modes = modes
	}
	if need.Titles {
		titles, err := d.cfg.Definitions.Titles(j.ctx, j.command.Tenant)
		if err == nil { // if it cannot be read now, the end of the next run sets the title
			j.command.Titles = titles
		}
	}
	if need.Writes {
		agent, err := d.cfg.Definitions.Summaries(j.ctx, j.command.Tenant)
		if err != nil {
			return err
		}
		if j.command.Writes = agent; agent != "" {
			need.Asked = append(need.Asked, thread.Asked{Name: agent})
		}
	}
	if err := d.checkAgents(j, need.Asked); err != nil {
		return err
	}
	if need.Agent != "" {
		policy, err := d.cfg.Definitions.Policy(j.ctx, j.command.Tenant, need.Agent)
		if err != nil {
			return err
		}
		j.command.Policy = policy
	}
	for _, name := range need.Skills {
		there, err := d.cfg.Definitions.Skill(j.ctx, j.command.Tenant, name)
		if err != nil {
			return err
		}
		if j.command.Skills == nil {
			j.command.Skills = map[string]bool{}
		}
		j.command.Skills[name] = there
	}
	for _, name := range need.Tools {
		if d.cfg.Definitions.HasTool(name) {
			if j.command.Tools == nil {
				j.command.Tools = map[string]bool{}
			}
			j.command.Tools[name] = true
		}
	}
	for _, name := range need.Served {
		if !d.cfg.Definitions.HasEndpoint(j.command.Tenant, name) {
			if j.command.Absent == nil {
				j.command.Absent = map[string]bool{}
			}
			j.command.Absent[name] = true
		}
	}
	for _, name := range need.Types {
		check, err := d.cfg.Definitions.ContextType(j.ctx, j.command.Tenant, name)
		switch {
		case events.IsNotFound(err): // the decision reports it
			continue
		case err != nil:
			return err
		}
		if j.command.Types == nil {
			j.command.Types = map[string]func(events.JSON) error{}
		}
		j.command.Types[name] = check
	}
	for _, of := range need.Listed {
		listed, err := d.cfg.Definitions.Lists(j.ctx, j.command.Tenant, of)
		if err != nil {
			return err
		}
		if j.command.Lists == nil {
			j.command.Lists = map[thread.Called]bool{}
		}
		j.command.Lists[of] = listed
	}
	return d.fillTools(j, need.Called)
}

// fillTools adds to a job's command the functions that check the arguments of calls.
func (d *Dispatcher) fillTools(j *job, called []thread.Called) error {
	for _, of := range called {
		check, err := d.cfg.Definitions.Arguments(j.ctx, j.command.Tenant, of)
		if err != nil {
			return err
		}
		if check == nil {
			continue
		}
		if j.command.Takes == nil {
			j.command.Takes = map[thread.Called]func(events.JSON) error{}
		}
		j.command.Takes[of] = check
	}
	return nil
}

// checkAgents refuses a request for an agent that no tenant defines and no process has ever
// served. If the lookup itself fails, the request is accepted, and the run fails if there is no
// such agent.
func (d *Dispatcher) checkAgents(j *job, asked []thread.Asked) error {
	if d.cfg.Agents == nil || j.kind != requested {
		return nil
	}
	for _, a := range asked {
		name, err := j.command.AgentOf(a.Mode, a.Name)
		if err != nil || name == "" { // the decision reports it
			continue
		}
		if err := d.cfg.Agents.Knows(j.ctx, j.command.Tenant, name); events.IsNotFound(err) {
			return thread.Blame(err, j.command, a.Part)
		}
	}
	return nil
}

// Titles returns how a tenant's threads get titles; nil: not by themselves.
func (d *Dispatcher) Titles(ctx context.Context, tenant string) (*thread.Titles, error) {
	return d.cfg.Definitions.Titles(ctx, tenant)
}
