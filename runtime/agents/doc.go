// Package agents finds what a run needs by name: agents by the tenant's
// definitions, reactors and tools in this process, on NATS, or at MCP servers.
//
// # What it promises
//
//   - An agent is made of the definitions as they are when a run is claimed, and
//     names the version of each, so that the run can record them.
//   - A name that no definition has is an agent all the same: one whose reactor
//     has that name, without a prompt and without tools. So the first agent needs
//     nothing but a process that answers on skein.reactor.{name}.
//   - A definition is a tenant's, and gives the tenant nothing of this process
//     but what its operator allows: no program is started and no variable of the
//     environment read unless the configuration names it.
//
// # What it does not
//
// It does not keep definitions (see definitions.Definitions, whose reads may lag
// by a moment), and it does not know whether a process answers for a name before
// it is asked.
package agents
