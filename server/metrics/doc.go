// Package metrics is what Skein tells Prometheus of itself.
//
// A [Metrics] has a registry of its own, so that two in one process do not meet,
// and is told by the log, the commands and the read models through their own
// small interfaces. Labels hold names of commands, results and projections, never
// tenants or threads: their number would grow without bound.
package metrics
