// Package telemetry gives the runs of agents to an OpenTelemetry collector, as
// traces in the words of the GenAI semantic conventions (v1.41, in development).
//
// # What it promises
//
//   - What is exported is a function of the log: a span's ids are derived from the
//     ids of its events, so that a run that is exported again, after a restart or
//     by another process, is the same trace with the same spans.
//   - A run is exported when thread.finished has come by, at least once, and
//     in the trace of the request that asked for it, if that had one.
//   - A collector that is slow or away holds nothing back but this exporter: its
//     queue is the log, what it holds in memory is bounded, and spans that the
//     collector does not take within [Config.GiveUp] are dropped, counted and
//     told of in one log line a batch.
//   - No content of items, no arguments and no results are exported, unless
//     [Config.Content] says so. Error texts and log lines are, cut to 1 KiB.
//
// # What it does not
//
// It does not export runs that ended before it was first started, and does not
// show a run before it has ended. It measures nothing itself: what no event
// records is in no span.
//
// # How it works
//
// One [Exporter] of the installation runs, under the lease [Lease]. It follows the
// log and keeps, for each run under way, what its spans need ([run]); when the run
// ends it makes them, by the SDK of OpenTelemetry with an id generator of our own.
// A run whose beginning it has not seen, since it was restarted or had too many in
// mind, is read from its thread when it ends. How far it has got is a key of a
// bucket, written after what was sent or dropped.
package telemetry
