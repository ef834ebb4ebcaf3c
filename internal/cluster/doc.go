// Package cluster runs a cluster as separate processes of this machine: three
// real nats-servers with the configuration of deploy/cluster, and Skein on them.
// `make cluster` is one of its users, the fault tests are the other.
//
// # What it promises
//
//   - Nothing is left running: every process is ended by Close, and on Linux also
//     when this process dies, however it dies.
//   - A server that was killed or stopped can be started again on what it left.
//   - Ready means ready: a server's JetStream is caught up, Skein takes commands.
//
// # What it does not
//
// It is one machine: what it shows of a disk or a network is that machine's. For
// production each server has a machine of its own; see docs/cluster.md.
package cluster
