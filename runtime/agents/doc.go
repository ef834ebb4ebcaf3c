// Package agents finds what a run needs by name: agents by the tenant's definitions,
// reactors and tools in this process, on NATS, or at MCP servers.
//
// # What it promises
//
//   - An agent consists of the definitions as they are when a run is claimed, and names
//     the version of each, so that the run can record them.
//   - A name without a definition is an agent, too: one whose reactor has that name,
//     without a prompt and without tools. So the first agent needs only a process that
//     answers on skein.reactor.{name}.
//   - A definition belongs to a tenant, and permits the tenant no access to this
//     process except what its operator allows: no program is started and no environment
//     variable read unless the configuration names it.
//
// # What it does not
//
// It does not store definitions (see query.Definitions, whose reads may lag by a
// moment), and it does not know whether a process serves a name until it asks.
package agents
