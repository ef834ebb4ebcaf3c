// Package telemetry exports the runs of agents to an OpenTelemetry collector, as traces
// by the GenAI semantic conventions (v1.41, in development).
//
// # What it promises
//
//   - The export is a function of the log: the ids of spans are derived from the ids of
//     their events, so a run that is exported again, after a restart or by another
//     process, is the same trace with the same spans.
//   - A run is exported after its thread.finished, at least once, in the trace of the
//     request that asked for it, if that had one.
//   - A slow or unavailable collector delays only this exporter: its queue is the log,
//     its memory is bounded, and spans that the collector does not accept within
//     [Config.GiveUp] are dropped, counted and reported in one log line a batch.
//   - No content of items, no arguments and no results are exported, unless
//     [Config.Content] is set. Error texts and log lines are, truncated to 1 KiB.
//
// # What it does not
//
// It does not export runs that ended before it was first started, and does not show a
// run before it has ended. It measures nothing itself: spans contain only what events
// record.
//
// # How it works
//
// One [Exporter] of the installation runs, under the lease [Lease]. It follows the log
// and keeps, for each active run, what its spans need ([run]); when the run ends it
// creates them, with the SDK of OpenTelemetry and an id generator of our own. A run
// whose start it has not seen, because it was restarted or had too many in memory, is
// read from its thread when it ends. Its position is a key of a bucket, written after
// spans were sent or dropped.
package telemetry
