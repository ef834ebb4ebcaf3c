package server

import (
	"context"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/skein-threads/skein/api/natsagents"
	"github.com/skein-threads/skein/client"
	"github.com/skein-threads/skein/events"
)

// agentsActor is the actor of what callers of agents over NATS do.
const agentsActor = "agents"

// serveAgents serves the agents of all tenants to any client of NATS, if that is configured.
func (a *assembly) serveAgents() error {
	if !a.cfg.AgentsProtocol {
		return nil
	}
	nc, err := a.connect("agents")
	if err != nil {
		return err
	}
	a.agents, err = natsagents.Serve(natsagents.Options{
		Conn: nc, Names: a.cfg.Names, Version: a.cfg.Version, Limits: a.cfg.limits(), Logger: a.logger,
		Client: func(tenant string) (*client.Client, error) {
			return client.New(nc, client.Options{Tenant: tenant, Names: a.cfg.Names, Service: localService{a.Server}, Actor: agentsActor})
		},
		Agents: a.definitions.agents,
	})
	return err
}

// agents lists the agents of all tenants, in order.
func (d *defined) agents(ctx context.Context) ([]natsagents.Agent, error) {
	every, err := d.list.Every(ctx, events.AgentKind)
	if err != nil {
		return nil, err
	}
	list := make([]natsagents.Agent, len(every))
	for i, one := range every {
		var of events.AgentDefinition
		_ = json.Unmarshal(one.Definition.Definition, &of) // it was checked when it was stored
		list[i] = natsagents.Agent{Tenant: one.Tenant, Name: one.Name, Description: of.Description}
	}
	slices.SortFunc(list, func(a, b natsagents.Agent) int {
		return strings.Compare(a.Tenant+" "+a.Name, b.Tenant+" "+b.Name)
	})
	return list, nil
}
