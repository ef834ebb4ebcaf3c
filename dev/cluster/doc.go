// Package cluster runs a cluster as separate processes of this machine: three real
// nats-servers with the configuration of deploy/cluster, and Skein on them. `make
// cluster` and the fault tests use it.
//
// # What it promises
//
//   - Nothing is left running: Close ends every process, and so does the end of this
//     process, on Linux even if it is killed.
//   - A server that was killed or stopped can be restarted on its data.
//   - Ready means ready: a server's JetStream has caught up, Skein accepts commands.
//
// # What it does not
//
// It is one machine: disk and network are that machine's. In production each server has
// a machine of its own; see docs/cluster.md.
package cluster
